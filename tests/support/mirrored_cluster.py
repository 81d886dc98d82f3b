"""One cluster kept twice: in the columns under test and in the plain lists of the scalar twins."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from stowage.api.objects.meta import LabelSelector
from stowage.api.objects.namespace import Namespace
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod
from stowage.api.objects.volume import StorageObject
from stowage.framework.verdict import FilterVerdict
from stowage.state.cache import ClusterCache
from stowage.state.pods.pod_info import PodInfo, make_pod_info
from stowage.state.snapshot import NodeView, Snapshot
from stowage.state.what_if.snapshot import WhatIfSnapshot
from tests.support.scalar.cluster import PlainCluster


class MirroredCluster:
    """Applies every change to both representations.

    Attributes:
        cache: The scheduler's cache.
        plain: The same cluster as lists of objects.
    """

    def __init__(self, nodes: Sequence[Node] = (), pods: Sequence[Pod] = ()) -> None:
        self.cache = ClusterCache()
        self.plain = PlainCluster()
        for node in nodes:
            self.update_node(node)
        for pod in pods:
            self.update_pod(pod)

    def update_node(self, node: Node) -> None:
        """Add or change a node."""
        self.cache.update_node(node)
        self.plain.nodes[node.metadata.name] = node

    def remove_node(self, name: str) -> None:
        """Delete a node; its pods stay."""
        self.cache.remove_node(name)
        del self.plain.nodes[name]

    def update_pod(self, pod: Pod) -> None:
        """Add or change a placed pod."""
        self.cache.update_pod(self.info(pod))
        self.plain.pods[pod.metadata.uid] = pod

    def remove_pod(self, uid: str) -> None:
        """Delete a placed pod."""
        self.cache.remove_pod(uid)
        del self.plain.pods[uid]

    def bind(self, pod: Pod, node_name: str) -> None:
        """Place a pending pod."""
        self.update_pod(on_node(pod, node_name))

    def update_namespace(self, namespace: Namespace) -> None:
        """Add or change a namespace."""
        self.cache.update_namespace(namespace)
        self.plain.namespaces[namespace.metadata.name] = dict(namespace.metadata.labels)

    def remove_namespace(self, name: str) -> None:
        """Delete a namespace."""
        self.cache.remove_namespace(name)
        del self.plain.namespaces[name]

    def update_workload(
        self, kind: str, namespace: str, name: str, selector: LabelSelector | None
    ) -> None:
        """Add or change a Service or an owner of pods."""
        self.cache.update_workload(kind, namespace, name, selector)
        self.plain.workloads[kind, namespace, name] = selector

    def remove_workload(self, kind: str, namespace: str, name: str) -> None:
        """Delete a Service or an owner of pods."""
        self.cache.remove_workload(kind, namespace, name)
        del self.plain.workloads[kind, namespace, name]

    def update_storage(self, *objects: StorageObject) -> None:
        """Add or change storage objects."""
        for obj in objects:
            self.cache.update_storage(obj)
            self.plain.storage[type(obj), obj.metadata.namespaced_name] = obj

    def remove_storage(self, kind: type[StorageObject], key: str) -> None:
        """Delete a storage object."""
        self.cache.remove_storage(kind, key)
        del self.plain.storage[kind, key]

    def info(self, pod: Pod) -> PodInfo:
        """The `PodInfo` of a pod."""
        return make_pod_info(pod, self.cache.classes)

    def snapshot(self) -> Snapshot:
        """The current snapshot."""
        return self.cache.snapshot()


def on_node(pod: Pod, node_name: str) -> Pod:
    """The same pod on a node."""
    spec = msgspec.structs.replace(pod.spec, node_name=node_name)
    return msgspec.structs.replace(pod, spec=spec)


def existing_nodes(snapshot: Snapshot) -> NodeView:
    """The rows of existing nodes."""
    return snapshot.view(snapshot.exists.nonzero()[0])


def without_pod(snapshot: Snapshot, uid: str) -> Snapshot:
    """A what-if without one pod."""
    pod = snapshot.get_pod(uid)
    assert pod is not None
    return WhatIfSnapshot(snapshot, [pod], [], list(snapshot.node_names).index(pod.node_name))


def without_pods_of_node(snapshot: Snapshot, node_name: str) -> Snapshot:
    """A what-if for each node without its pods."""
    if node_name not in snapshot.node_names:
        return snapshot
    row = list(snapshot.node_names).index(node_name)
    return WhatIfSnapshot(snapshot, snapshot.pods_on(node_name), [], row)


def verdicts_by_node(verdict: FilterVerdict, nodes: NodeView) -> dict[str, tuple[str, bool]]:
    """The reason of each refused node and whether it is unresolvable.

    Raises:
        AssertionError: A node has two reasons.
    """
    found: dict[str, tuple[str, bool]] = {}
    for rejection in verdict.rejections:
        unresolvable = rejection.mask & rejection.unresolvable
        for index in rejection.mask.nonzero()[0].tolist():
            name = nodes.names[index]
            assert name not in found, f"{name} is refused twice"
            found[name] = (rejection.reason, bool(unresolvable[index]))
    return found
