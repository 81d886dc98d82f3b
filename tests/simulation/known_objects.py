"""Differences between the objects in an engine's cache and those on the server."""

from __future__ import annotations

from collections.abc import Iterator

from stowage.api import Node, Pod
from stowage.api.objects.device import DeviceClass, ResourceClaim
from stowage.api.objects.policy import PodDisruptionBudget
from stowage.api.values.resources import node_allocatable, pod_requests
from stowage.engine import Engine
from stowage.state.snapshot import Snapshot
from tests.simulation.feasible_nodes import decoded, is_placed
from tests.simulation.server import (
    BUDGETS,
    DEVICE_CLAIMS,
    DEVICE_CLASSES,
    NAMESPACES,
    NODES,
    PODS,
    SLICES,
    ModelServer,
)


def object_differences(server: ModelServer, engine: Engine) -> Iterator[str]:
    """One sentence for each object of which the engine has another state."""
    snapshot = engine.state.cache.snapshot()
    yield from _nodes(server, snapshot)
    yield from _namespaces(server, snapshot)
    yield from _budgets(server, snapshot)
    yield from _placed_pods(server, engine)
    yield from _devices(server, snapshot)


def _nodes(server: ModelServer, snapshot: Snapshot) -> Iterator[str]:
    for (_, name), stored in server.collection(NODES).items():
        there = decoded(Node, stored)
        row = snapshot.row_of(name)
        known = None if row is None else snapshot.node(row)
        if known is None:
            yield f"the engine does not know node {name}"
        elif _of_node(known) != _of_node(there):
            yield f"the engine has node {name} as {_of_node(known)}, it is {_of_node(there)}"


def _of_node(node: Node) -> tuple[object, ...]:
    spec = node.spec
    return node.metadata.labels, spec.unschedulable, spec.taints, node_allocatable(node)


def _namespaces(server: ModelServer, snapshot: Snapshot) -> Iterator[str]:
    for (_, name), stored in server.collection(NAMESPACES).items():
        known, there = dict(snapshot.namespaces.labels(name)), stored["metadata"]["labels"]
        if known != there:
            yield f"the engine has labels {known} for namespace {name}, they are {there}"


def _budgets(server: ModelServer, snapshot: Snapshot) -> Iterator[str]:
    known = {
        (namespace, name): budget.allowed
        for namespace, budgets in snapshot.budgets.by_namespace.items()
        for name, budget in budgets.items()
    }
    there = {
        key: decoded(PodDisruptionBudget, stored).status.disruptions_allowed
        for key, stored in server.collection(BUDGETS).items()
    }
    if known != there:
        yield f"the engine has budgets {known}, they are {there}"


def _devices(server: ModelServer, snapshot: Snapshot) -> Iterator[str]:
    devices = snapshot.devices
    known = {
        (DEVICE_CLAIMS, each.metadata.namespaced_name): _version(each) for each in devices.claims
    }
    known |= {(SLICES, each.name): each.resource_version for each in devices.slices}
    known |= {(DEVICE_CLASSES, each.metadata.name): _version(each) for each in devices.classes}
    there = {
        (path, "/".join(filter(None, key))): stored["metadata"]["resourceVersion"]
        for path in (DEVICE_CLAIMS, SLICES, DEVICE_CLASSES)
        for key, stored in server.collection(path).items()
    }
    for (path, name), version in sorted(known.items() ^ there.items()):
        yield f"the engine differs from the server in {path} {name}: {version}"


def _version(obj: ResourceClaim | DeviceClass) -> str:
    return obj.metadata.resource_version


def _placed_pods(server: ModelServer, engine: Engine) -> Iterator[str]:
    known = {info.uid: info for info in engine.pods()}
    for stored in server.collection(PODS).values():
        pod = decoded(Pod, stored)
        info = known.get(pod.metadata.uid)
        if info is None or not is_placed(pod):
            continue
        has = info.labels, dict(info.requests), info.priority, info.terminating
        is_terminating = pod.metadata.deletion_timestamp is not None
        true = pod.metadata.labels, pod_requests(pod), pod.spec.priority or 0, is_terminating
        if has != true:
            yield f"the engine has pod {info.key} as {has}, it is {true}"
