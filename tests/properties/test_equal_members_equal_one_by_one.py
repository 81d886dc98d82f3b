"""Equal members of a pod group in one pass get exactly what each would get by itself.

A cycle whose plugins are timed takes nothing over from the member before: PreFilter and PreScore
run for every member. An engine whose cycles are all timed is the other side of the comparison.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import count
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from stowage.api.events import AssignedPodSeen, NodeSeen, PendingPodSeen, PodGroupSeen
from stowage.api.instructions import AttemptResult, Instruction
from stowage.api.objects.node import Taint
from stowage.api.objects.pod import (
    Affinity,
    Pod,
    PodAffinity,
    PodSchedulingGroup,
    Toleration,
    TopologySpreadConstraint,
)
from stowage.engine import Engine
from stowage.framework import Timings
from tests.stories.gang_driver import make_group
from tests.support.builders import (
    HOSTNAME,
    ZONE,
    affinity_term,
    label_selector,
    make_node,
    make_pod,
    weighted,
)
from tests.support.durations import Unobserved
from tests.support.engines import default_engine

_RED = label_selector({"color": "red"})
_MEMBERS = label_selector({"app": "gang"})
_BY_HOST = affinity_term(HOSTNAME, _MEMBERS)
_RED_BY_ZONE = affinity_term(ZONE, _RED)
#: What a member may ask for.
_SORTS: tuple[dict[str, Any], ...] = (
    {},
    {"cpu": "500m"},
    {"cpu": "2", "memory": "1Gi"},
    {"cpu": "1", "node_selector": {ZONE: "x"}},
    {"cpu": "1", "host_ports": [80]},
    {"cpu": "1", "tolerations": [Toleration(key="t", operator="Exists")]},
    {"cpu": "1", "affinity": Affinity(pod_anti_affinity=PodAffinity((_BY_HOST,)))},
    {"cpu": "1", "affinity": Affinity(pod_affinity=PodAffinity((_RED_BY_ZONE,)))},
    {
        "cpu": "1",
        "affinity": Affinity(pod_affinity=PodAffinity((), (weighted(5, _RED_BY_ZONE),))),
    },
    {
        "cpu": "1",
        "topology_spread_constraints": (
            TopologySpreadConstraint(1, ZONE, "DoNotSchedule", _MEMBERS),
        ),
    },
    {
        "cpu": "1",
        "topology_spread_constraints": (
            TopologySpreadConstraint(1, HOSTNAME, "ScheduleAnyway", _MEMBERS),
        ),
    },
    {"cpu": "1", "priority": 5},
    {"cpu": "100"},
)
#: What runs on the nodes already.
_RUNNING: tuple[dict[str, Any], ...] = (
    {"cpu": "1"},
    {"cpu": "1", "labels": {"color": "red"}},
    {"cpu": "1", "affinity": Affinity(pod_anti_affinity=PodAffinity((_BY_HOST,)))},
    {
        "cpu": "1",
        "affinity": Affinity(pod_affinity=PodAffinity((), (weighted(9, _BY_HOST),))),
    },
)

_nodes = st.lists(st.tuples(st.integers(1, 4), st.sampled_from("xyz"), st.booleans()), max_size=7)
_running = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6)), max_size=5)
#: The members in order: (kind, how many of it).
_members = st.lists(
    st.tuples(st.integers(0, len(_SORTS) - 1), st.integers(1, 6)), min_size=1, max_size=3
)


@settings(max_examples=100, deadline=None)
@given(_nodes, _running, _members, st.integers(0, 2**16))
def test_equal_members_are_placed_as_one_by_one(
    nodes: Sequence[tuple[int, str, bool]],
    running: Sequence[tuple[int, int]],
    members: Sequence[tuple[int, int]],
    seed: int,
) -> None:
    together, alone = _engine(seed), _engine(seed)
    seconds = count()
    alone.take_durations(Timings(lambda: float(next(seconds)), Unobserved(), one_in=1))
    events = [*_cluster(nodes, running), *_gang(members)]
    answers = []
    for engine in (together, alone):
        answer = engine.handle(events, 0.0)
        for now in (0.0, 20.0):
            answer += engine.schedule(now, 10)
        answers.append([_with_records(each) for each in answer])
        engine.validate()
    assert answers[0] == answers[1]
    assert together.evaluation_counts() == alone.evaluation_counts()


def _engine(seed: int) -> Engine:
    return default_engine(random.Random(seed).randrange)


def _cluster(
    nodes: Sequence[tuple[int, str, bool]], running: Sequence[tuple[int, int]]
) -> list[NodeSeen | AssignedPodSeen]:
    """Enough nodes for kept answers, and a few pods."""
    taints = (Taint("t", "NoSchedule"),)
    shown: list[NodeSeen | AssignedPodSeen] = []
    for index in range(40):
        cpu, zone, is_tainted = nodes[index % len(nodes)] if nodes else (2, "x", False)
        node = make_node(f"n{index}", cpu=str(cpu), zone=zone, taints=taints if is_tainted else ())
        shown.append(NodeSeen(node))
    for number, (sort, node_index) in enumerate(running):
        pod = make_pod(f"r{number}", node=f"n{node_index}", **_RUNNING[sort])
        shown.append(AssignedPodSeen(pod))
    return shown


def _gang(members: Sequence[tuple[int, int]]) -> list[PodGroupSeen | PendingPodSeen]:
    pods: list[Pod] = []
    for sort, number in members:
        fields = {"labels": {"app": "gang"}, **_SORTS[sort]}
        group = PodSchedulingGroup("g")
        names = (f"p{len(pods) + index:02d}" for index in range(number))
        pods += [make_pod(name, scheduling_group=group, **fields) for name in names]
    min_count = max(1, len(pods) - 1)
    return [PodGroupSeen(make_group(min_count=min_count)), *map(PendingPodSeen, pods)]


def _with_records(instruction: Instruction) -> object:
    """The instruction with the best nodes as records."""
    if isinstance(instruction, AttemptResult) and instruction.best is not None:
        return replace(instruction, best=None), instruction.best.scored_nodes()
    return instruction
