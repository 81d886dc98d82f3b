"""The topology domains that a pod group may go to."""

from __future__ import annotations

import msgspec
import numpy as np

from stowage.engine.state.engine_state import EngineState
from stowage.framework.verdict import Int64Array
from stowage.state.pods.pod_groups import KnownGroup
from stowage.state.snapshot import Snapshot

_GATE = "TopologyAwareWorkloadScheduling"


class DomainUnknown(Exception):  # noqa: N818 - it names the finding
    """The scheduled members of a group do not determine one topology domain."""


class TopologyDomains(msgspec.Struct, frozen=True):
    """The nodes by their value of a label; nodes without it are in no domain.

    Attributes:
        values: The value of each domain, ascending.
        rows: ``int64[nodes]``: the rows of the nodes, domain after domain.
        starts: ``int64[domains]``: where in `rows` each domain begins.
    """

    values: tuple[str, ...]
    rows: Int64Array
    starts: Int64Array

    def rows_of(self, index: int) -> Int64Array:
        """``int64[nodes]``: the rows of a domain, ascending."""
        last = index + 1 == len(self.values)
        return self.rows[self.starts[index] : None if last else self.starts[index + 1]]

    def node_names(self, index: int, snapshot: Snapshot) -> frozenset[str]:
        """The names of the nodes of a domain."""
        names = snapshot.node_names
        return frozenset(names[row] for row in self.rows_of(index).tolist())


def topology_key(state: EngineState, known: KnownGroup | None) -> str:
    """The node label that the group's placements differ in; empty without such a constraint."""
    if known is None or state.gates.set_to(_GATE) is False:
        return ""
    return known.group.topology_key


def is_topology_aware(state: EngineState) -> bool:
    """Whether the feature gate is on, so that groups without a topology key are concerned, too."""
    return bool(state.gates.set_to(_GATE))


def topology_domains(state: EngineState, group_key: str, key: str) -> TopologyDomains:
    """The domains of a label, a placement each (plugin TopologyPlacementGenerator of v1.36).

    If members are scheduled, only the domain of their nodes.

    Raises:
        DomainUnknown: The nodes of the scheduled members have no value, or several.
    """
    column = state.cache.snapshot().label_column(key)
    codes = column.codes_in_use()
    value_of = [column.value(code) or "" for code in codes.tolist()]
    values = sorted(value_of)
    domain_of = np.full(column.num_values + 1, -1, dtype=np.int64)
    domain_of[codes[sorted(range(len(codes)), key=value_of.__getitem__)]] = np.arange(len(codes))
    by_row = domain_of[column.codes]
    scheduled = _domain_of_scheduled(state, group_key, key)
    if scheduled is not None:
        by_row = np.where(by_row == values.index(scheduled), 0, -1)
        values = [scheduled]
    rows = np.flatnonzero(by_row >= 0)
    rows = rows[np.argsort(by_row[rows], kind="stable")]
    return TopologyDomains(tuple(values), rows, np.flatnonzero(np.diff(by_row[rows], prepend=-1)))


def _domain_of_scheduled(state: EngineState, group_key: str, key: str) -> str | None:
    """The value of the nodes of the members that are bound or assumed; None without any."""
    found: set[str] = set()
    snapshot = state.cache.snapshot()
    for uid in state.cache.pod_groups.members(group_key).scheduled():
        pod = snapshot.get_pod(uid)
        assert pod is not None  # noqa: S101 - the cache has the members that are on nodes
        row = snapshot.row_of(pod.node_name)
        node = None if row is None else snapshot.node(row)
        if node is None:
            text = f'nodeinfo not found for node name "{pod.node_name}"'
            raise DomainUnknown(f"getting node for pod {pod.key}: {text}")
        value = node.metadata.labels.get(key)
        if value is None:
            raise DomainUnknown(f"no topology domain found for pod {pod.key}")
        found.add(value)
    if len(found) > 1:
        raise DomainUnknown(f"more than 1 domain found for pod group: {', '.join(sorted(found))}")
    return next(iter(found), None)
