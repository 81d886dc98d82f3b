from __future__ import annotations

from itertools import count

import pytest

from stowage.api.cluster_events import ClusterEvent
from stowage.queue import QueuedPod, Registrations, event_registrations
from stowage.queue.event_registrations import (
    EventRegistrations,
    Hint,
    ObjectEvent,
    Registration,
    Requeue,
)
from stowage.queue.hint_durations import HintDurations
from stowage.queue.queue_events import FORCE_ACTIVATE, UNSCHEDULABLE_TIMEOUT
from tests.unit.queue.scenario import NODE_ADD, POD_DELETE, PROFILE, Hints, broken, pending, skip


def _registrations(
    *registered: tuple[str, ClusterEvent, Hint | None],
) -> tuple[EventRegistrations, list[str]]:
    by_plugin: dict[tuple[str, str], list[tuple[ClusterEvent, Hint | None]]] = {}
    for plugin, event, hint in registered:
        by_plugin.setdefault((PROFILE, plugin), []).append((event, hint))
    problems: list[str] = []
    registrations: Registrations = by_plugin
    return EventRegistrations(registrations, problems), problems


def _rejected(*plugins: str, pending_on: tuple[str, ...] = ()) -> QueuedPod:
    queued = QueuedPod(pending("p"), 0.0)
    queued.fail_attempt(0.0, plugins, pending_on)
    return queued


def test_an_event_concerns_only_plugins_that_registered_for_it() -> None:
    registrations, _ = _registrations(("Fit", NODE_ADD, None), ("Ports", POD_DELETE, None))
    assert list(registrations.registered_for(NODE_ADD)) == [(PROFILE, "Fit")]
    assert list(registrations.registered_for(POD_DELETE)) == [(PROFILE, "Ports")]


def test_plugins_have_the_same_order_whichever_was_registered_first() -> None:
    there = [("Fit", NODE_ADD, None), ("Affinity", NODE_ADD, None), ("Ports", NODE_ADD, None)]
    for registered in (there, there[::-1]):
        registrations, _ = _registrations(*registered)
        registrations.register_unknown(PROFILE, ["Stranger", "Custom"])
        names = [name for _, name in registrations.registered_for(NODE_ADD)]
        assert names == ["Affinity", "Custom", "Fit", "Ports", "Stranger"]


def test_as_many_unions_of_plugins_as_the_bound_are_remembered_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(event_registrations, "_MAX_REMEMBERED", 2)
    registrations, _ = _registrations(*((name, NODE_ADD, Hints()) for name in "abc"))
    a, b, c = (_rejected(name).rejector_plugins for name in "abc")
    first = registrations.hint_functions(a, NODE_ADD)
    registrations.hint_functions(b, NODE_ADD)
    assert registrations.hint_functions(a, NODE_ADD) is first
    registrations.hint_functions(c, NODE_ADD)
    assert registrations.hint_functions(a, NODE_ADD) is not first


def test_as_many_kinds_of_events_as_the_bound_are_remembered_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(event_registrations, "_MAX_REMEMBERED", 2)
    registrations, _ = _registrations(("a", NODE_ADD, Hints()), ("a", POD_DELETE, Hints()))
    rejected = _rejected("a").rejector_plugins
    first = registrations.hint_functions(rejected, NODE_ADD)
    registrations.hint_functions(rejected, POD_DELETE)
    assert registrations.hint_functions(rejected, NODE_ADD) is first
    registrations.hint_functions(rejected, UNSCHEDULABLE_TIMEOUT)
    assert registrations.hint_functions(rejected, NODE_ADD) is not first


def test_a_plugin_without_registrations_waits_for_every_event() -> None:
    registrations, _ = _registrations(("Fit", NODE_ADD, None))
    assert list(registrations.registered_for(POD_DELETE)) == []
    registrations.register_unknown(PROFILE, ["Stranger"])
    assert list(registrations.registered_for(POD_DELETE)) == [(PROFILE, "Stranger")]
    assert (
        registrations.strategy_for(_rejected("Stranger"), ObjectEvent(NODE_ADD))
        is Requeue.AFTER_BACKOFF
    )


def test_an_event_without_a_hint_helps_every_pod_of_the_plugin() -> None:
    registrations, _ = _registrations(("Fit", NODE_ADD, None))
    assert (
        registrations.strategy_for(_rejected("Fit"), ObjectEvent(NODE_ADD)) is Requeue.AFTER_BACKOFF
    )
    assert registrations.strategy_for(_rejected("Fit"), ObjectEvent(POD_DELETE)) is Requeue.SKIP


def test_only_hints_of_plugins_that_rejected_the_pod_run() -> None:
    other = Hints()
    registrations, _ = _registrations(("Fit", NODE_ADD, skip()), ("Ports", NODE_ADD, other))
    assert registrations.strategy_for(_rejected("Fit"), ObjectEvent(NODE_ADD)) is Requeue.SKIP
    assert other.asked == []


def test_a_hint_gets_the_pod_and_the_old_and_new_object() -> None:
    hint = Hints()
    registrations, _ = _registrations(("Fit", NODE_ADD, hint))
    registrations.strategy_for(_rejected("Fit"), ObjectEvent(NODE_ADD, "before", "after"))
    assert (hint.asked, hint.objects) == (["p"], [("before", "after")])


def test_one_queue_among_several_hints_suffices() -> None:
    registrations, _ = _registrations(
        ("Fit", NODE_ADD, skip()), ("Fit", NODE_ADD, Hints()), ("Ports", NODE_ADD, skip())
    )
    strategy = registrations.strategy_for(_rejected("Fit", "Ports"), ObjectEvent(NODE_ADD))
    assert strategy is Requeue.AFTER_BACKOFF


def test_queue_from_a_pending_plugin_skips_the_backoff() -> None:
    registrations, _ = _registrations(("Claims", NODE_ADD, None), ("Fit", NODE_ADD, None))
    queued = _rejected("Fit", pending_on=("Claims",))
    assert registrations.strategy_for(queued, ObjectEvent(NODE_ADD)) is Requeue.IMMEDIATELY


def test_queue_from_a_plugin_that_is_not_pending_keeps_the_backoff() -> None:
    registrations, _ = _registrations(("Claims", NODE_ADD, skip()), ("Fit", NODE_ADD, None))
    queued = _rejected("Fit", pending_on=("Claims",))
    assert registrations.strategy_for(queued, ObjectEvent(NODE_ADD)) is Requeue.AFTER_BACKOFF


def test_any_event_moves_a_pod_that_failed_with_an_error() -> None:
    registrations, _ = _registrations()
    assert registrations.strategy_for(_rejected(), ObjectEvent(NODE_ADD)) is Requeue.AFTER_BACKOFF


def test_a_wildcard_event_helps_without_running_hints() -> None:
    hint = skip()
    registrations, _ = _registrations(("Fit", NODE_ADD, hint))
    strategy = registrations.strategy_for(_rejected("Fit"), ObjectEvent(UNSCHEDULABLE_TIMEOUT))
    assert strategy is Requeue.AFTER_BACKOFF
    assert hint.asked == []


def test_a_wildcard_event_about_a_pod_helps_that_pod_only() -> None:
    registrations, _ = _registrations()
    queued = _rejected("Fit")
    mine = ObjectEvent(FORCE_ACTIVATE, None, pending("p"))
    other = ObjectEvent(FORCE_ACTIVATE, None, pending("other"))
    assert registrations.strategy_for(queued, mine) is Requeue.AFTER_BACKOFF
    assert registrations.strategy_for(queued, other) is Requeue.SKIP


def test_a_hint_that_raises_counts_as_queue_and_is_reported() -> None:
    registrations, problems = _registrations(("Fit", NODE_ADD, broken))
    assert (
        registrations.strategy_for(_rejected("Fit"), ObjectEvent(NODE_ADD)) is Requeue.AFTER_BACKOFF
    )
    assert problems == [
        (
            "pod default/p: the queueing hint of plugin Fit failed for event NodeAdd: "
            "ZeroDivisionError('division by zero'); expected QUEUE or SKIP, took QUEUE"
        )
    ]


@pytest.mark.parametrize(
    ("per_class", "per_demand", "expected"),
    [(False, False, (False, False)), (True, False, (True, False)), (False, True, (True, True))],
)
def test_hints_answer_per_class_or_demand_only_if_all_of_them_do(
    per_class: bool, per_demand: bool, expected: tuple[bool, bool]
) -> None:
    own = Registration(NODE_ADD, skip(), per_class, per_demand)
    always = Registration(NODE_ADD, skip(), per_class=True, per_demand=True)
    registrations = EventRegistrations(
        {(PROFILE, "Own"): [own], (PROFILE, "Plain"): [(NODE_ADD, None), always]}, []
    )
    hints = registrations.hint_functions(_rejected("Own", "Plain").rejector_plugins, NODE_ADD)
    assert [each.plugin for each in hints.all] == ["Own", "Plain", "Plain"]
    assert (hints.per_class, hints.per_demand) == expected


def test_the_duration_of_a_hint_is_observed_with_its_event_and_answer() -> None:
    observed: list[tuple[str, str, str, float]] = []
    durations, seconds = HintDurations(), count()
    durations.follow(lambda: float(next(seconds)), lambda *each: observed.append(each))
    by_plugin: Registrations = {
        (PROFILE, "Fit"): [(NODE_ADD, skip())],
        (PROFILE, "Ports"): [(NODE_ADD, broken)],
    }
    registrations = EventRegistrations(by_plugin, [], durations)
    registrations.strategy_for(_rejected("Fit", "Ports"), ObjectEvent(NODE_ADD))
    assert observed == [("Fit", "NodeAdd", "QueueSkip", 1.0), ("Ports", "NodeAdd", "Error", 1.0)]
