"""Measures one experiment of ``stowage simulate``."""

from __future__ import annotations

import os
import time
from typing import Any

import msgspec

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.analysis.simulation.run import simulate
from stowage.analysis.simulation.synthetic import SyntheticWorkload
from stowage.analysis.simulation.workload_spec import API_VERSION, KIND, decode_workload
from stowage.cli.imports import garbage_collection_paused
from stowage.cli.simulate.policies import read_policies
from stowage_benchmarks.calibration import calibration_ms
from stowage_benchmarks.process_cost import peak_memory_mib

_CPUS = 16
_POD_CPUS = 2
_LIFETIME_S = 300.0
_SHARE = 2 / 3
_SEED = 42


class SimulationCost(msgspec.Struct, frozen=True):
    """The cost of one experiment.

    Attributes:
        nodes: Nodes.
        pods: Pods that arrived.
        bound: Pods that got a node.
        completed: Pods that ended meanwhile.
        cpu_s: CPU time of the experiment, generating the arrivals included.
        placements_per_s: `bound` divided by `cpu_s`.
        peak_memory_mib: Peak resident memory of the process.
        calibration_ms: Time of a calibration loop, to compare machines.
    """

    nodes: int
    pods: int
    bound: int
    completed: int
    cpu_s: float
    placements_per_s: float
    peak_memory_mib: float
    calibration_ms: float

    @property
    def text(self) -> str:
        """The result on one line."""
        return (
            f"{self.bound:,} of {self.pods:,} pods placed on {self.nodes:,} nodes in "
            f"{self.cpu_s:.1f} s of CPU time: {self.placements_per_s:,.0f} a second; "
            f"{self.completed:,} ended; peak memory {self.peak_memory_mib:.0f} MiB"
        )


def measure_simulation(num_nodes: int, num_pods: int) -> SimulationCost:
    """Run one experiment with the default profile, in this process."""
    with garbage_collection_paused():
        workload = SyntheticWorkload(
            decode_workload(_written(num_nodes, num_pods)), ClusterObjects()
        )
        (policy,) = read_policies((), (), ())
    calibrated_ms = calibration_ms()
    begin = time.process_time()
    metrics = simulate(workload, policy, _SEED).metrics
    cpu_s = time.process_time() - begin
    return SimulationCost(
        num_nodes,
        int(metrics["pods"]),
        int(metrics["bound"]),
        int(metrics["completed"]),
        cpu_s,
        metrics["bound"] / cpu_s,
        peak_memory_mib(os.getpid()),
        calibrated_ms,
    )


def _written(num_nodes: int, num_pods: int) -> dict[str, Any]:
    """The workload; the rate of arrivals follows from the share of requested CPUs."""
    rate = _SHARE * num_nodes * _CPUS / _POD_CPUS / _LIFETIME_S
    allocatable = {"cpu": str(_CPUS), "memory": "64Gi", "pods": "110"}
    requests = {"cpu": str(_POD_CPUS), "memory": "4Gi"}
    nodes = {
        "name": "node",
        "count": num_nodes,
        "zones": ["a", "b", "c"],
        "template": {"status": {"allocatable": allocatable}},
    }
    pods = {
        "name": "pod",
        "count": num_pods,
        "arrivals": {"process": "poisson", "perSecond": rate},
        "lifetime": {"exponential": {"mean": _LIFETIME_S}},
        "template": {"spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]}},
    }
    spec = {"nodes": [nodes], "pods": [pods]}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "bench"}, "spec": spec}
