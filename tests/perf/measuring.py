"""Measures the figures."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from stowage_benchmarks.calibration import calibration_ms
from stowage_benchmarks.contender import OURS
from stowage_benchmarks.core.claims import measure_claims
from stowage_benchmarks.core.run import measure_core
from stowage_benchmarks.e2e.result import Drain
from stowage_benchmarks.e2e.run import run_once
from stowage_benchmarks.e2e.scenarios import SCENARIOS, WORKLOAD_SCENARIOS, Size
from stowage_benchmarks.workloads import CLAIMS
from tests.perf.figures import Figure, Figures, Machine

_CORE_NODES = (1_000, 5_000)
_CORE_PODS = 100
_E2E_SIZE = Size(nodes=1_000, running=5_000, pods=2_000)


def measure(num_runs: int, note: Callable[[str], None]) -> Figures:
    """Measure each figure `num_runs` times; call `note` with the name of the next one."""
    figures = []
    for name, take in _sources():
        note(name)
        calibrations, values = [], []
        for _ in range(num_runs):
            calibrations.append(calibration_ms())
            values.append(take())
        figures.append(Figure(name, values, calibrations))
    return Figures(datetime.now(UTC).date().isoformat(), _machine(), figures)


def _sources() -> Iterator[tuple[str, Callable[[], float]]]:
    for workload in WORKLOAD_SCENARIOS:
        for nodes in _CORE_NODES:
            yield f"core {workload}, {nodes} nodes", _core(workload, nodes)
        yield f"e2e {workload}, {_E2E_SIZE.nodes} nodes", _e2e(workload)
    for nodes in _CORE_NODES:
        yield f"core {CLAIMS}, {nodes} nodes", _core_claims(nodes)
    yield f"e2e {CLAIMS}, {_E2E_SIZE.nodes} nodes", _e2e(CLAIMS)


def _core(workload: str, nodes: int) -> Callable[[], float]:
    return lambda: measure_core(workload, nodes, _CORE_PODS).pod_median_us / 1000


def _core_claims(nodes: int) -> Callable[[], float]:
    return lambda: measure_claims(nodes, _CORE_PODS).pod_median_us / 1000


def _e2e(workload: str) -> Callable[[], float]:
    size = SCENARIOS[workload].fitting(_E2E_SIZE)

    def take() -> float:
        cost = run_once(Drain(OURS, workload, size)).cpu_ms_per_pod_after_first_bind
        if cost is None:
            raise RuntimeError(f"{workload}: the pods were not bound")
        return cost

    return take


def _machine() -> Machine:
    names = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    processor = names[0] if names else platform.machine()
    return Machine(processor, os.cpu_count() or 1, platform.python_version())
