"""What one scheduling cycle sees of the cluster: read-only, made in no time, never a copy.

A snapshot is a face of the live columns. The engine handles no events while a cycle runs, so what
it shows does not change under a plugin; kept beyond that, `is_current` tells that it is stale.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from stowage.api.objects.node import Node, Taint
from stowage.state.arrays import BoolArray, Int32Array, Int64Array, read_only
from stowage.state.change_log import ChangeLog
from stowage.state.namespaces import Namespaces
from stowage.state.nodes.image_states import ImageState
from stowage.state.nodes.label_columns import LabelColumn
from stowage.state.nodes.node_columns import Amounts, NodeColumns
from stowage.state.nodes.node_view import NodeView
from stowage.state.nodes.resource_index import ResourceIndex
from stowage.state.pods.disruption_budgets import DisruptionBudgets
from stowage.state.pods.placed_pods import PlacedPods
from stowage.state.pods.pod_class import HostPort, PodClass
from stowage.state.pods.pod_index import PodIndex
from stowage.state.pods.pod_info import PodInfo
from stowage.state.pods.pod_sorts import PodSort
from stowage.state.storage.csi_nodes import CSINodeColumns
from stowage.state.storage.objects import Storage
from stowage.state.storage.volume_use import VolumeUse
from stowage.state.what_if.cluster import WhatIfPodIndex, placements
from stowage.state.what_if.ranked_pods import RankedPods, RankedRows
from stowage.state.workloads import Workloads

__all__ = ["ClusterState", "NodeView", "Snapshot"]

_ALL = slice(None)


class ClusterState:
    """The live parts of the state; the cache writes them, snapshots show them.

    Attributes:
        generation: Grows with every change of any part.
        last_view: What was asked for last; Filter and Score ask for the same changed rows.
        last_union: Two arrays of rows, and the rows in either; asked for by both of them as well.
    """

    __slots__ = (
        "budgets",
        "columns",
        "csi_nodes",
        "generation",
        "last_union",
        "last_view",
        "namespaces",
        "placed",
        "pods",
        "ranked",
        "storage",
        "volume_use",
        "workloads",
    )

    def __init__(self) -> None:
        self.generation = 0
        self.last_view: NodeView | None = None
        self.last_union: tuple[Int64Array, Int64Array, Int64Array] | None = None
        self.columns = NodeColumns()
        self.placed = PlacedPods()
        self.namespaces = Namespaces()
        self.workloads = Workloads()
        self.budgets = DisruptionBudgets()
        self.ranked = RankedPods(self.placed, self.columns.resources)
        self.pods = PodIndex(self.columns.labels, self.namespaces, self.columns.num_rows)
        self.storage = Storage()
        self.volume_use = VolumeUse(self.storage, self.columns.num_rows)
        self.csi_nodes = CSINodeColumns(self.columns.num_rows)
        self.columns.growth_observers += (
            self.pods.grow,
            self.volume_use.grow,
            self.csi_nodes.grow,
        )


class Snapshot:
    """The cluster as it is now, or as it would be after some changes of pods.

    Attributes:
        generation: The state's generation when the snapshot was taken.
        pods: Counts of pods by selector, and the terms that pods carry.
        namespaces: Labels of namespaces.
        workloads: What Services and controllers select.
        budgets: The pod disruption budgets.
        storage: Claims, volumes and what belongs to them; the same in what-ifs.
        volume_use: What pods take of storage on each node.
        csi_nodes: What CSI drivers say about nodes.
        is_what_if: Whether this is the cluster as it would be, not as it is.
    """

    __slots__ = (
        "_columns",
        "_placed",
        "_state",
        "budgets",
        "csi_nodes",
        "generation",
        "is_what_if",
        "namespaces",
        "pods",
        "storage",
        "volume_use",
        "workloads",
    )

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._columns = state.columns
        self._placed = state.placed
        self.generation = state.generation
        self.pods: PodIndex | WhatIfPodIndex = state.pods
        self.namespaces: Namespaces = state.namespaces
        self.workloads: Workloads = state.workloads
        self.budgets: DisruptionBudgets = state.budgets
        self.storage: Storage = state.storage
        self.volume_use: VolumeUse = state.volume_use
        self.csi_nodes: CSINodeColumns = state.csi_nodes
        self.is_what_if = False

    @property
    def is_current(self) -> bool:
        """Whether nothing changed since the snapshot was taken."""
        return self.generation == self._state.generation

    @property
    def num_rows(self) -> int:
        """How many rows there are, with or without a node."""
        return self._columns.num_rows

    @property
    def num_nodes(self) -> int:
        """How many nodes there are."""
        return self._columns.num_nodes

    @property
    def all_rows(self) -> Int64Array:
        """``int64[rows]``: 0, 1, 2, ..."""
        return self._columns.all_rows

    @property
    def exists(self) -> BoolArray:
        """``bool[rows]``: whether there is a node object."""
        return self._columns.exists

    @property
    def node_names(self) -> Sequence[str]:
        """``row -> node name``; meaningful where `exists`."""
        return self._columns.names

    @property
    def allocatable(self) -> Int64Array:
        """``int64[rows, resources]``: 0 for what a node does not have."""
        return self._columns.allocatable

    @property
    def requested(self) -> Int64Array:
        """``int64[rows, resources]``: what the pods on each node request."""
        return self._columns.requested

    @property
    def nonzero_requested(self) -> Int64Array:
        """``int64[rows, 2]``: cpu milli and memory bytes, with defaults for what is not named."""
        return self._columns.nonzero_requested

    @property
    def num_pods(self) -> Int64Array:
        """``int64[rows]``."""
        return self._columns.num_pods

    def amounts(self, row: int) -> Amounts:
        """All of the above that a row has, as one value that can be looked up."""
        return self._columns.amounts(row)

    @property
    def unschedulable(self) -> BoolArray:
        """``bool[rows]``: ``spec.unschedulable``."""
        return self._columns.unschedulable

    @property
    def taint_set(self) -> Int32Array:
        """``int32[rows]``: codes in `taint_sets`; 0 is no taint."""
        return self._columns.taint_set

    @property
    def taint_sets(self) -> Sequence[tuple[Taint, ...] | None]:
        """``code -> taints``, None for codes that are free; ``time_added`` is left out."""
        return self._columns.taint_sets.values

    @property
    def feature_set(self) -> Int32Array:
        """``int32[rows]``: codes in `feature_sets`; 0 is no feature."""
        return self._columns.feature_set

    @property
    def feature_sets(self) -> Sequence[frozenset[str] | None]:
        """``code -> declared features``, None for codes that are free."""
        return self._columns.feature_sets.values

    @property
    def resources(self) -> ResourceIndex:
        """Which column is which resource."""
        return self._columns.resources

    @property
    def node_changes(self) -> ChangeLog:
        """Rows whose node object changed, came or went."""
        return self._columns.node_changes

    @property
    def usage_changes(self) -> ChangeLog:
        """Rows whose pods changed."""
        return self._columns.usage_changes

    @property
    def all_nodes(self) -> NodeView:
        """All rows, those without a node included."""
        return NodeView(self, _ALL)

    def view(self, rows: slice | Int64Array) -> NodeView:
        """Some rows; the same view if they are the same array as the last time."""
        last = self._state.last_view
        if last is not None and last.index is rows and last.snapshot is self:
            return last
        return self._remembered(NodeView(self, rows))

    def ascending_view(self, rows: Int64Array) -> NodeView:
        """The same of rows in ascending order; see `NodeView.of_ascending`."""
        last = self._state.last_view
        if last is not None and last.index is rows and last.snapshot is self:
            return last
        return self._remembered(NodeView.of_ascending(self, rows))

    def _remembered(self, view: NodeView) -> NodeView:
        if not self.is_what_if:
            self._state.last_view = view
        return view

    def either(self, some: Int64Array, others: Int64Array) -> Int64Array:
        """The rows in either, ascending; the same array if they are the same as the last time."""
        last = self._state.last_union
        if last is not None and last[0] is some and last[1] is others:
            return last[2]
        rows = read_only(np.array(sorted({*some.tolist(), *others.tolist()}), dtype=np.int64))
        self._state.last_union = (some, others, rows)
        return rows

    def row_of(self, node_name: str) -> int | None:
        """The row of a node that exists."""
        row = self._columns.row_of(node_name)
        return row if row is not None and self._columns.nodes[row] is not None else None

    def node(self, row: int) -> Node | None:
        """The node object of a row."""
        return self._columns.nodes[row]

    def requested_by_name(self) -> list[dict[str, int]]:
        """Per row what its pods request by resource, without zeros; a pass over everything."""
        return self._columns.requested_by_name()

    def request_vector(self, pod_class: PodClass) -> Int64Array:
        """``int64[resources]`` of what a pod requests.

        What no node has is left out.
        """
        return self._columns.request_vector(pod_class)

    def label_column(self, key: str) -> LabelColumn:
        """The values of a label; empty if no node has it."""
        return self._columns.labels.column(key)

    def label_codes(self, key: str) -> Int32Array:
        """``int32[rows]``: codes in `label_column`, -1 without the label."""
        return self._columns.labels.column(key).codes

    def image(self, name: str) -> ImageState | None:
        """Size and spread of an image; None if no node has it. Names are taken as nodes tell."""
        return self._columns.images.get(name)

    def ports_in_conflict(
        self, ports: Iterable[HostPort], rows: slice | Int64Array = _ALL
    ) -> BoolArray:
        """``bool[rows]``: where one of these host ports collides with one in use."""
        return self._columns.host_ports.in_conflict(ports, rows)

    def colliding_ports(self, ports: Iterable[HostPort]) -> dict[HostPort, Int32Array]:
        """The host ports in use that collide with one of `ports`, with ``int32[rows]`` users."""
        return self._columns.host_ports.colliding(ports)

    def ranked_pods(self, rows: Int64Array) -> RankedRows:
        """The pods on some rows in order of importance; not for a what-if snapshot."""
        return self._state.ranked.of(rows, self.num_rows)

    @property
    def pod_sorts(self) -> Sequence[PodSort | None]:
        """``code -> sort of pod``, as far as `ranked_pods` has met them."""
        return self._state.ranked.sorts.values

    @property
    def pod_sorts_numbering(self) -> int:
        """Changes when a code of `pod_sorts` may stand for another sort than before."""
        return self._state.ranked.sorts.numbering

    def requests_by_sort(self) -> Int64Array:
        """``int64[sorts + 1, resources + 3]``; see `PodSorts.requests`."""
        return self._state.ranked.sorts.requests()

    def get_pod(self, uid: str) -> PodInfo | None:
        """The pod with this UID, if it is on a node."""
        return self._placed.get(uid)

    def pods_on(self, node_name: str) -> Collection[PodInfo]:
        """The pods on a node, also on one without an object."""
        row = self._columns.row_of(node_name)
        return () if row is None else self._placed.on_row(row)

    def without_pods(self, uids: Iterable[str]) -> Snapshot:
        """The cluster as it would be without these pods.

        Raises:
            KeyError: A UID is not of a pod on a node.
        """
        return self._what_if([self._placed_pod(uid) for uid in uids], [])

    def with_pods(self, pods: Iterable[tuple[PodInfo, str]]) -> Snapshot:
        """The cluster as it would be with these (pod, node name) placed as well.

        Raises:
            KeyError: A node does not exist.
        """
        added = []
        for pod, node_name in pods:
            row = self.row_of(node_name)
            if row is None:
                raise KeyError(node_name)
            added.append((pod.on_node(node_name), row))
        return self._what_if([], added)

    def with_changes(
        self, removed: Iterable[PodInfo], added: Iterable[PodInfo], row: int
    ) -> Snapshot:
        """The cluster as it would be with other pods on one row."""
        name = self.node_names[row]
        return self._what_if(
            [(pod, row) for pod in removed], [(pod.on_node(name), row) for pod in added]
        )

    def _placed_pod(self, uid: str) -> tuple[PodInfo, int]:
        pod = self._placed.get(uid)
        row = None if pod is None else self._columns.row_of(pod.node_name)
        if pod is None or row is None:
            raise KeyError(uid)
        return pod, row

    def _what_if(
        self, removed: list[tuple[PodInfo, int]], added: list[tuple[PodInfo, int]]
    ) -> Snapshot:
        changed = Snapshot(self._state)
        changed.generation = self.generation
        changed.is_what_if = True
        changed._columns = placements(self._columns, removed, added)
        changed._placed = self._placed.with_changes(removed, added)
        changed.pods = WhatIfPodIndex(self.pods, self.namespaces, removed, added)
        changed.volume_use = self.volume_use.with_changes(removed, added)
        return changed
