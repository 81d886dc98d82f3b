"""Checks of a cluster's state by its API objects."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from stowage.api.decoding.decode import decode_list
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod
from stowage.api.values.resource_names import PODS
from stowage.api.values.resources import node_allocatable, pod_requests
from stowage.operator.client.api_client import LIST_TIMEOUT, ApiClient

_FINISHED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class ClusterState:
    """All nodes and pods of a cluster."""

    nodes: list[Node]
    pods: list[Pod]


async def read_cluster(client: ApiClient) -> ClusterState:
    """List nodes and pods.

    Raises:
        InvalidObject: one of them cannot be read.
    """
    pods = decode_list(Pod, await client.get("/api/v1/pods", timeout=LIST_TIMEOUT))
    nodes = decode_list(Node, await client.get("/api/v1/nodes", timeout=LIST_TIMEOUT))
    for invalid in (*pods.invalid, *nodes.invalid):
        raise invalid
    return ClusterState(nodes.items, pods.items)


def overcommitted_nodes(state: ClusterState) -> list[str]:
    """One sentence for each node whose pods ask for more than it has."""
    used = _requests_by_node(state.pods)
    sentences = []
    for node in state.nodes:
        name = node.metadata.name
        allocatable = node_allocatable(node)
        for resource, amount in sorted(used.pop(name, {}).items()):
            if amount > allocatable.get(resource, 0):
                has = allocatable.get(resource, 0)
                sentences.append(f"node {name}: {resource} {amount} requested of {has}")
    sentences += [f"node {name} has pods and does not exist" for name in used]
    return sentences


def refused_pods(pods: Iterable[Pod]) -> list[str]:
    """One sentence for each pod that its kubelet refused."""
    return [
        f"pod {pod.metadata.namespaced_name} failed on node {pod.spec.node_name}"
        for pod in pods
        if pod.spec.node_name and pod.status.phase == "Failed"
    ]


def _requests_by_node(pods: Iterable[Pod]) -> dict[str, dict[str, int]]:
    used: dict[str, dict[str, int]] = {}
    for pod in pods:
        if not pod.spec.node_name or pod.status.phase in _FINISHED:
            continue
        totals = used.setdefault(pod.spec.node_name, {})
        for resource, amount in (*pod_requests(pod).items(), (PODS, 1)):
            totals[resource] = totals.get(resource, 0) + amount
    return used
