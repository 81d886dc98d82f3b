"""Lists of pods: the search, and the pending pods with their reasons."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from stowage.api.objects.meta import Condition
from stowage.api.objects.pod import Pod
from stowage.console.answers.answer import InvalidQuestion
from stowage.console.answers.pod_lists import PendingQuery, find_pods, pending_pods
from stowage.console.clusters.moment import Moment
from tests.support.builders import make_node, make_pod
from tests.support.consoles import moment_of


def no_time() -> float:
    """A timer that stands still: everything is judged."""
    return 0.0


def told(pod: Pod, message: str) -> Pod:
    """The pod after its scheduler refused it."""
    condition = Condition("PodScheduled", "False", "Unschedulable", message)
    return msgspec.structs.replace(
        pod, status=msgspec.structs.replace(pod.status, conditions=(condition,))
    )


def waiting(**query: object) -> list[str]:
    moment = moment_of(
        make_node(cpu="1"),
        make_pod("b", cpu="2", created="2026-01-01T00:10:00Z"),
        make_pod("a", cpu="2", created="2026-01-01T00:20:00Z", priority=7),
        told(make_pod("c", cpu="2", created="2026-01-01T00:30:00Z"), "because"),
    )
    answer = pending_pods(moment, PendingQuery(**query), no_time)  # type: ignore[arg-type]
    return [each.pod.removeprefix("default/") for each in answer.pods]


@pytest.mark.parametrize(
    ("sort", "want"), [("since", "bac"), ("pod", "abc"), ("priority", "abc"), ("reason", "abc")]
)
def test_pending_pods_are_sorted(sort: str, want: str) -> None:
    assert "".join(waiting(sort=sort)) == want


def test_an_unknown_order_is_refused() -> None:
    with pytest.raises(InvalidQuestion, match="sort: expected since, pod, priority, reason"):
        PendingQuery(sort="colour")


def test_pages_follow_each_other() -> None:
    assert waiting(sort="pod", limit=2) == ["a", "b"]
    assert waiting(sort="pod", limit=2, offset=2) == ["c"]
    assert waiting(text="t/b") == ["b"]


def reasons(moment: Moment, timer: Callable[[], float] = no_time) -> dict[str, tuple[str, str]]:
    answer = pending_pods(moment, PendingQuery(), timer)
    return {each.pod: (each.reason_from, each.reason) for each in answer.pods}


def test_the_reason_is_the_schedulers_or_judged_here() -> None:
    moment = moment_of(
        make_node(cpu="1"),
        told(make_pod("told", cpu="2"), "0/1 nodes are available: too small."),
        make_pod("untold", cpu="3"),
        make_pod("fits", cpu="1"),
        make_pod("gated", gates=["wait"]),
    )
    found = reasons(moment)
    assert found["default/told"] == ("condition", "0/1 nodes are available: too small.")
    assert found["default/untold"][0] == "evaluated"
    assert "Insufficient cpu" in found["default/untold"][1]
    assert found["default/fits"] == ("evaluated", "it fits on node n; no attempt is known")
    assert found["default/gated"][0] == "gate"
    assert "wait" in found["default/gated"][1]


def test_a_pod_that_is_not_judged_in_time_has_no_reason_yet() -> None:
    times = iter([0.0, 0.0, *[100.0] * 50])
    moment = moment_of(make_node(cpu="1"), make_pod("a", cpu="2"), make_pod("b", cpu="3"))
    found = reasons(moment, lambda: next(times))
    assert [each for each, _ in found.values()] == ["evaluated", "none"]


def test_a_judged_pod_says_what_it_waits_for_and_how_long() -> None:
    moment = moment_of(make_node(cpu="1"), make_pod("a", cpu="2"))
    (pod,) = pending_pods(moment, PendingQuery(), no_time).pods
    assert [each.plugin for each in pod.waits_for] == ["NodeResourcesFit"]
    assert pod.pending_s == 3600.0
    assert pod.queue == "active"
    assert pod.requests == {"cpu": 2000}


def test_pods_are_counted_by_queue() -> None:
    moment = moment_of(
        make_pod("new"), told(make_pod("refused"), "no"), make_pod("gated", gates=["wait"])
    )
    answer = pending_pods(moment, PendingQuery(limit=1), no_time)
    assert answer.queues == {"active": 1, "unschedulable": 1, "gated": 1}
    assert (answer.total, answer.matching, len(answer.pods)) == (3, 3, 1)


def test_a_search_finds_pods_by_a_part_of_their_name() -> None:
    moment = moment_of(
        make_node("n"),
        make_pod("web-2", node="n"),
        make_pod("web-1"),
        make_pod("db", namespace="web"),
        make_pod("other"),
    )
    found = find_pods(moment, "web", 2)
    assert [each.pod for each in found.pods] == ["default/web-1", "default/web-2"]
    assert (found.total, found.matching) == (4, 3)
    assert found.pods[1].node == "n"
