"""Every kind of event is known to the engine, to checkpoints and to those who follow a cluster.

A new kind belongs into `SHOWN` or `WITHOUT_OBJECT`; then the other tests say where it is forgotten.
"""

from __future__ import annotations

from typing import Any, get_args

import pytest

from stowage.analysis.followed_objects import FollowedObjects
from stowage.analysis.recorded_life import RecordedLife
from stowage.analysis.simulation.recorded import RecordedWorkload
from stowage.api.events import (
    AssignedPodGone,
    AssignedPodSeen,
    BindFailed,
    BindSucceeded,
    ClaimDeletionFinished,
    ClaimsWritten,
    CustomObjectGone,
    CustomObjectSeen,
    CustomResourceGone,
    DeviceObjectGone,
    DeviceObjectSeen,
    DisruptionBudgetGone,
    DisruptionBudgetSeen,
    Event,
    EvictionFinished,
    ExtendersAnswered,
    NamespaceGone,
    NamespaceSeen,
    NodeGone,
    NodeSeen,
    ObjectInvalid,
    PendingPodGone,
    PendingPodSeen,
    PodGroupGone,
    PodGroupSeen,
    PodGroupsServed,
    PodsActivated,
    PreBindFinished,
    StorageGone,
    StorageSeen,
    VictimsReviewed,
    VolumesWritten,
    WaitingPodAllowed,
    WaitingPodRejected,
    WorkloadGone,
    WorkloadSeen,
)
from stowage.api.instructions import ClaimReference, PodReference, ReportProblem
from stowage.api.objects.device import DeviceObject
from stowage.api.objects.meta import ObjectMeta
from stowage.api.objects.pod_groups import CORE_GROUPS, PodGroup
from stowage.api.objects.policy import PodDisruptionBudget
from stowage.api.objects.volume import StorageObject
from stowage.api.reflected_kinds import READ_BY_ADMISSION
from stowage.api.status import Code
from stowage.engine.journal import HandleCall, ScheduleCall
from stowage.recording.known_objects import KnownObjects
from tests.support.builders import label_selector, make_namespace, make_node, make_pod
from tests.support.engines import change_to, configurable_engine, default_engine, fit_profile

META = ObjectMeta(name="a", namespace="d", uid="u")
POD = make_pod("a", namespace="d", uid="u")
PLACED = make_pod("a", namespace="d", uid="u", node="n")
RESOURCE = next(iter(READ_BY_ADMISSION))
CUSTOM = CustomObjectSeen(RESOURCE, {"metadata": {"namespace": "d", "name": "a"}})

SHOWN: tuple[tuple[Event, Event], ...] = (
    (PendingPodSeen(POD), PendingPodGone("d", "a", "u")),
    (AssignedPodSeen(PLACED), AssignedPodGone("d", "a", "u")),
    (NodeSeen(make_node("a")), NodeGone("a")),
    (NamespaceSeen(make_namespace("a")), NamespaceGone("a")),
    (
        WorkloadSeen("Service", "d", "a", label_selector({"b": "c"})),
        WorkloadGone("Service", "d", "a"),
    ),
    *(
        (StorageSeen(kind(META)), StorageGone(kind.__name__, "d", "a"))
        for kind in get_args(StorageObject)
    ),
    *(
        (DeviceObjectSeen(kind(META)), DeviceObjectGone(kind.__name__, "d", "a"))
        for kind in get_args(DeviceObject)
    ),
    (DisruptionBudgetSeen(PodDisruptionBudget(META)), DisruptionBudgetGone("d", "a")),
    (PodGroupSeen(PodGroup(META)), PodGroupGone("d", "a")),
    (CUSTOM, CustomObjectGone(RESOURCE, "d", "a")),
    (CUSTOM, CustomResourceGone(RESOURCE)),
)
"""An event that shows an object, and one that ends it."""

WITHOUT_OBJECT: tuple[Event, ...] = (
    PodGroupsServed(CORE_GROUPS, is_served=False),
    ObjectInvalid("Pod", "d", "a", "u", "spec", "1", "2"),
    PreBindFinished("u", 1, Code.SUCCESS),
    VolumesWritten("u", 1),
    ClaimsWritten("u"),
    ClaimDeletionFinished(ClaimReference("d", "c", "u", "1")),
    BindSucceeded("u", "n"),
    BindFailed("u", "n", "no"),
    WaitingPodAllowed("u", "Plugin"),
    WaitingPodRejected("u", "Plugin", "no"),
    PodsActivated(("u",)),
    ExtendersAnswered("u", 1),
    VictimsReviewed("u", 1),
    EvictionFinished("u", PodReference("d", "a", "v")),
    change_to(fit_profile()),
)
"""Events that neither show nor end an object."""

KINDS = pytest.mark.parametrize(("seen", "gone"), SHOWN, ids=lambda event: type(event).__name__)


def test_every_kind_of_event_is_tried_here() -> None:
    tried = {type(event) for event in (*WITHOUT_OBJECT, *(each for pair in SHOWN for each in pair))}
    assert tried == set(get_args(Event))


@pytest.mark.parametrize(
    "events", [*SHOWN, *((event,) for event in WITHOUT_OBJECT)], ids=lambda them: repr(them)[:40]
)
def test_the_engine_handles_the_event(events: tuple[Event, ...]) -> None:
    engine = configurable_engine(fit_profile())
    names = {type(event).__name__ for event in events}
    problems = [each for each in engine.handle(events, 0.0) if isinstance(each, ReportProblem)]
    assert [each for each in problems if each.subject in names] == []


@KINDS
def test_a_checkpoint_has_the_object_until_it_is_gone(seen: Event, gone: Event) -> None:
    known = KnownObjects()
    assert known.follow(seen)
    assert list(known.events()) == [seen]
    assert known.follow(gone)
    assert list(known.events()) == []


@KINDS
def test_followed_objects_have_the_object_until_it_is_gone(seen: Event, gone: Event) -> None:
    followed = FollowedObjects()
    followed.follow(seen)
    assert sum(followed.objects.counts().values()) == 1
    followed.follow(gone)
    assert sum(followed.objects.counts().values()) == 0


@KINDS
def test_a_recorded_workload_repeats_the_object_and_its_end(seen: Event, gone: Event) -> None:
    assert num_happenings(()) == 0
    assert num_happenings((seen,)) == 1
    assert num_happenings((seen, gone)) == 2


def num_happenings(events: tuple[Event, ...]) -> int:
    """How much happens in a simulation of a recording with these events."""
    calls: list[Any] = [ScheduleCall(0.0, 1, (), ())]
    calls += [HandleCall(float(at), (event,), ()) for at, event in enumerate(events, start=1)]
    life = RecordedLife(default_engine(), lambda _now: "2026-01-01T00:00:00Z")
    for call in calls:
        life.add(call)
    workload = RecordedWorkload("recorded", life)
    for call in calls:
        workload.add(call)
    workload.finish()
    return len(list(workload.timeline(1).happenings))


def test_what_has_no_object_is_no_object_of_a_checkpoint_or_cluster() -> None:
    for event in WITHOUT_OBJECT:
        followed, known = FollowedObjects(), KnownObjects()
        followed.follow(event)
        assert followed.objects.counts() == {}
        assert known.follow(event) == isinstance(event, PodGroupsServed)


def test_a_cluster_that_serves_no_pod_groups_is_followed_simulated_and_recorded_as_such() -> None:
    unserved, served = (PodGroupsServed(CORE_GROUPS, is_served=it) for it in (False, True))
    followed, known = FollowedObjects(), KnownObjects()
    for event in (unserved, served, unserved):
        followed.follow(event)
        known.follow(event)
    assert list(followed.objects.events()) == list(known.events()) == [unserved]
    assert num_happenings((unserved,)) == 1
    followed.follow(served)
    assert list(followed.objects.events()) == []
