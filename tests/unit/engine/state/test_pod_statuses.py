"""No status is written that the API server already has, whichever process wrote it."""

from __future__ import annotations

from msgspec.structs import replace

from stowage.api.instructions import ClearNomination, PatchPodStatus, PodReference
from stowage.api.objects.meta import Condition
from stowage.api.objects.pod import Pod
from stowage.engine.state.pod_statuses import PodStatuses
from tests.support.builders import make_pod

POD = PodReference("default", "p", "uid-p")
TOO_LARGE = ("Unschedulable", "too large")
BROKEN = ("SchedulerError", "broken")


def pod_with(status: str = "", reason: tuple[str, str] = ("", ""), nominated: str = "") -> Pod:
    """A pod with this PodScheduled condition; with none if `status` is empty."""
    pod = make_pod("p", nominated_node=nominated)
    if not status:
        return pod
    condition = Condition("PodScheduled", status, *reason)
    return replace(pod, status=replace(pod.status, conditions=(condition,)))


def test_only_the_first_condition_is_a_transition() -> None:
    statuses = PodStatuses()
    first = PatchPodStatus(POD, *TOO_LARGE, observed_generation=2)
    assert statuses.unschedulable(POD, 2, TOO_LARGE, None) == first
    second = PatchPodStatus(POD, *BROKEN, observed_generation=2, is_transition=False)
    assert statuses.unschedulable(POD, 2, BROKEN, None) == second


def test_a_new_generation_alone_causes_no_write() -> None:
    statuses = PodStatuses()
    statuses.unschedulable(POD, 1, TOO_LARGE, None)
    assert statuses.unschedulable(POD, 2, TOO_LARGE, None) is None


def test_a_status_that_another_process_wrote_is_not_written_again() -> None:
    statuses = PodStatuses()
    statuses.see(pod_with("False", TOO_LARGE, nominated="n"))
    assert statuses.unschedulable(POD, 1, TOO_LARGE, "n") is None
    change = statuses.unschedulable(POD, 1, TOO_LARGE, "")
    assert change is not None
    assert (change.nominated_node_name, change.is_transition) == ("", False)


def test_a_stale_watch_event_does_not_cause_another_write() -> None:
    statuses = PodStatuses()
    statuses.see(pod_with("False", TOO_LARGE))
    statuses.unschedulable(POD, 1, BROKEN, None)
    statuses.see(pod_with("False", TOO_LARGE))
    assert statuses.unschedulable(POD, 1, BROKEN, None) is None


def test_a_condition_that_another_client_changed_is_written_again() -> None:
    statuses = PodStatuses()
    statuses.unschedulable(POD, 1, TOO_LARGE, None)
    statuses.see(pod_with("False", TOO_LARGE))
    statuses.see(pod_with("True"))
    change = statuses.unschedulable(POD, 1, TOO_LARGE, None)
    assert change is not None
    assert change.is_transition


def test_clearing_a_nomination_twice_is_written_once() -> None:
    statuses = PodStatuses()
    statuses.unschedulable(POD, 1, TOO_LARGE, "")
    assert statuses.unschedulable(POD, 1, TOO_LARGE, "") is None


def test_a_nomination_that_was_cleared_before_the_watch_showed_it_is_written_again() -> None:
    """The two patches may reach the API server as one, so that no watch event shows a change."""
    statuses = PodStatuses()
    statuses.nominate(POD, "n")
    assert statuses.nomination("uid-p") == "n"
    assert statuses.clear_nomination(POD) == ClearNomination(POD)
    assert statuses.nomination("uid-p") == ""
    assert statuses.nominate(POD, "n") == PatchPodStatus(POD, nominated_node_name="n")


def test_the_end_of_a_nomination_is_written_until_the_watch_shows_it() -> None:
    """A replica without the lease may have cleared it, and written nothing."""
    statuses = PodStatuses()
    statuses.see(pod_with("False", TOO_LARGE, nominated="n"))
    statuses.clear_nomination(POD)
    for _ in range(2):
        patch = statuses.unschedulable(POD, 0, TOO_LARGE, "")
        assert patch is not None
        assert patch.nominated_node_name == ""
    statuses.see(pod_with("False", TOO_LARGE))
    assert statuses.unschedulable(POD, 0, TOO_LARGE, "") is None


def test_clearing_the_nomination_of_an_unknown_pod_keeps_no_status() -> None:
    statuses = PodStatuses()
    assert statuses.clear_nomination(POD) == ClearNomination(POD)
    assert (len(statuses), statuses.nomination("uid-p")) == (0, "")


def test_a_nomination_is_written_once_and_leaves_the_condition() -> None:
    statuses = PodStatuses()
    assert statuses.nominate(POD, "n") == PatchPodStatus(POD, nominated_node_name="n")
    assert statuses.nominate(POD, "n") is None


def test_pods_without_a_status_and_forgotten_pods_are_not_kept() -> None:
    statuses = PodStatuses()
    statuses.see(pod_with())
    assert len(statuses) == 0
    statuses.see(pod_with("False", TOO_LARGE))
    assert len(statuses) == 1
    statuses.forget("uid-p")
    assert len(statuses) == 0
