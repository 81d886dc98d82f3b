"""The published values, where they are at hand."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from pathlib import Path

from stowage.analysis.simulation.openb.experiment import OpenbExperiment
from stowage.analysis.simulation.openb.loads import LOADS, METRICS, table_values
from stowage.analysis.simulation.openb.trace import OpenbTrace, read_trace
from stowage.analysis.simulation.result import ExperimentResult
from tests.openb.installed import Published

TRACES = ("default", "gpushare40", "multigpu30")
DETERMINISTIC = ("DotProd", "GpuClustering", "GpuPacking", "BestFit", "FGD")
SEEDS = range(42, 52)


def folder() -> Path | None:
    """The folder of the data, which ``STOWAGE_OPENB`` names; None without data."""
    named = os.environ.get("STOWAGE_OPENB")
    if named is None:
        return None
    found = Path(named)
    return found if (found / "expected_seeds.csv").exists() else None


def published_trace(data: Path, name: str) -> OpenbTrace:
    nodes, pods = data / "openb_node_list_gpu_node.csv", data / f"openb_pod_list_{name}.csv"
    return read_trace(name, (nodes.name, nodes.read_bytes()), (pods.name, pods.read_bytes()))


def run(trace: OpenbTrace, policy: str, seed: int) -> ExperimentResult:
    return OpenbExperiment(trace, Published(policy), seed).run()


def differences(data: Path, result: ExperimentResult) -> Iterator[str]:
    """The published values that a result does not meet to the last digit."""
    ours = table_values(result.series)
    num_rows = 0
    with (data / "expected_seeds.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if (row["trace"], row["policy"]) != (result.trace, result.policy):
                continue
            if int(row["seed"]) != result.seed:
                continue
            num_rows += 1
            for load, value in zip(LOADS, ours[row["metric"]], strict=True):
                if value is None or f"{value:.2f}" != f"{float(row[f'at{load}']):.2f}":
                    where = f"{result.trace} {result.policy} {result.seed} {row['metric']}"
                    yield f"{where} at {load}: {value}, published {row[f'at{load}']}"
    if num_rows != len(METRICS):
        yield f"{num_rows} published rows, expected {len(METRICS)}"
