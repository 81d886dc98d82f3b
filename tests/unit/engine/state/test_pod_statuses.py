"""Nothing is written that the API server says already, whoever wrote it."""

from __future__ import annotations

from msgspec.structs import replace

from stowage.api.instructions import PatchPodStatus, PodReference
from stowage.api.objects.meta import Condition
from stowage.api.objects.pod import Pod
from stowage.engine.state.pod_statuses import PodStatuses
from tests.support.builders import make_pod

POD = PodReference("default", "p", "uid-p")
NO_ROOM = ("Unschedulable", "no room")
BROKEN = ("SchedulerError", "broken")


def pod_saying(status: str = "", said: tuple[str, str] = ("", ""), nominated: str = "") -> Pod:
    """A pod whose PodScheduled condition says this; without `status` it has none."""
    pod = make_pod("p", nominated_node=nominated)
    if not status:
        return pod
    condition = Condition("PodScheduled", status, *said)
    return replace(pod, status=replace(pod.status, conditions=(condition,)))


def test_the_first_condition_is_a_transition_and_the_next_is_none() -> None:
    statuses = PodStatuses()
    first = PatchPodStatus(POD, *NO_ROOM, observed_generation=2)
    assert statuses.unschedulable(POD, 2, NO_ROOM, None) == first
    second = PatchPodStatus(POD, *BROKEN, observed_generation=2, is_transition=False)
    assert statuses.unschedulable(POD, 2, BROKEN, None) == second


def test_the_same_is_not_written_again_though_the_generation_changed() -> None:
    statuses = PodStatuses()
    statuses.unschedulable(POD, 1, NO_ROOM, None)
    assert statuses.unschedulable(POD, 2, NO_ROOM, None) is None


def test_what_another_process_wrote_is_not_written_again() -> None:
    statuses = PodStatuses()
    statuses.see(pod_saying("False", NO_ROOM, nominated="n"))
    assert statuses.unschedulable(POD, 1, NO_ROOM, "n") is None
    change = statuses.unschedulable(POD, 1, NO_ROOM, "")
    assert change is not None
    assert (change.nominated_node_name, change.is_transition) == ("", False)


def test_an_old_view_does_not_undo_what_was_written_since() -> None:
    statuses = PodStatuses()
    statuses.see(pod_saying("False", NO_ROOM))
    statuses.unschedulable(POD, 1, BROKEN, None)
    statuses.see(pod_saying("False", NO_ROOM))
    assert statuses.unschedulable(POD, 1, BROKEN, None) is None


def test_what_somebody_else_changed_is_put_right() -> None:
    statuses = PodStatuses()
    statuses.unschedulable(POD, 1, NO_ROOM, None)
    statuses.see(pod_saying("False", NO_ROOM))
    statuses.see(pod_saying("True"))
    change = statuses.unschedulable(POD, 1, NO_ROOM, None)
    assert change is not None
    assert change.is_transition


def test_clearing_a_nomination_that_is_not_there_writes_nothing() -> None:
    statuses = PodStatuses()
    statuses.unschedulable(POD, 1, NO_ROOM, "")
    assert statuses.unschedulable(POD, 1, NO_ROOM, "") is None


def test_a_nomination_is_written_once_and_leaves_the_condition_alone() -> None:
    statuses = PodStatuses()
    assert statuses.nominate(POD, "n") == PatchPodStatus(POD, nominated_node_name="n")
    assert statuses.nominate(POD, "n") is None


def test_pods_without_a_status_and_pods_that_are_gone_are_not_kept() -> None:
    statuses = PodStatuses()
    statuses.see(pod_saying())
    assert len(statuses) == 0
    statuses.see(pod_saying("False", NO_ROOM))
    statuses.forget("uid-p")
    assert len(statuses) == 0
