"""What would happen if: pods are created, nodes drained, cordoned, added or removed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from stowage.analysis.amounts import amount_text
from stowage.analysis.cluster_changes import (
    DrainedPods,
    add_nodes,
    cordon,
    drain,
    find_node,
    kept_by_drain,
    remove_nodes,
)
from stowage.analysis.cluster_objects import POD, ClusterObjects
from stowage.analysis.described_group import describe_group, is_tried_as_group
from stowage.analysis.devices.shortage import DeviceShortage
from stowage.analysis.explained_decision import Circumstances, explain_decision
from stowage.analysis.group_explanation import GroupExplanation
from stowage.analysis.loaded_cluster import LoadedCluster, stand_in_notes
from stowage.analysis.pods_by_node import is_finished
from stowage.analysis.virtual_cluster import Preempted, VirtualCluster
from stowage.api.objects.meta import controller_of
from stowage.api.objects.pod import Pod
from stowage.state.snapshot import Snapshot

_TEMPLATE_HASH = "pod-template-hash"
AFTER_THE_CHANGES = "evaluated after the changes"


class Question(msgspec.Struct, frozen=True):
    """The changes to try, in this order.

    Attributes:
        add_nodes: (number, the node that they are like).
        cordon: The nodes to cordon.
        drain: The nodes to drain.
        remove_nodes: The nodes to drain and remove.
        objects: Objects to create; pods come last, in their order.
    """

    add_nodes: Sequence[tuple[int, str]] = ()
    cordon: Sequence[str] = ()
    drain: Sequence[str] = ()
    remove_nodes: Sequence[str] = ()
    objects: ClusterObjects = msgspec.field(default_factory=ClusterObjects)


class _Answer(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Base of the parts of an answer."""


class Placement(_Answer, frozen=True):
    """A pod that gets a node.

    Attributes:
        pod: The pod.
        node: Its node.
        was: Its node before; empty for a pod that was pending or new.
        tied: Whether other nodes were as good: a running scheduler may choose another of them.
    """

    pod: str
    node: str
    was: str = ""
    tied: bool = False


class StillPending(_Answer, frozen=True):
    """A pod without a node.

    Attributes:
        pod: The pod.
        message: The scheduler's message.
        was: Its node before.
        device_shortages: Its requests for devices that fail, and on which nodes.
    """

    pod: str
    message: str
    was: str = ""
    device_shortages: tuple[DeviceShortage, ...] = ()


class KeptPod(_Answer, frozen=True):
    """A pod that a drain leaves on its node."""

    pod: str
    why: str


class ClusterSummary(_Answer, frozen=True):
    """Counts of a cluster.

    Attributes:
        nodes: Number of nodes.
        placed: Number of pods on nodes.
        pending: Number of pods without a node.
        allocatable: Resource -> amount of all nodes.
        requested: Resource -> amount that the pods on nodes request.
        utilisation: Resource -> requested / allocatable, from 0 to 1.
    """

    nodes: int
    placed: int
    pending: int
    allocatable: dict[str, str]
    requested: dict[str, str]
    utilisation: dict[str, float]


class WhatIfAnswer(_Answer, frozen=True):
    """What would happen.

    Attributes:
        before: The cluster as it is.
        after: The cluster afterwards.
        placed: The pods that get a node; those of manifests first.
        pending: The pods that stay or become pending; those of manifests first.
        preempted: The pods that are evicted for others.
        deleted: The drained pods that nothing makes again.
        kept: The pods that the drain leaves.
        added_nodes: The names of the added nodes.
        notes: What the answer cannot know.
        groups: The pod groups of these pods; all or at least ``minCount`` of a gang are placed.
    """

    before: ClusterSummary
    after: ClusterSummary
    placed: tuple[Placement, ...] = ()
    pending: tuple[StillPending, ...] = ()
    preempted: tuple[Preempted, ...] = ()
    deleted: tuple[str, ...] = ()
    kept: tuple[KeptPod, ...] = ()
    added_nodes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    groups: tuple[GroupExplanation, ...] = ()


def what_if(loaded: LoadedCluster, question: Question) -> WhatIfAnswer:
    """Try the changes on the cluster, which is changed: load or fork it for each question.

    Raises:
        NotInCluster: A node does not exist.
    """
    cluster = VirtualCluster(loaded)
    cluster.pods.forget_changes()
    summary = summary_of(cluster)
    models = [like for _, like in question.add_nodes]
    for name in (*question.cordon, *question.drain, *question.remove_nodes, *models):
        find_node(cluster, name)
    has_daemons = any(map(kept_by_drain, question.objects.pods()))
    served = [
        name for name in dict.fromkeys(models) if has_daemons or _has_pods_of_its_own(cluster, name)
    ]
    added = [name for each in question.add_nodes for name in add_nodes(cluster, *each)]
    for name in question.cordon:
        cordon(cluster, name)
    drained = [drain(cluster, question.drain), remove_nodes(cluster, question.remove_nodes)]
    created, notes = _make_way(cluster, question.objects)
    notes += [note for each in drained for note in each.notes]
    notes += [
        f"the nodes like {name} are empty: the pods of DaemonSets and static pods that would run "
        "there are not counted"
        for name in served
    ]
    cluster.create(created)
    cluster.run()
    if cluster.engine.state.extenders:
        notes.append("extenders are not asked")
    asked = {pod.metadata.namespaced_name for pod in created.pods()}
    answer = _answer(cluster, summary, drained, added, asked)
    keys = [*(each.pod for each in answer.placed), *(each.pod for each in answer.pending)]
    decided = [pod for key in keys if (pod := cluster.objects.pod(key)) is not None]
    notes += stand_in_notes(loaded, decided)
    return replace(answer, notes=tuple(notes))


def _has_pods_of_its_own(cluster: VirtualCluster, name: str) -> bool:
    """Whether the node has pods of DaemonSets or static pods, which each such node has."""
    return any(kept_by_drain(pod) for pod in cluster.pods.on_node(name))


def _make_way(cluster: VirtualCluster, asked: ClusterObjects) -> tuple[ClusterObjects, list[str]]:
    """Make way for new pods: one of the same name that waits goes; one that has a node stays.

    Returns:
        The objects to create, and a note for each new pod that is left out, and for each workload
        that has other pods already.
    """
    created = ClusterObjects({kind: dict(found) for kind, found in asked.by_kind.items()})
    notes = []
    for pod in asked.pods():
        key = pod.metadata.namespaced_name
        known = cluster.objects.pod(key)
        if known is None:
            continue
        if known.spec.node_name and not is_finished(known):
            notes.append(f"{key} is on node {known.spec.node_name} already: it stays as it is")
            created.remove(POD, key)
        else:
            cluster.delete_pod(known)
    return created, [*_others_of_workloads(cluster, asked, created), *notes]


def _others_of_workloads(
    cluster: VirtualCluster, asked: ClusterObjects, created: ClusterObjects
) -> list[str]:
    """A note for each workload of new pods that has other pods: these are not replaced."""
    workloads = {_workload_of(pod) for pod in created.pods()} - {None}
    if not workloads:
        return []
    others = Counter(
        workload
        for pod in cluster.objects.pods()
        if (workload := _workload_of(pod)) in workloads
        and not is_finished(pod)
        and asked.pod(pod.metadata.namespaced_name) is None
    )
    return [
        f"pods that {workload[1]} has already: {count}; those of the manifest are added"
        for workload, count in others.items()
        if workload is not None
    ]


def _workload_of(pod: Pod) -> tuple[str, str] | None:
    """The kind of the pod's controller and ``namespace/name`` of its workload."""
    owner = controller_of(pod.metadata)
    if owner is None:
        return None
    # A Deployment names its ReplicaSets after itself, and after the template of their pods.
    template = pod.metadata.labels.get(_TEMPLATE_HASH)
    name = owner.name.removesuffix(f"-{template}") if template else owner.name
    return owner.kind, f"{pod.metadata.namespace}/{name}"


def _answer(
    cluster: VirtualCluster,
    summary: ClusterSummary,
    drained: Sequence[DrainedPods],
    added: Sequence[str],
    asked: Collection[str],
) -> WhatIfAnswer:
    """The answer; the pods of manifests, which were asked about, come before the others."""

    def place(each: Placement | StillPending) -> tuple[bool, str]:
        return each.pod not in asked, each.pod

    moved = cluster.remade
    placed = [
        Placement(key, node, was=moved.get(key, ""), tied=key in cluster.tied)
        for key, before, node in cluster.moves()
        if not before or key in moved or key in asked
    ]
    pending = [
        StillPending(key, _message(cluster, key), moved.get(key, ""), _shortages(cluster, key))
        for key in cluster.pods.pending()
    ]
    return WhatIfAnswer(
        summary,
        summary_of(cluster),
        tuple(sorted(placed, key=place)),
        tuple(sorted(pending, key=place)),
        tuple(cluster.preempted),
        tuple(key for each in drained for key in each.deleted),
        tuple(KeptPod(key, why) for each in drained for key, why in each.kept.items()),
        tuple(added),
        groups=_groups(cluster, {*(each.pod for each in placed), *(each.pod for each in pending)}),
    )


def _message(cluster: VirtualCluster, key: str) -> str:
    """Why a pod is pending.

    Its condition says so if no attempt changed it; that of a gated pod does not name its gates.
    """
    pod = cluster.objects.pod(key)
    if key in cluster.messages or pod is None:
        return cluster.messages.get(key, "")
    if pod.metadata.deletion_timestamp is not None:
        return "it is being deleted: it is not scheduled"
    if pod.spec.scheduling_gates:
        return _held_by(cluster, pod)
    conditions = [each for each in pod.status.conditions if each.type == "PodScheduled"]
    return conditions[-1].message if conditions else _held_by(cluster, pod)


def _held_by(cluster: VirtualCluster, pod: Pod) -> str:
    """What PreEnqueue says about a pod that has no condition; empty if it lets the pod pass."""
    state = cluster.engine.state
    waiting = state.queue.latest(pod.metadata.uid)
    if waiting is None:
        return "it is invalid: it is not scheduled"
    return state.frameworks[waiting.scheduler_name].run_pre_enqueue(waiting).message


def _groups(cluster: VirtualCluster, keys: Collection[str]) -> tuple[GroupExplanation, ...]:
    """The pod groups of pods, as they are afterwards, if their members are tried together."""
    state = cluster.engine.state
    if not is_tried_as_group(state):
        return ()
    uids = [pod.metadata.uid for key in keys if (pod := cluster.objects.pod(key)) is not None]
    infos = [state.cache.get_pod(uid) or state.queue.latest(uid) for uid in uids]
    honours = state.cache.pod_groups.honours
    groups = {info.group_key for info in infos if info is not None and honours(info)}
    return tuple(
        replace(describe_group(state, key).explanation, basis=AFTER_THE_CHANGES)
        for key in sorted(groups)
    )


def _shortages(cluster: VirtualCluster, key: str) -> tuple[DeviceShortage, ...]:
    """What a pending pod with claims lacks of devices."""
    pod, state = cluster.objects.pod(key), cluster.engine.state
    waiting = None if pod is None else state.queue.latest(pod.metadata.uid)
    if waiting is None or not waiting.spec.resource_claims:
        return ()
    framework = state.frameworks[waiting.scheduler_name]
    circumstances = Circumstances.of(state, framework)
    explained = explain_decision(framework, state.cache.snapshot(), waiting, circumstances)
    return explained.device_shortages


def summary_of(cluster: VirtualCluster) -> ClusterSummary:
    """Count the cluster as it is now."""
    snapshot = cluster.engine.state.cache.snapshot()
    pods = cluster.pods
    allocatable, requested = _totals(snapshot)
    return ClusterSummary(
        snapshot.num_nodes,
        pods.num_pods - pods.num_pending,
        pods.num_pending,
        {name: amount_text(name, amount) for name, amount in allocatable.items()},
        {name: amount_text(name, requested[name]) for name in allocatable},
        {name: round(requested[name] / amount, 4) for name, amount in allocatable.items()},
    )


def _totals(snapshot: Snapshot) -> tuple[dict[str, int], dict[str, int]]:
    """Resource -> allocatable and requested amounts of all nodes."""
    exists = snapshot.exists
    allocatable = snapshot.allocatable[exists].sum(axis=0, dtype=np.int64).tolist()
    requested = snapshot.requested[exists].sum(axis=0, dtype=np.int64).tolist()
    names = list(enumerate(snapshot.resources.names))
    counted = [(column, name) for column, name in names if name and allocatable[column]]
    amounts = {name: requested[column] for column, name in counted}
    if "pods" in amounts:
        amounts["pods"] = int(snapshot.num_pods[exists].sum())
    return {name: allocatable[column] for column, name in counted}, amounts
