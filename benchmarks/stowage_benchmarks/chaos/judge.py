"""Judges a run under chaos: did the cluster recover, and which guarantees were broken."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

from simcluster.harness.apply import create_all
from simcluster.harness.audit import ClusterState, read_cluster
from stowage.operator.client.api_client import ApiClient
from stowage_benchmarks.chaos.ledger import Ledger
from stowage_benchmarks.chaos.plan import Plan, draw_plan
from stowage_benchmarks.chaos.pods import GATED, HUGE, calm_pod
from stowage_benchmarks.chaos.replicas import LeaseTimes, Replicas
from stowage_benchmarks.chaos.result import (
    ChaosResult,
    Machine,
    Memory,
    final_violations,
    has_grown,
    memory_of,
    recoveries,
    unjustly_pending,
    violations_so_far,
)

_READ_EVERY_S = 0.05
_NUM_PROBES = 50


@dataclass(frozen=True, slots=True)
class ChaosOptions:
    """What to run.

    Attributes:
        pods_per_s: Pods to create per second.
        has_claims: Whether some pods have claims for devices.
        has_gangs: Whether some pods are members of gangs.
        recovery_limit_s: How long after the last fault a pod that fits may be pending.
        replays: Whether the replicas record what they do, and the recordings are replayed.
    """

    minutes: float
    seed: int
    num_nodes: int
    pods_per_s: float
    recovery_limit_s: float
    replays: bool = False
    scheduler_name: str = "stowage"
    has_claims: bool = False
    has_gangs: bool = False
    times: LeaseTimes = field(default_factory=LeaseTimes)

    def plan(self) -> Plan:
        """The faults and when they happen."""
        return draw_plan(
            self.minutes * 60.0,
            self.seed,
            self.times.lease_s,
            with_claims=self.has_claims,
            with_gangs=self.has_gangs,
        )


@dataclass(frozen=True, slots=True)
class Storm:
    """What was measured while faults were injected.

    Attributes:
        plan: Digest of the plan.
        done: How often each kind of trouble happened.
        pods_per_s: Pods created per second.
        began_at: When the first pods were created, in monotonic seconds.
        memory_mib: Memory of the largest replica before the faults began.
    """

    machine: Machine
    plan: str
    done: dict[str, int]
    pods_per_s: float
    memory_mib: float
    began_at: float = 0.0


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What was found at the end of a run; empty before."""

    problems: list[str]
    memory: list[Memory]
    memory_mib: float
    hits: dict[str, int] = field(default_factory=dict)
    recovered_s: float | None = None
    is_complete: bool = False


class Judge:
    """Waits for the recovery after a storm and collects what is wrong.

    Args:
        options: Limits and the scheduler's name.
        ledger: What the cluster's store has recorded.
        replicas: The running schedulers.
    """

    def __init__(self, options: ChaosOptions, ledger: Ledger, replicas: Replicas) -> None:
        self._options = options
        self._ledger = ledger
        self._replicas = replicas

    async def judge(self, calm: ApiClient, storm: Storm, hits: dict[str, int]) -> ChaosResult:
        """Wait until the cluster has recovered; the report with every violation."""
        options, ledger = self._options, self._ledger
        recovered_s = await self.recovery()
        is_well = await self.binds_new_pods(calm) and recovered_s is not None
        problems = [] if is_well else [late(options.recovery_limit_s)]
        problems += await self._mismatches()
        memory_mib, memory = self._replicas.memory_mib(), memory_of(self._replicas.lives)
        problems += final_violations(ledger, await self.settled(calm), memory)
        if has_grown(storm.memory_mib, memory_mib):
            problems.append(f"memory rose from {storm.memory_mib:.0f} to {memory_mib:.0f} MiB")
        return self._result(storm, _Verdict(problems, memory, memory_mib, hits, recovered_s, True))

    def so_far(self, storm: Storm) -> ChaosResult:
        """The report of a run that goes on, or was interrupted."""
        replicas, problems = self._replicas, list(violations_so_far(self._ledger))
        return self._result(
            storm, _Verdict(problems, memory_of(replicas.lives), replicas.memory_mib())
        )

    def _result(self, storm: Storm, verdict: _Verdict) -> ChaosResult:
        options, ledger, recovered_s = self._options, self._ledger, verdict.recovered_s
        return ChaosResult(
            machine=storm.machine,
            seed=options.seed,
            minutes=options.minutes,
            nodes=options.num_nodes,
            plan=storm.plan,
            # Planned faults that no request met are reported as 0.
            requests_hit=dict(
                sorted({**dict.fromkeys(options.plan().rule_names, 0), **verdict.hits}.items())
            ),
            trouble=dict(sorted(storm.done.items())),
            exits=dict(sorted(self._replicas.exits.items())),
            counts=dict(sorted(ledger.counts.items())),
            pods_created_per_s=round(storm.pods_per_s, 1),
            binds_per_s=round(ledger.binds_per_s, 1),
            recoveries=recoveries(ledger.disturbances),
            recovered_after_last_fault_s=None if recovered_s is None else round(recovered_s, 2),
            memory_before_mib=round(storm.memory_mib),
            memory_after_mib=round(verdict.memory_mib),
            memory=verdict.memory,
            violations=verdict.problems,
            is_complete=verdict.is_complete,
            seconds=round(time.monotonic() - storm.began_at, 1),
            longest_wait_s=round(ledger.longest_wait_s, 2),
            cpu_s={name: round(used) for name, used in self._replicas.cpu_seconds().items()},
        )

    async def binds_new_pods(self, calm: ApiClient) -> bool:
        """Create pods; whether they and all earlier pods that fit are bound in time."""
        names = (f"calm-{number}" for number in range(_NUM_PROBES))
        await create_all(calm, (calm_pod(name, self._options.scheduler_name) for name in names))
        await asyncio.sleep(_READ_EVERY_S * 4)
        return await self.recovery() is not None

    async def recovery(self) -> float | None:
        """Wait until all pods that fit are bound; the seconds it took, None if it took too long."""
        started_at = time.monotonic()
        while self._pods_that_fit_wait():
            if time.monotonic() > started_at + self._options.recovery_limit_s:
                return None
            await asyncio.sleep(_READ_EVERY_S)
        return time.monotonic() - started_at

    def _pods_that_fit_wait(self) -> bool:
        held = self._ledger.gangs.held()
        waiting = self._ledger.waiting.items()
        return any(uid not in held and not _may_wait(pod.name) for uid, pod in waiting)

    async def settled(self, calm: ApiClient) -> ClusterState:
        """The cluster, once no pod waits without a reason, or as it is if that takes too long.

        The ledger cannot tell when a gate was opened, nor whether a pod was told why it waits.
        """
        deadline = time.monotonic() + self._options.recovery_limit_s
        while True:
            state = await read_cluster(calm)
            is_late = time.monotonic() > deadline
            held = self._ledger.gangs.held()
            if is_late or not any(unjustly_pending(state, self._options.scheduler_name, held)):
                return state
            await asyncio.sleep(_READ_EVERY_S)

    async def _mismatches(self) -> list[str]:
        """Wait until all caches agree with the server; what differs still, if they never do."""
        deadline = time.monotonic() + self._options.recovery_limit_s
        while found := await self._replicas.cache_mismatches():
            if time.monotonic() > deadline:
                return found
            await asyncio.sleep(1.0)
        return []


def late(limit_s: float) -> str:
    """The violation of pods that are bound too late."""
    return f"pods that fit are pending {limit_s:g} s after the last fault"


def _may_wait(pod_name: str) -> bool:
    return pod_name.startswith((GATED, HUGE))
