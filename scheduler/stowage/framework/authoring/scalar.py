"""Plugins that look at one node at a time, asked for all nodes of a view.

For policies where ten lines of Python per node are enough. A plugin that declares what it reads
is asked for changed nodes only; see `Reads`.
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


#: Judges one node: None lets the pod in, text is the reason why not, a `Status` says either.
FilterNode: TypeAlias = Callable[[PodInfo, NodeInfo], Status | str | None]
#: Rates one node: 0..100, or anything if the plugin normalises.
ScoreNode: TypeAlias = Callable[[PodInfo, NodeInfo], int]


def filter_each(filter_node: FilterNode, pod: PodInfo, nodes: NodeView) -> FilterVerdict:
    """What a filter of single nodes says of all of `nodes`.

    Raises:
        TypeError: It answered something that is no verdict.
        ValueError: It answered an Error, or a rejection without a reason.
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
    """What a rating of single nodes gives each of `nodes`; 0 where a row has no node.

    Raises:
        TypeError: It answered something that is no whole number.
    """
    scores = np.zeros(len(nodes), dtype=np.int64)
    for position, node in _node_infos(nodes):
        scores[position] = index(score_node(pod, node))
    return scores


class _NamedAmounts(Mapping[str, int]):
    """A row of amounts by resource name; looked up when asked, most plugins ask for one or none."""

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
    """Position and value object of every row that has a node."""
    snapshot, changes = nodes.snapshot, nodes.changes
    resources, allocatable = snapshot.resources, snapshot.allocatable
    requested = snapshot.requested if changes is None else nodes.requested
    for position, row in enumerate(nodes.rows.tolist()):
        node = snapshot.node(row)
        if node is None:
            continue
        if changes is None:
            pods, place = snapshot.pods_on(node.metadata.name), row
        else:
            pods, place = changes.pods(position), position
        yield (
            position,
            NodeInfo(
                node,
                _NamedAmounts(resources, allocatable, row),
                _NamedAmounts(resources, requested, place),
                pods,
            ),
        )
