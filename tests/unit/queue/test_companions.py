"""Members of a pod group that are popped out of turn."""

from __future__ import annotations

import pytest

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource
from stowage.api.status import SUCCESS, Status, unschedulable
from stowage.queue import QueueRules, QueueState, SchedulingQueue
from stowage.state.pods.pod_class import PodClasses
from stowage.state.pods.pod_info import PodInfo, make_pod_info
from tests.stories.gang_driver import make_member

_CLASSES = PodClasses()
_ANY = ClusterEvent(EventResource.WILDCARD, ActionType.ALL)


def _info(name: str) -> PodInfo:
    return make_pod_info(make_member(name), _CLASSES)


class _Door:
    """PreEnqueue that rejects the pods whose names are listed."""

    def __init__(self) -> None:
        self.closed_for: set[str] = set()

    def __call__(self, pod: PodInfo) -> Status:
        return unschedulable("closed", plugin="Door") if pod.name in self.closed_for else SUCCESS


def _queue(door: _Door) -> SchedulingQueue:
    return SchedulingQueue(QueueRules(lambda _pod, queued_at: (queued_at,), door, {}))


@pytest.mark.parametrize("where", ["active", "backoff", "unschedulable"])
def test_a_companion_is_popped_wherever_it_waits(where: str) -> None:
    door = _Door()
    queue = _queue(door)
    queue.add(_info("p"), 0.0)
    if where != "active":
        popped = queue.pop(0.0)
        assert popped is not None
        # A plugin without registrations gets every event; an error backs off.
        queue.add_unschedulable(popped, 0.0, {"Fit"} if where == "unschedulable" else ())
    assert queue.state_of("uid-p") is QueueState(where)
    companion = queue.pop_companion("uid-p", 5.0)
    assert companion is not None
    assert queue.state_of("uid-p") is QueueState.IN_FLIGHT
    assert companion.attempts == (1 if where == "active" else 2)
    queue.validate()


def test_a_companion_that_pre_enqueue_rejects_by_now_is_gated() -> None:
    door = _Door()
    queue = _queue(door)
    queue.add(_info("p"), 0.0)
    door.closed_for.add("p")
    assert queue.pop_companion("uid-p", 1.0) is None
    assert queue.pending_counts()["gated"] == 1
    queue.validate()


def test_an_unknown_companion_is_passed_over() -> None:
    assert _queue(_Door()).pop_companion("uid-x", 0.0) is None


def test_a_member_is_never_popped_before_its_backoff_is_over() -> None:
    queue = _queue(_Door())
    queue.add(_info("p"), 0.0)
    popped = queue.pop(0.0)
    assert popped is not None
    queue.try_again(["uid-p"], _ANY, 0.0)
    queue.add_unschedulable(popped, 0.0, {"Fit"})
    assert queue.state_of("uid-p") is QueueState.BACKOFF
    assert not queue.has_ready_pods()
    queue.flush(3.0)
    assert queue.has_ready_pods()
