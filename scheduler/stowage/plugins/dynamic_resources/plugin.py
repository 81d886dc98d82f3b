"""DynamicResources: a pod goes to a node where its claims are available or can be allocated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from uuid import NAMESPACE_OID, uuid5

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from stowage.api.config.feature_gates import DEFAULT_FEATURE_GATES, FeatureGates
from stowage.api.events import ClaimsWritten
from stowage.api.instructions import BindClaims, DeallocateClaim, DeleteClaim, ReleaseClaims
from stowage.api.objects.device import ResourceClaim
from stowage.api.status import SKIP, SUCCESS, Status, error, unresolvable, unschedulable
from stowage.api.values.claim_writes import is_reserved_for, reference_to
from stowage.framework import (
    ACCEPT_ALL,
    CompanionClaims,
    CycleState,
    Diagnosis,
    EventRegistration,
    FilterVerdict,
    PluginTraits,
    PreBindProgress,
    PreFilterResult,
    Reads,
    Rejection,
    ReservePlan,
    StartLimit,
    default_normalize_score,
)
from stowage.framework.verdict import BoolArray, FilterErrors, Int64Array
from stowage.plugins.dynamic_resources import hints, node_filter, pre_bind
from stowage.plugins.dynamic_resources.allocation_result import allocation_result
from stowage.plugins.dynamic_resources.allocator import Solution
from stowage.plugins.dynamic_resources.answers import (
    DOES_NOT_FIT,
    FAILED,
    FITS,
    HAS_INVALID_POOL,
    MAX_ALTERNATIVES,
    AnswerCache,
    Attempt,
)
from stowage.plugins.dynamic_resources.args import DynamicResourcesArgs, check_limits
from stowage.plugins.dynamic_resources.companions import are_in_flight, with_companions
from stowage.plugins.dynamic_resources.plain_requests import preparation_steps
from stowage.plugins.dynamic_resources.pod_claims import (
    SPECIAL_CLAIM,
    ClaimProblem,
    check_no_creation,
    check_requests,
    pod_claims,
    special_claim_uid,
)
from stowage.plugins.dynamic_resources.pod_devices import PodDevices, Variant
from stowage.plugins.dynamic_resources.templates import Templates
from stowage.state.devices.devices import ClaimAllocation, Devices
from stowage.state.devices.features import device_features
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView, Snapshot

CANNOT_ALLOCATE = "cannot allocate all claims"
INVALID_POOLS = "invalid resource pools were encountered"
NOT_AVAILABLE = "resourceclaim not available on the node"
STALE_SPECIAL_CLAIM = "cannot schedule extended resource claim"
CANNOT_FIT = "cannot fit resource"
_SKIPPED = PreFilterResult(SKIP)
#: Shared by all pods without claims; never changed.
_NO_DEVICES = PodDevices()


class DynamicResources:
    """Allocates devices for the claims of pods (``dynamicresources`` of v1.36)."""

    name = "DynamicResources"
    traits = PluginTraits(
        score_reads=Reads.NODE,
        reads_only_node_demand=True,
        reads_placed_pods=False,
        never_needs_pods=True,
        rejects_per_class=True,
        skips_per_class=True,
        pre_enqueue_per_class=True,
    )
    pre_bind_target = BindClaims

    def __init__(
        self, args: DynamicResourcesArgs, gates: FeatureGates = DEFAULT_FEATURE_GATES
    ) -> None:
        self._features = device_features(gates)
        check_limits(args, self._features)
        self.pre_bind_timeout_s = float(args.binding_timeout)
        self._filter_timeout_s = float(args.filter_timeout) if self._features.filter_timeout else 0
        self._snapshot: Callable[[], Snapshot] | None = None
        self._templates = Templates(self._features)
        self._answers = AnswerCache()

    def read_snapshots(self, snapshot: Callable[[], Snapshot]) -> None:
        """Read claims from here in PreEnqueue and in hints."""
        self._snapshot = snapshot

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """Gate a pod whose claims are not there yet."""
        if not pod.spec.resource_claims:
            return SUCCESS
        try:
            pod_claims(pod, self._devices())
        except ClaimProblem as problem:
            return unresolvable(str(problem))
        return SUCCESS

    def prepare_in_steps(
        self, pod: PodInfo, snapshot: Snapshot, start_limit: StartLimit
    ) -> Iterator[None]:
        """Find out what no earlier pod asked for: about devices, and where they can be allocated.

        What fails here fails again in the cycle, which reports it.
        """
        devices = snapshot.devices
        if not pod.spec.resource_claims:
            return
        with suppress(ClaimProblem):
            claims = [each for each in pod_claims(pod, devices) if not each.status.allocation]
            template = self._templates.of([each.spec for each in claims])
            if self._answers.are_nearly_current(template, snapshot):
                return
            yield from preparation_steps(template, devices)
            for claim in claims:
                check_requests(claim, devices, self._features)
            if claims and not devices.serves(pod.requests):
                names = tuple(each.metadata.namespaced_name for each in claims)
                attempt = Attempt(snapshot, template, names, self._clock(start_limit))
                yield from self._answers.preparing_steps(attempt)

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        """Skip a pod without claims; reject one whose claims are missing or in flight."""
        devices = snapshot.devices
        needs_extended = devices.classes.serves_any and devices.serves(pod.requests)
        if not needs_extended and not pod.spec.resource_claims:
            state.write(_NO_DEVICES)
            return _SKIPPED
        found = PodDevices()
        state.write(found)
        if needs_extended:
            found.extended = node_filter.extended_resources(pod)
            found.stale = devices.special_claim(pod.uid, pod.name)
        try:
            if found.extended:
                check_no_creation(pod, devices)
            companions = state.get(CompanionClaims)
            found.claims = pod_claims(pod, devices)
            if companions is not None:
                found.claims, found.shared = with_companions(found.claims, companions)
            for claim in found.unallocated:
                check_requests(claim, devices, self._features)
        except ClaimProblem as problem:
            return PreFilterResult(unresolvable(str(problem)))
        if not found.claims and not found.extended:
            return _SKIPPED
        state.uncached_scores |= {self.name}
        return PreFilterResult()

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> FilterVerdict:
        """Reject nodes where a claim is unavailable or cannot be allocated."""
        found = state.read(PodDevices)
        if found.stale is not None:
            everywhere = np.ones(len(nodes), dtype=np.bool_)
            return FilterVerdict((Rejection(STALE_SPECIAL_CLAIM, everywhere, unresolvable=True),))
        snapshot = nodes.snapshot
        if found.variants is None:
            found.variants = self._variants(state, pod, found, snapshot)
            limit_s = self.pre_bind_timeout_s if self._features.binding_conditions else None
            found.unavailable = dict(
                node_filter.unavailable(found, snapshot, limit_s, state.wall_clock)
            )
        codes, errors = node_filter.merged(found.variants, snapshot.num_rows)
        unfit = node_filter.lacking(found, pod, snapshot)
        masks = {CANNOT_FIT: unfit} if found.extended else {}
        if codes.any():
            masks[CANNOT_ALLOCATE] = codes == DOES_NOT_FIT
            masks[INVALID_POOLS] = codes == HAS_INVALID_POOL
        if found.unavailable:
            masks[NOT_AVAILABLE] = np.logical_or.reduce([*found.unavailable.values()])
            masks[NOT_AVAILABLE] &= codes == FITS
        return _verdict(masks, codes, errors, nodes, unfit)

    def post_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, diagnosis: Diagnosis
    ) -> tuple[Status, str | None]:
        """Deallocate a claim that is unavailable, or delete a stale one for extended resources.

        As upstream, an error if PreFilter did not run.
        """
        found = state.get(PodDevices)
        if found is None:
            return error("not found"), None
        if not (found.claims or found.extended) or diagnosis.filtered is None:
            return unschedulable("no new claims to deallocate"), None
        claim = next(iter(self.deallocation_candidates(state, pod, diagnosis)), None)
        if claim is not None:
            # Until the watch shows it, the claim still looks allocated and reserved for the pod.
            snapshot.devices.releases.note(pod.uid, [claim])
            state.instruct(DeallocateClaim(pod.reference, reference_to(claim)))
            return unschedulable("deallocation of ResourceClaim completed"), None
        if found.stale is not None:
            state.instruct(DeleteClaim(pod.reference, reference_to(found.stale)))
            return unschedulable("deletion of ResourceClaim completed"), None
        return unschedulable("still not schedulable"), None

    def deallocation_candidates(
        self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis
    ) -> list[ResourceClaim]:
        """The unavailable claims that only this pod uses, sorted by name."""
        found = state.read(PodDevices)
        if diagnosis.filtered is None or not found.unavailable:
            return []
        verdicts = diagnosis.filtered.verdicts
        rows = verdicts.view.rows[verdicts.decided_by(self.name)]
        codes, _ = node_filter.merged(found.variants or (), verdicts.view.snapshot.num_rows)
        rows = rows[codes[rows] == FITS]
        candidates = [
            claim
            for claim in found.claims
            if (where := found.unavailable.get(claim.metadata.namespaced_name)) is not None
            and bool(where[rows].any())
            and all(each.uid == pod.uid for each in claim.status.reserved_for)
            and len(claim.status.reserved_for) <= 1
            and not any(each.claim_uid == claim.metadata.uid for each in found.shared)
        ]
        return sorted(candidates, key=lambda claim: claim.metadata.namespaced_name)

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        """``int64[len(nodes)]``: more for earlier alternatives; 0 without an allocation here."""
        del pod
        found = state.get(PodDevices)
        scores = np.zeros(len(nodes), dtype=np.int64)
        if found is None or not self._features.prioritized_list:
            return scores
        fixed = sum(map(_score_of_allocated, found.claims))
        if not found.variants or not (fixed or _has_lists(found.variants)):
            return scores
        whole = np.zeros(nodes.snapshot.num_rows, dtype=np.int64)
        for variant in found.variants:
            if variant.answers is None:
                continue
            own = fixed if variant.answers.scores is None else variant.answers.scores + fixed
            where = variant.answers.codes == FITS
            whole = np.where(where if variant.nodes is None else where & variant.nodes, own, whole)
        return nodes.take(whole)

    def normalize_score(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, scores: Int64Array
    ) -> Int64Array:
        """``int64[len(nodes)]`` in 0..100: the highest raw score becomes 100."""
        del state, pod, nodes
        return default_normalize_score(scores)

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> ReservePlan | Status:
        """Take devices on the node, so that other pods do not get them."""
        found = state.get(PodDevices)
        if found is None or not found.variants or self._snapshot is None:
            return SUCCESS
        snapshot = self._snapshot()
        if not are_in_flight(found.shared, snapshot.devices):
            return error("the devices that another member of the pod group reserved are gone")
        found.reserved = found.shared
        row = snapshot.row_of(node_name)
        variant = None if row is None else variant_at(found.variants, row)
        if row is None or variant is None or variant.answers is None:
            return ReservePlan(allocations=found.shared) if found.shared else SUCCESS
        allocations = self.allocations_on(row, state, pod, snapshot)
        if allocations is None:
            return error("claim allocation not found for node")
        found.reserved = (*found.shared, *allocations)
        if variant.extended is not None:
            found.mappings = variant.extended.mappings
            found.extended_spec = variant.extended.spec
        return ReservePlan(allocations=found.reserved)

    def allocations_on(
        self, row: int, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> tuple[ClaimAllocation, ...] | None:
        """What the pod's claims would get on a node after Filter; None if they get nothing there.

        Raises:
            AllocationError: A claim cannot be allocated at all, or a selector fails.
        """
        found = state.read(PodDevices)
        variant = variant_at(found.variants or (), row)
        if variant is None or variant.answers is None or variant.answers.codes[row] != FITS:
            return None
        attempt = self._attempt(state, pod, found, snapshot, variant)
        solution = self._answers.solve(attempt, variant.answers, row)
        if solution is None:
            return None
        return tuple(self._allocations(pod, found, variant, solution, snapshot, row))

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Give reservations back that PreBind has written; the engine frees the devices."""
        del node_name
        found = state.get(PodDevices)
        if found is None or self._snapshot is None:
            return
        devices = self._snapshot().devices
        claims = pre_bind.latest(found, devices)
        reserved = [
            claim
            for claim in claims
            if claim.status.allocation is not None and is_reserved_for(claim, pod.uid)
        ]
        devices.releases.note(pod.uid, reserved)
        if reserved:
            state.instruct(ReleaseClaims(pod.reference, tuple(map(reference_to, reserved))))
        if found.special is not None:
            state.instruct(DeleteClaim(pod.reference, reference_to(found.special)))

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Skip if the pod has no claims, and no class serves an extended resource of it.

        As upstream, it may have nothing to write: the node may provide the resource itself.
        """
        del pod, node_name
        found = state.get(PodDevices)
        return SKIP if found is None or not (found.claims or found.extended) else SUCCESS

    def pre_bind_writes(self, state: CycleState, pod: PodInfo, node_name: str) -> BindClaims:
        """The writes: allocations, reservations, and the claim for extended resources."""
        found, devices = state.read(PodDevices), self._devices()
        claims = devices.releases.applied(pod.uid, pre_bind.latest(found, devices))
        written = pre_bind.writes(found, pod, node_name, claims)
        return replace(written, sets_time=self._features.binding_conditions)

    def pre_bind_written(self, state: CycleState, outcome: ClaimsWritten) -> None:
        """Note what the shell has written."""
        pre_bind.note(state.read(PodDevices), outcome)

    def pre_bind_progress(
        self, state: CycleState, pod: PodInfo, node_name: str, snapshot: Snapshot
    ) -> PreBindProgress:
        """Whether the devices are ready, still to be made ready, or have failed."""
        limit_s = self.pre_bind_timeout_s if self._features.binding_conditions else None
        wait = pre_bind.Wait(limit_s, state.wall_clock())
        return pre_bind.progress(state, pod, node_name, snapshot, wait)

    def pre_bind_timed_out(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> str:
        """The text of the error if devices did not become ready in time."""
        pre_bind.note_end(state, pod, snapshot.devices, pre_bind.TIMEOUT)
        return pre_bind.timeout_text(state.read(PodDevices), snapshot)

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Events that may add devices or claims, or free devices."""
        return hints.ClaimHints(self._devices).events_to_register()

    def _devices(self) -> Devices:
        if self._snapshot is None:
            raise ValueError("the plugin is not connected to a cluster")
        return self._snapshot().devices

    def _variants(
        self, state: CycleState, pod: PodInfo, found: PodDevices, snapshot: Snapshot
    ) -> list[Variant]:
        """What is to be allocated where, with the answers."""
        specs = [claim.spec for claim in found.unallocated]
        variants = []
        for nodes, extended in node_filter.by_provided_resources(found, pod, snapshot):
            own = specs if extended is None else [*specs, extended.spec]
            template = self._templates.of(own)
            variant = Variant(nodes, template, extended, None)
            if own:
                answers = self._answers.find(self._attempt(state, pod, found, snapshot, variant))
                variant = Variant(nodes, template, extended, answers)
            variants.append(variant)
        return variants

    def _attempt(
        self,
        state: CycleState,
        pod: PodInfo,
        found: PodDevices,
        snapshot: Snapshot,
        variant: Variant,
    ) -> Attempt:
        names = [claim.metadata.namespaced_name for claim in found.unallocated]
        if variant.extended is not None:
            names.append(f"{pod.namespace}/{SPECIAL_CLAIM}")
        clock = self._clock(state.start_limit)
        return Attempt(snapshot, variant.template, tuple(names), clock)

    def _clock(self, start_limit: StartLimit) -> Callable[[], Callable[[], bool]]:
        """Starts the time limit for a node."""
        limit_s = self._filter_timeout_s
        return partial(start_limit, limit_s) if limit_s else _start_no_limit

    def _allocations(
        self,
        pod: PodInfo,
        found: PodDevices,
        variant: Variant,
        solution: Solution,
        snapshot: Snapshot,
        row: int,
    ) -> Iterator[ClaimAllocation]:
        claims: list[ResourceClaim | None] = [*found.unallocated]
        if variant.extended is not None:
            claims.append(None)
        parts = zip(claims, variant.template.claims, solution.taken, solution.chosen, strict=True)
        for claim, requests, taken, chosen in parts:
            if claim is None:
                uid = version = special_claim_uid(pod)
                key = f"{pod.namespace}/{SPECIAL_CLAIM}"
            else:
                uid, key = claim.metadata.uid, claim.metadata.namespaced_name
                version = claim.metadata.resource_version
            allocation = allocation_result(
                requests,
                taken,
                chosen,
                snapshot.devices.classes,
                snapshot.node_names[row],
                partial(_share_id, f"{uid}/{version}"),
            )
            yield ClaimAllocation(uid, key, allocation, is_new=claim is None)


def _start_no_limit() -> Callable[[], bool]:
    return lambda: False


def _share_id(claim: str, index: int) -> str:
    """A share ID: a claim version gets each share only once, so it need not be random."""
    return str(uuid5(NAMESPACE_OID, f"{claim}/{index}"))


def _has_lists(variants: Sequence[Variant]) -> bool:
    return any(each.answers is not None and each.answers.scores is not None for each in variants)


def variant_at(variants: Sequence[Variant], row: int) -> Variant | None:
    """The variant of the node in a row."""
    return next((each for each in variants if each.nodes is None or bool(each.nodes[row])), None)


def _verdict(
    masks: dict[str, BoolArray],
    codes: NDArray[np.int8],
    errors: dict[int, str],
    nodes: NodeView,
    unfit: BoolArray,
) -> FilterVerdict:
    rejections = []
    for reason, mask in masks.items():
        applies = mask if reason == CANNOT_FIT else mask & ~unfit
        if applies.any():
            rejections.append(Rejection(reason, nodes.take(applies), unresolvable=True))
    if not errors:
        return FilterVerdict(tuple(rejections)) if rejections else ACCEPT_ALL
    rows = nodes.rows
    failed = FilterErrors(nodes.take((codes == FAILED) & ~unfit), lambda at: errors[int(rows[at])])
    return FilterVerdict(tuple(rejections), failed)


def _score_of_allocated(claim: ResourceClaim) -> int:
    """What the alternatives are worth that an allocated claim got."""
    allocation = claim.status.allocation
    if allocation is None:
        return 0
    got = {each.request for each in allocation.devices.results}
    score = 0
    for request in claim.spec.devices.requests:
        for index, alternative in enumerate(request.first_available):
            if f"{request.name}/{alternative.name}" in got:
                score += MAX_ALTERNATIVES - index
                break
    return score
