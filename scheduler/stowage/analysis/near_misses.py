"""The smallest single changes that would let a pod fit on some nodes.

Only nodes that a single plugin rejects are near, and cordoned ones, which have a taint as well.
What a change would do is read off the columns that the plugin reads; the tests make each change and
find that the pod fits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from stowage.analysis.amounts import amount_text
from stowage.analysis.explanation import NearMiss, NodeVerdict
from stowage.analysis.selector_misses import selector_misses
from stowage.api.config.feature_gates import COMPARISON_GATE, FeatureGates
from stowage.api.objects.node import Taint
from stowage.api.values.tolerations import DO_NOT_SCHEDULE_EFFECTS, tolerated
from stowage.framework.verdict import Int64Array
from stowage.plugins.node_affinity import NodeAffinity
from stowage.plugins.node_resources.fit import NodeResourcesFit
from stowage.plugins.node_unschedulable import CORDON_TAINT, NodeUnschedulable
from stowage.plugins.taint_toleration import TaintToleration
from stowage.state.nodes.resource_index import PODS
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import Snapshot

_ONE_CHANGE = 1.0
_UNKNOWN_CHANGE = 2.0
#: At most so many amounts are offered for each resource.
_STEPS = 3


def find_near_misses(
    snapshot: Snapshot, pod: PodInfo, nodes: Sequence[NodeVerdict], gates: FeatureGates
) -> list[NearMiss]:
    """The near misses of a pod that fits on no node, nearest first.

    Args:
        snapshot: The cluster.
        pod: The pod.
        nodes: The verdicts of all filtered nodes.
        gates: The feature gates of the process.
    """
    by_plugin: defaultdict[str, list[NodeVerdict]] = defaultdict(list)
    compares = gates.enabled(COMPARISON_GATE)
    for each in nodes:
        if each.rejected_by is not None and (
            not each.also_rejected_by or _is_only_cordoned(snapshot, pod, each, compares)
        ):
            by_plugin[each.rejected_by.plugin].append(each)
    found: list[NearMiss] = []
    for plugin, verdicts in by_plugin.items():
        if plugin == NodeResourcesFit.name:
            found += _smaller_requests(snapshot, pod, verdicts)
        elif plugin == TaintToleration.name:
            found += _more_tolerations(snapshot, pod, verdicts, compares)
        elif plugin == NodeAffinity.name:
            misses, others = selector_misses(snapshot, pod, verdicts)
            found += [*misses, *_without_plugin(plugin, others)]
        else:
            found += _without_plugin(plugin, verdicts)
    return sorted(found, key=lambda each: (each.distance, -len(each.nodes), each.change))


def _is_only_cordoned(
    snapshot: Snapshot, pod: PodInfo, verdict: NodeVerdict, compares: bool
) -> bool:
    """Whether the cordon alone rejects the pod: the node controller taints each cordoned node.

    With the cordon it removes taints of this key with this effect only.
    """
    statuses = (verdict.rejected_by, *verdict.also_rejected_by)
    plugins = {each.plugin for each in statuses if each is not None}
    if plugins != {NodeUnschedulable.name, TaintToleration.name}:
        return False
    untolerated = _untolerated(snapshot, pod, verdict.node, compares)
    cordon = (CORDON_TAINT.key, CORDON_TAINT.effect)
    return all((each.key, each.effect) == cordon for each in untolerated)


def _smaller_requests(
    snapshot: Snapshot, pod: PodInfo, verdicts: Sequence[NodeVerdict]
) -> Iterator[NearMiss]:
    """Nodes where only one of the pod's requests is too large."""
    rows = _rows(snapshot, verdicts)
    free = snapshot.allocatable[rows] - snapshot.requested[rows]
    has_slot = snapshot.num_pods[rows] < snapshot.allocatable[rows, PODS]
    requests = {name: amount for name, amount in pod.requests.items() if amount > 0}
    shortages = {
        resource: _shortage(snapshot, free, resource, request)
        for resource, request in requests.items()
    }
    num_short = sum(
        (np.asarray(short > 0, dtype=np.int64) for short in shortages.values()),
        np.zeros(len(rows), dtype=np.int64),
    )
    for resource, shortage in shortages.items():
        at = np.flatnonzero((shortage > 0) & (num_short == 1) & has_slot)
        yield from _steps(resource, requests[resource], shortage[at], _names(snapshot, rows[at]))
    full = np.flatnonzero(~has_slot & (num_short == 0))
    if len(full):
        yield NearMiss(
            "one pod less ran there (Too many pods)",
            NodeResourcesFit.name,
            _names(snapshot, rows[full]),
            _ONE_CHANGE,
        )


def _shortage(snapshot: Snapshot, free: Int64Array, resource: str, request: int) -> Int64Array:
    """``int64[nodes]``: by how much the request exceeds the free amount, at most the request."""
    column = snapshot.resources.index_of(resource)
    if column is None:
        return np.full(len(free), request, dtype=np.int64)
    return np.clip(request - free[:, column], 0, request)


def _steps(
    resource: str, request: int, shortage: Int64Array, names: tuple[str, ...]
) -> Iterator[NearMiss]:
    """The least amount that helps, the amounts that help half of the nodes and all."""
    if not len(shortage):
        return
    order = np.argsort(shortage, kind="stable")
    least, half, most = shortage[order[[0, (len(order) - 1) // 2, -1]]].tolist()
    for amount in sorted({least, half, most})[:_STEPS]:
        helped = tuple(names[at] for at in order.tolist() if shortage[at] <= amount)
        yield NearMiss(
            f"it asked for {amount_text(resource, amount)} less {resource}",
            NodeResourcesFit.name,
            helped,
            amount / request,
        )


def _more_tolerations(
    snapshot: Snapshot, pod: PodInfo, verdicts: Sequence[NodeVerdict], compares: bool
) -> Iterator[NearMiss]:
    by_taints: defaultdict[tuple[Taint, ...], list[str]] = defaultdict(list)
    for verdict in verdicts:
        by_taints[_untolerated(snapshot, pod, verdict.node, compares)].append(verdict.node)
    for taints, names in by_taints.items():
        texts = " and ".join(taint_text(taint) for taint in taints)
        yield NearMiss(
            f"it tolerated {texts}", TaintToleration.name, tuple(names), _ONE_CHANGE * len(taints)
        )


def _untolerated(
    snapshot: Snapshot, pod: PodInfo, node_name: str, compares: bool
) -> tuple[Taint, ...]:
    row = snapshot.row_of(node_name)
    taints = () if row is None else snapshot.taint_sets[int(snapshot.taint_set[row])] or ()
    return tuple(
        taint
        for taint in taints
        if taint.effect in DO_NOT_SCHEDULE_EFFECTS
        and not tolerated(taint, pod.spec.tolerations, compares=compares)
    )


def taint_text(taint: Taint) -> str:
    """The taint as kubectl writes it: ``key=value:effect``, or ``key:effect``."""
    key = f"{taint.key}={taint.value}" if taint.value else taint.key
    return f"{key}:{taint.effect}"


def _without_plugin(plugin: str, verdicts: Sequence[NodeVerdict]) -> Iterator[NearMiss]:
    """Nodes that reject the pod for a reason that no amount describes."""
    by_reasons: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for verdict in verdicts:
        if verdict.rejected_by is not None:
            by_reasons[verdict.rejected_by.reasons].append(verdict.node)
    for reasons, names in by_reasons.items():
        if plugin == NodeUnschedulable.name:
            yield NearMiss("the cordon were lifted", plugin, tuple(names), _ONE_CHANGE)
        else:
            change = f"{plugin} did not reject them: {', '.join(reasons)}"
            yield NearMiss(change, plugin, tuple(names), _UNKNOWN_CHANGE)


def _rows(snapshot: Snapshot, verdicts: Sequence[NodeVerdict]) -> Int64Array:
    rows = [snapshot.row_of(each.node) for each in verdicts]
    return np.array([row for row in rows if row is not None], dtype=np.int64)


def _names(snapshot: Snapshot, rows: Int64Array) -> tuple[str, ...]:
    return tuple(snapshot.node_names[row] for row in rows.tolist())
