"""The plan that binds a pod's claims, its writes, and the check whether they have taken effect.

``bindAPIUpdate`` and ``checkBindings`` of v1.36, without I/O: the shell writes, the watches show
the outcome.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from stowage.api.cluster_events import EventResource
from stowage.api.events import VolumesWritten
from stowage.api.instructions import BindVolumes, BindVolumeToClaim, SetSelectedNode
from stowage.api.objects.volume import PersistentVolume, PersistentVolumeClaim
from stowage.api.status import SUCCESS, WAIT, Status, error
from stowage.api.values.volume_claims import (
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    bound_to,
    is_fully_bound,
    with_selected_node,
)
from stowage.framework import PreBindProgress, ReservePlan
from stowage.plugins.volumes.topology import VolumeTopology
from stowage.state.changes import is_older
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView, Snapshot
from stowage.state.storage.objects import Storage

_CLAIM = EventResource.PERSISTENT_VOLUME_CLAIM
_VOLUME = EventResource.PERSISTENT_VOLUME


class Given(msgspec.Struct, frozen=True):
    """A free volume for a claim: the volume before and after the write."""

    before: PersistentVolume
    after: PersistentVolume
    claim: PersistentVolumeClaim


class Provisioned(msgspec.Struct, frozen=True):
    """A claim whose volume is provisioned for the node: the claim before and after the write."""

    before: PersistentVolumeClaim
    after: PersistentVolumeClaim


class VolumePlan(msgspec.Struct):
    """The writes that have to take effect before the pod is bound.

    Attributes:
        given: Volumes for claims.
        provisioned: Claims for the node's provisioner.
        written: Resource versions of the objects that the shell has written, by name or
            ``namespace/name``. Older versions that the watches show are out of date.
    """

    given: Sequence[Given]
    provisioned: Sequence[Provisioned]
    written: Mapping[str, str] = msgspec.field(default_factory=dict)

    def assumptions(self) -> ReservePlan:
        """The objects after the writes, without those that are up to date."""
        volumes = tuple(each.after for each in self.given if each.after is not each.before)
        claims = tuple(each.after for each in self.provisioned if each.after is not each.before)
        return ReservePlan(volumes, claims)

    def writes(self, pod: PodInfo, node_name: str) -> BindVolumes:
        """The instruction to the shell; objects that are up to date are not written."""
        volumes = tuple(_give(each) for each in self.given if each.after is not each.before)
        claims = tuple(
            _select(each.after) for each in self.provisioned if each.after is not each.before
        )
        return BindVolumes(pod.reference, node_name, volumes, claims)

    def note(self, outcome: VolumesWritten) -> None:
        """Note the resource versions that the shell has written."""
        self.written = {**outcome.volumes, **outcome.claims}

    def is_shown(self, key: str, version: str) -> bool:
        """Whether the version that the watch shows is at least the written one."""
        return not is_older(version, self.written.get(key, ""))


def make_plan(
    given: Sequence[tuple[PersistentVolume, PersistentVolumeClaim]],
    provisioned: Sequence[PersistentVolumeClaim],
    node_name: str,
) -> VolumePlan:
    """The plan that gives a pod's claims these volumes, or new ones on the node."""
    return VolumePlan(
        [Given(volume, bound_to(volume, claim), claim) for volume, claim in given],
        [Provisioned(claim, with_selected_node(claim, node_name)) for claim in provisioned],
    )


def check_plan(
    plan: VolumePlan, node_name: str, snapshot: Snapshot, topology: VolumeTopology
) -> PreBindProgress:
    """Whether all claims are bound; an error if the pod has to be scheduled again."""
    row = snapshot.row_of(node_name)
    awaited = {(EventResource.NODE, node_name), (EventResource.CSI_NODE, node_name)}
    if row is None:
        text = f'failed to get node "{node_name}": node "{node_name}" not found'
        return PreBindProgress(_failed(text))
    node = snapshot.view(slice(row, row + 1))
    statuses = [_check_given(each, plan, node, topology) for each in plan.given]
    statuses += [_check_provisioned(each, plan, node, topology) for each in plan.provisioned]
    failure = next((each for each in statuses if not each.is_success and each is not WAIT), None)
    if failure is not None:
        return PreBindProgress(failure)
    if WAIT not in statuses:
        return PreBindProgress(SUCCESS)
    return PreBindProgress(WAIT, frozenset(awaited.union(_watched(plan, snapshot.storage))))


def _check_given(
    given: Given, plan: VolumePlan, node: NodeView, topology: VolumeTopology
) -> Status:
    storage = node.snapshot.storage
    name, key = given.after.metadata.name, given.claim.metadata.namespaced_name
    volume, claim = storage.volumes.get_api_object(name), storage.claims.get_api_object(key)
    if volume is None:
        return _failed(f'failed to check binding: could not find v1.PersistentVolume "{name}"')
    if claim is None:
        text = f'failed to check binding: could not find v1.PersistentVolumeClaim "{key}"'
        return _failed(text)
    if not plan.is_shown(name, volume.metadata.resource_version):
        return WAIT
    if given.after is given.before and storage.volumes.assumption(name) is not None:
        return _conflict("persistentvolumes", name)
    unreachable = _unreachable(volume, node, topology)
    if unreachable is not None:
        return unreachable
    if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
        return _failed(f'ClaimRef got reset for pv "{name}"')
    if claim.metadata.uid != given.claim.metadata.uid:
        return _failed(f'PVC "{key}" was deleted and created again')
    return _check_bound(claim, node, topology)


def _check_provisioned(
    each: Provisioned, plan: VolumePlan, node: NodeView, topology: VolumeTopology
) -> Status:
    key, claims = each.after.metadata.namespaced_name, node.snapshot.storage.claims
    claim = claims.get_api_object(key)
    if claim is None:
        text = f'could not find v1.PersistentVolumeClaim "{key}"'
        return _failed(f"failed to check provisioning pvc: {text}")
    meta = claim.metadata
    if not plan.is_shown(key, meta.resource_version):
        return WAIT
    if each.after is each.before and claims.assumption(key) is not None:
        return _conflict("persistentvolumeclaims", meta.name)
    if not meta.annotations:
        return _failed(f'selectedNode annotation reset for PVC "{meta.name}"')
    if meta.annotations.get(SELECTED_NODE, "") != node.names[0]:
        # A provisioner that fails removes the annotation, so that the pod tries another node.
        return _failed(f'provisioning failed for PVC "{meta.name}"')
    return _check_bound(claim, node, topology)


def _check_bound(claim: PersistentVolumeClaim, node: NodeView, topology: VolumeTopology) -> Status:
    """Whether a claim is bound, and to a volume that the node can reach.

    kube-scheduler checks the node of provisioned claims only. A claim that was to get a free volume
    may also be bound to another volume.
    """
    if not claim.spec.volume_name:
        return WAIT
    volume = node.snapshot.storage.volumes.get_api_object(claim.spec.volume_name)
    if volume is None:
        return WAIT
    unreachable = _unreachable(volume, node, topology)
    if unreachable is not None:
        return unreachable
    return SUCCESS if is_fully_bound(claim) else WAIT


def _unreachable(
    volume: PersistentVolume, node: NodeView, topology: VolumeTopology
) -> Status | None:
    reachable = topology.reachable(node, volume)
    if reachable is None or reachable[0]:
        return None
    where = f'pv "{volume.metadata.name}" node affinity doesn\'t match node "{node.names[0]}"'
    return _failed(f"{where}: no matching NodeSelectorTerms")


def _watched(plan: VolumePlan, storage: Storage) -> Iterator[tuple[EventResource, str]]:
    """The objects whose change may end the wait."""
    claims = [each.claim.metadata.namespaced_name for each in plan.given]
    claims += [each.after.metadata.namespaced_name for each in plan.provisioned]
    for given in plan.given:
        yield _VOLUME, given.after.metadata.name
    for key in claims:
        yield _CLAIM, key
        claim = storage.claims.get_api_object(key)
        if claim is not None and claim.spec.volume_name:
            yield _VOLUME, claim.spec.volume_name


def _conflict(resource: str, name: str) -> Status:
    """The error where another pod of the claim has the object written, and no watch shows it yet.

    kube-scheduler writes the object for each pod, and the API server refuses the second write.
    """
    return error(
        f'Operation cannot be fulfilled on {resource} "{name}": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )


def _failed(text: str) -> Status:
    return error(f"binding volumes: {text}")


def _give(given: Given) -> BindVolumeToClaim:
    meta, reference = given.after.metadata, given.after.spec.claim_ref
    if reference is None:
        raise AssertionError(f"volume {meta.name} has no claim reference")
    is_marked = BOUND_BY_CONTROLLER not in given.before.metadata.annotations
    is_marked &= BOUND_BY_CONTROLLER in meta.annotations
    return BindVolumeToClaim(meta.name, meta.uid, meta.resource_version, reference, is_marked)


def _select(claim: PersistentVolumeClaim) -> SetSelectedNode:
    meta = claim.metadata
    return SetSelectedNode(meta.namespace, meta.name, meta.uid, meta.resource_version)
