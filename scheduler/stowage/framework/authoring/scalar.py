"""Adapts plugins that judge one node at a time to views of many nodes.

Such plugins suit policies of a few lines of Python. With a trait for what they read they are asked
about changed nodes only; see `Reads`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from operator import index
from typing import TypeAlias

import msgspec
import numpy as np

from stowage.api.objects.node import Node
from stowage.api.status import SUCCESS, Code, Status, unschedulable
from stowage.framework.verdict import ACCEPT_ALL, BoolArray, FilterVerdict, Int64Array, Rejection
from stowage.state.nodes.resource_index import ResourceIndex
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView


class NodeInfo(msgspec.Struct, frozen=True):
    """One node as a scalar plugin sees it; ``framework.NodeInfo``.

    Attributes:
        node: The node object.
        allocatable: Resource -> amount; cpu in milli, other resources in whole units.
        requested: Resource -> sum of the requests of its pods, in the same units.
        pods: The pods on the node, assumed pods included.
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


#: Judges one node: None accepts, text is the reason of a rejection, a `Status` is either.
FilterNode: TypeAlias = Callable[[PodInfo, NodeInfo], Status | str | None]
#: Scores one node: 0..100, or any number if the plugin normalises.
ScoreNode: TypeAlias = Callable[[PodInfo, NodeInfo], int]


def filter_each(filter_node: FilterNode, pod: PodInfo, nodes: NodeView) -> FilterVerdict:
    """The verdict of a filter of single nodes about all `nodes`.

    Raises:
        TypeError: The filter returned another type.
        ValueError: The filter returned an Error, or a rejection without a reason.
    """
    masks: dict[tuple[str, bool], BoolArray] = {}
    for position, node in _node_infos(nodes):
        status = _as_status(filter_node(pod, node), node.name)
        if status.is_success:
            continue
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
            Rejection(reason, mask, unresolvable) for (reason, unresolvable), mask in masks.items()
        )
    )


def score_each(score_node: ScoreNode, pod: PodInfo, nodes: NodeView) -> Int64Array:
    """The scores of a method for single nodes, for all `nodes`; 0 where a row has no node.

    Raises:
        TypeError: The method returned something other than a whole number.
    """
    scores = np.zeros(len(nodes), dtype=np.int64)
    for position, node in _node_infos(nodes):
        scores[position] = index(score_node(pod, node))
    return scores


class _NamedAmounts(Mapping[str, int]):
    """A row of amounts by resource name; lazy, because most plugins read one amount or none."""

    __slots__ = ("_amounts", "_resources", "_row")

    def __init__(self, resources: ResourceIndex, amounts: Int64Array, row: int) -> None:
        self._resources = resources
        self._amounts = amounts
        self._row = row

    def __getitem__(self, name: str) -> int:
        column = self._resources.index_of(name)
        if column is None:
            raise KeyError(name)
        return int(self._amounts[self._row, column])

    def __iter__(self) -> Iterator[str]:
        return filter(None, self._resources.names)

    def __len__(self) -> int:
        return sum(map(bool, self._resources.names))


def _as_status(answer: Status | str | None, node_name: str) -> Status:
    if answer is None:
        return SUCCESS
    if isinstance(answer, str) and answer:
        return unschedulable(answer)
    if not isinstance(answer, Status):
        text = f"filter_node answered {answer!r} for node {node_name}"
        raise TypeError(f"{text}, expected None, the reason as text, or a Status")
    if answer.is_success or (answer.is_rejected and answer.reasons):
        return answer
    raise ValueError(answer.message or f"no reason given for {answer.code.title} on {node_name}")


def _node_infos(nodes: NodeView) -> Iterator[tuple[int, NodeInfo]]:
    """Position and `NodeInfo` of every row that has a node."""
    snapshot, changes = nodes.snapshot, nodes.changes
    resources, allocatable = snapshot.resources, snapshot.allocatable
    requested = snapshot.requested if changes is None else nodes.requested
    for position, row in enumerate(nodes.rows.tolist()):
        node = snapshot.node(row)
        if node is None:
            continue
        if changes is None:
            pods, index = snapshot.pods_on(node.metadata.name), row
        else:
            pods, index = changes.pods(position), position
        yield (
            position,
            NodeInfo(
                node,
                _NamedAmounts(resources, allocatable, row),
                _NamedAmounts(resources, requested, index),
                pods,
            ),
        )
