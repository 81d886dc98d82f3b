"""Reconfiguration of a queue that has pods."""

from __future__ import annotations

from stowage.queue.queued_pod import QueueState
from stowage.queue.rules import QueueRules
from stowage.state.pods.pod_info import PodInfo
from tests.unit.queue.scenario import (
    DEFAULT_EVENTS,
    PROFILE,
    Gate,
    by_priority,
    make_queue,
    pending,
    pop,
    pop_names,
)

REGISTRATIONS = {(PROFILE, plugin): events for plugin, events in DEFAULT_EVENTS.items()}


def by_name(info: PodInfo, _queued_at: float) -> tuple[str]:
    return (info.name,)


def rules(**changes: object) -> QueueRules:
    known = {"sort_key": by_priority, "pre_enqueue": Gate(), "registrations": REGISTRATIONS}
    return QueueRules(**{**known, **changes})  # type: ignore[arg-type]


def test_active_pods_are_reordered() -> None:
    queue = make_queue()
    for name, priority in (("c", 3), ("a", 1), ("b", 2)):
        queue.add(pending(name, priority=priority), 0.0)
    queue.reconfigure(rules(sort_key=by_name), 1.0)
    queue.validate()
    assert pop_names(queue) == ["a", "b", "c"]


def test_pods_that_the_new_rules_exclude_are_returned() -> None:
    queue = make_queue()
    queue.add(pending("ours"), 0.0)
    queue.add(pending("theirs"), 0.0)
    dropped = queue.reconfigure(rules(keeps=lambda pod: pod.name == "ours"), 1.0)
    assert [queued.info.name for queued in dropped] == ["theirs"]
    queue.validate()
    assert pop_names(queue) == ["ours"]


def test_a_new_gate_applies_to_active_pods() -> None:
    queue = make_queue()
    info = pending("p")
    queue.add(info, 0.0)
    gate = Gate()
    gate.closed = {"p"}
    queue.reconfigure(rules(pre_enqueue=gate), 1.0)
    queue.validate()
    assert queue.pending_counts()["gated"] == 1
    queue.reconfigure(rules(), 2.0)
    assert queue.state_of(info.uid) is QueueState.ACTIVE


def test_backoffs_follow_the_new_rules() -> None:
    queue = make_queue()
    queue.add(pending("p"), 0.0)
    queue.add_unschedulable(pop(queue), 0.0, is_error=True)
    assert queue.next_deadline() == 2.0
    queue.reconfigure(rules(initial_backoff_s=5.0), 0.5)
    assert queue.next_deadline() == 6.0
    queue.validate()


def test_a_rejected_pod_is_requeued() -> None:
    queue = make_queue()
    info = pending("p")
    queue.add(info, 0.0)
    queue.add_unschedulable(pop(queue), 0.0, rejected_by={"NodeResourcesFit"})
    assert queue.state_of(info.uid) is QueueState.UNSCHEDULABLE
    queue.reconfigure(rules(), 0.5)
    assert queue.state_of(info.uid) is QueueState.BACKOFF
    assert queue.incoming_counts["backoff", "ConfigurationChanged"] == 1


def test_a_pod_in_flight_is_requeued_under_the_new_rules_when_it_returns() -> None:
    queue = make_queue()
    info = pending("p")
    queue.add(info, 0.0)
    in_flight = pop(queue)
    queue.reconfigure(rules(keeps=lambda _pod: False), 0.5)
    assert queue.state_of(info.uid) is QueueState.IN_FLIGHT
    queue.add_unschedulable(in_flight, 1.0, rejected_by={"NodeResourcesFit"})
    assert queue.state_of(info.uid) is QueueState.BACKOFF


def test_pods_that_stay_in_their_sub_queue_are_not_counted_as_incoming() -> None:
    queue = make_queue()
    queue.add(pending("p"), 0.0)
    before = dict(queue.incoming_counts)
    queue.reconfigure(rules(), 1.0)
    assert dict(queue.incoming_counts) == before
