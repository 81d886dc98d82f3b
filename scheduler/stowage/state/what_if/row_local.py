"""Row-local what-ifs: many nodes at once, each as if pods changed on it and on no other node.

A dry run of preemption needs this form: not one cluster in which many nodes lose pods, but one
cluster per node, in which only that node changes. The usage of each node is a column that changes
in place. Values that depend on other nodes come from the snapshot, corrected by what changed on the
node itself (`RowChanges`).

Host ports are the exception to sums. ``HostPortInfo`` of v1.36 is a set: a dry run that removes one
of two pods with the same port finds the port free, and adding one back makes it taken. Equal
decisions need the same behaviour here; the live columns count users instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property, partial

import numpy as np

from stowage.state.arrays import BoolArray, Int64Array
from stowage.state.nodes.host_ports import ports_conflict
from stowage.state.pods.pod_class import HostPort, PodClass
from stowage.state.pods.pod_info import PodInfo
from stowage.state.pods.ranked_rows import RankedRows
from stowage.state.snapshot import NodeView, Snapshot
from stowage.state.what_if.added_pods import NO_ADDED_PODS, AddedPods
from stowage.state.what_if.removed_pods import VariantValues
from stowage.state.what_if.row_changes import RowChanges
from stowage.state.what_if.snapshot import WhatIfSnapshot


class RowWhatIf:
    """Some rows with pods removed, each row for itself.

    Args:
        snapshot: The cluster as it is.
        rows: The rows.
        ports: The host ports that the pod requests; only colliding ports are tracked.
        answers: Values shared with other what-ifs of the same cycle.

    Attributes:
        removed_pods: The pods on the rows, and which of them are removed.
        ports: The colliding host ports in use.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        rows: Int64Array,
        ports: Iterable[HostPort] = (),
        answers: VariantValues | None = None,
    ) -> None:
        self.snapshot = snapshot
        self.rows = rows
        self.removed_pods = snapshot.removed_pods(rows, answers or VariantValues())
        self.ports = RowPorts(snapshot, rows, ports)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def ranked(self) -> RankedRows:
        """The pods on the rows, removed or not."""
        return self.removed_pods.ranked

    @property
    def removed(self) -> BoolArray:
        """``bool[slots]``: the pods that are removed now."""
        return self.removed_pods.mask

    @cached_property
    def used(self) -> Int64Array:
        """``int64[rows, resources + 3]``: usage; columns as in `PodVariants.requests`."""
        return _usage(self.snapshot, self.rows)

    def remove(self, pods: BoolArray) -> None:
        """Remove all pods of ``bool[slots]``, none of which is removed already."""
        going = np.flatnonzero(pods)
        if not len(going):
            return
        staying = np.flatnonzero(~(pods | self.removed))
        self.removed_pods.remove(pods)
        if len(staying) < len(going):
            width = self.removed_pods.requests.shape[1]
            self.used = np.zeros((len(self), width), dtype=np.int64)
            self._add_requests(staying, 1)
        else:
            self._add_requests(going, -1)
        for number, table in enumerate(self._port_table):
            holders = going[table[self.ranked.variants[going]]]
            self.ports.taken[number][self.ranked.positions[holders]] = False

    def _add_requests(self, slots: Int64Array, sign: int) -> None:
        if len(slots):
            positions, used = self.removed_pods.requested(slots)
            self.used[positions] += sign * used

    def put_back(self, positions: Int64Array, slots: Int64Array) -> None:
        """Put one pod back on each of these rows."""
        variants = self.removed_pods.put_back(positions, slots)
        self.used[positions] += self.removed_pods.requests[variants]
        for number, table in enumerate(self._port_table):
            self.ports.taken[number][positions] |= table[variants]

    def remove_again(self, positions: Int64Array, slots: Int64Array) -> None:
        """Undo `put_back`; a host port is free from then on, even if another pod has it."""
        variants = self.removed_pods.remove_again(positions, slots)
        self.used[positions] -= self.removed_pods.requests[variants]
        for number, table in enumerate(self._port_table):
            self.ports.taken[number][positions] &= ~table[variants]

    def view(self, positions: Int64Array, added: AddedPods = NO_ADDED_PODS) -> RowLocalView:
        """A view of some rows for plugins, with pods added to them if given."""
        return RowLocalView(self, positions, added)

    def snapshot_of(self, position: int, added: Sequence[PodInfo] = ()) -> Snapshot:
        """The whole cluster with the changes of one row only; slow."""
        removed = self.removed_pods.removed_on(position)
        return WhatIfSnapshot(self.snapshot, removed, added, int(self.rows[position]))

    @cached_property
    def _port_table(self) -> list[BoolArray]:
        """``bool[variants + 1]`` per tracked port: the variants that have it."""
        return [
            self.removed_pods.by_variant(("port", port), partial(_has_port, port)) != 0
            for port in self.ports.ports
        ]


class RowPorts:
    """Host ports in use that collide with those the pod requests, as a set per row.

    Attributes:
        ports: The ports.
        taken: ``bool[rows]`` per port.
    """

    def __init__(self, snapshot: Snapshot, rows: Int64Array, wanted: Iterable[HostPort]) -> None:
        found = snapshot.colliding_ports(wanted)
        self.ports: list[HostPort] = list(found)
        self.taken: list[BoolArray] = [counts[rows] > 0 for counts in found.values()]


class RowLocalView(NodeView):
    """Some rows of a `RowWhatIf`, as plugins read them.

    Usage is that of the what-if. `snapshot` is the unchanged cluster: values that depend on other
    nodes are corrected by `changes`.
    """

    __slots__ = ("_used", "added", "positions", "what_if")

    def __init__(
        self,
        what_if: RowWhatIf,
        positions: Int64Array,
        added: AddedPods = NO_ADDED_PODS,
    ) -> None:
        super().__init__(what_if.snapshot, what_if.rows[positions])
        self.what_if = what_if
        self.positions = positions
        self.added = added
        used = what_if.used[positions]
        if len(added):
            added.add_requests(used)
        self._used = used
        self.changes = RowChanges(what_if.removed_pods, added, positions)

    @property
    def requested(self) -> Int64Array:
        """``int64[nodes, resources]``: requests of the remaining and added pods."""
        return self._used[:, :-3]

    @property
    def nonzero_requested(self) -> Int64Array:
        """``int64[nodes, 2]``: cpu milli and memory bytes, with defaults."""
        return self._used[:, -3:-1]

    @property
    def num_pods(self) -> Int64Array:
        """``int64[nodes]``."""
        return self._used[:, -1]

    def ports_in_conflict(self, ports: Iterable[HostPort]) -> BoolArray:
        """``bool[nodes]``: where one of these host ports collides with one in use."""
        wanted = list(ports)
        conflicts: BoolArray = np.zeros(len(self), dtype=np.bool_)
        for port, taken in zip(self.what_if.ports.ports, self.what_if.ports.taken, strict=True):
            if any(ports_conflict(port, other) for other in wanted):
                conflicts |= taken[self.positions]
        if len(self.added):
            conflicts |= self.added.sum(partial(_has_one_of, wanted), len(self)) > 0
        return conflicts


def _has_port(port: HostPort, pod_class: PodClass, _terminating: bool) -> int:
    return port in pod_class.host_ports


def _has_one_of(wanted: Sequence[HostPort], pod_class: PodClass, _terminating: bool) -> int:
    return any(ports_conflict(port, other) for port in pod_class.host_ports for other in wanted)


def _usage(snapshot: Snapshot, rows: Int64Array) -> Int64Array:
    """``int64[rows, resources + 3]``, columns as in `PodVariants.requests`."""
    parts = (
        snapshot.requested[rows],
        snapshot.nonzero_requested[rows],
        snapshot.num_pods[rows][:, None],
    )
    return np.concatenate(parts, axis=1)
