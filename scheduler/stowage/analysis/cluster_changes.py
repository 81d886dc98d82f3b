"""Changes of a virtual cluster that a person would make: cordon, drain, add and remove nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.analysis.explain_pod import NotInCluster
from stowage.analysis.virtual_cluster import DAEMON_SET, VirtualCluster
from stowage.api.decoding.errors import SelectorError
from stowage.api.objects.device import ResourceSlice
from stowage.api.objects.meta import controller_of
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod
from stowage.api.objects.policy import PodDisruptionBudget
from stowage.api.objects.volume import CSINode
from stowage.api.values.selectors import NOTHING, Selector, compile_label_selector

_HOSTNAME = "kubernetes.io/hostname"
_MIRROR = "kubernetes.io/config.mirror"
_STATE_TAINTS = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
"""Prefixes of the taints of a state: cordoned, not ready, under pressure, not yet initialised."""


class DrainedPods(msgspec.Struct):
    """What a drain does to the pods of its nodes (``namespace/name`` each).

    Attributes:
        deleted: Pods without a controller: nothing makes them again.
        kept: Pod -> why it stays.
        notes: Which pods go although a disruption budget allows no eviction.
    """

    deleted: list[str] = msgspec.field(default_factory=list)
    kept: dict[str, str] = msgspec.field(default_factory=dict)
    notes: list[str] = msgspec.field(default_factory=list)


def cordon(cluster: VirtualCluster, name: str) -> None:
    """Let the node take no new pods.

    Raises:
        NotInCluster: There is no such node.
    """
    node = find_node(cluster, name)
    cluster.put_node(replace(node, spec=replace(node.spec, unschedulable=True)))


def drain(cluster: VirtualCluster, names: Sequence[str]) -> DrainedPods:
    """Cordon the nodes and evict their pods, one by one, as ``kubectl drain --force`` does.

    Pods of DaemonSets and static pods stay. A pod stays if a disruption budget allows no eviction:
    a budget allows it again when the pod that replaces an evicted one has a node.

    Raises:
        NotInCluster: There is no such node.
    """
    for name in names:
        cordon(cluster, name)
    drained, budgets = DrainedPods(), DisruptionBudgets(cluster)
    for pod in [pod for name in names for pod in cluster.pods.on_node(name)]:
        _evict(cluster, pod, budgets, drained)
    return drained


def remove_nodes(cluster: VirtualCluster, names: Sequence[str]) -> DrainedPods:
    """Drain the nodes, then remove them.

    The pods that stayed go with their nodes, whatever the budgets say; their controllers make them
    again, but for pods of DaemonSets and static pods.

    Raises:
        NotInCluster: There is no such node.
    """
    drained = drain(cluster, names)
    for name in names:
        for pod in cluster.pods.on_node(name):
            _remove_with_node(cluster, pod, drained)
        cluster.remove_node(name)
    return drained


def _remove_with_node(cluster: VirtualCluster, pod: Pod, drained: DrainedPods) -> None:
    key = pod.metadata.namespaced_name
    why = drained.kept.pop(key, "")
    if kept_by_drain(pod):
        cluster.delete_pod(pod)
        return
    if why:
        drained.notes.append(f"{key} goes with its node, although {why}")
    if not cluster.evict_pod(pod):
        drained.deleted.append(key)


def add_nodes(cluster: VirtualCluster, number: int, like: str) -> list[str]:
    """Add empty nodes that are equal to the node `like`; returns their names.

    They have its devices and its limits of volumes, too, but not its state: they are not cordoned,
    and have no taint that tells of a condition.

    Raises:
        NotInCluster: There is no such node.
    """
    model = find_node(cluster, like)
    slices = _slices_of(cluster, like)
    drivers = cluster.objects.find(CSINode, like)
    names, made = _free_names(cluster, like, number), ClusterObjects()
    for name in names:
        made.add(_node_like(model, name))
        if drivers is not None:
            meta = replace(drivers.metadata, name=name, uid=f"csi/{name}", resource_version="")
            made.add(replace(drivers, metadata=meta))
        for each in slices:
            made.add(_slice_like(each, name))
    cluster.create(made)
    return names


def _node_like(model: Node, name: str) -> Node:
    like = model.metadata.name
    labels = {
        key: name if key == _HOSTNAME or value == like else value
        for key, value in model.metadata.labels.items()
    }
    taints = tuple(each for each in model.spec.taints if not each.key.startswith(_STATE_TAINTS))
    meta = replace(model.metadata, name=name, uid=name, labels=labels, resource_version="")
    spec = replace(model.spec, unschedulable=False, taints=taints)
    return replace(model, metadata=meta, spec=spec)


def _slices_of(cluster: VirtualCluster, node_name: str) -> list[ResourceSlice]:
    """The slices of a node, each as if the pool had no slices of other nodes."""
    slices = cluster.objects.of_kind(ResourceSlice)
    others = Counter(_pool_of(each) for each in slices if each.spec.node_name != node_name)
    return [
        _with_fewer_slices(each, others[_pool_of(each)])
        for each in slices
        if each.spec.node_name == node_name
    ]


def _pool_of(each: ResourceSlice) -> tuple[str, str, int]:
    return each.spec.driver, each.spec.pool.name, each.spec.pool.generation


def _with_fewer_slices(model: ResourceSlice, number: int) -> ResourceSlice:
    pool = model.spec.pool
    pool = replace(pool, resource_slice_count=pool.resource_slice_count - number)
    return replace(model, spec=replace(model.spec, pool=pool))


def _slice_like(model: ResourceSlice, node_name: str) -> ResourceSlice:
    """The same devices in a pool of another node; pools of nodes have names of their own."""
    name, pool = f"{model.metadata.name}-{node_name}", model.spec.pool
    is_named_so = pool.name == model.spec.node_name
    pool = replace(pool, name=node_name if is_named_so else f"{pool.name}-{node_name}")
    return replace(
        model,
        metadata=replace(model.metadata, name=name, uid=name, resource_version=""),
        spec=replace(model.spec, node_name=node_name, pool=pool),
    )


def find_node(cluster: VirtualCluster, name: str) -> Node:
    """The node.

    Raises:
        NotInCluster: There is no such node.
    """
    node = cluster.objects.find(Node, name)
    if node is None:
        raise NotInCluster(f"there is no node {name}")
    return node


def _free_names(cluster: VirtualCluster, like: str, number: int) -> list[str]:
    names: list[str] = []
    index = 1
    while len(names) < number:
        name = f"{like}-new-{index}"
        if cluster.objects.find(Node, name) is None:
            names.append(name)
        index += 1
    return names


def _evict(
    cluster: VirtualCluster, pod: Pod, budgets: DisruptionBudgets, drained: DrainedPods
) -> None:
    key = pod.metadata.namespaced_name
    why = kept_by_drain(pod) or budgets.refusal(pod)
    if why:
        drained.kept[key] = why
        return
    if not cluster.evict_pod(pod):
        drained.deleted.append(key)
        return
    cluster.run()
    made = cluster.objects.pod(key)
    if made is None or not made.spec.node_name:
        budgets.allow_one_less(pod)


def kept_by_drain(pod: Pod) -> str:
    """Why a drain leaves the pod on its node, whatever the budgets say; empty if it does not."""
    if _MIRROR in pod.metadata.annotations:
        return "a static pod"
    owner = controller_of(pod.metadata)
    return "a pod of a DaemonSet" if owner is not None and owner.kind == DAEMON_SET else ""


class DisruptionBudgets:
    """The disruption budgets of a cluster; nothing else may change them.

    Args:
        cluster: The cluster.
    """

    def __init__(self, cluster: VirtualCluster) -> None:
        self._cluster = cluster
        self._by_namespace: dict[str, list[_Budget]] = {}
        for budget in cluster.objects.of_kind(PodDisruptionBudget):
            of_namespace = self._by_namespace.setdefault(budget.metadata.namespace, [])
            of_namespace.append(_Budget(budget, _selector_of(budget)))

    def refusal(self, pod: Pod) -> str:
        """The budget that allows no disruption of the pod, as a sentence; empty if all allow it."""
        for each in self._by_namespace.get(pod.metadata.namespace, ()):
            if each.budget.status.disruptions_allowed <= 0 and each.counts(pod):
                key = each.budget.metadata.namespaced_name
                return f"PodDisruptionBudget {key} allows no disruption"
        return ""

    def allow_one_less(self, pod: Pod) -> None:
        """Let each budget that counts the pod allow one disruption less."""
        for each in self._by_namespace.get(pod.metadata.namespace, ()):
            if each.counts(pod):
                status = each.budget.status
                left = replace(status, disruptions_allowed=status.disruptions_allowed - 1)
                each.budget = replace(each.budget, status=left)
                self._cluster.put_budget(each.budget)


class _Budget(msgspec.Struct):
    """A budget, as it is now, with its compiled selector."""

    budget: PodDisruptionBudget
    selector: Selector

    def counts(self, pod: Pod) -> bool:
        return self.selector.matches(pod.metadata.labels)


def _selector_of(budget: PodDisruptionBudget) -> Selector:
    """The budget's selector; a missing or invalid one selects nothing."""
    try:
        return compile_label_selector(budget.spec.selector)
    except SelectorError:
        return NOTHING
