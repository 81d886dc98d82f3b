"""Plugins that look at one node at a time, made into native ones.

For policies where ten lines of Python per node are enough. The class cache keeps their cost down:
a plugin that reads nodes or their usage is asked for changed nodes only.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from scheduler.api.node import Node
from scheduler.api.status import Code, Status
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.extension_points import Reads
from scheduler.framework.verdict import ACCEPT_ALL, BoolArray, FilterVerdict, Int64Array, Rejection
from scheduler.state.pod_info import PodInfo
from scheduler.state.snapshot import NodeView


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """One node as a scalar plugin sees it; ``framework.NodeInfo``.

    Attributes:
        node: The node object.
        allocatable: Resource -> amount; cpu in milli, the rest in whole units.
        requested: Resource -> what its pods request, in the same units.
        pods: The pods on it, assumed ones included.
    """

    node: Node
    allocatable: Mapping[str, int]
    requested: Mapping[str, int]
    pods: Collection[PodInfo]

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.metadata.name

    @property
    def labels(self) -> Mapping[str, str]:
        """The node's labels."""
        return self.node.metadata.labels


class ScalarFilter(Protocol):
    """A Filter that judges one node."""

    @property
    def name(self) -> str:
        """The plugin's name."""
        ...

    @property
    def filter_reads(self) -> Reads:
        """What the answer depends on."""
        ...

    def filter_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        """Success, or a rejection with its reasons."""
        ...


class ScalarScore(Protocol):
    """A Score that rates one node."""

    @property
    def name(self) -> str:
        """The plugin's name."""
        ...

    @property
    def score_reads(self) -> Reads:
        """What the answer depends on."""
        ...

    def score_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """0..100."""
        ...


class _AdaptedFilter:
    """A `ScalarFilter` behind the native interface."""

    def __init__(self, scalar: ScalarFilter) -> None:
        self._scalar = scalar

    @property
    def name(self) -> str:
        return self._scalar.name

    @property
    def filter_reads(self) -> Reads:
        return self._scalar.filter_reads

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> FilterVerdict:
        masks: dict[tuple[str, bool], BoolArray] = {}
        for position, node in _node_infos(nodes):
            status = self._scalar.filter_node(state, pod, node)
            if status.is_success:
                continue
            if not status.is_rejected:
                raise ValueError(status.message)
            unresolvable = status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
            for reason in status.reasons:
                key = (reason, unresolvable)
                if key not in masks:
                    masks[key] = np.zeros(len(nodes), dtype=np.bool_)
                masks[key][position] = True
        if not masks:
            return ACCEPT_ALL
        return FilterVerdict(
            tuple(
                Rejection(reason, mask, unresolvable)
                for (reason, unresolvable), mask in masks.items()
            )
        )


class _AdaptedScore:
    """A `ScalarScore` behind the native interface."""

    def __init__(self, scalar: ScalarScore) -> None:
        self._scalar = scalar

    @property
    def name(self) -> str:
        return self._scalar.name

    @property
    def score_reads(self) -> Reads:
        return self._scalar.score_reads

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        scores = np.zeros(len(nodes), dtype=np.int64)
        for position, node in _node_infos(nodes):
            scores[position] = self._scalar.score_node(state, pod, node)
        return scores


def adapt_scalar_filter(scalar: ScalarFilter) -> _AdaptedFilter:
    """Make a filter of single nodes into a `FilterPlugin`; give reasons with every rejection."""
    return _AdaptedFilter(scalar)


def adapt_scalar_score(scalar: ScalarScore) -> _AdaptedScore:
    """Make a rating of single nodes into a `ScorePlugin`."""
    return _AdaptedScore(scalar)


def node_info(nodes: NodeView, position: int) -> NodeInfo | None:
    """The node at `position` of the view as a value object, None where the row has no node."""
    snapshot = nodes.snapshot
    row = int(nodes.rows[position])
    node = snapshot.node(row)
    if node is None:
        return None
    names = snapshot.resources.names
    return NodeInfo(
        node,
        dict(zip(names, snapshot.allocatable[row].tolist(), strict=False)),
        dict(zip(names, snapshot.requested[row].tolist(), strict=False)),
        snapshot.pods_on(node.metadata.name),
    )


def _node_infos(nodes: NodeView) -> list[tuple[int, NodeInfo]]:
    infos = ((position, node_info(nodes, position)) for position in range(len(nodes)))
    return [(position, info) for position, info in infos if info is not None]
