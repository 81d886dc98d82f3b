"""Update, deletion, activation and events of a pod in each queue state."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stowage.queue import QueueState, SchedulingQueue
from stowage.state.pods.pod_info import PodInfo
from tests.unit.queue.scenario import (
    GATES_ELIMINATED,
    NODE_ADD,
    POD_DELETE,
    POD_LABEL,
    Gate,
    Hints,
    fail,
    make_queue,
    pending,
    pop,
    pop_names,
    reject,
    skip,
)

Bring = Callable[[SchedulingQueue, PodInfo], object]


def _active(queue: SchedulingQueue, info: PodInfo) -> None:
    queue.add(info, 0.0)


def _backing_off(queue: SchedulingQueue, info: PodInfo) -> None:
    reject(queue, info)
    queue.move_on_event(NODE_ADD, None, None, 0.0)


def _in_flight(queue: SchedulingQueue, info: PodInfo) -> None:
    queue.add(info, 0.0)
    pop(queue)


PLACES: list[tuple[Bring, QueueState]] = [
    (_active, QueueState.ACTIVE),
    (_backing_off, QueueState.BACKOFF),
    (fail, QueueState.BACKOFF),
    (reject, QueueState.UNSCHEDULABLE),
    (_in_flight, QueueState.IN_FLIGHT),
]
in_each_place = pytest.mark.parametrize(("bring", "place"), PLACES)


@in_each_place
def test_an_update_that_does_not_help_replaces_the_pod_in_its_state(
    bring: Bring, place: QueueState
) -> None:
    queue = make_queue()
    bring(queue, pending("p"))
    assert queue.update(pending("p", labels={"a": "b"}), 0.5) is place
    queue.validate()
    queued = queue.get("uid-p")
    assert queued is not None
    if place is not QueueState.IN_FLIGHT:
        assert queued.info.labels == {"a": "b"}


@in_each_place
def test_a_deleted_pod_is_not_popped(bring: Bring, place: QueueState) -> None:
    queue = make_queue()
    bring(queue, pending("p", nominated_node="n"))
    queue.delete("uid-p")
    queue.validate()
    assert len(queue) == 0
    assert len(queue.nominator) == 0
    queue.flush(1000.0)
    assert pop_names(queue, 1000.0) == []
    # A pod in flight stays until its attempt ends, so that the attempt's events can be dropped.
    assert queue.state_of("uid-p") is (place if place is QueueState.IN_FLIGHT else None)


@in_each_place
def test_an_event_moves_only_unschedulable_pods(bring: Bring, place: QueueState) -> None:
    queue = make_queue()
    bring(queue, pending("p"))
    moved = queue.move_on_event(NODE_ADD, None, None, 0.5)
    queue.validate()
    if place is QueueState.UNSCHEDULABLE:
        assert (moved, queue.state_of("uid-p")) == (1, QueueState.BACKOFF)
    else:
        assert (moved, queue.state_of("uid-p")) == (0, place)


@in_each_place
def test_activation_makes_every_waiting_pod_active_at_once(bring: Bring, place: QueueState) -> None:
    queue = make_queue()
    bring(queue, pending("p"))
    queue.activate(["uid-p", "uid-unknown"], 0.5)
    queue.validate()
    expected = QueueState.IN_FLIGHT if place is QueueState.IN_FLIGHT else QueueState.ACTIVE
    assert queue.state_of("uid-p") is expected


def test_activation_goes_on_after_a_pod_in_flight() -> None:
    queue = make_queue()
    for name in ("p", "q"):
        queue.add(pending(name), 0.0)
    rejected = pop(queue)
    queue.add_unschedulable(rejected, 0.1, ["NodeResourcesFit"])
    flying = pop(queue)
    queue.activate([flying.uid, rejected.uid], 0.5)
    assert queue.state_of(rejected.uid) is QueueState.ACTIVE


@in_each_place
def test_try_again_moves_a_pod_to_backoff_without_an_event(bring: Bring, place: QueueState) -> None:
    queue = make_queue()
    bring(queue, pending("p"))
    queue.try_again(["uid-p", "uid-unknown"], NODE_ADD, 0.5)
    queue.validate()
    expected = QueueState.BACKOFF if place is QueueState.UNSCHEDULABLE else place
    assert queue.state_of("uid-p") is expected


@in_each_place
def test_a_resync_of_the_same_version_changes_nothing(bring: Bring, place: QueueState) -> None:
    queue = make_queue({"NodeResourcesFit": [(NODE_ADD, None), (POD_LABEL, None)]})
    bring(queue, pending("p", resource_version="7"))
    before = dict(queue.incoming_counts)
    assert queue.update(pending("p", resource_version="7", labels={"a": "b"}), 0.5) is place
    queue.validate()
    assert dict(queue.incoming_counts) == before


def test_an_update_of_an_unknown_pod_adds_it() -> None:
    queue = make_queue()
    assert queue.update(pending("p"), 0.0) is QueueState.ACTIVE
    assert queue.incoming_counts == {("active", "UnschedulablePodUpdate"): 1}


def test_deleting_an_unknown_pod_does_nothing() -> None:
    queue = make_queue()
    queue.delete("uid-unknown")
    queue.validate()
    assert len(queue) == 0


def test_an_update_of_the_priority_moves_an_active_pod() -> None:
    queue = make_queue()
    for name in ("a", "b", "c"):
        queue.add(pending(name), 0.0)
    queue.update(pending("c", priority=5), 1.0)
    queue.update(pending("a", labels={"x": "y"}), 1.0)
    assert pop_names(queue) == ["c", "a", "b"]


def test_an_update_moves_a_pod_that_backs_off_within_its_second() -> None:
    queue = make_queue()
    reject(queue, pending("a"))
    reject(queue, pending("b"))
    queue.move_on_event(NODE_ADD, None, None, 0.0)
    queue.update(pending("b", priority=5), 0.5)
    queue.validate()
    assert pop_names(queue, 0.5) == ["b", "a"]


def test_an_update_that_helps_moves_an_unschedulable_pod() -> None:
    queue = make_queue({"NodeResourcesFit": [(POD_LABEL, Hints())]})
    reject(queue, pending("p"))
    assert queue.update(pending("p", labels={"a": "b"}), 0.5) is QueueState.BACKOFF
    queue.validate()
    assert queue.incoming_counts["backoff", "UnschedulablePodUpdatePodLabel"] == 1


def test_an_update_after_the_backoff_makes_the_pod_active() -> None:
    queue = make_queue({"NodeResourcesFit": [(POD_LABEL, Hints())]})
    reject(queue, pending("p"))
    assert queue.update(pending("p", labels={"a": "b"}), 2.0) is QueueState.ACTIVE
    queue.validate()


def test_a_hint_on_an_update_sees_the_old_and_the_new_pod() -> None:
    hint = skip()
    queue = make_queue({"NodeResourcesFit": [(POD_LABEL, hint)]})
    old, new = pending("p"), pending("p", labels={"a": "b"})
    reject(queue, old)
    assert queue.update(new, 2.0) is QueueState.UNSCHEDULABLE
    assert hint.objects == [(old, new)]


def test_an_update_runs_only_hints_of_the_rejecting_plugins() -> None:
    other = Hints()
    queue = make_queue({"InterPodAffinity": [(POD_LABEL, other)]})
    reject(queue, pending("p"))
    assert queue.update(pending("p", labels={"a": "b"}), 2.0) is QueueState.UNSCHEDULABLE
    assert other.asked == []


def test_a_pod_deleted_in_flight_is_not_requeued() -> None:
    queue = make_queue()
    queue.add(pending("p"), 0.0)
    queued = pop(queue)
    queue.delete(queued.uid)
    assert queue.add_unschedulable(queued, 1.0, ["NodeResourcesFit"]) is None
    queue.validate()
    assert queue.state_of(queued.uid) is None


def test_a_pod_deleted_in_flight_and_seen_again_is_requeued() -> None:
    queue = make_queue()
    queue.add(pending("p"), 0.0)
    queued = pop(queue)
    queue.delete(queued.uid)
    assert queue.add(pending("p"), 0.5) is QueueState.IN_FLIGHT
    assert queue.add_unschedulable(queued, 1.0, ["NodeResourcesFit"]) is QueueState.UNSCHEDULABLE


def test_a_pod_updated_in_flight_is_requeued_in_its_latest_version() -> None:
    queue = make_queue()
    queue.add(pending("p"), 0.0)
    queued = pop(queue)
    queue.update(pending("p", labels={"a": "1"}), 0.5)
    queue.update(pending("p", labels={"a": "2"}), 0.6)
    assert queued.info.labels == {}
    queue.add_unschedulable(queued, 1.0, ["NodeResourcesFit"])
    assert queued.info.labels == {"a": "2"}


def test_an_activated_pod_must_pass_pre_enqueue() -> None:
    gate = Gate()
    queue = make_queue(pre_enqueue=gate)
    reject(queue, pending("p"))
    gate.closed.add("p")
    queue.activate(["uid-p"], 0.5)
    queue.validate()
    assert queue.pending_counts()["gated"] == 1


def test_removing_the_gates_of_one_pod_leaves_other_pods_gated() -> None:
    gate = Gate()
    queue = make_queue({"SchedulingGates": [(GATES_ELIMINATED, skip())]}, gate)
    queue.add(pending("a", gates=["hold"]), 0.0)
    queue.add(pending("b", gates=["hold"]), 0.0)
    queue.update(pending("a"), 1.0)
    queue.move_on_event(POD_DELETE, None, None, 1.0)
    assert gate.asked == ["a", "b"]
