"""The dry run of preemption of kube-scheduler v1.36: one node, one pod at a time.

Follows ``SelectVictimsOnNode``: pods are removed from a node and added again one by one, and each
time every Filter plugin runs. Host ports are a set, as in ``HostPortInfo``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod
from stowage.api.objects.policy import PodDisruptionBudget
from tests.support.scalar import inter_pod_affinity as ipa
from tests.support.scalar import pod_topology_spread as pts
from tests.support.scalar.cluster import PlainCluster
from tests.support.scalar.labels import is_empty, selects
from tests.support.scalar.node_filters import (
    collide,
    host_ports,
    node_affinity,
    node_declared_features,
    node_name,
    node_resources_fit,
    node_unschedulable,
    taint_toleration,
)
from tests.support.scalar.volumes import (
    IN_USE,
    claims_for_one_pod,
    has_disks,
    names_of_claims,
    node_volume_limits,
    shares_a_disk,
    volume_binding,
    volume_zone,
)

Reasons = frozenset[str]
FITS: Reasons = frozenset()
PORTS = "node(s) didn't have free ports for the requested pod ports"
NO_VICTIMS = "No preemption victims found for incoming pod"


@dataclass
class Victims:
    """The victims on a node."""

    pods: list[Pod]
    num_violations: int


@dataclass
class NodeState:
    """A node and the PreFilter state of the plugins, which can be changed and copied."""

    cluster: PlainCluster
    pod: Pod
    node: Node
    on_node: list[Pod] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.on_node = self.cluster.pods_on(self.node)
        self.ports = {port for other in self.on_node for port in host_ports(other)}
        self.spread = pts.pre_filter(self.cluster, pts.Defaults(), self.pod)
        self.affinity = ipa.pre_filter(self.cluster, self.pod)
        self.for_one_pod = claims_for_one_pod(self.pod, self.cluster)
        self.num_taken = sum(
            any(
                other.metadata.namespace == self.pod.metadata.namespace
                and name in names_of_claims(other)
                for other, _ in self.cluster.placed()
            )
            for name in self.for_one_pod
        )
        self.skips_restrictions = not self.num_taken and not has_disks(self.pod)

    def add(self, other: Pod) -> None:
        """``AddPod`` of the node and of every plugin."""
        self.on_node.append(other)
        self.ports.update(host_ports(other))
        self._count(other, 1)

    def remove(self, other: Pod) -> None:
        """``RemovePod`` of the node and of every plugin."""
        self.on_node = [each for each in self.on_node if each is not other]
        self.ports.difference_update(host_ports(other))
        self._count(other, -1)

    def fits(self, nominated: Sequence[Pod]) -> Reasons:
        """``RunFilterPluginsWithNominatedPods``: reasons with nominated pods, or else without."""
        if nominated:
            with_them = self._copy()
            for other in nominated:
                with_them.add(other)
            reasons = with_them.filter_reasons()
            if reasons:
                return reasons
        return self.filter_reasons()

    def _copy(self) -> NodeState:
        twin = copy.copy(self)
        twin.on_node, twin.ports = list(self.on_node), set(self.ports)
        twin.spread, twin.affinity = copy.deepcopy(self.spread), copy.deepcopy(self.affinity)
        return twin

    def _count(self, other: Pod, sign: int) -> None:
        self.num_taken += sign * sum(name in self.for_one_pod for name in names_of_claims(other))
        if self.spread is not None:
            pts.count_change(self.spread, self.pod, (other, self.node, sign))
        if self.affinity is not None:
            ipa.count_change(self.cluster, self.affinity, self.pod, (other, self.node, sign))

    def filter_reasons(self) -> Reasons:
        """The reasons of every Filter plugin, stopping at the first plugin that rejects."""
        pod, node = self.pod, self.node
        here = PlainCluster(nodes={node.metadata.name: node})
        here.pods = {str(index): each for index, each in enumerate(self._placed_here())}
        for filter_node in (node_unschedulable, node_name, taint_toleration, node_affinity):
            reasons, _ = filter_node(pod, node, here)
            if reasons:
                return frozenset(reasons)
        if any(collide(wanted, used) for wanted in host_ports(pod) for used in self.ports):
            return frozenset({PORTS})
        reasons, _ = node_resources_fit(pod, node, here)
        if reasons:
            return frozenset(reasons)
        reasons = self._volumes(here)
        if reasons:
            return frozenset(reasons)
        verdict = None if self.spread is None else pts.filter_node(self.spread, pod, node)
        if verdict is None and self.affinity is not None:
            verdict = ipa.filter_node(self.cluster, self.affinity, pod, node)
        if verdict is not None:
            return frozenset({verdict[0]})
        return frozenset(node_declared_features(pod, node, here)[0])

    def _volumes(self, here: PlainCluster) -> set[str]:
        here.storage = self.cluster.storage
        if not self.skips_restrictions:
            if any(shares_a_disk(self.pod, other) for other in self.on_node):
                return {"node(s) had no available disk"}
            if self.num_taken > 0:
                return {IN_USE}
        for filter_node in (node_volume_limits, volume_binding, volume_zone):
            reasons, _ = filter_node(self.pod, self.node, here)
            if reasons:
                return reasons
        return set()

    def _placed_here(self) -> list[Pod]:
        from tests.support.mirrored_cluster import on_node

        return [on_node(each, self.node.metadata.name) for each in self.on_node]


def priority(pod: Pod) -> int:
    """The priority; 0 if there is none."""
    return pod.spec.priority or 0


def importance(pod: Pod) -> tuple[int, str]:
    """Sort key: more important pods first; a pod that has not started counts as started now."""
    return (-priority(pod), pod.status.start_time or "9999")


def select_victims(
    state: NodeState, nominated: Sequence[Pod], budgets: Sequence[PodDisruptionBudget]
) -> Victims | Reasons:
    """The victims on the node, or why the pod does not fit even without them."""
    mine = priority(state.pod)
    potential = [other for other in state.on_node if priority(other) < mine]
    if not potential:
        return frozenset({NO_VICTIMS})
    for other in potential:
        state.remove(other)
    others = [each for each in nominated if priority(each) >= mine]
    reasons = state.fits(others)
    if reasons:
        return reasons
    potential.sort(key=importance)
    violating = violating_pods(potential, budgets)
    victims = []
    num_violations = 0
    for other in (
        *violating,
        *(each for each in potential if not any(each is one for one in violating)),
    ):
        state.add(other)
        if state.fits(others):
            state.remove(other)
            victims.append(other)
            num_violations += any(other is each for each in violating)
    return Victims(sorted(victims, key=importance), num_violations)


def violating_pods(pods: Sequence[Pod], budgets: Sequence[PodDisruptionBudget]) -> list[Pod]:
    """Pods whose eviction violates a budget; ``filterPodsWithPDBViolation``."""
    allowed = [budget.status.disruptions_allowed for budget in budgets]
    violating = []
    for pod in pods:
        violates = False
        for index, budget in enumerate(budgets):
            if not _is_counted(pod, budget):
                continue
            allowed[index] -= 1
            violates = violates or allowed[index] < 0
        if violates:
            violating.append(pod)
    return violating


def is_beyond_budgets(
    victims: Sequence[Pod], budgets: Sequence[PodDisruptionBudget], evicting: Sequence[Pod] = ()
) -> bool:
    """Whether evicting all victims violates a budget, beside the pods that are being evicted."""
    leaving = [pod.metadata.uid for pod in evicting]
    for budget in budgets:
        used = sum(_is_counted(pod, budget) for pod in evicting)
        more = sum(
            _is_counted(pod, budget)
            and pod.metadata.uid not in leaving
            and pod.metadata.deletion_timestamp is None
            for pod in victims
        )
        if more and used + more > budget.status.disruptions_allowed:
            return True
    return False


def _is_counted(pod: Pod, budget: PodDisruptionBudget) -> bool:
    """Whether the eviction of the pod uses up a disruption that the budget allows."""
    selector = budget.spec.selector
    return (
        bool(pod.metadata.labels)
        and budget.metadata.namespace == pod.metadata.namespace
        and not is_empty(selector)
        and selects(selector, pod.metadata.labels)
        and pod.metadata.name not in budget.status.disrupted_pods
    )


def best_nodes(candidates: Mapping[str, Victims]) -> list[str]:
    """The nodes that are equal by all criteria; ``pickOneNodeForPreemption``."""
    criteria: tuple[Callable[[Victims], object], ...] = (
        lambda each: each.num_violations,
        lambda each: priority(each.pods[0]),
        lambda each: sum(priority(pod) + 2**31 for pod in each.pods),
        lambda each: len(each.pods),
    )
    names = list(candidates)
    for criterion in criteria:
        least = min(criterion(candidates[name]) for name in names)  # type: ignore[type-var]
        names = [name for name in names if criterion(candidates[name]) == least]
    latest = max(_earliest_start(candidates[name]) for name in names)
    return sorted(name for name in names if _earliest_start(candidates[name]) == latest)


def _earliest_start(victims: Victims) -> str:
    highest = max(map(priority, victims.pods))
    starts = [pod.status.start_time for pod in victims.pods if priority(pod) == highest]
    return min(start or "9999" for start in starts)
