"""Plugin SelectorSpread: spreads the pods of a service or controller over nodes and zones.

A default priority of kube-scheduler 1.12; in v1.36 the default constraints of PodTopologySpread
take its place. With services only, it is the ServiceSpreadingPriority of 1.12.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from stowage.api.config.types import ConfigStruct
from stowage.api.decoding.errors import SelectorError
from stowage.api.values.selectors import (
    NOTHING,
    LabelSelector,
    Requirement,
    Selector,
    compile_label_selector,
    selector_from_labels,
)
from stowage.framework import CycleState, PluginTraits
from stowage.framework.scores import MAX_POINTS, POINT
from stowage.framework.verdict import Int64Array
from stowage.state.change_log import ChangeLog
from stowage.state.pods.pod_class import PodClass
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView, Snapshot
from stowage.state.workloads import Workloads

ZONE_WEIGHTING = 2.0 / 3.0
#: The current label of a region or zone and the one of 1.12; the first one present counts.
_REGION_KEYS = ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region")
_ZONE_KEYS = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
#: Kinds whose selector is plain labels, and kinds with a label selector.
_SERVICE = "Service"
_PLAIN_KINDS = (_SERVICE, "ReplicationController")
_SET_KINDS = ("ReplicaSet", "StatefulSet")
_NO_ZONE = -1

Float64Array = NDArray[np.float64]


class SelectorSpreadArgs(ConfigStruct, frozen=True):
    """Arguments of SelectorSpread.

    Attributes:
        services_only: Whether controllers do not count, only services.
    """

    services_only: bool = False


class SelectorSpread:
    """Prefers nodes and zones with few pods of the pod's services and controllers."""

    name = "SelectorSpread"
    traits = PluginTraits()

    def __init__(self, args: SelectorSpreadArgs) -> None:
        self._selectors_of = SpreadSelectors(services_only=args.services_only)
        self._zones = ZoneColumn()

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        """``int64[len(nodes)]``: pods on the node that one of the pod's selectors matches.

        Each pod counts once, however many selectors match it; pods of other namespaces and pods
        that are being deleted do not count (``CalculateSpreadPriorityMap`` of 1.12).
        """
        del state
        snapshot = nodes.snapshot
        selector = self._selectors_of.any_of(pod.pod_class, snapshot.workloads)
        if selector is None:
            return np.zeros(len(nodes), dtype=np.int64)
        counts = snapshot.pods.count_matching(
            selector, frozenset((pod.namespace,)), skip_terminating=True
        )
        return nodes.take(counts.per_node)

    def normalize_score(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, scores: Int64Array
    ) -> Int64Array:
        """Score nodes with few matching pods on them and in their zone high; see `spread_score`."""
        del state, pod
        return spread_score(scores, nodes.take(self._zones.codes(nodes.snapshot)))


def spread_score(counts: Int64Array, zones: Int64Array) -> Int64Array:
    """Score nodes with few matching pods on them and in their zone high.

    ``10 * (highest - count) / highest`` for the node; in a zone that is one third of the score, and
    the same formula over the sums of the zones is two thirds; 10 where the highest is 0. Computed
    in float64 and truncated to whole points as in ``CalculateSpreadPriorityReduce`` of 1.12, then
    multiplied by 10 so that weights keep their proportion.

    Args:
        counts: ``int64[nodes]``, matching pods on each node.
        zones: ``int64[nodes]``, zone codes from 0; -1 for nodes without a zone.

    Returns:
        ``int64[nodes]``, multiples of 10 in 0..100.

    Examples:
        Zone 0 has 3 pods, zone 1 has 1. Points of the third node: 10 * 1/2 / 3 + 10 * 2/3 * 2/3.

        >>> spread_score(np.array([2, 1, 1]), np.array([0, 0, 1])).tolist()
        [0, 10, 60]
        >>> spread_score(np.array([2, 1, 0]), np.array([-1, -1, -1])).tolist()
        [0, 50, 100]
    """
    points = _fewest_best(counts)
    zoned = zones != _NO_ZONE
    if zoned.any():
        sums = np.bincount(zones[zoned], weights=counts[zoned]).astype(np.int64)
        zone_points = _fewest_best(sums)[zones[zoned]]
        points[zoned] = points[zoned] * (1.0 - ZONE_WEIGHTING) + ZONE_WEIGHTING * zone_points
    return points.astype(np.int64) * POINT


def _fewest_best(counts: Int64Array) -> Float64Array:
    highest = int(counts.max(initial=0))
    if highest == 0:
        return np.full(len(counts), float(MAX_POINTS))
    points: Float64Array = float(MAX_POINTS) * ((highest - counts) / float(highest))
    return points


class AnySelector(Selector, frozen=True, gc=False):
    """Selects what any of `alternatives` selects, so that no pod counts twice.

    Its own `requirements` are those that all alternatives share: necessary, not sufficient.
    """

    alternatives: tuple[Selector, ...] = ()

    @classmethod
    def of(cls, alternatives: Iterable[Selector]) -> Selector:
        """The union of some selectors, in a canonical form.

        A selector whose requirements include all those of another one is left out.
        """
        demands = {
            each: frozenset(each.requirements) for each in alternatives if not each.matches_nothing
        }
        widest = [
            each
            for each, own in demands.items()
            if not any(other < own for other in demands.values())
        ]
        if len(widest) < 2:
            return widest[0] if widest else NOTHING
        widest.sort(key=lambda each: each.requirements)
        shared = frozenset.intersection(*(demands[each] for each in widest))
        return cls(tuple(sorted(shared)), alternatives=tuple(widest))

    @property
    def matches_everything(self) -> bool:
        """Whether one alternative matches everything."""
        return any(each.matches_everything for each in self.alternatives)

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected."""
        return any(each.matches(labels) for each in self.alternatives)

    def with_requirements(self, more: Iterable[Requirement]) -> Selector:
        """The union with `more` requirements added to every alternative."""
        wanted = tuple(more)
        return AnySelector.of(each.with_requirements(wanted) for each in self.alternatives)

    def __str__(self) -> str:
        return " or ".join(map(str, self.alternatives))


class _Known(NamedTuple):
    """A selector, and the generation of the workloads it was made from."""

    generation: int
    selector: Selector | None


class SpreadSelectors:
    """Selectors of the services and controllers of pods, kept per class.

    A selector is kept until the generation of the workloads changes. A class belongs to one
    cluster, so its workloads are always the same object.
    """

    __slots__ = ("_known", "_services_only")

    def __init__(self, *, services_only: bool = False) -> None:
        self._services_only = services_only
        self._known: WeakKeyDictionary[PodClass, _Known] = WeakKeyDictionary()

    def any_of(self, pod_class: PodClass, workloads: Workloads) -> Selector | None:
        """A selector of the pods that any of them selects; None if none selects the pod."""
        known = self._known.get(pod_class)
        if known is None or known.generation != workloads.generation:
            selectors = frozenset(
                spread_selectors(pod_class, workloads, services_only=self._services_only)
            )
            selector = AnySelector.of(selectors) if selectors else None
            known = self._known[pod_class] = _Known(workloads.generation, selector)
        return known.selector


def spread_selectors(
    pod_class: PodClass, workloads: Workloads, *, services_only: bool = False
) -> Iterator[Selector]:
    """The selectors of all services and controllers that select a pod (``getSelectors``, 1.12).

    It does not matter whether a controller owns the pod. An empty selector selects nothing, and
    no controller selects a pod without labels.
    """
    labels = pod_class.labels
    if not labels:
        return
    for kind in (_SERVICE,) if services_only else _PLAIN_KINDS:
        for plain in workloads.selecting(kind, pod_class.namespace, labels):
            if plain.match_labels:
                yield selector_from_labels(plain.match_labels)
    for kind in () if services_only else _SET_KINDS:
        for written in workloads.selecting(kind, pod_class.namespace, labels):
            selector = _compiled(written)
            if selector is not None and selector.matches(labels):
                yield selector


def _compiled(written: LabelSelector) -> Selector | None:
    """The compiled selector; None if it is empty or invalid (the API server admits neither)."""
    try:
        selector = compile_label_selector(written)
    except SelectorError:
        return None
    return None if selector.matches_everything else selector


class ZoneColumn:
    """The zone of every row, recomputed when a node changed.

    A zone is a pair of region and zone label; one of them may be missing or empty.
    """

    __slots__ = ("_codes", "_generation", "_log")

    def __init__(self) -> None:
        self._log: ChangeLog | None = None
        self._generation = 0
        self._codes: Int64Array = np.empty(0, dtype=np.int64)

    def codes(self, snapshot: Snapshot) -> Int64Array:
        """``int64[rows]``: equal for nodes of one zone, from 0 without gaps; -1 for no zone."""
        log = snapshot.node_changes
        if (
            log is not self._log
            or log.generation != self._generation
            or len(self._codes) != snapshot.num_rows
        ):
            self._codes = _zone_codes(snapshot)
            self._log, self._generation = log, log.generation
        return self._codes


def _zone_codes(snapshot: Snapshot) -> Int64Array:
    regions = _label_codes(snapshot, *_REGION_KEYS)
    zones = _label_codes(snapshot, *_ZONE_KEYS)
    pairs = regions * (int(zones.max(initial=0)) + 1) + zones
    distinct, inverse = np.unique(pairs, return_inverse=True)
    codes: Int64Array = inverse.astype(np.int64)
    if len(distinct) and distinct[0] == 0:
        codes -= 1  # the pair without region and zone sorts first and becomes -1
    return codes


def _label_codes(snapshot: Snapshot, key: str, older_key: str) -> Int64Array:
    """``int64[rows]``: positive, equal for equal values of either label; 0 for none or ``""``."""
    current, older = snapshot.label_column(key), snapshot.label_column(older_key)
    code_of: dict[str | None, int] = {None: 0, "": 0}
    tables = [
        np.array(
            [code_of.setdefault(value, len(code_of)) for value in (*column.values.values, None)],
            dtype=np.int64,
        )
        for column in (current, older)
    ]
    return np.where(current.codes >= 0, tables[0][current.codes], tables[1][older.codes])
