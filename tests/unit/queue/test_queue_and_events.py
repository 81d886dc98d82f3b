"""Events move the pods they may help, including those in flight."""

from __future__ import annotations

import pytest

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource
from stowage.queue import QueueState
from tests.unit.queue.scenario import (
    CLAIM_ADD,
    NODE_ADD,
    NODE_LABEL,
    POD_DELETE,
    POD_LABEL,
    Hints,
    broken,
    make_queue,
    pending,
    pop,
    pop_names,
    reject,
    skip,
)

POD_ADD = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.ADD)


def test_hints_run_only_for_pods_that_the_plugin_rejected() -> None:
    fit, affinity = Hints(), Hints()
    queue = make_queue(
        {"NodeResourcesFit": [(POD_DELETE, fit)], "NodeAffinity": [(NODE_LABEL, affinity)]}
    )
    for name in ("a", "b", "c"):
        reject(queue, pending(name), by=["NodeAffinity"])
    reject(queue, pending("d"))
    assert queue.move_on_event(POD_DELETE, "pod", None, 0.5) == 1
    queue.validate()
    assert fit.asked == ["d"]
    assert fit.objects == [("pod", None)]
    assert affinity.asked == []


def test_hints_run_in_the_order_of_rejections() -> None:
    hint = skip()
    queue = make_queue({"NodeResourcesFit": [(NODE_ADD, hint)]})
    names = [f"p{number}" for number in (3, 1, 2, 9, 0)]
    for name in names:
        reject(queue, pending(name))
    queue.move_on_event(NODE_ADD, None, None, 0.5)
    assert hint.asked == names


def test_pods_of_several_classes_that_failed_at_the_same_time_keep_their_order() -> None:
    """The attempts of one call of the engine have the same time."""
    for moved_at in (0.5, 60.0):
        queue = make_queue()
        for name, cpu in (("a", "1"), ("b", "2"), ("c", "1"), ("d", "2")):
            by = ["NodeResourcesFit"] if cpu == "1" else ["DynamicResources", "NodeResourcesFit"]
            reject(queue, pending(name, cpu=cpu), by=by)
        assert queue.move_on_event(NODE_ADD, None, None, moved_at) == 4
        assert pop_names(queue, moved_at) == ["a", "b", "c", "d"]


def test_an_event_moves_a_pod_to_backoff_or_to_active_after_its_backoff() -> None:
    queue = make_queue()
    reject(queue, pending("early"), now=0.0)
    queue.move_on_event(NODE_ADD, None, None, 1.9)
    assert queue.state_of("uid-early") is QueueState.BACKOFF
    reject(queue, pending("late", priority=1), now=0.0)
    queue.move_on_event(NODE_ADD, None, None, 2.0)
    assert queue.state_of("uid-late") is QueueState.ACTIVE


def test_queue_from_a_pending_plugin_makes_the_pod_active_at_once() -> None:
    queue = make_queue()
    reject(queue, pending("p"), by=(), pending_on=["DynamicResources"])
    queue.move_on_event(CLAIM_ADD, None, None, 0.0)
    queue.validate()
    assert queue.state_of("uid-p") is QueueState.ACTIVE


def test_a_hint_of_skip_leaves_the_pod_unschedulable() -> None:
    queue = make_queue({"NodeResourcesFit": [(NODE_ADD, skip())]})
    reject(queue, pending("p"))
    assert queue.move_on_event(NODE_ADD, None, None, 5.0) == 0
    queue.validate()
    assert queue.state_of("uid-p") is QueueState.UNSCHEDULABLE


def test_a_hint_that_raises_moves_the_pod_and_is_reported() -> None:
    queue = make_queue({"NodeResourcesFit": [(NODE_ADD, broken)]})
    reject(queue, pending("p"))
    assert queue.move_on_event(NODE_ADD, None, None, 5.0) == 1
    assert pop_names(queue, 5.0) == ["p"]
    (problem,) = queue.drain_problems()
    assert problem.startswith("pod default/p: the queueing hint of plugin NodeResourcesFit failed")


def test_any_event_moves_a_pod_that_an_unknown_plugin_rejected() -> None:
    queue = make_queue()
    reject(queue, pending("p"), by=["Extender"])
    assert queue.move_on_event(NODE_LABEL, None, None, 5.0) == 1
    queue.validate()


def test_an_event_of_several_kinds_reaches_the_plugins_of_each() -> None:
    queue = make_queue()
    reject(queue, pending("a"), by=["NodeAffinity"])
    both = ClusterEvent(
        EventResource.NODE, ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_TAINT
    )
    assert queue.move_on_event(both, None, None, 5.0) == 1


def test_a_wildcard_event_moves_every_pod() -> None:
    queue = make_queue({"NodeResourcesFit": [(NODE_ADD, skip())]})
    reject(queue, pending("a"))
    reject(queue, pending("b"), by=["NodeAffinity"])
    everything = ClusterEvent(EventResource.WILDCARD, ActionType.ALL)
    assert queue.move_on_event(everything, None, None, 5.0) == 2
    queue.validate()


def test_an_event_during_the_attempt_is_replayed_after_the_rejection() -> None:
    queue = make_queue()
    queue.add(pending("p"), 0.0)
    queued = pop(queue)
    queue.move_on_event(NODE_ADD, None, None, 0.1)
    assert queue.add_unschedulable(queued, 0.2, ["NodeResourcesFit"]) is QueueState.BACKOFF
    queue.validate()
    assert not any(queue.in_flight_event_counts().values())


def test_an_event_before_the_pop_or_without_registration_is_not_replayed() -> None:
    queue = make_queue()
    queue.add(pending("p"), 0.0)
    queue.move_on_event(NODE_ADD, None, None, 0.1)
    queued = pop(queue)
    queue.move_on_event(CLAIM_ADD, None, None, 0.2)
    assert queue.add_unschedulable(queued, 0.3, ["NodeResourcesFit"]) is QueueState.UNSCHEDULABLE


def test_each_pod_in_flight_replays_the_events_since_its_own_pop() -> None:
    hint = skip()
    queue = make_queue({"NodeResourcesFit": [(NODE_ADD, hint)]})
    queue.add(pending("a", priority=1), 0.0)
    queue.add(pending("b"), 0.0)
    first = pop(queue)
    queue.move_on_event(NODE_ADD, None, "n1", 0.1)
    second = pop(queue)
    queue.move_on_event(NODE_ADD, None, "n2", 0.2)
    queue.add_unschedulable(second, 0.3, ["NodeResourcesFit"])
    queue.add_unschedulable(first, 0.3, ["NodeResourcesFit"])
    queue.validate()
    assert hint.asked == ["b", "a", "a"]
    assert [new for _, new in hint.objects] == ["n2", "n1", "n2"]


def test_replaying_stops_at_the_first_event_that_helps() -> None:
    hint = Hints()
    queue = make_queue({"NodeResourcesFit": [(NODE_ADD, hint)]})
    queue.add(pending("p"), 0.0)
    queued = pop(queue)
    for _ in range(3):
        queue.move_on_event(NODE_ADD, None, None, 0.1)
    queue.add_unschedulable(queued, 0.2, ["NodeResourcesFit"])
    assert hint.asked == ["p"]


def test_replaying_continues_while_a_pending_plugin_may_return_queue() -> None:
    queue = make_queue()
    queue.add(pending("p"), 0.0)
    queued = pop(queue)
    queue.move_on_event(NODE_ADD, None, None, 0.1)
    queue.move_on_event(CLAIM_ADD, None, None, 0.1)
    place = queue.add_unschedulable(queued, 0.2, ["NodeResourcesFit"], pending=["DynamicResources"])
    assert place is QueueState.ACTIVE


def test_a_pod_with_an_error_is_retried_without_an_event() -> None:
    queue = make_queue()
    queue.add(pending("p"), 0.0)
    queued = pop(queue)
    queue.move_on_event(NODE_ADD, None, None, 0.1)
    assert queue.add_unschedulable(queued, 0.2, is_error=True) is QueueState.BACKOFF
    assert not any(queue.in_flight_event_counts().values())


def test_a_pod_activated_in_flight_becomes_active_when_it_returns() -> None:
    queue = make_queue()
    queue.add(pending("a", priority=1), 0.0)
    queue.add(pending("b"), 0.0)
    activated, other = pop(queue), pop(queue)
    queue.activate([activated.uid], 0.1)
    assert queue.add_unschedulable(activated, 0.2, ["NodeResourcesFit"]) is QueueState.BACKOFF
    assert queue.add_unschedulable(other, 0.2, ["NodeResourcesFit"]) is QueueState.UNSCHEDULABLE


def test_a_pod_with_try_again_in_flight_becomes_active_when_it_returns() -> None:
    queue = make_queue()
    queue.add(pending("p"), 0.0)
    queued = pop(queue)
    queue.try_again([queued.uid], NODE_ADD, 0.1)
    assert queue.add_unschedulable(queued, 0.2, ["NodeResourcesFit"]) is QueueState.BACKOFF


def test_an_update_in_flight_is_replayed_like_an_event() -> None:
    hint = Hints()
    queue = make_queue({"NodeResourcesFit": [(POD_LABEL, hint)]})
    queue.add(pending("p"), 0.0)
    queued = pop(queue)
    new = pending("p", labels={"a": "b"})
    queue.update(new, 0.1)
    assert queue.add_unschedulable(queued, 0.2, ["NodeResourcesFit"]) is QueueState.BACKOFF
    assert hint.objects == [(pending("p"), new)]


def test_events_that_no_plugin_registered_are_not_kept() -> None:
    queue = make_queue()
    queue.add(pending("p"), 0.0)
    queued = pop(queue)
    queue.move_on_event(POD_ADD, None, None, 0.1)
    assert dict(queue.in_flight_event_counts()) == {"PodPopped": 1}
    queue.validate()
    assert queue.add_unschedulable(queued, 0.2, ["NodeAffinity"]) is QueueState.UNSCHEDULABLE


@pytest.mark.parametrize(
    ("rejected_by", "pending_on", "place"),
    [
        (["Newcomer"], [], QueueState.BACKOFF),
        (["NodeAffinity"], ["Newcomer"], QueueState.ACTIVE),
        (["Newcomer"], ["NodeAffinity"], QueueState.BACKOFF),
    ],
)
def test_a_skipped_event_moves_a_pod_that_an_unknown_plugin_rejects(
    rejected_by: list[str], pending_on: list[str], place: QueueState
) -> None:
    queue = make_queue()
    queue.add(pending("p"), 0.0)
    queued = pop(queue)
    queue.move_on_event(POD_ADD, None, None, 0.1)
    assert queue.add_unschedulable(queued, 0.2, rejected_by, pending=pending_on) is place
    queue.validate()


def test_a_skipped_event_moves_only_pods_that_were_in_flight_by_then() -> None:
    queue = make_queue()
    for name in ("a", "b"):
        queue.add(pending(name), 0.0)
    first = pop(queue)
    queue.move_on_event(POD_ADD, None, None, 0.1)
    queued = pop(queue)
    assert queue.add_unschedulable(queued, 0.2, ["Newcomer"]) is QueueState.UNSCHEDULABLE
    assert queue.add_unschedulable(first, 0.2, ["Newcomer"]) is QueueState.BACKOFF


def test_a_done_pod_releases_the_events_kept_for_it() -> None:
    queue = make_queue()
    queue.add(pending("p"), 0.0)
    assert dict(queue.in_flight_event_counts()) == {}
    queued = pop(queue)
    queue.move_on_event(NODE_ADD, None, None, 0.1)
    assert dict(queue.in_flight_event_counts()) == {"PodPopped": 1, "NodeAdd": 1}
    queue.done(queued.uid)
    assert dict(queue.in_flight_event_counts()) == {"PodPopped": 0, "NodeAdd": 0}
    queue.validate()


def test_an_unschedulable_pod_is_moved_after_five_minutes() -> None:
    queue = make_queue()
    reject(queue, pending("p"))
    assert queue.next_deadline() == 300.0
    assert queue.flush(299.0) == 0
    assert queue.flush(300.0) == 1
    queue.validate()
    assert queue.incoming_counts["active", "UnschedulableTimeout"] == 1
    assert pop_names(queue, 300.0) == ["p"]
    assert queue.next_deadline() is None


def test_the_longest_wait_can_be_configured() -> None:
    queue = make_queue(max_in_unschedulable_s=60.0)
    reject(queue, pending("p"))
    assert queue.next_deadline() == 60.0
    assert queue.flush(60.0) == 1


def test_the_next_deadline_is_the_earliest_of_backoff_and_longest_wait() -> None:
    queue = make_queue()
    assert queue.next_deadline() is None
    reject(queue, pending("a"))
    reject(queue, pending("b"), by=["NodeAffinity"])
    queue.move_on_event(NODE_LABEL, None, None, 0.0)
    assert queue.next_deadline() == 2.0
    assert queue.flush(2.0) == 1
    assert queue.next_deadline() == 300.0
