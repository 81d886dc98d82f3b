"""VolumeBinding: a pod goes to a node that can reach its volumes or get new ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource
from stowage.api.config.loading import ConfigError
from stowage.api.config.types import ConfigStruct, UtilizationShapePoint
from stowage.api.events import VolumesWritten
from stowage.api.instructions import BindVolumes
from stowage.api.objects.volume import PersistentVolumeClaim
from stowage.api.status import SKIP, SUCCESS, Status, error, unresolvable
from stowage.api.values.volume_claims import (
    WAIT_FOR_FIRST_CONSUMER,
    UsedClaim,
    claim_class,
    is_fully_bound,
    is_generated_for,
)
from stowage.framework import (
    ACCEPT_ALL,
    CycleState,
    EventRegistration,
    FilterVerdict,
    PluginTraits,
    PreBindProgress,
    PreFilterResult,
    Rejection,
    ReservePlan,
)
from stowage.plugins.volumes import hints
from stowage.plugins.volumes.claims import claim_not_found, claims_of, not_owner
from stowage.plugins.volumes.finding import Found, find_volumes
from stowage.plugins.volumes.pre_bind import VolumePlan, check_plan, make_plan
from stowage.plugins.volumes.topology import VolumeTopology
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView, Snapshot
from stowage.state.storage.objects import Storage

REASON_CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
REASON_UNMATCHED = "node(s) didn't find available persistent volumes to bind"
REASON_SHORT = "node(s) did not have enough free storage"
REASON_LOST = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
UNBOUND_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"
_LOST = "Lost"
_SKIPPED = PreFilterResult(SKIP)


class VolumeBindingArgs(ConfigStruct, frozen=True):
    """Arguments of VolumeBinding.

    Attributes:
        bind_timeout_seconds: How long a pod waits for its claims to be bound.
        shape: How storage capacity is scored; refused like in kube-scheduler while the feature gate
            StorageCapacityScoring is off.
    """

    bind_timeout_seconds: int = 600
    shape: tuple[UtilizationShapePoint, ...] | None = None

    def validate(self) -> Iterator[ConfigError]:
        """``ValidateVolumeBindingArgs`` with the gate StorageCapacityScoring off."""
        yield from self.timeout_errors()
        if self.shape is not None:
            points = [
                {"utilization": point.utilization, "score": point.score} for point in self.shape
            ]
            yield ConfigError("shape", points, "nothing: storage capacity is not scored")

    def timeout_errors(self) -> Iterator[ConfigError]:
        """The error of a negative time-out."""
        if self.bind_timeout_seconds < 0:
            yield ConfigError("bindTimeoutSeconds", self.bind_timeout_seconds, "0 or more")


class PodClaims(msgspec.Struct):
    """A pod's claims in this cycle.

    Attributes:
        snapshot: The snapshot of this cycle; None after Reserve.
        bound: The claims that have a volume.
        delayed: The claims that get a volume when the pod has a node.
        found: The volumes found for all nodes, by row; None if Filter did not run on all nodes.
        plan: The writes that bind the claims; None before Reserve or if all claims are bound.
    """

    snapshot: Snapshot | None
    bound: list[PersistentVolumeClaim]
    delayed: list[PersistentVolumeClaim]
    found: Found | None = None
    plan: VolumePlan | None = None


class VolumeBinding:
    """Filters nodes by the pod's volumes, reserves volumes, and binds claims before the pod."""

    name = "VolumeBinding"
    traits = PluginTraits(
        reads_placed_pods=False,
        never_needs_pods=True,
        rejects_per_class=True,
        skips_per_class=True,
    )
    pre_bind_target = BindVolumes

    def __init__(self, args: VolumeBindingArgs) -> None:
        self.pre_bind_timeout_s = float(args.bind_timeout_seconds)
        self._topology = VolumeTopology()

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        """Skip a pod without claims; reject one whose claim is missing or has to be bound first."""
        used = claims_of(pod)
        if not used:
            return _SKIPPED
        problem = next((text for each in used if (text := _problem(each, pod, snapshot))), "")
        if problem:
            return PreFilterResult(unresolvable(problem))
        claims = PodClaims(snapshot, [], [])
        is_immediate = False
        for each in used:
            claim = snapshot.storage.claim(pod.namespace, each.name)
            if claim is None:
                raise ValueError(f'error getting PVC "{pod.namespace}/{each.name}"')
            if is_fully_bound(claim):
                claims.bound.append(claim)
            elif _is_delayed(claim, snapshot.storage) and not claim.spec.volume_name:
                claims.delayed.append(claim)
            else:
                is_immediate = True
        if is_immediate:
            return PreFilterResult(unresolvable(UNBOUND_IMMEDIATE))
        state.write(claims)
        return PreFilterResult()

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> FilterVerdict:
        """Reject nodes that cannot reach a volume, or on which a claim gets no volume."""
        del pod
        claims = state.read(PodClaims)
        found = find_volumes(claims.bound, claims.delayed, nodes, self._topology)
        if nodes.snapshot is claims.snapshot and isinstance(nodes.index, slice):
            claims.found = found
        rejections = tuple(
            Rejection(reason, mask, unresolvable=True)
            for reason, mask in (
                (REASON_CONFLICT, found.is_conflicting),
                (REASON_UNMATCHED, found.is_unmatched),
                (REASON_SHORT, found.is_short),
                (REASON_LOST, found.is_lost),
            )
            if mask.any()
        )
        return FilterVerdict(rejections) if rejections else ACCEPT_ALL

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Status:
        """Skip: nothing is scored while the feature gate StorageCapacityScoring is off."""
        del state, pod, nodes
        return SKIP

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> ReservePlan | Status:
        """Plan which volumes the claims get on the node, so that other pods do not get them.

        The members of a pod group that are placed again as they were tried keep their plans.
        """
        del pod
        claims = state.get(PodClaims)
        if claims is not None and claims.plan is not None:
            return claims.plan.assumptions()
        if claims is None or claims.snapshot is None:
            return SUCCESS
        snapshot, claims.snapshot = claims.snapshot, None
        found, claims.found = claims.found, None
        if not claims.delayed:
            return SUCCESS
        row = snapshot.row_of(node_name)
        if row is None:
            return error(f'no pod volumes found for node "{node_name}"')
        position = row
        if found is None:
            node = snapshot.view(np.array([row], dtype=np.int64))
            position, found = 0, find_volumes((), claims.delayed, node, self._topology)
        claims.plan = make_plan(found.given(position), found.provisioned(position), node_name)
        return claims.plan.assumptions()

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Nothing to do: the engine takes back what it assumed for the plan."""

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Skip if all claims are bound."""
        del pod, node_name
        claims = state.get(PodClaims)
        return SKIP if claims is None or claims.plan is None else SUCCESS

    def pre_bind_writes(self, state: CycleState, pod: PodInfo, node_name: str) -> BindVolumes:
        """The writes: volumes get their claims, claims get the node for its provisioner."""
        return _plan(state).writes(pod, node_name)

    def pre_bind_written(self, state: CycleState, outcome: VolumesWritten) -> None:
        """Note the resource versions that the shell has written."""
        _plan(state).note(outcome)

    def pre_bind_progress(
        self, state: CycleState, pod: PodInfo, node_name: str, snapshot: Snapshot
    ) -> PreBindProgress:
        """Whether the claims are bound, still to be bound, or cannot be bound on this node."""
        del pod
        return check_plan(_plan(state), node_name, snapshot, self._topology)

    def pre_bind_timed_out(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> str:
        """The text of the error if the claims are not bound in time."""
        del state, pod, snapshot
        return "binding volumes: context deadline exceeded"

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Events of storage objects and nodes that may make a volume reachable or free."""
        both = ActionType.ADD | ActionType.UPDATE
        no_more = ActionType.UPDATE | ActionType.DELETE
        node_action = ActionType.ADD | ActionType.UPDATE_NODE_LABEL
        # The other hints look at the pod's volumes, which are not part of its equivalence class.
        per_class = (
            hints.after_class_changed,
            hints.after_csi_node_changed,
            hints.after_csi_driver_changed,
            hints.after_capacity_changed,
        )
        registered = (
            (EventResource.STORAGE_CLASS, both, hints.after_class_changed),
            (EventResource.PERSISTENT_VOLUME_CLAIM, both, hints.after_claim_changed),
            (EventResource.PERSISTENT_VOLUME, both, None),
            (EventResource.NODE, node_action, None),
            (EventResource.CSI_NODE, both, hints.after_csi_node_changed),
            (EventResource.CSI_DRIVER, no_more, hints.after_csi_driver_changed),
            (EventResource.CSI_STORAGE_CAPACITY, both, hints.after_capacity_changed),
        )
        return tuple(
            EventRegistration(ClusterEvent(resource, action), hint, per_class=hint in per_class)
            for resource, action, hint in registered
        )


def _problem(used: UsedClaim, pod: PodInfo, snapshot: Snapshot) -> str:
    """The reason why a claim cannot be used; empty if it can (``podHasPVCs``)."""
    claim = snapshot.storage.claims.get_api_object(f"{pod.namespace}/{used.name}")
    if claim is None and used.is_ephemeral:
        waiting = "waiting for ephemeral volume controller to create the persistentvolumeclaim"
        return f'{waiting} "{used.name}"'
    if claim is None:
        return claim_not_found(used.name)
    named = f'persistentvolumeclaim "{claim.metadata.name}"'
    if claim.status.phase == _LOST:
        return f'{named} bound to non-existent persistentvolume "{claim.spec.volume_name}"'
    if claim.metadata.deletion_timestamp is not None:
        return f"{named} is being deleted"
    if used.is_ephemeral and not is_generated_for(claim, pod.uid):
        return not_owner(claim, pod)
    return ""


def _is_delayed(claim: PersistentVolumeClaim, storage: Storage) -> bool:
    """Whether a claim gets its volume when its pod gets a node (``IsDelayBindingMode``).

    Raises:
        ValueError: Its class does not say.
    """
    class_name = claim_class(claim)
    storage_class = storage.classes.get(class_name) if class_name else None
    if storage_class is None:
        return False
    if storage_class.volume_binding_mode is None:
        raise ValueError(f'VolumeBindingMode not set for StorageClass "{class_name}"')
    return storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def _plan(state: CycleState) -> VolumePlan:
    plan = state.read(PodClaims).plan
    if plan is None:
        raise ValueError("no volumes are to be bound for this pod")
    return plan
