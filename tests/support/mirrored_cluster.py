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
    """Every change is made on both sides.

    Attributes:
        cache: The scheduler's memory.
        plain: The same as lists of objects.
    """

    def __init__(self, nodes: Sequence[Node] = (), pods: Sequence[Pod] = ()) -> None:
        self.cache = ClusterCache()
        self.plain = PlainCluster()
        for node in nodes:
            self.node_seen(node)
        for pod in pods:
            self.pod_seen(pod)

    def node_seen(self, node: Node) -> None:
        """A node came or changed."""
        self.cache.node_seen(node)
        self.plain.nodes[node.metadata.name] = node

    def node_gone(self, name: str) -> None:
        """A node was deleted; its pods stay."""
        self.cache.node_gone(name)
        del self.plain.nodes[name]

    def pod_seen(self, pod: Pod) -> None:
        """A placed pod came or changed."""
        self.cache.pod_seen(self.info(pod))
        self.plain.pods[pod.metadata.uid] = pod

    def pod_gone(self, uid: str) -> None:
        """A placed pod was deleted."""
        self.cache.pod_gone(uid)
        del self.plain.pods[uid]

    def bind(self, pod: Pod, node_name: str) -> None:
        """A pending pod was placed."""
        self.pod_seen(on_node(pod, node_name))

    def namespace_seen(self, namespace: Namespace) -> None:
        """A namespace came or changed."""
        self.cache.namespace_seen(namespace)
        self.plain.namespaces[namespace.metadata.name] = dict(namespace.metadata.labels)

    def namespace_gone(self, name: str) -> None:
        """A namespace was deleted."""
        self.cache.namespace_gone(name)
        del self.plain.namespaces[name]

    def workload_seen(
        self, kind: str, namespace: str, name: str, selector: LabelSelector | None
    ) -> None:
        """A Service or an owner of pods came or changed."""
        self.cache.workload_seen(kind, namespace, name, selector)
        self.plain.workloads[kind, namespace, name] = selector

    def workload_gone(self, kind: str, namespace: str, name: str) -> None:
        """A Service or an owner of pods was deleted."""
        self.cache.workload_gone(kind, namespace, name)
        del self.plain.workloads[kind, namespace, name]

    def storage_seen(self, *objects: StorageObject) -> None:
        """Claims, volumes and so on came or changed."""
        for obj in objects:
            self.cache.storage_seen(obj)
            self.plain.storage[type(obj), obj.metadata.namespaced_name] = obj

    def storage_gone(self, kind: type[StorageObject], key: str) -> None:
        """An object of storage was deleted."""
        self.cache.storage_gone(kind, key)
        del self.plain.storage[kind, key]

    def info(self, pod: Pod) -> PodInfo:
        """The pod as the plugins see it."""
        return make_pod_info(pod, self.cache.classes)

    def snapshot(self) -> Snapshot:
        """The columns of this moment."""
        return self.cache.snapshot()


def on_node(pod: Pod, node_name: str) -> Pod:
    """The same pod, placed."""
    spec = msgspec.structs.replace(pod.spec, node_name=node_name)
    return msgspec.structs.replace(pod, spec=spec)


def existing_nodes(snapshot: Snapshot) -> NodeView:
    """The rows that hold a node."""
    return snapshot.view(snapshot.exists.nonzero()[0])


def without_pod(snapshot: Snapshot, uid: str) -> Snapshot:
    """The cluster as it would be without one pod."""
    pod = snapshot.get_pod(uid)
    assert pod is not None
    return WhatIfSnapshot(snapshot, [pod], [], list(snapshot.node_names).index(pod.node_name))


def without_pods_of_node(snapshot: Snapshot, node_name: str) -> Snapshot:
    """The cluster as it would be without the pods of one node."""
    if node_name not in snapshot.node_names:
        return snapshot
    row = list(snapshot.node_names).index(node_name)
    return WhatIfSnapshot(snapshot, snapshot.pods_on(node_name), [], row)


def verdicts_by_node(verdict: FilterVerdict, nodes: NodeView) -> dict[str, tuple[str, bool]]:
    """The reason and whether it is unresolvable, for each node refused.

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
