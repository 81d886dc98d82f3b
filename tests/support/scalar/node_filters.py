"""The simpler Filter plugins for one node, in plain Python.

Each function returns the reasons and whether the rejection is unresolvable. A node without reasons
passes.
"""

from __future__ import annotations

from collections.abc import Collection

from stowage.api.objects.node import Node, Taint
from stowage.api.objects.pod import Container, Pod
from stowage.api.values.resources import node_allocatable, pod_usage
from tests.support.scalar.cluster import PlainCluster
from tests.support.scalar.labels import (
    matches_required_node_affinity,
    tolerates_scheduling_taints,
    tolerates_taint,
)

Answer = tuple[set[str], bool]
ACCEPTED: Answer = (set(), False)
Port = tuple[str, str, int]


def node_unschedulable(pod: Pod, node: Node, cluster: PlainCluster) -> Answer:
    """A cordoned node accepts pods that tolerate the unschedulable taint."""
    taint = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
    tolerated = any(tolerates_taint(each, taint) for each in pod.spec.tolerations)
    if node.spec.unschedulable and not tolerated:
        return {"node(s) were unschedulable"}, True
    return ACCEPTED


def node_name(pod: Pod, node: Node, cluster: PlainCluster) -> Answer:
    """A pod that names a node passes only there."""
    if pod.spec.node_name and pod.spec.node_name != node.metadata.name:
        return {"node(s) didn't match the requested node name"}, True
    return ACCEPTED


def taint_toleration(pod: Pod, node: Node, cluster: PlainCluster) -> Answer:
    """NoSchedule and NoExecute taints must be tolerated."""
    if tolerates_scheduling_taints(pod.spec.tolerations, node):
        return ACCEPTED
    return {"node(s) had untolerated taint(s)"}, True


def node_affinity(pod: Pod, node: Node, cluster: PlainCluster) -> Answer:
    """The node selector and the required affinity must match."""
    if matches_required_node_affinity(pod.spec, node):
        return ACCEPTED
    return {"node(s) didn't match Pod's node affinity/selector"}, True


def node_ports(pod: Pod, node: Node, cluster: PlainCluster) -> Answer:
    """No host port of the pod may be taken on the node."""
    taken = [port for other in cluster.pods_on(node) for port in host_ports(other)]
    if any(collide(wanted, used) for wanted in host_ports(pod) for used in taken):
        return {"node(s) didn't have free ports for the requested pod ports"}, False
    return ACCEPTED


def node_resources_fit(
    pod: Pod,
    node: Node,
    cluster: PlainCluster,
    ignored: Collection[str] = (),
    ignored_groups: Collection[str] = (),
) -> Answer:
    """Every request must fit into the free resources; unresolvable if it exceeds allocatable."""
    have = node_allocatable(node)
    others = cluster.pods_on(node)
    reasons, unresolvable = set(), False
    if len(others) + 1 > have.get("pods", 0):
        reasons.add("Too many pods")
    for resource, wanted in pod_usage(pod).requests.items():
        extended = "/" in resource and "kubernetes.io" not in resource
        if extended and (resource in ignored or resource.split("/")[0] in ignored_groups):
            continue
        used = sum(pod_usage(other).requests.get(resource, 0) for other in others)
        if wanted > 0 and wanted > have.get(resource, 0) - used:
            reasons.add(f"Insufficient {resource}")
            unresolvable |= wanted > have.get(resource, 0)
    return reasons, unresolvable


def node_declared_features(pod: Pod, node: Node, cluster: PlainCluster) -> Answer:
    """The node must declare the kubelet features that the pod needs."""
    needed = set()
    if pod.spec.host_network and pod.spec.host_users is False:
        needed.add("UserNamespacesHostNetworkSupport")
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        if "RestartAllContainers" in [rule.action for rule in container.restart_policy_rules]:
            needed.add("RestartAllContainersOnContainerExits")
    if needed - set(node.status.declared_features):
        return {"node(s) didn't match Pod's required features"}, True
    return ACCEPTED


def host_ports(pod: Pod) -> list[Port]:
    """(address, protocol, port) of containers that run as long as the pod."""
    sidecars = [each for each in pod.spec.init_containers if each.restart_policy == "Always"]
    return [port for container in (*sidecars, *pod.spec.containers) for port in _ports(container)]


def _ports(container: Container) -> list[Port]:
    return [
        (port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)
        for port in container.ports
        if port.host_port
    ]


def collide(wanted: Port, used: Port) -> bool:
    same_address = wanted[0] == used[0] or "0.0.0.0" in (wanted[0], used[0])
    return same_address and wanted[1:] == used[1:]


FILTERS = {
    "NodeUnschedulable": node_unschedulable,
    "NodeName": node_name,
    "TaintToleration": taint_toleration,
    "NodeAffinity": node_affinity,
    "NodePorts": node_ports,
    "NodeResourcesFit": node_resources_fit,
    "NodeDeclaredFeatures": node_declared_features,
}
