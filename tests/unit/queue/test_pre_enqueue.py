from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource
from stowage.api.status import Status, error, unresolvable
from stowage.queue import QueueRules, QueueState, SchedulingQueue
from stowage.queue.event_registrations import PluginKey
from stowage.state.pods.pod_info import PodInfo
from tests.unit.queue.scenario import (
    CLAIM_ADD,
    NODE_ADD,
    PROFILE,
    Gate,
    by_priority,
    make_queue,
    make_rules,
    pending,
    pop_names,
    reject,
)


def _failing(info: PodInfo) -> Status:
    return error("no connection", plugin="Gatekeeper")


def _raising(info: PodInfo) -> Status:
    raise ZeroDivisionError("division by zero")


def _anonymous(info: PodInfo) -> Status:
    return unresolvable("no")


def test_a_gated_pod_waits_as_unschedulable_and_counts_as_gated() -> None:
    queue = make_queue()
    info = pending("p", gates=["hold"])
    assert queue.add(info, 0.0) is QueueState.UNSCHEDULABLE
    assert queue.pending_counts() == {"active": 0, "backoff": 0, "unschedulable": 0, "gated": 1}
    assert pop_names(queue) == []
    queued = queue.get(info.uid)
    assert queued is not None
    assert queued.gating_plugin == "SchedulingGates"
    assert queued.initial_attempt_at is None


def test_a_pod_whose_scheduling_gates_are_removed_becomes_active() -> None:
    queue = make_queue()
    queue.add(pending("p", gates=["a", "b"]), 0.0)
    assert queue.update(pending("p", gates=["b"]), 1.0) is QueueState.UNSCHEDULABLE
    assert queue.update(pending("p"), 2.0) is QueueState.ACTIVE
    queue.validate()
    assert pop_names(queue) == ["p"]


def test_pre_enqueue_runs_again_only_on_events_of_the_gating_plugin() -> None:
    gate = Gate()
    gate.closed.add("p")
    queue = make_queue(pre_enqueue=gate)
    queue.add(pending("p"), 0.0)
    queue.move_on_event(NODE_ADD, None, None, 1.0)
    assert gate.asked == ["p"]
    queue.move_on_event(CLAIM_ADD, None, None, 1.0)
    assert gate.asked == ["p", "p"]
    gate.closed.clear()
    assert queue.move_on_event(CLAIM_ADD, None, None, 2.0) == 1
    queue.validate()
    assert pop_names(queue) == ["p"]


def test_a_wildcard_event_moves_no_gated_pod() -> None:
    gate = Gate()
    queue = make_queue(pre_enqueue=gate)
    queue.add(pending("p", gates=["hold"]), 0.0)
    wildcard = ClusterEvent(EventResource.WILDCARD, ActionType.ALL)
    assert queue.move_on_event(wildcard, None, None, 1.0) == 0
    assert gate.asked == ["p"]


def test_a_plugin_that_knows_whom_it_would_admit_is_asked_once_for_all_that_it_holds() -> None:
    gate, asked = Gate(), list[str]()

    def released(plugin: PluginKey) -> Collection[str]:
        asked.append(plugin[1])
        return ()

    queue = SchedulingQueue(replace(make_rules(pre_enqueue=gate), released=released))
    for name in ("a", "b", "c"):
        gate.closed.add(name)
        queue.add(pending(name, labels={"class": name}), 0.0)
    assert queue.move_on_event(CLAIM_ADD, None, None, 1.0) == 0
    assert asked == ["Gatekeeper"]
    assert gate.asked == ["a", "b", "c"]


def test_pre_enqueue_runs_for_each_pod_of_a_requeued_group() -> None:
    gate = Gate()
    queue = make_queue(pre_enqueue=gate)
    for name in ("a", "b", "c"):
        reject(queue, pending(name), by=("NodeResourcesFit",))
    gate.closed.add("b")
    assert queue.move_on_event(NODE_ADD, None, None, 60.0) == 2
    queue.validate()
    assert pop_names(queue) == ["a", "c"]
    assert queue.unschedulable_counts() == {
        (PROFILE, "NodeResourcesFit"): 1,
        (PROFILE, "Gatekeeper"): 1,
    }


def test_a_gated_first_pod_does_not_gate_the_rest_of_its_group() -> None:
    gate = Gate()
    queue = make_queue(pre_enqueue=gate)
    for name in ("a", "b"):
        reject(queue, pending(name), by=("NodeResourcesFit",))
    gate.closed.add("a")
    assert queue.move_on_event(NODE_ADD, None, None, 60.0) == 1
    assert pop_names(queue) == ["b"]


def test_pre_enqueue_per_class_runs_for_one_pod_of_a_group() -> None:
    gate = Gate()
    rules = QueueRules(
        by_priority,
        gate,
        {(PROFILE, "Fit"): [(NODE_ADD, None)]},
        gates_per_pod=lambda _pod: False,
    )
    queue = SchedulingQueue(rules)
    for name in ("a", "b", "c"):
        reject(queue, pending(name), by=("Fit",))
    gate.asked.clear()
    assert queue.move_on_event(NODE_ADD, None, None, 60.0) == 3
    assert gate.asked == ["a"]


def test_a_pod_can_be_gated_by_another_plugin_next() -> None:
    gate = Gate()
    gate.closed.add("p")
    queue = make_queue(pre_enqueue=gate)
    queue.add(pending("p", gates=["hold"]), 0.0)
    assert queue.update(pending("p"), 1.0) is QueueState.UNSCHEDULABLE
    queue.validate()
    assert queue.unschedulable_counts() == {
        (PROFILE, "SchedulingGates"): 1,
        (PROFILE, "Gatekeeper"): 1,
    }
    gate.closed.clear()
    queue.move_on_event(CLAIM_ADD, None, None, 2.0)
    assert pop_names(queue) == ["p"]


def test_a_returned_pod_can_be_gated_instead_of_backing_off() -> None:
    gate = Gate()
    queue = make_queue(pre_enqueue=gate)
    queue.add(pending("p"), 0.0)
    queued = queue.pop(0.0)
    assert queued is not None
    gate.closed.add("p")
    assert queue.add_unschedulable(queued, 0.0, is_error=True) is QueueState.UNSCHEDULABLE
    queue.validate()
    assert queue.pending_counts()["gated"] == 1
    assert queue.incoming_counts["unschedulable", "ScheduleAttemptFailure"] == 1


def test_without_early_pops_a_pod_is_gated_at_the_end_of_its_backoff() -> None:
    gate = Gate()
    queue = make_queue(pre_enqueue=gate, pops_from_backoff=False)
    for name in ("a", "b"):
        reject(queue, pending(name))
    gate.asked.clear()
    assert queue.move_on_event(NODE_ADD, None, None, 0.5) == 2
    assert gate.asked == []
    gate.closed.add("b")
    queue.reconfigure(make_rules(pre_enqueue=gate, pops_from_backoff=False), 0.75)
    assert gate.asked == []
    assert queue.flush(1.0) == 1
    queue.validate()
    assert pop_names(queue) == ["a"]
    assert queue.pending_counts()["gated"] == 1
    assert queue.incoming_counts["unschedulable", "BackoffComplete"] == 1
    gate.closed.clear()
    assert queue.move_on_event(CLAIM_ADD, None, None, 2.0) == 1
    assert pop_names(queue) == ["b"]


def test_without_early_pops_a_gated_pod_that_backs_off_is_not_gated_until_the_end() -> None:
    gate = Gate()
    queue = make_queue(pre_enqueue=gate, pops_from_backoff=False)
    queued = reject(queue, pending("p"), by=("Gatekeeper",))
    gate.closed.add("p")
    queue.activate([queued.uid], 0.25)
    assert queue.pending_counts()["gated"] == 1
    assert queue.move_on_event(CLAIM_ADD, None, None, 0.5) == 1
    queue.validate()
    assert queue.state_of(queued.uid) is QueueState.BACKOFF
    queue.activate([queued.uid], 0.75)
    queue.validate()
    assert queue.state_of(queued.uid) is QueueState.UNSCHEDULABLE
    assert queue.pending_counts()["gated"] == 1


def test_a_gated_pod_is_not_flushed_after_the_longest_wait() -> None:
    gate = Gate()
    gate.closed.add("p")
    queue = make_queue(pre_enqueue=gate)
    queue.add(pending("p"), 0.0)
    gate.closed.clear()
    assert queue.next_deadline() is None
    assert queue.flush(600.0) == 0
    assert gate.asked == ["p"]


def test_a_gate_registered_for_every_event_runs_again_after_five_minutes() -> None:
    queue = make_queue(pre_enqueue=_anonymous)
    queue.add(pending("p"), 0.0)
    assert queue.next_deadline() == 300.0
    assert queue.flush(300.0) == 0
    queue.validate()
    assert queue.next_deadline() == 600.0


def test_an_error_of_pre_enqueue_gates_the_pod_and_is_reported() -> None:
    queue = make_queue(pre_enqueue=_failing)
    assert queue.add(pending("p"), 0.0) is QueueState.UNSCHEDULABLE
    assert queue.drain_problems() == [
        (
            "pod default/p: PreEnqueue of plugin Gatekeeper failed: no connection; "
            "expected Success or a rejection, the pod is gated"
        )
    ]
    assert queue.drain_problems() == []


def test_a_raising_pre_enqueue_gates_the_pod_until_any_event() -> None:
    queue = make_queue(pre_enqueue=_raising)
    assert queue.add(pending("p"), 0.0) is QueueState.UNSCHEDULABLE
    queue.validate()
    assert len(queue.drain_problems()) == 1
    queue.move_on_event(NODE_ADD, None, None, 1.0)
    assert "ZeroDivisionError" in queue.drain_problems()[0]


def test_a_rejection_without_a_plugin_name_gates_the_pod() -> None:
    queue = make_queue(pre_enqueue=_anonymous)
    queue.add(pending("p"), 0.0)
    assert queue.unschedulable_counts() == {(PROFILE, "PreEnqueue"): 1}
    queue.validate()
