"""Pods are added, popped in order, returned and deleted."""

from __future__ import annotations

import pytest

from stowage.queue import QueueInconsistentError, QueueState, SchedulingQueue
from stowage.queue.sub_queues import SubQueues
from tests.unit.queue.scenario import (
    NODE_ADD,
    PROFILE,
    Gate,
    fail,
    make_queue,
    make_rules,
    pending,
    pop,
    pop_names,
    reject,
)


def test_pods_are_popped_by_priority_and_then_first_in_first_out() -> None:
    queue = make_queue()
    for name, priority in (("a", 0), ("b", 5), ("c", 0), ("d", 5), ("e", 9)):
        queue.add(pending(name, priority=priority), 0.0)
    assert pop_names(queue) == ["e", "b", "d", "a", "c"]


def test_an_empty_queue_pops_none() -> None:
    assert make_queue().pop(0.0) is None


def test_active_pods_and_rejected_pods_in_backoff_are_ready() -> None:
    queue = make_queue()
    assert not queue.has_ready_pods()
    fail(queue, pending("failed"))
    assert not queue.has_ready_pods()
    reject(queue, pending("rejected"))
    assert not queue.has_ready_pods()
    queue.move_on_event(NODE_ADD, None, None, 0.0)
    assert queue.has_ready_pods()
    assert pop_names(queue) == ["rejected"]
    queue.add(pending("active"), 0.0)
    assert queue.has_ready_pods()


def test_a_popped_pod_is_in_flight_until_it_is_done() -> None:
    queue = make_queue()
    info = pending("p")
    queue.add(info, 0.0)
    queued = pop(queue, 1.0)
    assert queued.attempts == 1
    assert queue.in_flight() == [info.uid]
    assert queue.state_of(info.uid) is QueueState.IN_FLIGHT
    assert queue.get(info.uid) is queued
    assert len(queue) == 0
    queue.done(info.uid)
    queue.done(info.uid)
    assert queue.get(info.uid) is None
    assert queue.state_of(info.uid) is None


def test_a_rejected_pod_is_not_popped() -> None:
    queue = make_queue()
    queued = reject(queue, pending("p"), now=3.0)
    assert queue.pending_counts() == {"active": 0, "backoff": 0, "unschedulable": 1, "gated": 0}
    assert queue.unschedulable_counts() == {(PROFILE, "NodeResourcesFit"): 1}
    assert (queued.unschedulable_count, queued.queued_at) == (1, 3.0)
    assert pop_names(queue) == []


def test_a_plugin_that_rejects_no_pod_any_more_is_counted_with_0() -> None:
    queue = make_queue()
    reject(queue, pending("p"))
    queue.delete("uid-p")
    assert queue.unschedulable_counts() == {(PROFILE, "NodeResourcesFit"): 0}
    queue.validate()


def test_a_pod_that_failed_with_an_error_backs_off() -> None:
    queue = make_queue()
    queued = fail(queue, pending("p"))
    assert queued.consecutive_errors == 1
    assert queue.pending_counts()["backoff"] == 1
    assert pop_names(queue) == []
    assert queue.flush(2.0) == 1
    assert pop_names(queue, 2.0) == ["p"]


def test_a_rejection_without_a_plugin_is_an_error() -> None:
    queue = make_queue()
    queue.add(pending("p"), 0.0)
    assert queue.add_unschedulable(pop(queue), 0.0) is QueueState.BACKOFF
    assert pop_names(queue) == []


def test_an_error_after_a_rejection_counts_as_an_error() -> None:
    queue = make_queue()
    queue.add(pending("p"), 0.0)
    queued = pop(queue)
    assert queue.add_unschedulable(queued, 0.0, ["NodeResourcesFit"], is_error=True) is (
        QueueState.BACKOFF
    )
    assert not queued.was_rejected


def test_without_active_pods_a_rejected_pod_is_popped_before_its_backoff_ends() -> None:
    queue = make_queue()
    reject(queue, pending("p"))
    queue.move_on_event(NODE_ADD, None, None, 0.1)
    queue.add(pending("active", priority=-5), 0.2)
    assert queue.pending_counts() == {"active": 1, "backoff": 1, "unschedulable": 0, "gated": 0}
    assert pop_names(queue, 0.3) == ["active", "p"]
    assert queue.incoming_counts["active", "PopFromBackoffQ"] == 1


def test_rejections_double_the_backoff_from_one_second_to_ten() -> None:
    queue = make_queue()
    queue.add(pending("p"), 0.0)
    now, waited = 0.0, []
    for _ in range(6):
        queue.add_unschedulable(pop(queue, now), now, ["NodeResourcesFit"])
        queue.move_on_event(NODE_ADD, None, None, now)
        deadline = queue.next_deadline()
        assert deadline is not None
        # One second more than the backoff: the window in which it ends has to be over.
        waited.append(deadline - now - 1.0)
        now = deadline
        assert queue.flush(now) == 1
    assert waited == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


def test_each_pop_counts_an_attempt_and_keeps_the_first_queueing_time() -> None:
    queue = make_queue()
    queued = reject(queue, pending("p"), now=5.0)
    queue.move_on_event(NODE_ADD, None, None, 50.0)
    assert pop(queue, 60.0) is queued
    assert queued.attempts == 2
    assert queued.initial_attempt_at == 5.0
    assert not queued.was_rejected


def test_a_pod_that_returns_after_done_backs_off() -> None:
    queue = make_queue()
    queue.add(pending("p"), 0.0)
    queued = pop(queue)
    queue.done(queued.uid)
    assert queue.add_unschedulable(queued, 0.0, ["NodeResourcesFit"]) is QueueState.BACKOFF
    queue.validate()


def test_a_pod_that_returns_while_it_is_queued_is_reported_and_ignored() -> None:
    queue = make_queue()
    queued = reject(queue, pending("p"))
    assert queue.add_unschedulable(queued, 9.0, is_error=True) is QueueState.UNSCHEDULABLE
    assert queue.drain_problems() == ["pod default/p: returned but waits already; ignored"]
    assert queued.consecutive_errors == 0


def test_adding_a_known_pod_updates_it() -> None:
    queue = make_queue()
    queue.add(pending("p"), 0.0)
    assert queue.add(pending("p", labels={"a": "b"}), 1.0) is QueueState.ACTIVE
    assert len(queue) == 1
    assert pop(queue).info.labels == {"a": "b"}


def test_a_pod_of_the_same_name_with_another_uid_is_another_pod() -> None:
    queue = make_queue()
    reject(queue, pending("p", uid="old"))
    queue.add(pending("p", uid="new"), 1.0)
    queue.validate()
    assert queue.state_of("old") is QueueState.UNSCHEDULABLE
    assert pop(queue, 1.0).uid == "new"
    queue.delete("old")
    assert queue.in_flight() == ["new"]
    assert len(queue) == 0


def test_incoming_pods_are_counted_by_queue_and_event() -> None:
    queue = make_queue()
    fail(queue, pending("failed"))
    reject(queue, pending("rejected"), now=20.0)
    reject(queue, pending("also"), now=20.0)
    queue.move_on_event(NODE_ADD, None, None, 20.0)
    queue.flush(40.0)
    assert queue.incoming_counts == {
        ("active", "UnschedulablePodAdd"): 3,
        ("backoff", "ScheduleAttemptFailure"): 1,
        ("unschedulable", "ScheduleAttemptFailure"): 2,
        ("backoff", "NodeAdd"): 2,
        ("active", "BackoffComplete"): 3,
    }


def test_contents_lists_every_pod_by_queue_state() -> None:
    queue = make_queue(pre_enqueue=Gate())
    reject(queue, pending("waiting"))
    fail(queue, pending("failed"))
    queue.add(pending("flying"), 0.0)
    pop(queue)
    queue.add(pending("second"), 0.0)
    queue.add(pending("first", priority=1), 0.0)
    names = {
        place: [queued.info.name for queued in pods] for place, pods in queue.contents().items()
    }
    assert names == {
        QueueState.ACTIVE: ["first", "second"],
        QueueState.BACKOFF: ["failed"],
        QueueState.UNSCHEDULABLE: ["waiting"],
        QueueState.IN_FLIGHT: ["flying"],
    }


def test_a_pod_becoming_active_is_nominated_as_in_its_status() -> None:
    queue = make_queue()
    queue.add(pending("p", nominated_node="n1"), 0.0)
    assert [info.name for info in queue.nominator.pods_on("n1")] == ["p"]


class _OpenQueue(SchedulingQueue):
    @property
    def sub_queues(self) -> SubQueues:
        return self._waiting


def test_validate_reports_a_pod_that_is_in_two_queues() -> None:
    queue = _OpenQueue(make_rules())
    queue.add(pending("p"), 0.0)
    queued = pop(queue)
    queue.sub_queues.active.put(queued, (0, 0.0))
    with pytest.raises(QueueInconsistentError, match="default/p also waits as active"):
        queue.validate()
    queue.done(queued.uid)
    queue.sub_queues.backoff.put(queued, (0, 0.0))
    with pytest.raises(QueueInconsistentError, match="uid-p waits in 2 sub-queues"):
        queue.validate()


def test_each_pod_that_is_popped_before_its_backoff_ends_is_counted() -> None:
    queue = make_queue()
    for name in ("p", "q"):
        reject(queue, pending(name))
    queue.move_on_event(NODE_ADD, None, None, 0.1)
    assert sorted(pop_names(queue, 0.3)) == ["p", "q"]
    assert queue.incoming_counts["active", "PopFromBackoffQ"] == 2
