"""How many more whole gangs like one fit, and what limits the next.

Gang after gang is created in a virtual cluster and scheduled by the engine, until one is not
placed as a whole.
"""

from __future__ import annotations

from collections import Counter

import msgspec
from msgspec.structs import replace

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.analysis.described_group import describe_group
from stowage.analysis.explained_decision import without_post_filter
from stowage.analysis.group_explanation import GroupExplanation
from stowage.analysis.loaded_cluster import LoadedCluster, stand_in_notes
from stowage.analysis.virtual_cluster import VirtualCluster
from stowage.analysis.workload_pods import InvalidManifest
from stowage.api.objects.pod import Pod, PodSchedulingGroup
from stowage.api.objects.pod_groups import CoschedulingPodGroup, PodGroup, member_of

BESIDE_THE_GANGS = "evaluated beside the gangs that fit"


class GangModel(msgspec.Struct, frozen=True):
    """A gang of which copies are made.

    Attributes:
        group: The group.
        pods: All of its pods, without nodes.
    """

    group: PodGroup | CoschedulingPodGroup
    pods: tuple[Pod, ...]


class GangCapacityAnswer(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """How many more whole gangs fit.

    Attributes:
        fits: Number of gangs of which all pods are placed.
        is_limited: Whether the count ended at the given limit; more may fit.
        num_members: Number of pods of each gang.
        per_node: Node -> number of pods of these gangs, without nodes that take none.
        per_domain: Value of the topology key -> number of these gangs; empty without a key.
        topology_key: The node label of which all members of a gang share a value.
        next_gang: Why the next gang is not placed as a whole; None if the limit ended the count.
        notes: What the answer cannot know.
    """

    fits: int
    is_limited: bool
    num_members: int
    per_node: dict[str, int]
    per_domain: dict[str, int]
    topology_key: str = ""
    next_gang: GroupExplanation | None = None
    notes: tuple[str, ...] = ()


def gang_of(made: ClusterObjects, cluster: ClusterObjects) -> GangModel | None:
    """The gang that manifests describe; None if their first pod names no group.

    One pod stands for ``minCount`` pods like it.

    Args:
        made: The objects of the manifests.
        cluster: The cluster's objects: it may have the group already.

    Raises:
        InvalidManifest: The group is unknown, pods name different ones, or there are too few.
    """
    pods = [pod for pod in made.pods() if not pod.spec.node_name]
    names = {f"{pod.metadata.namespace}/{member_of(pod)[0]}": pod for pod in pods}
    if not pods or not member_of(pods[0])[0]:
        return None
    if len(names) > 1:
        raise InvalidManifest(f"expected pods of one pod group; they name {', '.join(names)}")
    ((key, pod),) = names.items()
    group = _find(made, key) or _find(cluster, key)
    if group is None:
        raise InvalidManifest(
            f"Pod {pod.metadata.name}: its pod group: {key} (expected a known PodGroup)"
        )
    min_count = _translated(group).min_count or 1
    if len(pods) == 1:
        pods = [_named(pod, f"-{index}") for index in range(min_count)]
    if len(pods) < min_count:
        raise InvalidManifest(
            f"PodGroup {group.metadata.name}: it needs {min_count} pods, the manifests have "
            f"{len(pods)} (expected all of them, or one that stands for all)"
        )
    return GangModel(group, tuple(pods))


def gang_capacity(loaded: LoadedCluster, model: GangModel, limit: int) -> GangCapacityAnswer:
    """Count how many gangs fit beside what runs; no pod is preempted.

    The cluster is changed: load or fork it for each question.

    Args:
        loaded: The cluster; it has a profile or a stand-in for the pods' scheduler.
        model: The gang.
        limit: The count ends at this number of gangs.
    """
    cluster = VirtualCluster(loaded)
    state = loaded.engine.state
    key = _translated(model.group).topology_key
    per_node: Counter[str] = Counter()
    per_domain: Counter[str] = Counter()
    next_gang = None
    fits = 0
    while fits < limit and next_gang is None:
        gang = _copy(model, fits)
        nodes = _placed_nodes(cluster, gang)
        if not all(nodes):
            about = describe_group(state, gang.group.metadata.namespaced_name).explanation
            next_gang = _preempting_none(replace(about, basis=BESIDE_THE_GANGS))
            break
        fits += 1
        per_node.update(nodes)
        per_domain.update({_label(cluster, nodes[0], key)} if key else ())
    return GangCapacityAnswer(
        fits,
        next_gang is None,
        len(model.pods),
        dict(per_node),
        dict(sorted(per_domain.items())),
        key,
        next_gang,
        stand_in_notes(loaded, model.pods),
    )


def _preempting_none(about: GroupExplanation) -> GroupExplanation:
    """The explanation without preemption, which is not tried, and events: no such gang waits."""
    decision = about.decision
    if decision is None:
        return about
    message = without_post_filter(decision.message, decision)
    members = (
        replace(each, message=without_post_filter(each.message, decision)) for each in about.members
    )
    return replace(
        about,
        message=without_post_filter(about.message, decision),
        members=tuple(members),
        decision=replace(decision, message=message, preemption=None, waits_for=()),
    )


def _find(objects: ClusterObjects, key: str) -> PodGroup | CoschedulingPodGroup | None:
    return objects.find(PodGroup, key) or objects.find(CoschedulingPodGroup, key)


def _translated(group: PodGroup | CoschedulingPodGroup) -> PodGroup:
    return group if isinstance(group, PodGroup) else group.translated()


def _placed_nodes(cluster: VirtualCluster, gang: GangModel) -> list[str]:
    """Create a gang and let it be scheduled; the nodes of its pods, empty for pending ones."""
    objects = ClusterObjects()
    for obj in (gang.group, *gang.pods):
        objects.add(obj)
    cluster.create(objects)
    cluster.run()
    current = [cluster.objects.pod(each.metadata.namespaced_name) for each in gang.pods]
    return ["" if each is None else each.spec.node_name for each in current]


def _label(cluster: VirtualCluster, node_name: str, key: str) -> str:
    snapshot = cluster.engine.state.cache.snapshot()
    row = snapshot.row_of(node_name)
    node = None if row is None else snapshot.node(row)
    return "" if node is None else node.metadata.labels.get(key, "")


def _copy(model: GangModel, number: int) -> GangModel:
    """One more gang like the model, under names of its own."""
    suffix = f"-more-{number}"
    metadata = model.group.metadata
    name = f"{metadata.name}{suffix}"
    group = replace(
        model.group, metadata=replace(metadata, name=name, uid=f"{metadata.uid}{suffix}")
    )
    return GangModel(group, tuple(_member(pod, suffix, name) for pod in model.pods))


def _member(pod: Pod, suffix: str, group: str) -> Pod:
    named = _named(pod, suffix)
    spec = replace(
        named.spec, scheduling_group=PodSchedulingGroup(group), preemption_policy="Never"
    )
    return replace(named, spec=spec)


def _named(pod: Pod, suffix: str) -> Pod:
    metadata = pod.metadata
    name, uid = f"{metadata.name}{suffix}", f"{metadata.uid}{suffix}"
    return replace(pod, metadata=replace(metadata, name=name, uid=uid))
