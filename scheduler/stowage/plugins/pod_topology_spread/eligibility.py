"""Which nodes count for a constraint: kept between cycles, renewed where nodes changed."""

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
    """The nodes that count for one constraint, by domain.

    Attributes:
        topology_key: The label whose values are the domains.
        length: Length of arrays over domains, codes that are free included.
        present: Codes of the domains with a node that counts.
        codes: ``intp[rows]``, the domain of each node that counts and `length` for the others;
            None if all nodes with the topology key count.
    """

    topology_key: str
    length: int
    present: NDArray[np.intp]
    codes: NDArray[np.intp] | None

    def contain(self, nodes: NodeView) -> BoolArray:
        """``bool[nodes]``: which of them count."""
        if self.codes is None:
            return nodes.label_codes(self.topology_key) >= 0
        return nodes.take(self.codes) < self.length

    def count(self, counts: PodCounts) -> Int64Array:
        """``int64[length]``: the pods on nodes that count, by domain."""
        if self.codes is None:
            return counts.per_domain(self.topology_key)
        # Summed as float64, which is exact up to 2**53.
        summed = np.bincount(self.codes, weights=counts.per_node, minlength=self.length + 1)
        return summed[:-1].astype(np.int64)


class _Question(NamedTuple):
    """All that decides about the nodes, so that classes that agree in it share the answer."""

    scopes: tuple[Scope, ...]
    all_keys: bool
    node_selector: tuple[tuple[str, str], ...]
    node_affinity: NodeAffinity | None
    tolerations: tuple[Toleration, ...]


class _Answer(msgspec.Struct):
    """Masks over rows by scope, as of a generation of the node changes."""

    node_changes: ChangeLog
    generation: int
    masks: dict[Scope, BoolArray]
    domains: list[EligibleDomains] = msgspec.field(default_factory=list)


class EligibleNodes:
    """Knows which nodes count for the constraints of the pods asked about lately."""

    def __init__(self) -> None:
        self._answers: LRUCache[_Question, _Answer] = LRUCache(_MAX_ENTRIES)

    def of(
        self, pod: PodInfo, constraints: Constraints, snapshot: Snapshot, *, all_keys: bool
    ) -> list[EligibleDomains]:
        """The nodes that count, for each constraint.

        Args:
            pod: Whose node affinity and tolerations are honoured.
            constraints: All constraints of one kind, hard or soft, that the pod has.
            snapshot: The nodes.
            all_keys: Whether nodes count only if they have the topology keys of all constraints.
        """
        question = _question(pod.spec, constraints, all_keys)
        answer = self._answers.get(question)
        changes = snapshot.node_changes
        if answer is None or answer.node_changes is not changes:
            answer = self._answers[question] = _answered(question, pod.spec, snapshot)
        elif answer.generation != changes.generation:
            answer = self._answers[question] = _renewed(answer, question, pod.spec, snapshot)
        return answer.domains


def _question(spec: PodSpec, constraints: Constraints, all_keys: bool) -> _Question:
    scopes = tuple(constraint.scope for constraint in constraints)
    affinity = any(scope.honors_affinity for scope in scopes)
    taints = any(scope.honors_taints for scope in scopes)
    return _Question(
        scopes,
        all_keys,
        tuple(sorted(spec.node_selector.items())) if affinity and spec.node_selector else (),
        spec.affinity.node_affinity if affinity and spec.affinity else None,
        spec.tolerations if taints else (),
    )


def _answered(question: _Question, spec: PodSpec, snapshot: Snapshot) -> _Answer:
    nodes = snapshot.all_nodes
    keyed = _keyed(question, nodes)
    masks = {scope: _judge(scope, question, spec, nodes, keyed) for scope in question.scopes}
    answer = _Answer(snapshot.node_changes, snapshot.node_changes.generation, masks)
    answer.domains = [
        _domains(scope, question, masks[scope], snapshot) for scope in question.scopes
    ]
    return answer


def _renewed(answer: _Answer, question: _Question, spec: PodSpec, snapshot: Snapshot) -> _Answer:
    rows = snapshot.node_changes.since(answer.generation)
    known = next(iter(answer.masks.values()))
    if rows is None or len(known) != snapshot.num_rows:
        return _answered(question, spec, snapshot)
    changed = snapshot.view(rows)
    keyed = _keyed(question, changed)
    for scope, mask in answer.masks.items():
        mask[rows] = _judge(scope, question, spec, changed, keyed)
    answer.generation = snapshot.node_changes.generation
    answer.domains = _all_domains(question, answer.masks, snapshot)
    return answer


def _keyed(question: _Question, nodes: NodeView) -> BoolArray:
    """``bool[nodes]``: nodes with the labels that are asked for; the same for all scopes."""
    mask: BoolArray = np.array(nodes.exists)
    if question.all_keys:
        for each in question.scopes:
            mask &= nodes.label_codes(each.topology_key) >= 0
    return mask


def _judge(
    scope: Scope, question: _Question, spec: PodSpec, nodes: NodeView, keyed: BoolArray
) -> BoolArray:
    """``bool[nodes]``: nodes that count (``matchNodeInclusionPolicies`` of v1.36)."""
    mask = keyed.copy()
    if scope.honors_affinity and (question.node_selector or question.node_affinity):
        mask &= required_affinity_mask(nodes, required_node_affinity(spec))
    if scope.honors_taints:
        tolerated = tolerated_taint_sets(nodes.snapshot, spec.tolerations, DO_NOT_SCHEDULE_EFFECTS)
        mask &= tolerated[nodes.taint_set]
    return mask


def _all_domains(
    question: _Question, masks: dict[Scope, BoolArray], snapshot: Snapshot
) -> list[EligibleDomains]:
    return [_domains(scope, question, masks[scope], snapshot) for scope in question.scopes]


def _domains(
    scope: Scope, question: _Question, mask: BoolArray, snapshot: Snapshot
) -> EligibleDomains:
    column = snapshot.label_column(scope.topology_key)
    codes: NDArray[np.intp] = column.codes.astype(np.intp)
    length = column.num_values
    unlabelled = codes < 0
    # Where labels are optional a node without the label belongs to the domain "" (as in v1.36,
    # where a missing map entry reads as the empty string).
    shared = -1 if question.all_keys else column.values.get("")
    whole = shared < 0 and bool((mask | unlabelled).all())
    codes[unlabelled] = length if shared < 0 else shared
    codes[~mask] = length
    present = np.flatnonzero(np.bincount(codes, minlength=length + 1)[:-1])
    return EligibleDomains(scope.topology_key, length, present, None if whole else codes)
