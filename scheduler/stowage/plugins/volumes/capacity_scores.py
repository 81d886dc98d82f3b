"""VolumeBinding with StorageCapacityScoring: prefers nodes by how full their storage would be."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from stowage.api.config.loading import ConfigError
from stowage.api.config.types import UtilizationShapePoint
from stowage.api.objects.volume import PersistentVolumeClaim
from stowage.api.status import SKIP, SUCCESS, Status
from stowage.api.values.quantity import quantity_value
from stowage.api.values.volume_claims import STORAGE, claim_class
from stowage.framework import CycleState
from stowage.framework.utilization_shape import (
    MAX_SHAPE_SCORE,
    MAX_UTILIZATION,
    shape_errors,
    utilization_scores,
)
from stowage.framework.verdict import BoolArray, Int64Array
from stowage.plugins.volumes.binding import PodClaims, VolumeBinding, VolumeBindingArgs
from stowage.plugins.volumes.finding import Found, find_volumes
from stowage.plugins.volumes.matching import NO_VOLUME
from stowage.plugins.volumes.provisioning import capacity_used
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView

_EMPTIEST_FIRST = (
    UtilizationShapePoint(0, MAX_SHAPE_SCORE),
    UtilizationShapePoint(MAX_UTILIZATION, 0),
)


class ScoringVolumeBindingArgs(VolumeBindingArgs, frozen=True):
    """Arguments of VolumeBinding if it scores; an empty shape is the default one."""

    shape: tuple[UtilizationShapePoint, ...] | None = _EMPTIEST_FIRST

    def validate(self) -> Iterator[ConfigError]:
        """``ValidateVolumeBindingArgs`` with the gate StorageCapacityScoring on."""
        yield from self.timeout_errors()
        yield from shape_errors(self.shape or _EMPTIEST_FIRST)


class ScoringVolumeBinding(VolumeBinding):
    """VolumeBinding that also scores nodes, by volumes of the pod that are not bound yet."""

    def __init__(self, args: ScoringVolumeBindingArgs) -> None:
        super().__init__(args)
        self._table = utilization_scores(args.shape or _EMPTIEST_FIRST)

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Status:
        """Skip for a pod whose claims are bound: kube-scheduler gives 0 to all nodes."""
        del pod, nodes
        claims = state.get(PodClaims)
        return SUCCESS if claims is not None and claims.delayed else SKIP

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        """``int64[len(nodes)]`` in 0..100, by `capacity_scores`."""
        del pod
        claims = state.read(PodClaims)
        found, positions = claims.found, nodes.rows
        if found is None:
            found = find_volumes((), claims.delayed, nodes, self._topology)
            positions = np.arange(len(nodes), dtype=np.int64)
        return capacity_scores(found, positions, nodes, self._table)


class _Storage(msgspec.Struct):
    """Storage of one class, per node: ``int64[nodes]``, and whether it counts at all."""

    requested: Int64Array
    capacity: Int64Array
    counts: BoolArray


_ByClass = dict[str, _Storage]


def capacity_scores(
    found: Found, positions: Int64Array, nodes: NodeView, table: Int64Array
) -> Int64Array:
    """Score nodes by the utilization of the storage that the pod's claims would get.

    On a node where claims get existing volumes, these count: the sums of requests and volume sizes
    per class. Elsewhere the capacities count that volumes are made from. A node's score is the mean
    over the classes, rounded half up (``buildScorerFunction`` of v1.36).

    Args:
        found: The volumes found for the pod's claims.
        positions: ``int64[nodes]``: where `found` has the answer about each node.
        nodes: The nodes to score.
        table: ``int64[101]``: the score of each utilization.

    Returns:
        ``int64[nodes]`` in 0..100; 0 where no storage counts.
    """
    given = _given(found, positions)
    has_volumes = np.zeros(len(nodes), dtype=np.bool_)
    for storage in given.values():
        has_volumes |= storage.counts
    total, classes = (np.zeros(len(nodes), dtype=np.int64) for _ in range(2))
    for by_class, asked in (
        (given, has_volumes),
        (_provisioned(found, positions, nodes), ~has_volumes),
    ):
        for storage in by_class.values():
            counts = storage.counts & asked
            total += counts * _scores(storage, table)
            classes += counts
    classes = np.maximum(classes, 1)
    scores: Int64Array = (2 * total + classes) // (2 * classes)
    return scores


def _scores(storage: _Storage, table: Int64Array) -> Int64Array:
    requested, capacity = storage.requested, storage.capacity
    utilization = requested * MAX_UTILIZATION // np.maximum(capacity, 1)
    utilization[(capacity == 0) | (requested > capacity)] = MAX_UTILIZATION
    return table[np.clip(utilization, 0, MAX_UTILIZATION)]


def _given(found: Found, positions: Int64Array) -> _ByClass:
    by_class: _ByClass = {}
    for match in found.matches:
        if not match.volumes:
            continue
        sizes = [quantity_value(each.spec.capacity.get(STORAGE, 0)) for each in match.volumes]
        choice = match.choice[positions]
        counts = choice != NO_VOLUME
        storage = _storage_of(match.claim, by_class, len(positions))
        storage.requested += counts * _size(match.claim)
        storage.capacity += counts * np.array(sizes, dtype=np.int64)[choice]
        storage.counts |= counts
    return by_class


def _provisioned(found: Found, positions: Int64Array, nodes: NodeView) -> _ByClass:
    by_class: _ByClass = {}
    wanted = [(claim, np.ones(len(nodes), dtype=np.bool_)) for claim in found.selected]
    wanted += [(each.claim, each.choice[positions] == NO_VOLUME) for each in found.matches]
    for claim, needed in wanted:
        storage_class = nodes.snapshot.storage.classes.get(claim_class(claim))
        if storage_class is None or not needed.any():
            continue
        capacity = capacity_used(nodes, storage_class, claim)
        counts = needed & (capacity >= 0)
        storage = _storage_of(claim, by_class, len(nodes))
        storage.requested += counts * _size(claim)
        # Not a sum: several volumes are made from the same capacity.
        storage.capacity[counts] = capacity[counts]
        storage.counts |= counts
    return by_class


def _storage_of(claim: PersistentVolumeClaim, by_class: _ByClass, num_nodes: int) -> _Storage:
    name = claim_class(claim)
    if name not in by_class:
        requested, capacity = (np.zeros(num_nodes, dtype=np.int64) for _ in range(2))
        by_class[name] = _Storage(requested, capacity, np.zeros(num_nodes, dtype=np.bool_))
    return by_class[name]


def _size(claim: PersistentVolumeClaim) -> int:
    return quantity_value(claim.spec.resources.requests.get(STORAGE, 0))
