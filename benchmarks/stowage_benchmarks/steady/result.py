"""The result of one run under steady load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from stowage_benchmarks.contender import Contender
from stowage_benchmarks.quantile import quantile


@dataclass(frozen=True, slots=True)
class SteadyRun:
    """One run: which scheduler places which pods, at which rates.

    Attributes:
        rates: Pods a second; one after the other, with the same process.
        seconds: How long pods are created at each rate.
        idle_s: How long the idle process is measured.
        hand_over: Whether the hand-over to a standby is measured too; for Stowage only.
        kubeconfig: Of an API server to use; None starts a simulated cluster.
    """

    contender: Contender
    workload: str
    nodes: int
    running: int
    rates: Sequence[float]
    seconds: float
    scheduler_name: str = "stowage"
    timeout_s: float = 300.0
    idle_s: float = 5.0
    hand_over: bool = True
    kubeconfig: Path | None = None


class Load(msgspec.Struct, frozen=True):
    """What was measured at one rate.

    Attributes:
        sent_at: Monotonic seconds at which the create request of each pod was sent, by name.
        bound_at: When a watch saw the pod bound, by name.
        cpu_s: CPU seconds of the scheduler's process.
        num_requests: Requests that the API server answered, without those of the benchmark and
            those that it answers when nothing happens; None if it does not count.
    """

    rate: float
    sent_at: Mapping[str, float]
    bound_at: Mapping[str, float]
    cpu_s: float
    num_requests: float | None


class RateResult(msgspec.Struct, frozen=True):
    """The figures of one rate; latencies are from the create request to the binding seen."""

    rate: float
    pods: int
    bound: int
    cpu_ms_per_pod: float
    requests_per_pod: float | None = None
    p50_ms: float | None = None
    p90_ms: float | None = None
    p99_ms: float | None = None
    max_ms: float | None = None


class SteadyResult(msgspec.Struct, frozen=True):
    """The figures of one run.

    Attributes:
        idle_cpu_ms_per_s: CPU milliseconds of the waiting process in a second.
        ready_s: From a start after the load until /readyz answers 200; Stowage only.
        first_bind_s: From the start of the process to the first binding of a waiting pod.
        hand_over_s: From SIGTERM to the leader until the standby has bound a pod.
    """

    scheduler: str
    workload: str
    nodes: int
    running: int
    rates: list[RateResult]
    idle_cpu_ms_per_s: float | None = None
    ready_s: float | None = None
    first_bind_s: float | None = None
    start_cpu_s: float | None = None
    hand_over_s: float | None = None
    rss_mib: float | None = None
    problems: tuple[str, ...] = ()


def rate_result(load: Load) -> RateResult:
    """Compute the figures of one rate."""
    latencies = sorted(1000 * (at - load.sent_at[name]) for name, at in load.bound_at.items())
    pods = len(load.sent_at)
    result = RateResult(load.rate, pods, len(latencies), round(1000 * load.cpu_s / pods, 3))
    if load.num_requests is not None:
        requests = round(load.num_requests / pods, 2)
        result = msgspec.structs.replace(result, requests_per_pod=requests)
    if not latencies:
        return result
    return msgspec.structs.replace(
        result,
        p50_ms=quantile(latencies, 0.5),
        p90_ms=quantile(latencies, 0.9),
        p99_ms=quantile(latencies, 0.99),
        max_ms=round(latencies[-1], 1),
    )
