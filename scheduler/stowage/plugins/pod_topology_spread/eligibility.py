"""The nodes that are eligible for a constraint, kept and updated for changed nodes."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from stowage.api.objects.pod import NodeAffinity, PodSpec, Toleration
from stowage.api.values.node_affinity import required_node_affinity
from stowage.api.values.tolerations import DO_NOT_SCHEDULE_EFFECTS
from stowage.framework.verdict import BoolArray, Int64Array
from stowage.plugins.pod_topology_spread.constraints import Constraints, Scope
from stowage.state.change_log import ChangeLog
from stowage.state.nodes.node_matching import required_affinity_mask, tolerated_taint_sets
from stowage.state.pods.pod_index import PodCounts
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView, Snapshot

_MAX_ENTRIES = 256


class EligibleDomains(msgspec.Struct, frozen=True):
    """The eligible nodes of one constraint, by domain.

    Attributes:
        topology_key: The label whose values are the domains.
        length: Length of arrays over domains, unused codes included.
        present: Codes of the domains that have an eligible node.
        codes: ``intp[rows]``, the domain of each eligible node and `length` for the others; None
            if all nodes with the topology key are eligible.
    """

    topology_key: str
    length: int
    present: NDArray[np.intp]
    codes: NDArray[np.intp] | None

    def contain(self, nodes: NodeView) -> BoolArray:
        """``bool[nodes]``: which of `nodes` are eligible."""
        if self.codes is None:
            return nodes.label_codes(self.topology_key) >= 0
        return nodes.take(self.codes) < self.length

    def count(self, counts: PodCounts) -> Int64Array:
        """``int64[length]``: the pods on eligible nodes, by domain."""
        if self.codes is None:
            return counts.per_domain(self.topology_key)
        # Summed as float64, which is exact up to 2**53.
        summed = np.bincount(self.codes, weights=counts.per_node, minlength=self.length + 1)
        return summed[:-1].astype(np.int64)


class _EligibilityKey(NamedTuple):
    """Everything that eligibility depends on besides the nodes."""

    scopes: tuple[Scope, ...]
    all_keys: bool
    node_selector: tuple[tuple[str, str], ...]
    node_affinity: NodeAffinity | None
    tolerations: tuple[Toleration, ...]
    compares: bool


class _Eligibility(msgspec.Struct):
    """Masks over rows by scope, and the generation of the node changes they belong to."""

    node_changes: ChangeLog
    generation: int
    masks: dict[Scope, BoolArray]
    domains: list[EligibleDomains] = msgspec.field(default_factory=list)


class EligibleNodes:
    """Cache of the eligible nodes, for the constraints of recent pods.

    Args:
        compares: Whether the operators Lt and Gt of tolerations compare numbers.
    """

    def __init__(self, *, compares: bool = False) -> None:
        self._compares = compares
        self._known: LRUCache[_EligibilityKey, _Eligibility] = LRUCache(_MAX_ENTRIES)

    def of(
        self, pod: PodInfo, constraints: Constraints, snapshot: Snapshot, *, all_keys: bool
    ) -> list[EligibleDomains]:
        """The eligible nodes of each constraint.

        Args:
            pod: The pod; its node affinity and tolerations are honoured.
            constraints: All hard, or all soft, constraints of the pod.
            snapshot: The nodes.
            all_keys: Whether eligible nodes must have the topology keys of all constraints.
        """
        key = _key_of(pod.spec, constraints, all_keys, self._compares)
        known = self._known.get(key)
        changes = snapshot.node_changes
        if known is None or known.node_changes is not changes:
            known = self._known[key] = _computed(key, pod.spec, snapshot)
        elif known.generation != changes.generation:
            known = self._known[key] = _updated(known, key, pod.spec, snapshot)
        return known.domains


def _key_of(
    spec: PodSpec, constraints: Constraints, all_keys: bool, compares: bool
) -> _EligibilityKey:
    scopes = tuple(constraint.scope for constraint in constraints)
    affinity = any(scope.honors_affinity for scope in scopes)
    taints = any(scope.honors_taints for scope in scopes)
    return _EligibilityKey(
        scopes,
        all_keys,
        tuple(sorted(spec.node_selector.items())) if affinity and spec.node_selector else (),
        spec.affinity.node_affinity if affinity and spec.affinity else None,
        spec.tolerations if taints else (),
        compares,
    )


def _computed(key: _EligibilityKey, spec: PodSpec, snapshot: Snapshot) -> _Eligibility:
    nodes = snapshot.all_nodes
    keyed = _keyed(key, nodes)
    masks = {scope: _judge(scope, key, spec, nodes, keyed) for scope in key.scopes}
    known = _Eligibility(snapshot.node_changes, snapshot.node_changes.generation, masks)
    known.domains = [_domains(scope, key, masks[scope], snapshot) for scope in key.scopes]
    return known


def _updated(
    known: _Eligibility, key: _EligibilityKey, spec: PodSpec, snapshot: Snapshot
) -> _Eligibility:
    rows = snapshot.node_changes.since(known.generation)
    some_mask = next(iter(known.masks.values()))
    if rows is None or len(some_mask) != snapshot.num_rows:
        return _computed(key, spec, snapshot)
    changed = snapshot.view(rows)
    keyed = _keyed(key, changed)
    for scope, mask in known.masks.items():
        mask[rows] = _judge(scope, key, spec, changed, keyed)
    known.generation = snapshot.node_changes.generation
    known.domains = _all_domains(key, known.masks, snapshot)
    return known


def _keyed(key: _EligibilityKey, nodes: NodeView) -> BoolArray:
    """``bool[nodes]``: nodes with the required topology keys; the same for all scopes."""
    mask: BoolArray = np.array(nodes.exists)
    if key.all_keys:
        for each in key.scopes:
            mask &= nodes.label_codes(each.topology_key) >= 0
    return mask


def _judge(
    scope: Scope, key: _EligibilityKey, spec: PodSpec, nodes: NodeView, keyed: BoolArray
) -> BoolArray:
    """``bool[nodes]``: eligible nodes (``matchNodeInclusionPolicies`` of v1.36)."""
    mask = keyed.copy()
    if scope.honors_affinity and (key.node_selector or key.node_affinity):
        mask &= required_affinity_mask(nodes, required_node_affinity(spec))
    if scope.honors_taints:
        tolerated = tolerated_taint_sets(
            nodes.snapshot, spec.tolerations, DO_NOT_SCHEDULE_EFFECTS, compares=key.compares
        )
        mask &= tolerated[nodes.taint_set]
    return mask


def _all_domains(
    key: _EligibilityKey, masks: dict[Scope, BoolArray], snapshot: Snapshot
) -> list[EligibleDomains]:
    return [_domains(scope, key, masks[scope], snapshot) for scope in key.scopes]


def _domains(
    scope: Scope, key: _EligibilityKey, mask: BoolArray, snapshot: Snapshot
) -> EligibleDomains:
    column = snapshot.label_column(scope.topology_key)
    if not column.num_values:
        return EligibleDomains(scope.topology_key, 0, np.zeros(0, dtype=np.intp), None)
    codes: NDArray[np.intp] = column.codes.astype(np.intp)
    length = column.num_values
    unlabelled = codes < 0
    # Where labels are optional a node without the label belongs to the domain "" (as in v1.36,
    # where a missing map entry reads as the empty string).
    shared = -1 if key.all_keys else column.values.get("")
    whole = shared < 0 and bool((mask | unlabelled).all())
    codes[unlabelled] = length if shared < 0 else shared
    codes[~mask] = length
    present = np.flatnonzero(np.bincount(codes, minlength=length + 1)[:-1])
    return EligibleDomains(scope.topology_key, length, present, None if whole else codes)
