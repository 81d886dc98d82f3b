"""Runs one experiment."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stowage.analysis.simulation.pod_ledger import PodLedger
from stowage.analysis.simulation.policy import Policy
from stowage.analysis.simulation.random_streams import random_stream, tie_breaker
from stowage.analysis.simulation.result import ExperimentFailed, ExperimentResult, Series
from stowage.analysis.simulation.simulation import Simulation
from stowage.analysis.simulation.timeline import Workload
from stowage.api.events import Event
from stowage.engine import CallRecorder

_WAIT_PERCENTILES = (50, 90, 99)
_PERCENT = ("imbalance", "fragmentation")
_ALLOCATED, _PCT = "allocated_", "_pct"


def simulate(
    workload: Workload, policy: Policy, seed: int, journal: CallRecorder | None = None
) -> ExperimentResult:
    """Let the policy decide about the pods of a workload, in virtual time.

    Args:
        workload: Nodes and pods over time.
        policy: Makes the engine.
        seed: Seed of the arrivals and of ties, 0 or more.
        journal: Records the engine's calls; None records nothing.

    Raises:
        ExperimentFailed: A plugin raised, or an object cannot be used.
    """
    timeline = workload.timeline(seed)
    posted: list[Event] = []
    choose = tie_breaker(random_stream(seed, "ties"))
    engine = policy.make_engine(timeline.scheduler_names, choose, posted.append)
    engine.journal = journal
    changes = policy.changes(timeline.scheduler_names)
    simulation = Simulation(timeline, engine, posted, changes)
    simulation.run()
    failed = simulation.ledger.finish()
    if sum(failed.values()) + len(simulation.ledger.waits_s) != simulation.ledger.counts["pods"]:
        raise ExperimentFailed("a pod was neither placed nor failed")
    times, columns = simulation.samples.times, simulation.samples.columns()
    return ExperimentResult(
        workload.name,
        policy.name,
        seed,
        _metrics(simulation, columns),
        [*_series(times, columns), *_wait_series(times, simulation.ledger)],
        dict(sorted(failed.items())),
    )


def _metrics(simulation: Simulation, columns: dict[str, list[float]]) -> dict[str, float]:
    ledger = simulation.ledger
    waits = np.frombuffer(ledger.waits_s) if ledger.waits_s else np.zeros(1)
    counted = ("attempts", "completed", "preempted", "evicted", "lost")
    bound = len(ledger.waits_s)
    metrics = {
        "pods": float(ledger.counts["pods"]),
        "bound": float(bound),
        "failed": float(ledger.counts["pods"] - bound),
        **{name: float(ledger.counts[name]) for name in counted},
        "pending_at_end": float(ledger.num_pending),
        "wait_mean_s": float(waits.mean()),
        **{f"wait_p{each}_s": float(np.percentile(waits, each)) for each in _WAIT_PERCENTILES},
        "wait_max_s": float(waits.max()),
        "nodes_used_max": max(columns["nodes_used"], default=0.0),
        "ended_s": simulation.ended,
    }
    for name, values in columns.items():
        mean = float(np.mean(values)) if values else 0.0
        if name.startswith(_ALLOCATED):
            metrics[f"utilisation_{name.removeprefix(_ALLOCATED).removesuffix(_PCT)}"] = mean
        elif name != "preempted":
            metrics[name] = mean
    return metrics


def _series(times: list[float], columns: dict[str, list[float]]) -> list[Series]:
    return [Series(name, _unit(name), times, values) for name, values in columns.items()]


def _unit(name: str) -> str:
    if name in _PERCENT or name.endswith(_PCT):
        return "%"
    return "nodes" if name.startswith("nodes") else "pods"


def _wait_series(times: list[float], ledger: PodLedger) -> list[Series]:
    """Percentiles of the waits of the pods that got their node since the sample before.

    A sample after which no pod got a node repeats the value before.
    """
    placed, waits = np.frombuffer(ledger.placed_s or b""), np.frombuffer(ledger.waits_s or b"")
    bounds = np.searchsorted(placed, times, side="right").tolist()
    rows: list[NDArray[np.float64]] = []
    known, begin = np.zeros(len(_WAIT_PERCENTILES)), 0
    for end in bounds:
        if end > begin:
            known = np.percentile(waits[begin:end], _WAIT_PERCENTILES)
        rows.append(known)
        begin = end
    return [
        Series(f"wait_p{share}_s", "s", times, [float(row[column]) for row in rows])
        for column, share in enumerate(_WAIT_PERCENTILES)
    ]
