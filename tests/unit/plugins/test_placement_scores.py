"""Scores of placements equal those of plain Python, placement by placement."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from stowage.api.objects.pod import Pod, ResourceRequirements
from stowage.framework import NoArgs, PlacedMembers, Prospects
from stowage.framework.placement_outlook import most_members
from stowage.plugins.node_resources import NodeResourcesFit, NodeResourcesFitArgs
from stowage.plugins.node_resources.args import ResourceSpec, ScoringStrategy
from stowage.plugins.placement_fragmentation import PlacementFragmentation
from stowage.plugins.pod_group_pods_count import PodGroupPodsCount
from stowage.state import ClusterCache, PodInfo
from stowage.state.pods.pod_info import make_pod_info
from tests.support.builders import make_node, make_pod

#: CPU of the node, of running pods and of members placed, in tenths of a core.
Node: TypeAlias = tuple[int, list[int], list[int]]
_pods = st.lists(st.integers(0, 30), max_size=3)
nodes = st.tuples(st.integers(1, 80), _pods, _pods)
placements = st.lists(st.lists(nodes, min_size=1, max_size=3), min_size=1, max_size=3)


def _pod(cache: ClusterCache, name: str, tenths: int, node: str = "") -> PodInfo:
    cpu = {"cpu": f"{tenths * 100}m"} if tenths else {}
    return make_pod_info(make_pod(name, requests=cpu, node=node), cache.classes)


def _build(
    wanted: list[list[Node]],
) -> tuple[ClusterCache, list[PlacedMembers]]:
    cache = ClusterCache()
    members: list[list[tuple[PodInfo, str]]] = []
    for index, domain in enumerate(wanted):
        members.append([])
        for number, (cpu, running, placed) in enumerate(domain):
            node = f"n-{index}-{number}"
            cache.update_node(make_node(node, cpu=f"{cpu * 100}m", memory="4Gi"))
            for each, tenths in enumerate(running):
                cache.update_pod(_pod(cache, f"r-{node}-{each}", tenths, node))
            members[-1] += [
                (_pod(cache, f"m-{node}-{each}", tenths), node)
                for each, tenths in enumerate(placed)
            ]
    snapshot = cache.snapshot()
    found = []
    for index, domain in enumerate(wanted):
        rows = [snapshot.row_of(f"n-{index}-{number}") for number in range(len(domain))]
        placed_rows = tuple((pod, snapshot.row_of(node) or 0) for pod, node in members[index])
        found.append(PlacedMembers(np.array(rows, dtype=np.int64), placed_rows, index))
    return cache, found


def _defaulted(tenths: int) -> tuple[int, int]:
    """CPU and memory of a pod, with the defaults of scoring."""
    return (tenths * 100 or 100, 200 * 1024**2)


@settings(max_examples=60, deadline=None)
@given(wanted=placements)
def test_node_resources_fit_scores_how_full_a_placement_gets(
    wanted: list[list[Node]],
) -> None:
    cache, found = _build(wanted)
    scores = NodeResourcesFit(NodeResourcesFitArgs()).score_placements(cache.snapshot(), found)
    for score, domain in zip(scores.tolist(), wanted, strict=True):
        pods = [_defaulted(each) for _, running, placed in domain for each in (*running, *placed)]
        cpu_have = sum(cpu * 100 for cpu, _, _ in domain)
        memory_have = len(domain) * 4 * 1024**3
        cpu = min(sum(pod[0] for pod in pods), cpu_have) * 100 // cpu_have
        memory = min(sum(pod[1] for pod in pods), memory_have) * 100 // memory_have
        assert score == (cpu + memory) // 2


GPU = "example.com/gpu"


def _fullness(members: list[Pod], *resources: ResourceSpec, running: Pod | None = None) -> int:
    """The score of one node of 4 cores and 8 GPUs, on which the members would be placed."""
    cache = ClusterCache()
    cache.update_node(make_node("n", cpu="4", allocatable={GPU: "8"}))
    if running is not None:
        cache.update_pod(make_pod_info(running, cache.classes))
    row = cache.snapshot().row_of("n") or 0
    placed = tuple((make_pod_info(pod, cache.classes), row) for pod in members)
    strategy = ScoringStrategy("LeastAllocated", resources)
    plugin = NodeResourcesFit(NodeResourcesFitArgs(scoring_strategy=strategy))
    found = [PlacedMembers(np.array([row], dtype=np.int64), placed, 0)]
    (score,) = plugin.score_placements(cache.snapshot(), found).tolist()
    return int(score)


def test_members_that_do_not_request_a_resource_add_nothing_to_its_score() -> None:
    members = [make_pod("plain"), make_pod("gpu", requests={GPU: "2"})]
    assert _fullness(members, ResourceSpec(GPU, 1)) == 25


def test_an_extended_resource_that_no_member_requests_does_not_count() -> None:
    running = make_pod("r", requests={"cpu": "1", GPU: "8"}, node="n")
    resources = (ResourceSpec("cpu", 1), ResourceSpec(GPU, 1))
    assert _fullness([make_pod("m", cpu="1")], *resources, running=running) == 50
    member = make_pod("m", requests={"cpu": "1", GPU: "0"})
    assert _fullness([member], *resources, running=running) == 50


def test_what_running_pods_request_of_an_extended_resource_counts() -> None:
    running = make_pod("r", requests={GPU: "4"}, node="n")
    member = make_pod("m", requests={GPU: "2"})
    assert _fullness([member], ResourceSpec(GPU, 1), running=running) == 75


def test_a_weight_of_0_is_1_for_placements_too() -> None:
    member = make_pod("m", requests={"cpu": "1", GPU: "4"})
    assert _fullness([member], ResourceSpec("cpu", 0), ResourceSpec(GPU, 1)) == 37


def test_requests_for_a_whole_member_do_not_count_but_those_of_its_containers() -> None:
    whole = ResourceRequirements(requests={"cpu": "4"})
    assert _fullness([make_pod("m", cpu="1", resources=whole)], ResourceSpec("cpu", 1)) == 25


@settings(max_examples=60, deadline=None)
@given(wanted=placements)
def test_the_placement_with_most_pods_scores_100(
    wanted: list[list[Node]],
) -> None:
    cache, found = _build(wanted)
    scores = PodGroupPodsCount(NoArgs()).score_placements(cache.snapshot(), found).tolist()
    counts = [
        index + sum(len(placed) for _, _, placed in domain) for index, domain in enumerate(wanted)
    ]
    assert scores == [count * 100 // max(*counts, 1) for count in counts]


@settings(max_examples=60, deadline=None)
@given(wanted=placements)
def test_fragments_are_what_stays_free_on_nodes_in_use(
    wanted: list[list[Node]],
) -> None:
    cache, found = _build(wanted)
    ranks = PlacementFragmentation(NoArgs()).rank_placements(cache.snapshot(), found).tolist()
    for rank, domain in zip(ranks, wanted, strict=True):
        fragments = 0
        for cpu, running, placed in domain:
            if running or placed:
                # No pod requests memory, so cpu has the smaller free share.
                fragments += max(cpu - sum(running) - sum(placed), 0) * 1000 // cpu
        assert rank == -fragments


#: CPU of the node and of running pods, in tenths of a core, and room for pods.
Bare: TypeAlias = tuple[int, list[int], int]
domains = st.lists(
    st.lists(st.tuples(st.integers(1, 80), _pods, st.integers(1, 6)), min_size=1, max_size=3),
    min_size=1,
    max_size=3,
)


def _prospects(
    wanted: list[list[Bare]], members: list[int], num_scheduled: int = 0
) -> tuple[ClusterCache, Prospects]:
    """The placements of members that want so many tenths of a core each."""
    cache = ClusterCache()
    rows: list[int] = []
    starts: list[int] = []
    for index, domain in enumerate(wanted):
        starts.append(len(rows))
        for number, (cpu, running, room) in enumerate(domain):
            node = f"n-{index}-{number}"
            cache.update_node(make_node(node, cpu=f"{cpu * 100}m", memory="4Gi", pods=room))
            for each, tenths in enumerate(running):
                cache.update_pod(_pod(cache, f"r-{node}-{each}", tenths, node))
            rows.append(cache.snapshot().row_of(node) or 0)
    pods = tuple(_pod(cache, f"m-{index}", tenths) for index, tenths in enumerate(members))
    return cache, Prospects(np.array(rows), np.array(starts), pods, num_scheduled)


@settings(max_examples=80, deadline=None)
@given(wanted=domains, tenths=st.integers(0, 30), number=st.integers(1, 9))
def test_room_is_how_many_equal_members_fit_one_after_the_other(
    wanted: list[list[Bare]], tenths: int, number: int
) -> None:
    cache, prospects = _prospects(wanted, [tenths] * number)
    fit = NodeResourcesFit(NodeResourcesFitArgs())
    found = most_members([fit], cache.snapshot(), prospects, None).tolist()
    for room, domain in zip(found, wanted, strict=True):
        fitting = 0
        for cpu, running, most in domain:
            left = cpu - sum(running)
            slots = most - len(running)
            while slots > 0 and (tenths == 0 or left >= tenths):
                fitting, left, slots = fitting + 1, left - tenths, slots - 1
        assert room == min(fitting, number)


def test_members_that_differ_are_not_counted_beforehand() -> None:
    cache, prospects = _prospects([[(1, [], 1)]], [10, 20])
    fit = NodeResourcesFit(NodeResourcesFitArgs())
    assert most_members([fit], cache.snapshot(), prospects, None).tolist() == [2]


def test_a_requested_resource_that_no_node_has_leaves_no_room() -> None:
    cache, prospects = _prospects([[(10, [], 5)]], [1])
    gpu = make_pod_info(make_pod("gpu", requests={GPU: "1"}), cache.classes)
    wanting = Prospects(prospects.rows, prospects.starts, (gpu,), 0)
    fit = NodeResourcesFit(NodeResourcesFitArgs())
    assert most_members([fit], cache.snapshot(), wanting, None).tolist() == [0]
    ignoring = NodeResourcesFit(NodeResourcesFitArgs(ignored_resources=(GPU,)))
    assert most_members([ignoring], cache.snapshot(), wanting, None).tolist() == [1]


@settings(max_examples=80, deadline=None)
@given(wanted=domains, members=st.lists(st.integers(0, 30), min_size=1, max_size=4))
def test_the_highest_scores_are_those_with_all_members_placed(
    wanted: list[list[Bare]], members: list[int]
) -> None:
    cache, prospects = _prospects(wanted, members, num_scheduled=2)
    snapshot, ends = cache.snapshot(), [*prospects.starts.tolist()[1:], len(prospects.rows)]
    placed = []
    for start, end in zip(prospects.starts.tolist(), ends, strict=True):
        rows = prospects.rows[start:end]
        on_first = tuple((pod, int(rows[0])) for pod in prospects.members)
        placed.append(PlacedMembers(rows, on_first, 2))
    all_placed = np.full(len(placed), len(members))
    for plugin in (NodeResourcesFit(NodeResourcesFitArgs()), PodGroupPodsCount(NoArgs())):
        highest = plugin.highest_scores(snapshot, prospects, all_placed)
        assert highest is not None
        assert highest.tolist() == plugin.score_placements(snapshot, placed).tolist()


@settings(max_examples=60, deadline=None)
@given(wanted=domains, tenths=st.integers(0, 30), most=st.lists(st.integers(1, 5), min_size=3))
def test_of_equal_members_as_many_count_as_a_placement_takes(
    wanted: list[list[Bare]], tenths: int, most: list[int]
) -> None:
    cache, prospects = _prospects(wanted, [tenths] * 5)
    snapshot, ends = cache.snapshot(), [*prospects.starts.tolist()[1:], len(prospects.rows)]
    counts, placed = most[: len(wanted)], []
    for start, end, count in zip(prospects.starts.tolist(), ends, counts, strict=True):
        rows = prospects.rows[start:end]
        on_first = tuple((pod, int(rows[0])) for pod in prospects.members[:count])
        placed.append(PlacedMembers(rows, on_first, 0))
    for plugin in (NodeResourcesFit(NodeResourcesFitArgs()), PodGroupPodsCount(NoArgs())):
        highest = plugin.highest_scores(snapshot, prospects, np.array(counts))
        assert highest is not None
        assert highest.tolist() == plugin.score_placements(snapshot, placed).tolist()


@settings(max_examples=60, deadline=None)
@given(wanted=domains, tenths=st.integers(0, 30), most=st.lists(st.integers(1, 5), min_size=3))
def test_fewer_members_score_no_higher(
    wanted: list[list[Bare]], tenths: int, most: list[int]
) -> None:
    cache, prospects = _prospects(wanted, [tenths] * 5)
    counts = np.array(most[: len(wanted)])
    counts[0] = 5
    for plugin in (NodeResourcesFit(NodeResourcesFitArgs()), PodGroupPodsCount(NoArgs())):
        highest = plugin.highest_scores(cache.snapshot(), prospects, np.full(len(wanted), 5))
        fewer = plugin.highest_scores(cache.snapshot(), prospects, counts)
        assert highest is not None
        assert fewer is not None
        assert (fewer <= highest).all()


def test_members_that_count_different_resources_may_score_higher_in_part() -> None:
    """One that requests no GPU leaves the resource out of the mean."""
    cache, prospects = _prospects([[(10, [], 5)]], [5])
    gpu = make_pod_info(make_pod("gpu", requests={GPU: "1"}), cache.classes)
    mixed = Prospects(prospects.rows, prospects.starts, (*prospects.members, gpu), 0)
    strategy = ScoringStrategy("LeastAllocated", (ResourceSpec("cpu", 1), ResourceSpec(GPU, 1)))
    plugin = NodeResourcesFit(NodeResourcesFitArgs(scoring_strategy=strategy))
    assert plugin.highest_scores(cache.snapshot(), mixed, np.array([2])) is None
    assert plugin.highest_scores(cache.snapshot(), prospects, np.array([1])) is not None
