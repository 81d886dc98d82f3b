"""Compact moves pods without events and gives up nodes early; neither changes its answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from stowage.analysis.compact import CompactAnswer, compact
from stowage.analysis.relocation import Relocations
from stowage.analysis.virtual_cluster import VirtualCluster
from stowage.api.objects.meta import ApiStruct, LabelSelector, ObjectMeta
from stowage.api.objects.node import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from stowage.api.objects.pod import (
    Affinity,
    NodeAffinity,
    PodAffinity,
    Toleration,
    TopologySpreadConstraint,
)
from stowage.api.objects.policy import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
)
from stowage.api.objects.volume import GCEPersistentDiskVolumeSource, Volume
from tests.support.builders import (
    HOSTNAME,
    ZONE,
    affinity_term,
    make_node,
    make_pod,
    owned_by,
    weighted,
)
from tests.support.clusters import loaded_cluster

BLUE = LabelSelector({"color": "blue"})
OWNER = owned_by("ReplicaSet", "web", "rs")
DISK = Volume(name="v", gce_persistent_disk=GCEPersistentDiskVolumeSource("disk", read_only=True))
NO_BLUE_HERE = affinity_term(HOSTNAME, BLUE)
ZONE_A = NodeSelectorTerm((NodeSelectorRequirement(ZONE, "In", ("a",)),))
EXHAUSTED = PodDisruptionBudget(
    ObjectMeta(name="frozen", namespace="default", uid="pdb"),
    PodDisruptionBudgetSpec(LabelSelector({"frozen": "yes"})),
    PodDisruptionBudgetStatus(0),
)


def spread(when_unsatisfiable: str) -> tuple[TopologySpreadConstraint, ...]:
    return (TopologySpreadConstraint(1, ZONE, when_unsatisfiable, BLUE),)


KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "blue": {"labels": {"color": "blue"}},
    "apart": {
        "labels": {"color": "blue"},
        "affinity": Affinity(pod_anti_affinity=PodAffinity((NO_BLUE_HERE,))),
    },
    "near": {"affinity": Affinity(pod_affinity=PodAffinity((affinity_term(ZONE, BLUE),)))},
    "rather apart": {
        "affinity": Affinity(pod_anti_affinity=PodAffinity((), (weighted(5, NO_BLUE_HERE),)))
    },
    "zone a": {
        "phase": "Running",
        "affinity": Affinity(node_affinity=NodeAffinity(NodeSelector((ZONE_A,)))),
    },
    "spread": {
        "labels": {"color": "blue"},
        "topology_spread_constraints": spread("DoNotSchedule"),
    },
    "rather spread": {"topology_spread_constraints": spread("ScheduleAnyway")},
    "port": {"host_ports": (80,)},
    "tolerant": {
        "tolerations": (Toleration(key="node.kubernetes.io/unschedulable", operator="Exists"),)
    },
    "disk": {"volumes": (DISK,)},
    "agent": {"owner": owned_by("DaemonSet", "agent", "ds")},
    "lone": {"owner": None},
    "frozen": {"labels": {"frozen": "yes"}},
}
kinds = st.sampled_from(sorted(KINDS)) | st.just("plain")
pods_on = st.lists(st.tuples(st.integers(0, 5), kinds, st.integers(1, 3)), max_size=14)
rooms = st.lists(st.tuples(st.integers(2, 6), st.sampled_from("abc")), min_size=2, max_size=6)


def cluster_of(
    nodes: list[tuple[int, str]], pods: list[tuple[int, str, int]]
) -> Iterator[ApiStruct]:
    """Nodes, those of the pods that have room, a budget, and a pod that fits nowhere."""
    yield EXHAUSTED
    for number, (cpu, zone) in enumerate(nodes):
        yield make_node(f"n{number}", cpu=str(cpu), zone=zone)
    free = {number: cpu for number, (cpu, _) in enumerate(nodes)}
    for number, (node, kind, cpu) in enumerate(pods):
        if free.get(node, 0) >= cpu:
            free[node] -= cpu
            fields = {"owner": OWNER, **KINDS[kind]}
            yield make_pod(f"p{number}", cpu=str(cpu), node=f"n{node}", **fields)
    yield make_pod("huge", cpu="1000")


@contextmanager
def events_shown_for_all_moves() -> Iterator[None]:
    """A pod stays in the queue, so that compact has to show events to the engine."""
    with patch.object(VirtualCluster, "set_aside_pending", lambda _self: None):
        yield


@contextmanager
def pods_moved_in_their_order() -> Iterator[None]:
    """No pod comes first because no node takes it."""
    with patch.object(Relocations, "hopeless_first", lambda _self, _name, pods: pods):
        yield


def answer_about(objects: list[ApiStruct], *, in_order: bool, with_events: bool) -> CompactAnswer:
    loaded = loaded_cluster(*objects)
    with ExitStack() as changed:
        if in_order:
            changed.enter_context(pods_moved_in_their_order())
        if with_events:
            changed.enter_context(events_shown_for_all_moves())
        answer = compact(loaded)
    loaded.engine.validate()
    return answer


@given(nodes=rooms, pods=pods_on)
@settings(max_examples=60)
def test_moves_without_events_are_those_of_an_engine_that_sees_every_event(
    nodes: list[tuple[int, str]], pods: list[tuple[int, str, int]]
) -> None:
    objects = list(cluster_of(nodes, pods))
    quick = answer_about(objects, in_order=True, with_events=False)
    assert quick == answer_about(objects, in_order=True, with_events=True)


@given(nodes=rooms, pods=pods_on)
@settings(max_examples=60)
def test_a_node_that_is_given_up_early_is_one_that_cannot_be_emptied(
    nodes: list[tuple[int, str]], pods: list[tuple[int, str, int]]
) -> None:
    objects = list(cluster_of(nodes, pods))
    early = answer_about(objects, in_order=False, with_events=False)
    late = answer_about(objects, in_order=True, with_events=False)
    assert (early.removable, early.moved, early.after) == (late.removable, late.moved, late.after)
    assert [each.node for each in early.needed] == [each.node for each in late.needed]
