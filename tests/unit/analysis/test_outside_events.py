"""Recorded events are shown to a cluster with other decisions; recorded outcomes are not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from stowage.analysis.recorded_life import RecordedLife
from stowage.analysis.relived_life import RelivedLife
from stowage.api.config.loading import load_configuration
from stowage.api.events import (
    AssignedPodGone,
    AssignedPodSeen,
    BindFailed,
    BindSucceeded,
    DeviceObjectSeen,
    Event,
    NodeGone,
    NodeSeen,
    PendingPodGone,
    PendingPodSeen,
    StorageSeen,
)
from stowage.api.objects.device import DeviceObject
from stowage.api.objects.meta import ObjectMeta, ObjectReference, OwnerReference
from stowage.api.objects.pod import Pod
from stowage.api.objects.volume import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    StorageClass,
    VolumeAttachment,
    VolumeAttachmentSpec,
)
from stowage.cli.replay.engines import OtherProfiles, make_deciding_engine
from stowage.engine import Engine
from stowage.engine.journal import HandleCall
from stowage.recording.header import Header
from tests.support.builders import make_node, make_pod
from tests.support.device_builders import (
    allocated,
    make_claim,
    make_class,
    make_slice,
    pod_with_claims,
)
from tests.support.recorded_cluster import DEFAULTS

OWNER = OwnerReference("ReplicaSet", "rs", "uid-rs", "apps/v1", controller=True)
HEADER = Header("0", 0.0, DEFAULTS, "", 300.0)
NODES: tuple[Event, ...] = tuple(NodeSeen(make_node(name, cpu="4")) for name in ("a", "b"))


class Relived:
    """A recording, one call in ten seconds, and another life of it."""

    def __init__(self, *calls: Sequence[Event]) -> None:
        profiles = OtherProfiles(load_configuration(DEFAULTS))
        entries = [HandleCall(10.0 * at, tuple(each), ()) for at, each in enumerate((*calls, ()))]
        self.recorded = RecordedLife(engine_of(profiles), HEADER.time_of_day)
        for entry in entries:
            self.recorded.add(entry)
        self.engine = engine_of(profiles)
        self.life = RelivedLife(self.engine, self.recorded, [], follows_configuration=True)
        for entry in entries:
            self.life.add(entry)
        self.engine.validate()

    def nodes(self) -> dict[str, str]:
        """Pod -> its node, of the pods that exist at the end."""
        return {info.name: info.node_name for info in self.engine.pods()}


def engine_of(profiles: OtherProfiles) -> Engine:
    return make_deciding_engine(HEADER, profiles, lambda _event: None)


def pod(name: str, **fields: Any) -> Pod:
    return make_pod(name, scheduler_name="stowage", **fields)


def on(node: str, pending: Pod) -> Pod:
    return replace(pending, spec=replace(pending.spec, node_name=node))


def gone(name: str) -> tuple[PendingPodGone, AssignedPodGone]:
    where = ("default", name, f"uid-{name}")
    return PendingPodGone(*where), AssignedPodGone(*where)


def test_recorded_bindings_and_their_failures_do_not_count() -> None:
    p = pod("p", cpu="1")
    failed: list[Event] = [BindFailed("uid-p", "a", "no")]
    relived = Relived(
        (*NODES, PendingPodSeen(p)), failed, (AssignedPodSeen(on("b", p)), gone("p")[0])
    )
    assert relived.nodes() == {"p": "a"}


def test_a_pod_that_is_deleted_while_it_is_pending_goes() -> None:
    relived = Relived((*NODES, PendingPodSeen(pod("p", cpu="9"))), gone("p")[:1])
    assert relived.nodes() == {}
    assert relived.life.stories["uid-p"].gone == 10.0


def test_a_pod_that_is_bound_where_the_recording_ends_is_not_deleted() -> None:
    p = pod("p", cpu="1")
    relived = Relived((*NODES, PendingPodSeen(p)), (BindSucceeded("uid-p", "b"), gone("p")[0]))
    assert relived.nodes() == {"p": "a"}
    assert relived.recorded.stories["uid-p"].node == "b"


def test_a_pod_that_was_read_back_without_a_node_is_not_deleted() -> None:
    p = pod("p", cpu="1")
    relived = Relived((*NODES, PendingPodSeen(p)), gone("p")[1:])
    assert relived.nodes() == {"p": "a"}


def test_a_pod_finishes_when_it_did_wherever_it_is() -> None:
    p, q = pod("p", cpu="3"), pod("q", cpu="3")
    relived = Relived(
        (*NODES[:1], PendingPodSeen(p)),
        (AssignedPodSeen(on("a", p)), PendingPodSeen(q)),
        gone("p")[1:],
    )
    assert relived.nodes() == {"q": "a"}
    assert relived.life.stories["uid-q"].placed == 20.0


def test_changes_of_a_pod_reach_it_on_its_own_node() -> None:
    p = pod("p", cpu="1")
    labelled = replace(p, metadata=replace(p.metadata, labels={"a": "b"}))
    relived = Relived(
        (*NODES, PendingPodSeen(p)),
        (AssignedPodSeen(on("b", p)),),
        (AssignedPodSeen(on("b", labelled)),),
    )
    (info,) = relived.engine.pods()
    assert (info.node_name, dict(info.labels)) == ("a", {"a": "b"})


@pytest.mark.parametrize("owner", [OWNER, None])
def test_a_pod_on_a_removed_node_that_was_elsewhere_goes(owner: OwnerReference | None) -> None:
    p = pod("p", cpu="1", owner=owner)
    relived = Relived((*NODES, PendingPodSeen(p)), (AssignedPodSeen(on("b", p)),), (NodeGone("a"),))
    assert relived.nodes() == ({"p": "b"} if owner else {})


def test_a_pod_on_a_removed_node_waits_for_its_recorded_deletion() -> None:
    p = pod("p", cpu="1", owner=OWNER)
    start = ((*NODES, PendingPodSeen(p)), (AssignedPodSeen(on("a", p)),), (NodeGone("a"),))
    assert Relived(*start).nodes() == {"p": "a"}
    assert Relived(*start, gone("p")[1:]).nodes() == {}


def test_a_new_pod_of_the_same_name_takes_the_place_of_the_old_one() -> None:
    first = pod("p", cpu="1", uid="1")
    second = pod("p", cpu="2", uid="2")
    relived = Relived(
        (*NODES, PendingPodSeen(first)),
        (AssignedPodSeen(on("b", first)),),
        (PendingPodSeen(second), AssignedPodGone("default", "p", "1")),
    )
    assert [info.uid for info in relived.engine.pods()] == ["2"]


def storage(mode: str) -> tuple[PersistentVolumeClaim, tuple[Event, ...]]:
    """A claim without a volume, and the events of it and its class."""
    kind = StorageClass(ObjectMeta(name="c"), "x", volume_binding_mode=mode)
    claim = PersistentVolumeClaim(
        ObjectMeta(namespace="default", name="d", uid="uid-d"),
        PersistentVolumeClaimSpec(storage_class_name="c"),
    )
    return claim, (StorageSeen(claim), StorageSeen(kind))


@pytest.mark.parametrize(("mode", "kept"), [("WaitForFirstConsumer", False), ("Immediate", True)])
def test_the_recorded_binding_of_a_claim_that_waits_for_a_pod_is_left_out(
    mode: str, kept: bool
) -> None:
    claim, events = storage(mode)
    bound = replace(claim, spec=replace(claim.spec, volume_name="v"))
    reference = ObjectReference(kind="PersistentVolumeClaim", namespace="default", name="d")
    volume = PersistentVolume(ObjectMeta(name="v"), PersistentVolumeSpec(claim_ref=reference))
    relived = Relived((*NODES, *events), (StorageSeen(volume), StorageSeen(bound)))
    known = relived.engine.state.cache.snapshot().storage
    assert (known.get_api_object(PersistentVolume, "v") is not None) == kept
    found = known.claim("default", "d")
    assert found is not None
    assert found.spec.volume_name == ("v" if kept else "")


def test_recorded_allocations_of_claims_are_left_out() -> None:
    claim, waiting = make_claim("c"), pod_with_claims("p", "c", scheduler_name="stowage")
    slices = [make_slice(name, ["gpu-0"]) for name in ("a", "b")]
    objects: list[DeviceObject] = [make_class(), *slices, claim]
    devices = [DeviceObjectSeen(each) for each in objects]
    taken = DeviceObjectSeen(allocated(claim, "b-slice", "gpu-0", version="2"))
    relived = Relived((*NODES, *devices), (PendingPodSeen(waiting),), (taken,))
    assert relived.nodes() == {"p": "a"}
    found = relived.engine.state.cache.snapshot().devices.claims.get("default/c")
    assert found is not None
    assert found.status.allocation is not None
    (result,) = found.status.allocation.devices.results
    assert result.pool == "a"


def test_attachments_of_the_first_call_are_kept() -> None:
    attachments = [
        StorageSeen(VolumeAttachment(ObjectMeta(name=name), VolumeAttachmentSpec("d", "a")))
        for name in ("first", "later")
    ]
    relived = Relived((*NODES, attachments[0]), (attachments[1],))
    assert relived.recorded.decides_from == relived.recorded.started
    known = relived.engine.state.cache.snapshot().storage
    assert known.get_api_object(VolumeAttachment, "first") is not None
    assert known.get_api_object(VolumeAttachment, "later") is None


def test_nothing_is_decided_before_the_first_lists_are_complete() -> None:
    old = "1969-12-31T23:59:00Z"
    p = pod("p", cpu="4", created=old)
    there = pod("q", cpu="4", node="a", created=old)
    calls = (NODES, (PendingPodSeen(p),), (AssignedPodSeen(there),), (NodeSeen(make_node("c")),))
    relived = Relived(*calls)
    assert relived.recorded.decides_from == 20.0
    assert relived.nodes() == {"p": "b", "q": "a"}
    assert relived.life.stories["uid-p"].placed == 20.0
