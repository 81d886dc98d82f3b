"""A simulated workload is decided about by the real engine, and every pod is accounted for."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.analysis.simulation.result import ExperimentFailed, ExperimentResult
from stowage.analysis.simulation.run import simulate
from stowage.analysis.simulation.simulation import Simulation
from stowage.analysis.simulation.timeline import PodArrives
from stowage.cli.simulate.policies import read_policies
from stowage.framework import PluginTraits
from stowage.framework.authoring import SUCCESS, WAIT, PodInfo, Status
from tests.support.builders import make_node, make_pod
from tests.support.plugins.small_plugins import Raises, Rates
from tests.support.workloads import DefaultPolicy, nodes_of, pods_of, synthetic_workload

POISSON = {"process": "poisson", "perSecond": 0.3}
BUSY: dict[str, Any] = {
    "duration": "100s",
    "nodes": [
        nodes_of(
            3, failures={"after": {"exponential": {"mean": "40s"}}, "repair": {"constant": "20s"}}
        ),
        {**nodes_of(2), "name": "late", "from": "20s", "until": "70s"},
    ],
    "pods": [
        pods_of(
            "web",
            arrivals=POISSON,
            lifetime={"lognormal": {"median": "8s", "sigma": 1}},
            requests={
                "cpu": {"choice": ["500m", 1]},
                "memory": {"uniform": {"min": 0, "max": "3Gi"}},
            },
        ),
        pods_of("urgent", "3", arrivals=POISSON, lifetime="5s", pod_spec={"priority": 100}),
        pods_of("bare", arrivals={"process": "bursts", "every": "20s", "size": 2}, controller=""),
    ],
}
"""Failures, preemption, more pods than fit, and pods that nothing makes again."""


def run(*plugins: Any, seed: int = 1, cluster: ClusterObjects | None = None, **spec: Any) -> Any:
    return simulate(synthetic_workload(cluster, **spec), DefaultPolicy(*plugins), seed)


def series(result: ExperimentResult, name: str) -> dict[float, float]:
    found = next(each for each in result.series if each.name == name)
    return dict(zip(found.x, found.y, strict=True))


def test_pods_run_for_their_time_and_make_room_for_others() -> None:
    """One node takes two pods at a time: four pods need two rounds of 10 seconds."""
    result = run(nodes=[nodes_of(1, "2")], pods=[pods_of(count=4, lifetime="10s")])
    assert result.metrics["bound"] == result.metrics["completed"] == 4
    assert result.metrics["ended_s"] == 20.0
    assert result.metrics["wait_max_s"] == 10.0
    assert result.metrics["wait_mean_s"] == 5.0
    assert result.failed == {}


def test_pods_that_never_fit_are_failed_by_reason() -> None:
    result = run(nodes=[nodes_of(1, "2")], pods=[pods_of(count=3), pods_of("huge", "8", count=2)])
    assert result.metrics["bound"] == 2
    assert result.metrics["failed"] == result.metrics["pending_at_end"] == 3
    assert result.failed == {"Insufficient cpu": 3}


def test_a_preempted_pod_is_made_again_and_waits_anew() -> None:
    """The scheduler is idle when the victim is gone, and tries the preemptor at once."""
    result = run(
        nodes=[nodes_of(1, "2")],
        pods=[
            pods_of("low", "2", count=1, lifetime="100s"),
            pods_of(
                "high", "2", count=1, lifetime="10s", pod_spec={"priority": 9}, **{"from": "20s"}
            ),
        ],
    )
    assert result.metrics["preempted"] == 1
    assert result.metrics["completed"] == 2
    assert result.metrics["ended_s"] == 20 + 10 + 100
    assert result.metrics["wait_max_s"] == 0.0


def test_an_idle_scheduler_tries_rejected_pods_before_their_backoff_is_over() -> None:
    """Room for one of ten pods comes each second, and one of them takes it at once."""
    result = run(nodes=[nodes_of(1, "1")], pods=[pods_of(count=10, lifetime="1s")])
    assert result.metrics["bound"] == 10
    assert result.metrics["ended_s"] == 10.0


def test_without_popping_from_backoff_rejected_pods_wait_for_its_end() -> None:
    """Room for one of ten pods comes each second; the others wait up to 10 seconds each time."""
    (policy,) = read_policies((), (), ["SchedulerPopFromBackoffQ=false"])
    workload = synthetic_workload(nodes=[nodes_of(1, "1")], pods=[pods_of(count=10, lifetime="1s")])
    result = simulate(workload, policy, seed=1)
    assert result.metrics["bound"] == 10
    assert 40.0 < result.metrics["ended_s"] < 110.0


def test_a_pod_without_a_controller_is_lost_with_its_node() -> None:
    nodes = [nodes_of(1, until="30s"), {**nodes_of(1), "name": "later", "from": "40s"}]
    lost = run(nodes=nodes, pods=[pods_of(count=2, controller="")])
    assert (lost.metrics["evicted"], lost.metrics["lost"]) == (2, 2)
    again = run(nodes=nodes, pods=[pods_of("go-again", count=2)])  # also a UID that ends so
    assert (again.metrics["evicted"], again.metrics["lost"]) == (2, 0)
    assert again.metrics["pending_at_end"] == 0
    assert (series(again, "running")[40.0], series(lost, "running")[40.0]) == (2, 0)


def test_the_experiment_ends_at_its_duration_unless_it_drains() -> None:
    spec: dict[str, Any] = {
        "duration": "60s",
        "nodes": [nodes_of()],
        "pods": [pods_of(arrivals={"process": "constant", "perSecond": 0.1}, lifetime="45s")],
    }
    cut, drained = run(**spec), run(**spec, drain=True)
    assert cut.metrics["pods"] == drained.metrics["pods"] == 7
    assert (cut.metrics["ended_s"], cut.metrics["completed"]) == (60.0, 2)
    assert (drained.metrics["ended_s"], drained.metrics["completed"]) == (105.0, 7)


def test_objects_of_a_cluster_are_there_at_the_start() -> None:
    cluster = ClusterObjects()
    for each in (
        make_node("n", cpu="2"),
        make_pod("placed", cpu="1", node="n"),
        make_pod("waiting", cpu="1", scheduler_name="stowage"),
    ):
        cluster.add(each)
    result = run(cluster=cluster, pods=[pods_of(count=1)])
    assert result.metrics["pods"] == 2
    assert result.metrics["bound"] == 1
    assert result.failed == {"Insufficient cpu": 1}
    assert cluster.pod("default/waiting") == make_pod("waiting", cpu="1", scheduler_name="stowage")


@pytest.mark.parametrize("seed", [1, 2])
def test_no_node_is_overcommitted_at_any_event(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[int] = []
    real: Callable[..., None] = Simulation._settle  # noqa: SLF001 - the end of each event

    def settle_and_check(simulation: Simulation) -> None:
        real(simulation)
        snapshot = policy.engine.state.cache.snapshot()
        exists = snapshot.exists
        over = snapshot.requested[exists] > snapshot.allocatable[exists]
        assert not over[:, :2].any()
        assert (snapshot.num_pods[exists] <= snapshot.allocatable[exists, 3]).all()
        checked.append(int(np.count_nonzero(exists)))

    monkeypatch.setattr(Simulation, "_settle", settle_and_check)
    policy = DefaultPolicy()
    result = simulate(synthetic_workload(**BUSY), policy, seed)
    policy.engine.validate()
    metrics = result.metrics
    assert len(checked) > 80
    assert min(metrics[name] for name in ("preempted", "evicted", "lost", "failed")) > 0
    assert metrics["bound"] + metrics["failed"] == metrics["pods"]
    assert sum(result.failed.values()) == metrics["failed"]
    alive = metrics["pods"] - metrics["completed"] - metrics["lost"]
    assert series(result, "running")[100.0] + series(result, "pending")[100.0] == alive


def test_the_same_seed_gives_the_same_result_also_in_another_process() -> None:
    code = (
        "import msgspec\n"
        "from stowage.analysis.simulation.run import simulate\n"
        "from tests.support.workloads import DefaultPolicy, synthetic_workload\n"
        "from tests.unit.analysis.simulation.test_simulate import BUSY\n"
        "result = simulate(synthetic_workload(**BUSY), DefaultPolicy(), 7)\n"
        "print(msgspec.json.encode(result).decode())\n"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "4242", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, check=True, text=True
    )
    here = simulate(synthetic_workload(**BUSY), DefaultPolicy(), 7)
    assert msgspec.json.decode(done.stdout, type=ExperimentResult) == here
    assert simulate(synthetic_workload(**BUSY), DefaultPolicy(), 8).metrics != here.metrics


def test_every_policy_meets_the_same_arrivals() -> None:
    """Ties and placements differ; who arrives when, and for how long, does not."""
    workload = synthetic_workload(**BUSY)
    first = list(workload.timeline(5).happenings)
    simulate(workload, DefaultPolicy(Rates("Prefers", {"node-1": 100})), 5)
    assert list(workload.timeline(5).happenings) == first
    assert list(workload.timeline(6).happenings) != first


def test_more_pods_of_one_group_change_no_arrival_of_another() -> None:
    def of_web(**spec: Any) -> list[PodArrives]:
        happenings = synthetic_workload(**spec).timeline(1).happenings
        arrivals = [each for each in happenings if isinstance(each, PodArrives)]
        return [each for each in arrivals if each.pod.metadata.name.startswith("web-")]

    more = [*BUSY["pods"], pods_of("more", arrivals=POISSON, lifetime="1s")]
    assert of_web(**BUSY) == of_web(**{**BUSY, "pods": more}) != []


def test_a_plugin_that_raises_ends_the_experiment_with_the_reason() -> None:
    with pytest.raises(ExperimentFailed, match=r"Pod default/pod-0: Raises: .*disk is on fire"):
        run(Raises(), nodes=[nodes_of()], pods=[pods_of(count=1)])


class RaisesInReserve:
    """Raises after a node was chosen."""

    name = "RaisesInReserve"
    traits = PluginTraits()

    def reserve(self, state: Any, pod: PodInfo, node_name: str) -> Status:
        raise RuntimeError("out of paper")

    def unreserve(self, state: Any, pod: PodInfo, node_name: str) -> None:
        pass


def test_a_plugin_that_raises_in_reserve_ends_the_experiment_with_the_reason() -> None:
    with pytest.raises(ExperimentFailed, match=r"RaisesInReserve: .*out of paper"):
        run(RaisesInReserve(), nodes=[nodes_of()], pods=[pods_of(count=1)])


class WaitsAtPermit:
    """Lets the first pod wait at Permit until its timeout."""

    name = "WaitsAtPermit"
    traits = PluginTraits()

    def permit(self, state: Any, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        return (WAIT, 30.0) if pod.name == "pod-0" else (SUCCESS, 0.0)


def test_permit_waits_in_virtual_time() -> None:
    """The first pod holds its node for 30 seconds, then is rejected, and tried again after that."""
    result = run(
        WaitsAtPermit(),
        duration="2m",
        nodes=[nodes_of(1, "1")],
        pods=[pods_of(count=2, lifetime="1s")],
    )
    assert result.metrics["wait_max_s"] == pytest.approx(30.0)
    assert result.metrics["bound"] == 1


def test_an_object_that_cannot_be_used_ends_the_experiment_with_its_name() -> None:
    cluster = ClusterObjects()
    cluster.add(make_node("odd", cpu="many"))
    with pytest.raises(ExperimentFailed, match=r"Node odd.*many"):
        run(cluster=cluster, pods=[pods_of(count=1)])


def test_a_result_is_json() -> None:
    result = run(nodes=[nodes_of()], pods=[pods_of(count=1, lifetime="5s")])
    assert msgspec.json.decode(msgspec.json.encode(result), type=ExperimentResult) == result
    assert {each.name for each in result.series} >= {
        "pending",
        "nodes_used",
        "allocated_cpu_pct",
        "fragmentation",
        "imbalance",
        "wait_p99_s",
    }
