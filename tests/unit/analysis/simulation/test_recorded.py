"""A recording is a workload: its pods arrive and run as they did, wherever they are placed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from stowage.analysis.recorded_life import RecordedLife
from stowage.analysis.simulation.recorded import RecordedWorkload
from stowage.analysis.simulation.result import ExperimentResult
from stowage.analysis.simulation.run import simulate
from stowage.analysis.simulation.timeline import (
    NodeJoins,
    NodeLeaves,
    OutsideEvent,
    PodArrives,
    PodLeaves,
)
from stowage.api.events import (
    AssignedPodGone,
    AssignedPodSeen,
    Event,
    NamespaceSeen,
    NodeGone,
    NodeSeen,
    PendingPodGone,
    PendingPodSeen,
)
from stowage.api.objects.pod import Pod
from stowage.engine.journal import HandleCall, ScheduleCall
from tests.support.builders import make_namespace, make_node, make_pod
from tests.support.engines import default_engine
from tests.support.workloads import DefaultPolicy


def recorded(*calls: tuple[float, Sequence[Event]]) -> RecordedWorkload:
    """The workload of calls at these times; the first attempt follows the first call."""
    entries: list[Any] = [HandleCall(now, tuple(events), ()) for now, events in calls]
    entries.insert(1, ScheduleCall(calls[0][0], 1, (), ()))
    life = RecordedLife(default_engine(), lambda now: f"2026-01-01T00:00:{now % 60:09.6f}Z")
    for entry in entries:
        life.add(entry)
    workload = RecordedWorkload("recorded", life)
    for entry in entries:
        workload.add(entry)
    workload.finish()
    return workload


def pod(name: str, **fields: Any) -> Pod:
    return make_pod(name, scheduler_name="stowage", **fields)


def on(node: str, found: Pod) -> Pod:
    return replace(found, spec=replace(found.spec, node_name=node))


def gone(found: Pod) -> AssignedPodGone:
    return AssignedPodGone(found.metadata.namespace, found.metadata.name, found.metadata.uid)


def run(workload: RecordedWorkload) -> ExperimentResult:
    return simulate(workload, DefaultPolicy(), 1)


def test_a_pod_runs_as_long_as_it_did_counted_from_its_node() -> None:
    """In the recording `p` waited 20 s and ran for 30 s; here it starts at once."""
    p = pod("p", cpu="1")
    workload = recorded(
        (100.0, [NodeSeen(make_node("n"))]),
        (110.0, [PendingPodSeen(p)]),
        (130.0, [AssignedPodSeen(on("n", p))]),
        (160.0, [gone(p)]),
        (200.0, []),
    )
    assert list(workload.timeline(1).happenings) == [
        NodeJoins(0.0, make_node("n")),
        PodArrives(10.0, p, 30.0),
    ]
    result = run(workload)
    assert (result.metrics["bound"], result.metrics["completed"]) == (1, 1)
    assert result.metrics["ended_s"] == 100.0
    running = next(each for each in result.series if each.name == "running")
    assert sum(running.y[:-1]) == pytest.approx(30.0 / 100.0 * 200, abs=1)


def test_pods_without_a_recorded_end_stay() -> None:
    p = pod("p", cpu="1")
    workload = recorded((0.0, [NodeSeen(make_node("n"))]), (1.0, [PendingPodSeen(p)]), (9.0, []))
    assert list(workload.timeline(1).happenings)[1:] == [PodArrives(1.0, p)]
    assert run(workload).metrics["pending_at_end"] == 0


def test_a_pod_that_was_deleted_before_it_got_a_node_leaves_at_that_time() -> None:
    p = pod("p", cpu="99")
    workload = recorded(
        (0.0, [NodeSeen(make_node("n"))]),
        (1.0, [PendingPodSeen(p)]),
        (5.0, [PendingPodGone("default", "p", p.metadata.uid)]),
        (9.0, []),
    )
    assert list(workload.timeline(1).happenings)[1:] == [
        PodArrives(1.0, p),
        PodLeaves(5.0, "default/p"),
    ]
    result = run(workload)
    assert result.failed == {"Insufficient cpu": 1}
    assert result.metrics["pending_at_end"] == 0


def test_a_gated_pod_arrives_when_its_gate_is_removed() -> None:
    gated = pod("p", cpu="1", gates=["wait"])
    ready = pod("p", cpu="1")
    workload = recorded(
        (0.0, [NodeSeen(make_node("n"))]),
        (1.0, [PendingPodSeen(gated)]),
        (7.0, [PendingPodSeen(ready)]),
        (8.0, [PendingPodSeen(ready)]),
        (9.0, []),
    )
    assert list(workload.timeline(1).happenings)[1:] == [PodArrives(7.0, ready)]
    assert run(workload).metrics["wait_max_s"] == 0.0


def test_pods_with_a_node_take_room_until_they_are_gone() -> None:
    there, p = pod("there", cpu="4"), pod("p", cpu="1")
    workload = recorded(
        (0.0, [NodeSeen(make_node("n", cpu="4")), AssignedPodSeen(on("n", there))]),
        (1.0, [PendingPodSeen(p)]),
        (5.0, [gone(there)]),
        (9.0, []),
    )
    metrics = run(workload).metrics
    assert (metrics["pods"], metrics["bound"], metrics["wait_max_s"]) == (1, 1, 4.0)


def test_nodes_and_other_objects_come_and_go_as_they_did() -> None:
    p = pod("p", cpu="1")
    space = make_namespace("team")
    workload = recorded(
        (0.0, [NodeSeen(make_node("a"))]),
        (2.0, [NamespaceSeen(space), NodeGone("a")]),
        (3.0, [PendingPodSeen(p)]),
        (4.0, [NodeSeen(make_node("b"))]),
        (60.0, []),
    )
    assert list(workload.timeline(1).happenings) == [
        NodeJoins(0.0, make_node("a")),
        OutsideEvent(2.0, NamespaceSeen(space)),
        NodeLeaves(2.0, "a"),
        PodArrives(3.0, p),
        NodeJoins(4.0, make_node("b")),
    ]
    assert run(workload).metrics["bound"] == 1


def test_a_pod_that_comes_back_under_its_name_replaces_the_one_before() -> None:
    first, second = pod("p", cpu="3", uid="one"), pod("p", cpu="3", uid="two")
    workload = recorded(
        (0.0, [NodeSeen(make_node("n", cpu="4"))]),
        (1.0, [PendingPodSeen(first)]),
        (2.0, [AssignedPodSeen(on("n", first))]),
        (5.0, [gone(first)]),
        (5.5, [PendingPodSeen(second)]),
        (9.0, []),
    )
    metrics = run(workload).metrics
    assert (metrics["pods"], metrics["bound"], metrics["completed"]) == (2, 2, 1)
