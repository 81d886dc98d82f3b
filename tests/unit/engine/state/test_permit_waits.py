"""A wait at Permit ends once: allowed, rejected or timed out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stowage.engine.state.permit_waits import PermitWaits


def test_a_wait_ends_when_the_last_plugin_allows_the_pod() -> None:
    waiting = PermitWaits()
    waiting.add("p", {"A": 5.0, "B": 9.0}, now=0.0)
    assert not waiting.allow("p", "A")
    assert not waiting.allow("p", "A")
    assert waiting.allow("p", "B")
    assert "p" not in waiting
    assert waiting.next_deadline() is None


def test_the_plugin_with_the_first_timeout_rejects_the_pod() -> None:
    waiting = PermitWaits()
    waiting.add("p", {"B": 5.0, "A": 5.0, "C": 3.0}, now=10.0)
    waiting.allow("p", "C")
    assert waiting.next_deadline() == 15.0
    assert waiting.expire(14.9) == []
    ((uid, status),) = waiting.expire(15.0)
    assert (uid, status.plugin) == ("p", "A")
    assert status.message == "rejected due to timeout after waiting 5s at plugin A"
    assert waiting.expire(100.0) == []


def test_a_pod_that_waits_again_has_new_deadlines() -> None:
    waiting = PermitWaits()
    waiting.add("p", {"A": 5.0}, now=0.0)
    waiting.end("p")
    waiting.add("p", {"A": 5.0}, now=4.0)
    assert waiting.expire(5.0) == []
    assert waiting.next_deadline() == 9.0


TIMEOUTS = st.dictionaries(st.sampled_from("AB"), st.integers(1, 9), min_size=1)
STEP = st.sampled_from(("add", "allow", "remove", "expire"))
Step = tuple[str, str, dict[str, int]]


@given(st.lists(st.tuples(STEP, st.sampled_from("pq"), TIMEOUTS)))
def test_the_next_deadline_is_the_earliest_of_all(steps: list[Step]) -> None:
    waiting = PermitWaits()
    deadlines: dict[str, dict[str, float]] = {}
    for now, (step, uid, timeouts) in enumerate(steps):
        if step == "add":
            waiting.add(uid, timeouts, now)
            deadlines[uid] = {plugin: now + limit for plugin, limit in timeouts.items()}
        elif step == "allow":
            plugin = next(iter(timeouts))
            waiting.allow(uid, plugin)
            deadlines.get(uid, {}).pop(plugin, None)
        elif step == "remove":
            waiting.end(uid)
            deadlines.pop(uid, None)
        else:
            late = {each for each in deadlines if min(deadlines[each].values()) <= now}
            assert {each for each, _ in waiting.expire(now)} == late
            deadlines = {each: deadlines[each] for each in deadlines if each not in late}
        deadlines = {each: left for each, left in deadlines.items() if left}
        least = min((min(left.values()) for left in deadlines.values()), default=None)
        assert waiting.next_deadline() == least
