"""How many more pods like one fit, and what limits them.

Pods without constraints between pods are counted from the columns. Others are placed one by one
by the engine. Both give the same answer.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import cast

import msgspec
import numpy as np
from msgspec.structs import replace

from stowage.analysis.devices.shortage import DeviceShortage
from stowage.analysis.explained_decision import (
    ERROR,
    GATED,
    Circumstances,
    explain_decision,
    without_post_filter,
)
from stowage.analysis.explanation import SchedulingExplanation
from stowage.analysis.loaded_cluster import LoadedCluster, stand_in_notes
from stowage.analysis.virtual_cluster import VirtualCluster
from stowage.api.objects.pod import Pod
from stowage.engine.state.engine_state import EngineState
from stowage.framework import (
    Diagnosis,
    Framework,
    PreFilterOutcome,
    Reads,
    fit_error_message,
)
from stowage.framework.diagnosis import absent_nodes_reason
from stowage.framework.extension_points import FilterPlugin
from stowage.framework.profile.points import ExtensionPoint
from stowage.framework.verdict import Int64Array
from stowage.plugins.node_name import NodeName
from stowage.plugins.node_resources.fit import TOO_MANY_PODS, NodeResourcesFit
from stowage.state.nodes.resource_index import PODS
from stowage.state.pods.pod_info import PodInfo, make_pod_info
from stowage.state.snapshot import Snapshot

_CHUNK = 1000
#: NodeName reads the pod itself, but no other pod.
_COUNTED = frozenset({NodeResourcesFit.name, NodeName.name})
_LEFT_OUT = "node(s) left out by PreFilter"


class _Answer(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Base of the parts of an answer."""


class NodeGroup(_Answer, frozen=True):
    """The nodes with one value of the label that groups them.

    Attributes:
        value: The label's value; empty for nodes without the label.
        nodes: Number of nodes.
        fits: Number of pods that fit on them.
        limited_by: Reason -> number of nodes that take no more pods because of it.
    """

    value: str
    nodes: int
    fits: int
    limited_by: dict[str, int]


class CapacityAnswer(_Answer, frozen=True):
    """How many more pods fit.

    Attributes:
        fits: Number of pods that fit in all.
        is_limited: Whether the count ended at the given limit; more may fit.
        per_node: Node -> number of pods, without nodes that take none.
        histogram: Number of pods -> number of nodes that take so many.
        groups: The nodes by label, those that take most pods first.
        group_by: The label.
        message: Why the next pod does not fit; empty if the limit ended the count.
        is_counted: Whether the pods were counted from the columns.
        device_shortages: The requests for devices of the next pod that fail, and on which nodes.
        notes: What the answer cannot know.
    """

    fits: int
    is_limited: bool
    per_node: dict[str, int]
    histogram: dict[int, int]
    groups: tuple[NodeGroup, ...]
    group_by: str
    message: str = ""
    is_counted: bool = False
    device_shortages: tuple[DeviceShortage, ...] = ()
    notes: tuple[str, ...] = ()


class _Room(msgspec.Struct):
    """How many pods each node takes, and why it takes no more."""

    per_node: dict[str, int]
    reasons: Mapping[str, tuple[str, ...]]
    message: str
    is_counted: bool = False
    device_shortages: tuple[DeviceShortage, ...] = ()


def capacity(
    loaded: LoadedCluster, pod: Pod, *, limit: int, group_by: str, counts: bool = True
) -> CapacityAnswer:
    """Count how many pods like `pod` fit beside what runs; none is preempted.

    The cluster is changed unless the pods can be counted: load or fork it for each question.

    Args:
        loaded: The cluster; it has a profile or a stand-in for the pod's scheduler.
        pod: The pod, without a node.
        limit: The count ends at this number of pods.
        group_by: The label of node groups.
        counts: Whether to count from the columns if possible.
    """
    spec = replace(pod.spec, preemption_policy="Never")
    pod = replace(pod, spec=spec)
    state = loaded.engine.state
    framework = state.frameworks[spec.scheduler_name]
    snapshot = state.cache.snapshot()
    info = make_pod_info(pod, state.cache.classes)
    if counts and _is_countable(state, framework, info):
        room = _counted(loaded, framework, info)
    else:
        room = _simulated(loaded, framework, pod, limit)
    notes = list(stand_in_notes(loaded, [pod]))
    if state.extenders:
        notes.append("extenders are not asked")
    return replace(_answer(snapshot, room, limit, group_by), notes=tuple(notes))


def _is_countable(state: EngineState, framework: Framework, info: PodInfo) -> bool:
    """Whether placed pods change nothing for the next one but the free amounts of their node."""
    if info.volumes or info.spec.resource_claims or info.pod_class.host_ports:
        return False
    cycle_state = state.new_cycle_state(info.uid)
    framework.run_pre_filter(cycle_state, info, state.cache.snapshot())
    if NodeResourcesFit.name not in framework.profile.instances:
        return False
    plugins = cast("tuple[FilterPlugin, ...]", framework.profile.plugins[ExtensionPoint.FILTER])
    return all(
        plugin.name in _COUNTED or plugin.traits.filter_reads is Reads.NODE
        for plugin in plugins
        if plugin.name not in cycle_state.skip_filter
    )


def _counted(loaded: LoadedCluster, framework: Framework, info: PodInfo) -> _Room:
    """``floor(free / request)`` on each feasible node, the least of all requests."""
    state = loaded.engine.state
    snapshot = state.cache.snapshot()
    explained = explain_decision(framework, snapshot, info, Circumstances.of(state, framework))
    reasons = _rejections(snapshot, explained)
    names = [verdict.node for verdict in explained.nodes if verdict.rejected_by is None]
    rows = np.array([row for name in names if (row := snapshot.row_of(name)) is not None], np.int64)
    fit = cast("NodeResourcesFit", framework.profile.instances[NodeResourcesFit.name])
    columns = _quotients(fit, snapshot, info, rows)
    counts = np.minimum.reduce(list(columns.values()))
    for reason, quotient in columns.items():
        for at in np.flatnonzero(quotient == counts).tolist():
            reasons[names[at]] = (*reasons.get(names[at], ()), reason)
    per_node = dict(zip(names, counts.tolist(), strict=True))
    return _Room(
        per_node,
        reasons,
        without_post_filter(explained.message, explained) or _message(snapshot, explained, reasons),
        True,
    )


def _message(
    snapshot: Snapshot, explained: SchedulingExplanation, reasons: Mapping[str, tuple[str, ...]]
) -> str:
    """The fit error of the pod that fits nowhere any more."""
    counts = Counter(reason for of_node in reasons.values() for reason in of_node)
    num_left_out = snapshot.num_nodes - len(explained.nodes)
    if num_left_out and explained.node_names is not None:
        left_in, plugins = frozenset(explained.node_names), frozenset(explained.left_out_by)
        reason = absent_nodes_reason(PreFilterOutcome(node_names=left_in, plugins=plugins))
        counts[reason] += num_left_out
    return fit_error_message(Diagnosis(snapshot.num_nodes, counts))


def _quotients(
    fit: NodeResourcesFit, snapshot: Snapshot, info: PodInfo, rows: Int64Array
) -> dict[str, Int64Array]:
    """Reason of a full node -> ``int64[rows]``: how many pods the amount allows."""
    allocatable, requested = snapshot.allocatable[rows], snapshot.requested[rows]
    quotients = {TOO_MANY_PODS: allocatable[:, PODS] - snapshot.num_pods[rows]}
    for resource, request in info.requests.items():
        column = snapshot.resources.index_of(resource)
        if request > 0 and column is not None and not fit.ignores(resource):
            free = allocatable[:, column] - requested[:, column]
            quotients[f"Insufficient {resource}"] = free // request
    return quotients


def _simulated(loaded: LoadedCluster, framework: Framework, pod: Pod, limit: int) -> _Room:
    """Let the engine place pods until one does not fit."""
    cluster = VirtualCluster(loaded)
    state = loaded.engine.state
    placed: Counter[str] = Counter()
    number = 0
    while number < limit:
        made = [_copy(pod, number + index) for index in range(min(_CHUNK, limit - number))]
        number += len(made)
        cluster.create_pods(made)
        cluster.run()
        current = [cluster.objects.pod(each.metadata.namespaced_name) for each in made]
        nodes = [each.spec.node_name for each in current if each is not None]
        placed.update(node for node in nodes if node)
        if not all(nodes):
            break
    info = make_pod_info(cluster.with_claims(_copy(pod, number)), state.cache.classes)
    snapshot = state.cache.snapshot()
    explained = explain_decision(framework, snapshot, info, Circumstances.of(state, framework))
    reasons = _rejections(snapshot, explained)
    return _Room(
        dict(placed),
        reasons,
        without_post_filter(explained.message, explained),
        device_shortages=explained.device_shortages,
    )


def _copy(pod: Pod, number: int) -> Pod:
    meta = replace(
        pod.metadata, name=f"{pod.metadata.name}-{number}", uid=f"{pod.metadata.uid}-{number}"
    )
    return replace(pod, metadata=meta)


def _rejections(snapshot: Snapshot, explained: SchedulingExplanation) -> dict[str, tuple[str, ...]]:
    """Node -> why it rejects the pod; no node has a reason if the pod is rejected as a whole.

    Nor does one if a plugin fails.
    """
    if explained.outcome in (GATED, ERROR) or explained.pre_filter is not None:
        return {name: () for name in snapshot.node_names if name}
    rejecting = ((each.node, each.rejected_by) for each in explained.nodes)
    return {node: status.reasons for node, status in rejecting if status is not None}


def _answer(snapshot: Snapshot, room: _Room, limit: int, group_by: str) -> CapacityAnswer:
    per_node = {name: count for name, count in room.per_node.items() if count}
    fits = sum(per_node.values())
    existing = [snapshot.node_names[row] for row in np.flatnonzero(snapshot.exists).tolist()]
    histogram = Counter(per_node.get(name, 0) for name in existing)
    return CapacityAnswer(
        min(fits, limit),
        fits >= limit,
        per_node,
        dict(sorted(histogram.items())),
        _groups(snapshot, existing, room, group_by),
        group_by,
        "" if fits >= limit else room.message,
        room.is_counted,
        () if fits >= limit else room.device_shortages,
    )


def _groups(
    snapshot: Snapshot, existing: list[str], room: _Room, group_by: str
) -> tuple[NodeGroup, ...]:
    members: defaultdict[str, list[str]] = defaultdict(list)
    for name in existing:
        row = snapshot.row_of(name)
        node = None if row is None else snapshot.node(row)
        members["" if node is None else node.metadata.labels.get(group_by, "")].append(name)
    groups = [_group(value, names, room) for value, names in members.items()]
    return tuple(sorted(groups, key=lambda each: (-each.fits, each.value)))


def _group(value: str, names: list[str], room: _Room) -> NodeGroup:
    reasons = Counter(reason for name in names for reason in room.reasons.get(name, (_LEFT_OUT,)))
    fits = sum(room.per_node.get(name, 0) for name in names)
    return NodeGroup(value, len(names), fits, dict(reasons.most_common()))
