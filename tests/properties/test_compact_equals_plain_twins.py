"""Compact agrees with plain arithmetic, and moves a pod as the queue of the engine would."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from stowage.analysis.cluster_changes import cordon
from stowage.analysis.compact import compact
from stowage.analysis.relocation import Relocations
from stowage.analysis.virtual_cluster import VirtualCluster
from stowage.api.objects.meta import LabelSelector
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Affinity, Pod, PodAffinity
from stowage.api.objects.volume import GCEPersistentDiskVolumeSource, Volume
from tests.support.builders import affinity_term, make_node, make_pod, owned_by
from tests.support.clusters import loaded_cluster, nodes_of_pods

DISK = Volume(name="v", gce_persistent_disk=GCEPersistentDiskVolumeSource("disk", read_only=True))
OWNER = owned_by("ReplicaSet", "web", "rs")

rooms = st.lists(st.integers(1, 6), min_size=1, max_size=6)
pods_on = st.lists(st.integers(0, 5), max_size=16)
"""The number of the node of each pod."""


def cluster_of(cpus: list[int], pods: list[int], cpu_of: list[int]) -> tuple[list[Node], list[Pod]]:
    """Nodes, and those of the pods that have room on their node."""
    nodes = [make_node(f"n{number}", cpu=str(cpu)) for number, cpu in enumerate(cpus)]
    free, made = dict(enumerate(cpus)), []
    for number, (node, cpu) in enumerate(zip(pods, cpu_of, strict=True)):
        if free.get(node, 0) >= cpu:
            free[node] -= cpu
            made.append(make_pod(f"p{number}", cpu=str(cpu), node=f"n{node}", owner=OWNER))
    return nodes, made


def removable(nodes: list[Node], pods: list[Pod]) -> set[str]:
    """Pods of one CPU fit wherever a CPU is free, so the sums decide; node by node."""
    left = {node.metadata.name: int(node.status.allocatable["cpu"]) for node in nodes}
    share = {
        name: sum(pod.spec.node_name == name for pod in pods) / cpu for name, cpu in left.items()
    }
    gone = set()
    for name in sorted(left, key=lambda each: share[each]):
        if sum(left.values()) - left[name] >= len(pods):
            gone.add(name)
            del left[name]
    return gone


@given(cpus=rooms, pods=pods_on)
def test_unit_pods_compact_as_the_sums_say(cpus: list[int], pods: list[int]) -> None:
    nodes, made = cluster_of(cpus, pods, [1] * len(pods))
    cluster = loaded_cluster(*nodes, *made)
    answer = compact(cluster)
    cluster.engine.validate()
    assert set(answer.removable) == removable(nodes, made)
    assert len(answer.removable) + len(answer.needed) == len(nodes)


@given(cpus=rooms, pods=st.lists(st.tuples(st.integers(0, 5), st.integers(1, 3)), max_size=10))
def test_every_pod_keeps_a_place_that_has_room(
    cpus: list[int], pods: list[tuple[int, int]]
) -> None:
    nodes, made = cluster_of(cpus, [node for node, _ in pods], [cpu for _, cpu in pods])
    loaded = loaded_cluster(*nodes, *made)
    answer = compact(loaded)
    loaded.engine.validate()
    places = {pod.metadata.namespaced_name: pod.spec.node_name for pod in made}
    for moved in answer.moved:
        assert places[moved.pod] == moved.was
        places[moved.pod] = moved.node
    used = dict.fromkeys({node.metadata.name for node in nodes} - set(answer.removable), 0)
    for pod in made:
        used[places[pod.metadata.namespaced_name]] += int(
            pod.spec.containers[0].resources.requests["cpu"]
        )
    for node in nodes:
        assert used.get(node.metadata.name, 0) <= int(node.status.allocatable["cpu"])


@given(
    cpus=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    pods=pods_on,
    cpu=st.integers(1, 4),
    apart=st.booleans(),
    with_volume=st.booleans(),
)
def test_a_pod_moves_where_the_queue_of_the_engine_would_move_it(
    cpus: list[int], pods: list[int], cpu: int, apart: bool, with_volume: bool
) -> None:
    nodes, made = cluster_of(cpus, pods, [1] * len(pods))
    term = affinity_term("kubernetes.io/hostname", LabelSelector({"app": "moved"}))
    moved = make_pod(
        "moved",
        cpu=str(cpu),
        node="old",
        owner=OWNER,
        labels={"app": "moved"},
        affinity=Affinity(pod_anti_affinity=PodAffinity((term,))) if apart else None,
        volumes=(DISK,) if with_volume else (),
    )
    objects = (make_node("old"), *nodes, *made, moved, replace_name(moved, "n0"))
    fast, plain = (VirtualCluster(loaded_cluster(*objects)) for _ in range(2))
    cordon(fast, "old")
    why = Relocations(fast).relocate(moved, np.zeros(64, dtype=np.bool_))
    fast.engine.validate()
    cordon(plain, "old")
    plain.evict_pod(replace(moved, spec=replace(moved.spec, preemption_policy="Never")))
    plain.run()
    nodes_of_fast, nodes_of_plain = nodes_of_pods(fast), nodes_of_pods(plain)
    if nodes_of_plain["default/moved"]:
        assert (why, nodes_of_fast) == ("", nodes_of_plain)
    else:
        fit_error, of_preemption = plain.messages["default/moved"].split(". ")
        assert why == f"default/moved would stay pending: {fit_error}."
        assert "preemption: not eligible due to preemptionPolicy=Never" in of_preemption
        assert nodes_of_fast["default/moved"] in ("", "old")


def replace_name(pod: Pod, node: str) -> Pod:
    """Another pod like this one, on a node."""
    meta = replace(pod.metadata, name="other", uid="uid-other")
    return replace(pod, metadata=meta, spec=replace(pod.spec, node_name=node))
