"""The replicas of `stowage bench chaos`: started, killed, stopped and restarted."""

from __future__ import annotations

import asyncio
import resource
import signal
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from simcluster.harness.processes import ChildProcess, ChildProcesses
from stowage_benchmarks.chaos import replica as chaos_replica
from stowage_benchmarks.chaos.cluster import CLUSTER, REPLICAS, kubeconfig_of
from stowage_benchmarks.chaos.replays import RECORDINGS
from stowage_benchmarks.process_cost import (
    address_space_bytes,
    cpu_seconds_with_ended,
    cpu_wait_s,
    memory_mib,
)

CONFIG_MAP = "default/stowage"
DECISIONS = "decisions"
_RESTART_AFTER_S = 0.5
_POLL_S = 0.1
_SAMPLE_EVERY_S = 2.0
_SETTLED_AFTER_S = 20.0
"""By then a process has read the cluster and bound its first pods."""
COMPARE_WITHIN_S = 30.0


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """Times of the leader election, in seconds.

    Attributes:
        takeover_s: What a new leader may need besides: for its lists, a decision and a binding.
    """

    lease_s: float = 4.0
    renew_s: float = 3.0
    retry_s: float = 0.5
    takeover_s: float = 2.0

    def flags(self) -> tuple[str, ...]:
        """Flags of ``stowage run``."""
        return (
            f"--leader-elect-lease-duration={self.lease_s}s",
            f"--leader-elect-renew-deadline={self.renew_s}s",
            f"--leader-elect-retry-period={self.retry_s}s",
        )


@dataclass(slots=True)
class Life:
    """One process of a replica.

    Attributes:
        memory: (age in seconds, MiB), sampled now and then.
    """

    replica: str
    child: ChildProcess
    started_at: float
    memory: list[tuple[float, float]] = field(default_factory=list)

    def sample(self) -> None:
        """Record the memory in use, if the process runs."""
        with suppress(OSError):
            self.memory.append((time.monotonic() - self.started_at, memory_mib(self.child.pid)))

    def growth(self) -> tuple[float, float, float] | None:
        """MiB after start-up, MiB at the end, and the seconds between; None for a short life."""
        settled = [sample for sample in self.memory if sample[0] >= _SETTLED_AFTER_S]
        if len(settled) < 2:
            return None
        (first_at, first), (last_at, last) = settled[0], settled[-1]
        return first, last, last_at - first_at


class Replicas:
    """Starts the replicas, restarts them when they end, and sends them signals.

    Args:
        processes: Where they are started.
        directory: With their kubeconfigs.
        times: Of the election.
        records: Whether each process records what it does, into a folder of its own.
    """

    def __init__(
        self,
        processes: ChildProcesses,
        directory: Path,
        times: LeaseTimes,
        *,
        records: bool = False,
    ) -> None:
        self.lives: list[Life] = []
        self.exits: Counter[str] = Counter()
        self.times = times
        self._processes = processes
        self._directory = directory
        self._records = records
        self._current: dict[str, Life] = {}
        self._stopped: set[str] = set()

    def start(self) -> None:
        """Start all of them."""
        for name in REPLICAS:
            self._start(name)

    async def keep_running(self) -> None:
        """Restart replicas that ended, as a Deployment would, until cancelled."""
        sampled_at = 0.0
        while True:
            await asyncio.sleep(_POLL_S)
            for name, life in tuple(self._current.items()):
                status = life.child.exit_status
                if status is None:
                    continue
                self.exits[_exit_name(status)] += 1
                self._processes.stop(life.child)
                del self._current[name]
                self._restart_soon(name)
            if time.monotonic() >= sampled_at + _SAMPLE_EVERY_S:
                sampled_at = time.monotonic()
                self.sample()

    def sample(self) -> None:
        """Record the memory of all running replicas."""
        for life in self._current.values():
            life.sample()

    def kill(self, name: str) -> bool:
        """SIGKILL; False if it is not running."""
        return self._signal(name, signal.SIGKILL)

    def retire(self, name: str) -> bool:
        """SIGTERM; False if it is not running."""
        return self._signal(name, signal.SIGTERM)

    def set_clock(self, name: str, offset_s: float) -> None:
        """Offset the wall clock of a replica from now on, restarts included."""
        self._clock_of(name).write_text(f"{offset_s}")

    def all_run_for(self, seconds: float) -> bool:
        """Whether all replicas have run for that long."""
        ages = [time.monotonic() - life.started_at for life in self._current.values()]
        return len(ages) == len(REPLICAS) and min(ages) >= seconds

    def can_be_stopped(self, name: str) -> bool:
        """Whether it runs and is not stopped."""
        return name in self._current and name not in self._stopped

    async def stop_for(self, name: str, seconds: float) -> None:
        """SIGSTOP, and SIGCONT after a while."""
        if not self.can_be_stopped(name):
            return
        life = self._current[name]
        self._stopped.add(name)
        life.child.send_signal(signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            self._stopped.discard(name)
            life.child.send_signal(signal.SIGCONT)

    async def limit_for(self, name: str, seconds: float, kind: int, room: int) -> bool:
        """See `limit_for`; False if the replica does not run."""
        life = self._current.get(name)
        return life is not None and await limit_for(life, seconds, kind, room)

    def memory_mib(self) -> float:
        """Memory of the largest running replica."""
        self.sample()
        return max(
            (life.memory[-1][1] for life in self._current.values() if life.memory), default=0.0
        )

    def cpu_waits(self) -> dict[int, float]:
        """Seconds that each process, the API server among them, has waited for a CPU, by PID."""
        waits: dict[int, float] = {}
        for child in self._processes.children:
            with suppress(OSError):
                waits[child.pid] = cpu_wait_s(child.pid)
        return waits

    def cpu_seconds(self) -> dict[str, float]:
        """CPU time of the cluster, of all replicas that ever ran, and of this process."""
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = {
            "benchmark": time.process_time(),
            CLUSTER: 0.0,
            "replicas": ended.ru_utime + ended.ru_stime,
        }
        for child in self._processes.children:
            with suppress(OSError):
                owner = child.name if child.name in used else "replicas"
                used[owner] += cpu_seconds_with_ended(child.pid)
        return used

    @property
    def running(self) -> list[str]:
        """Names of the replicas that run."""
        return sorted(self._current)

    async def cache_mismatches(self) -> list[str]:
        """Have every replica compare its cache with the server (SIGUSR2); what differs."""
        found = await asyncio.gather(*(compare_cache(life) for life in self._current.values()))
        return [sentence for sentences in found for sentence in sentences]

    def _signal(self, name: str, number: signal.Signals) -> bool:
        life = self._current.get(name)
        if life is None:
            return False
        life.child.send_signal(number)
        return True

    def _start(self, name: str) -> None:
        process = f"{name}-{len(self.lives):04d}"
        command = (
            *(sys.executable, "-m", chaos_replica.__name__, str(self._clock_of(name))),
            "run",
            f"--kubeconfig={kubeconfig_of(self._directory, name)}",
            f"--configmap={CONFIG_MAP}",
            "--secure-port=0",
            *self.times.flags(),
            f"--decision-log={self._directory / DECISIONS / process}",
            *self._recording_flags(process),
        )
        child = self._processes.start(process, command)
        life = Life(name, child, time.monotonic())
        self.lives.append(life)
        self._current[name] = life

    def _recording_flags(self, process: str) -> tuple[str, ...]:
        return (f"--record={self._directory / RECORDINGS / process}",) if self._records else ()

    def _clock_of(self, name: str) -> Path:
        return self._directory / f"{name}.clock"

    def _restart_soon(self, name: str) -> None:
        asyncio.get_running_loop().call_later(_RESTART_AFTER_S, self._start, name)


async def limit_for(life: Life, seconds: float, kind: int, room: int) -> bool:
    """Let a process have only so much more of a resource for a while; False if it has ended.

    Args:
        life: The process.
        seconds: How long.
        kind: ``RLIMIT_FSIZE`` (size of its files) or ``RLIMIT_AS`` (its address space).
        room: Bytes, besides those that it has already in the case of ``RLIMIT_AS``.
    """
    if life.child.exit_status is not None:
        return False
    pid, has = life.child.pid, 0
    with suppress(OSError):
        if kind == resource.RLIMIT_AS:
            has = address_space_bytes(pid)
        # Inherited by the process; its own may be that of another fault.
        normal = resource.getrlimit(kind)
        resource.prlimit(pid, kind, (has + room, normal[1]))
        try:
            await asyncio.sleep(seconds)
        finally:
            if life.child.exit_status is None:
                resource.prlimit(pid, kind, normal)
        return True
    return False


async def compare_cache(life: Life) -> list[str]:
    """Have a replica compare its cache with the API server (SIGUSR2); what differs."""
    deadline = time.monotonic() + COMPARE_WITHIN_S
    # Before its first line a process may not listen to signals yet, and would end by this one.
    while not (begin := life.child.log.stat().st_size) and time.monotonic() < deadline:  # noqa: ASYNC110 - a file
        await asyncio.sleep(_POLL_S)
    life.child.send_signal(signal.SIGUSR2)
    while time.monotonic() < deadline:
        await asyncio.sleep(_POLL_S)
        with life.child.log.open("rb") as log:
            log.seek(begin)
            *lines, _ = log.read().split(b"\n")
        events = [msgspec.json.decode(line) for line in lines if line.startswith(b"{")]
        if any(event.get("event") == "cache compared" for event in events):
            return [
                f"{life.replica}: {msgspec.json.encode(event).decode()}"
                for event in events
                if event.get("event") == "Cache mismatch"
            ]
    return [f"{life.replica} did not compare its cache within {COMPARE_WITHIN_S:g} s"]


def _exit_name(status: int) -> str:
    return signal.Signals(-status).name if status < 0 else f"exit status {status}"
