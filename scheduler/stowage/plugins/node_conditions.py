"""Plugins CheckNodeCondition and CheckNode{Memory,Disk,PID}Pressure: filters by node conditions.

Predicates of kube-scheduler 1.12. Today the node controller turns these conditions into taints,
and TaintToleration judges the taints. The predicates read the conditions themselves, so they also
reject nodes that nothing taints, and no toleration exempts a pod from them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource, QueueingHint
from stowage.api.objects.node import Node
from stowage.api.objects.pod import PodSpec, ResourceRequirements
from stowage.api.values.quantity import quantity_nano_value
from stowage.api.values.resource_names import CPU, MEMORY
from stowage.framework import (
    ACCEPT_ALL,
    CycleState,
    EventRegistration,
    FilterVerdict,
    NoArgs,
    PluginTraits,
    Reads,
    Rejection,
)
from stowage.state.nodes.node_values import NodeValues
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView

_TRUE, _FALSE = "True", "False"


class Check(NamedTuple):
    """A reason and the nodes that it applies to."""

    reason: str
    fails: Callable[[Node], bool]


def has_condition(kind: str) -> Callable[[Node], bool]:
    """Whether a node reports a condition as True; without the condition it does not."""
    return lambda node: any(
        each.type == kind and each.status == _TRUE for each in node.status.conditions
    )


def differs(kind: str, wanted: str) -> Callable[[Node], bool]:
    """Whether a node reports a condition with another status; without the condition it does not."""
    return lambda node: any(
        each.type == kind and each.status != wanted for each in node.status.conditions
    )


MEMORY_PRESSURE = (Check("node(s) had memory pressure", has_condition("MemoryPressure")),)
DISK_PRESSURE = (Check("node(s) had disk pressure", has_condition("DiskPressure")),)
PID_PRESSURE = (Check("node(s) had pid pressure", has_condition("PIDPressure")),)
NODE_CONDITION = (
    Check("node(s) were not ready", differs("Ready", _TRUE)),
    Check("node(s) were out of disk space", differs("OutOfDisk", _FALSE)),
    Check("node(s) had unavailable network", differs("NetworkUnavailable", _FALSE)),
    Check("node(s) were unschedulable", lambda node: node.spec.unschedulable),
)

Concerns: TypeAlias = Callable[[PodSpec], bool]


class NodeConditionFilter:
    """Rejects nodes that fail one of some checks.

    Args:
        name: The plugin's name.
        checks: The checks.
        concerns: Whether the checks apply to a pod.
    """

    traits = PluginTraits(
        filter_reads=Reads.NODE, reads_only_node_demand=True, rejects_per_class=True
    )

    def __init__(
        self, name: str, checks: Sequence[Check], concerns: Concerns = lambda _: True
    ) -> None:
        self.name = name
        self._checks = checks
        self._concerns = concerns
        self._failures = NodeValues(partial(failed_checks, checks))

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> FilterVerdict:
        """Unresolvable where a check fails; a node may have several reasons."""
        del state
        failed = nodes.take(self._failures.by_row(nodes.snapshot))
        if not failed.any() or not self._concerns(pod.spec):
            return ACCEPT_ALL
        masks = [(failed & (1 << bit)) != 0 for bit in range(len(self._checks))]
        return FilterVerdict(
            tuple(
                Rejection(check.reason, mask, unresolvable=True)
                for check, mask in zip(self._checks, masks, strict=True)
                if mask.any()
            )
        )

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Nodes that were added, uncordoned, or changed their conditions."""
        action = ActionType.ADD | ActionType.UPDATE_NODE_CONDITION | ActionType.UPDATE_NODE_TAINT
        return (
            EventRegistration(
                ClusterEvent(EventResource.NODE, action), self.after_node_change, per_demand=True
            ),
        )

    def after_node_change(self, pod: PodInfo, old: Node | None, new: Node | None) -> QueueingHint:
        """Queue if the node passes all checks now, and is new or failed one before."""
        del pod
        failed_before = old is None or failed_checks(self._checks, old) != 0
        passes = new is not None and not failed_checks(self._checks, new)
        return QueueingHint.when(failed_before and passes)


def failed_checks(checks: Sequence[Check], node: Node) -> int:
    """The checks that a node fails: bit i is check i."""
    return sum(1 << bit for bit, check in enumerate(checks) if check.fails(node))


def is_best_effort(spec: PodSpec) -> bool:
    """Whether a pod requests and limits neither cpu nor memory (``qos.GetPodQOS`` of 1.12).

    Init containers do not count. Pod-level resources, which 1.12 does not know, count.
    """
    resources = [container.resources for container in spec.containers]
    if spec.resources is not None:
        resources.append(spec.resources)
    return not any(map(_names_an_amount, resources))


def _names_an_amount(resources: ResourceRequirements) -> bool:
    return any(
        quantity_nano_value(amounts[name]) > 0
        for amounts in (resources.requests, resources.limits)
        for name in (CPU, MEMORY)
        if name in amounts
    )


def check_node_memory_pressure(args: NoArgs) -> NodeConditionFilter:
    """Rejects nodes under memory pressure for best-effort pods."""
    del args
    return NodeConditionFilter("CheckNodeMemoryPressure", MEMORY_PRESSURE, is_best_effort)


def check_node_disk_pressure(args: NoArgs) -> NodeConditionFilter:
    """Rejects nodes under disk pressure."""
    del args
    return NodeConditionFilter("CheckNodeDiskPressure", DISK_PRESSURE)


def check_node_pid_pressure(args: NoArgs) -> NodeConditionFilter:
    """Rejects nodes under process ID pressure."""
    del args
    return NodeConditionFilter("CheckNodePIDPressure", PID_PRESSURE)


def check_node_condition(args: NoArgs) -> NodeConditionFilter:
    """Rejects nodes that are not ready, out of disk, without network, or cordoned."""
    del args
    return NodeConditionFilter("CheckNodeCondition", NODE_CONDITION)
