"""Explains a pod: why it is on its node, or why it is pending."""

from __future__ import annotations

import msgspec

from stowage.analysis.described_group import DescribedGroup, describe_group, is_tried_as_group
from stowage.analysis.explained_decision import GATED, SCHEDULED, Circumstances, explain_decision
from stowage.analysis.explanation import (
    AS_IT_IS_NOW,
    LostPoints,
    NodeVerdict,
    PodExplanation,
    PodGroupSummary,
    SchedulingExplanation,
)
from stowage.analysis.loaded_cluster import LoadedCluster
from stowage.analysis.unbound_claims import unbound_claims
from stowage.api.objects.pod import Pod
from stowage.engine.state.engine_state import EngineState
from stowage.framework import Framework
from stowage.plugins.volumes.binding import UNBOUND_IMMEDIATE
from stowage.state.pods.pod_info import PodInfo, make_pod_info

_POD_SCHEDULED = "PodScheduled"
_FEW_NAMES = 3


class NotInCluster(LookupError):  # noqa: N818 - it names the finding
    """The object of the question does not exist, or has finished."""


def explain_pod(cluster: LoadedCluster, key: str) -> PodExplanation:
    """Explain a pending pod's rejections, or a placed pod's scores.

    A placed pod is judged as if it had not been placed yet, beside all pods that are placed now. A
    pending member of a pod group is judged in the try of its group, beside the members before it.

    Args:
        cluster: The cluster.
        key: ``namespace/name``.

    Raises:
        NotInCluster: There is no such pod, or it is not scheduled: it has finished, is invalid, or
            is being deleted.
    """
    pod = cluster.objects.pod(key)
    if pod is None:
        raise NotInCluster(f"there is no pod {key}{_elsewhere(cluster, key)}")
    state = cluster.engine.state
    uid = pod.metadata.uid
    framework = state.frameworks[pod.spec.scheduler_name]
    placed = state.cache.get_pod(uid)
    if placed is not None:
        decision = _without(cluster, pod, placed, framework)
        return _explanation(cluster, pod, decision, _group_of(state, placed))
    if pod.metadata.deletion_timestamp is not None:
        raise NotInCluster(f"pod {key} is being deleted: it is not scheduled")
    waiting = state.queue.latest(uid)
    if waiting is None:
        raise NotInCluster(f"pod {key} is {pod.status.phase or 'invalid'}: it is not scheduled")
    group = _group_of(state, waiting)
    in_group = None if group is None else group.decision_about(state, uid)
    decision = in_group or explain_decision(
        framework, state.cache.snapshot(), waiting, Circumstances.of(state, framework)
    )
    return _explanation(cluster, pod, decision, group)


def _elsewhere(cluster: LoadedCluster, key: str) -> str:
    """The pods with this name in other namespaces, as the end of a sentence."""
    name = key.partition("/")[2]
    pods = (pod.metadata for pod in cluster.objects.pods())
    found = sorted(each.namespaced_name for each in pods if each.name == name)
    return f"; there is {', '.join(found[:_FEW_NAMES])}" if found else ""


def _group_of(state: EngineState, pod: PodInfo) -> DescribedGroup | None:
    """The group of a member, if the scheduler tries its members together."""
    if not state.cache.pod_groups.honours(pod) or not is_tried_as_group(state):
        return None
    return describe_group(state, pod.group_key)


def _without(
    cluster: LoadedCluster, pod: Pod, placed: PodInfo, framework: Framework
) -> SchedulingExplanation:
    """The decision about a placed pod while it is away from its node."""
    state = cluster.engine.state
    away = make_pod_info(_as_it_waited(pod), state.cache.classes)
    state.cache.remove_pod(placed.uid)
    # A placed member counted in its group; while it is away, it counts as a pending one.
    state.cache.see_pending_member(away)
    try:
        circumstances = Circumstances.of(state, framework)
        return explain_decision(framework, state.cache.snapshot(), away, circumstances)
    finally:
        state.cache.forget_pending_member(placed.uid)
        state.cache.update_pod(placed)


def _as_it_waited(pod: Pod) -> Pod:
    """The pod without a node; as long as it is running, its class is without its node affinity."""
    spec = msgspec.structs.replace(pod.spec, node_name="")
    status = msgspec.structs.replace(pod.status, phase="Pending", nominated_node_name="")
    return msgspec.structs.replace(pod, spec=spec, status=status)


def _explanation(
    cluster: LoadedCluster,
    pod: Pod,
    decision: SchedulingExplanation,
    group: DescribedGroup | None,
) -> PodExplanation:
    name = pod.spec.scheduler_name
    node = pod.spec.node_name
    conditions = [each for each in pod.status.conditions if each.type == _POD_SCHEDULED]
    return PodExplanation(
        pod.metadata.namespaced_name,
        pod.metadata.uid,
        name,
        cluster.stand_ins.get(name, name),
        AS_IT_IS_NOW,
        decision,
        node=node,
        condition=conditions[-1].message if conditions else "",
        runner_up=runner_up(decision, node or decision.chosen),
        notes=tuple(_notes(cluster, pod, decision)),
        group=None if group is None else _summary(group),
    )


def _summary(group: DescribedGroup) -> PodGroupSummary:
    about = group.explanation
    return PodGroupSummary(about.group, about.outcome, about.text)


def runner_up(decision: SchedulingExplanation, node: str) -> LostPoints | None:
    """The best other node, and by what it is behind `node`; None unless both are rated."""
    if decision.first_fit:
        return None
    feasible = {each.node: each for each in decision.ranked}
    winner = feasible.pop(node, None)
    if winner is None or not feasible:
        return None
    second = next(iter(feasible.values()))
    points = _points(second)
    lost = {plugin: score - points.get(plugin, 0) for plugin, score in _points(winner).items()}
    behind = (winner.total or 0) - (second.total or 0)
    return LostPoints(second.node, behind, {plugin: by for plugin, by in lost.items() if by})


def _points(verdict: NodeVerdict) -> dict[str, int]:
    return {each.plugin: each.weighted for each in verdict.scores}


def _is_unreported(pod: Pod, decision: SchedulingExplanation) -> bool:
    """Whether a pending pod lacks the condition that a scheduler writes after an attempt."""
    if pod.spec.node_name or decision.outcome == GATED:
        return False
    return all(each.type != _POD_SCHEDULED for each in pod.status.conditions)


def _notes(cluster: LoadedCluster, pod: Pod, decision: SchedulingExplanation) -> list[str]:
    notes = []
    state = cluster.engine.state
    stand_in = cluster.stand_ins.get(pod.spec.scheduler_name)
    if stand_in is not None:
        notes.append(
            f"no profile has the scheduler name {pod.spec.scheduler_name}: "
            f"the profile {stand_in} answers"
        )
    if _is_unreported(pod, decision):
        notes.append(
            "no scheduler has reported about it (it has no PodScheduled condition): if this lasts, "
            f"check that a scheduler with the name {pod.spec.scheduler_name} runs"
        )
    if decision.pre_filter is not None and UNBOUND_IMMEDIATE in decision.pre_filter.reasons:
        notes += unbound_claims(pod, cluster.objects)
    if state.extenders:
        notes.append("extenders are not asked")
    framework = state.frameworks[pod.spec.scheduler_name]
    if framework.profile.percentage_of_nodes_to_score:
        notes.append("all nodes are evaluated: percentageOfNodesToScore limits no explanation")
    if decision.first_fit:
        notes.append(
            "the profile has no Score plugin: of the nodes that fit, the scheduler takes the first "
            "one after those of its last search, which may be another one than here"
        )
    node = pod.spec.node_name
    if node and decision.best and node not in decision.best:
        notes.append(f"a new decision would choose {decision.chosen}")
    if node and decision.outcome != SCHEDULED:
        notes.append(f"a new decision would find no node: {decision.message}")
    return notes
