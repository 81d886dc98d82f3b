"""A node: its room, its pods, the pending pods it rejects, and the decisions about it."""

from __future__ import annotations

import numpy as np

from stowage.analysis.amounts import amount_text
from stowage.analysis.explain_node import explain_node
from stowage.analysis.explanation import PluginStatus
from stowage.console.answers.answer import Answer
from stowage.console.answers.cluster_map import (
    PRESSURES,
    pressure_bits,
    requested_with_pods,
    unit_of,
)
from stowage.console.clusters.moment import Moment
from stowage.console.decisions.row import DecisionRow

MAX_JUDGED = 200
"""Pending pods that are judged for one answer."""
MAX_DECISIONS = 20


class AmountTexts(Answer, frozen=True):
    """Amounts as Kubernetes writes them."""

    allocatable: str
    free: str


class NodeResource(Answer, frozen=True):
    """A resource of a node, in `unit`."""

    name: str
    unit: str
    allocatable: int
    requested: int
    free: int
    text: AmountTexts


class PodOnNode(Answer, frozen=True):
    """A pod on a node."""

    pod: str
    priority: int
    scheduler_name: str
    requests: dict[str, int]
    created: str | None


class RejectedHere(Answer, frozen=True):
    """A pending pod and why the node rejects it."""

    pod: str
    rejected_by: tuple[PluginStatus, ...]


class NodeAnswer(Answer, frozen=True):
    """A node.

    Attributes:
        pods: Its pods, most important first.
        rejects: The judged pending pods that do not fit.
        fits: The judged pending pods that fit.
        judged: The number of pending pods that were judged, at most `MAX_JUDGED`.
        pending_total: The number of pending pods.
        decisions: The newest decisions for it.
    """

    version: int
    node: str
    labels: dict[str, str]
    unschedulable: bool
    taints: tuple[str, ...]
    pressure: list[str]
    resources: list[NodeResource]
    pods: list[PodOnNode]
    rejects: list[RejectedHere]
    fits: tuple[str, ...]
    judged: int
    pending_total: int
    decisions: list[DecisionRow]


def node_answer(moment: Moment, name: str) -> NodeAnswer:
    """What is on a node.

    Raises:
        NotInCluster: There is no such node.
    """
    explained = explain_node(moment.loaded, name, MAX_JUDGED)
    snapshot = moment.snapshot
    row = snapshot.row_of(name)
    node = None if row is None else snapshot.node(row)
    if row is None or node is None:
        raise LookupError(f"the node {name} was explained, so it has a row")
    bits = pressure_bits(snapshot.taint_sets[int(snapshot.taint_set[row])] or ())
    on_node = sorted(snapshot.pods_on(name), key=lambda pod: (-pod.priority, pod.key))
    rejects = [RejectedHere(each.pod, each.rejected_by) for each in explained.rejects]
    return NodeAnswer(
        moment.version,
        name,
        node.metadata.labels,
        explained.unschedulable,
        explained.taints,
        [pressure for bit, pressure in enumerate(PRESSURES) if bits >> bit & 1],
        _resources(moment, row),
        [
            PodOnNode(
                each.key,
                each.priority,
                each.scheduler_name,
                dict(each.requests),
                each.creation_timestamp,
            )
            for each in on_node
        ],
        rejects,
        explained.fits,
        len(rejects) + len(explained.fits),
        moment.loaded.objects.pods_by_node().num_pending,
        moment.history.newest(MAX_DECISIONS, node=name),
    )


def _resources(moment: Moment, row: int) -> list[NodeResource]:
    snapshot = moment.snapshot
    allocatable = snapshot.allocatable[row].tolist()
    requested = requested_with_pods(snapshot, np.array([row], dtype=np.int64))[0].tolist()
    found = []
    for column, name in enumerate(snapshot.resources.names):
        if not name or not allocatable[column]:
            continue
        amount, free = allocatable[column], allocatable[column] - requested[column]
        text = AmountTexts(amount_text(name, amount), amount_text(name, free))
        found.append(NodeResource(name, unit_of(name), amount, requested[column], free, text))
    return found
