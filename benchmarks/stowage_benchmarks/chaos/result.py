"""The result of a run of `stowage bench chaos`."""

from __future__ import annotations

import os
import platform
import shlex
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import msgspec

from simcluster.harness.audit import ClusterState, overcommitted_nodes
from stowage.api.objects.pod import Pod
from stowage.experiments.usable_cores import usable_cores
from stowage_benchmarks.chaos.ledger import Disturbance, Ledger
from stowage_benchmarks.chaos.pods import GATED, HUGE
from stowage_benchmarks.chaos.replays import Replay
from stowage_benchmarks.chaos.replicas import Life

MAX_GROWTH = 1.5
MAX_GROWTH_MIB = 64.0
"""Memory may rise to so many times what it was, and by so much more, before it counts as a leak."""


class Machine(msgspec.Struct, frozen=True):
    """Where a run took place, when, and how it was started."""

    date: str
    command: str
    system: str
    processor: str
    cores: int
    python: str
    load_average: float
    niceness: int


class Recovery(msgspec.Struct, frozen=True):
    """Seconds until pods were bound again after one kind of fault.

    Attributes:
        unrecovered: Faults without recovery by the end, or after which the leader kept its lease.
    """

    kind: str
    times: int
    unrecovered: int
    median_s: float | None = None
    max_s: float | None = None


def has_grown(before_mib: float, after_mib: float) -> bool:
    """Whether memory rose by more than the limit."""
    return after_mib > before_mib * MAX_GROWTH + MAX_GROWTH_MIB


class Memory(msgspec.Struct, frozen=True):
    """Memory of one process of a replica: after start-up and at the end."""

    process: str
    settled_mib: float
    last_mib: float
    between_s: float

    @property
    def has_grown(self) -> bool:
        """Whether memory grew beyond the limit."""
        return has_grown(self.settled_mib, self.last_mib)


class ChaosResult(msgspec.Struct, frozen=True):
    """The whole result, as ``--json`` prints it.

    Attributes:
        plan: Digest of what went wrong, the same for the same seed and duration.
        requests_hit: How many requests each API fault hit.
        trouble: How often everything else was done.
        counts: What the history says happened.
        memory_before_mib: Of the largest replica when pods had been bound for a while and nothing
            had gone wrong yet.
        memory_after_mib: Of the largest replica at the end.
        recovered_after_last_fault_s: Until every pod that fits was bound; None if that never was.
        violations: Of the promises; there should be none.
        replays: Of what the replicas recorded; a difference is a violation.
        is_complete: False for a report so far, of a run that goes on or was interrupted: its
            violations are those found by then, without the checks at the end.
        seconds: How long the run took until now.
        longest_wait_s: Longest time that a write of a replica waited in front of the server.
        cpu_s: CPU time of the cluster, of all replicas, and of the benchmark with its checks.
    """

    machine: Machine
    seed: int
    minutes: float
    nodes: int
    plan: str
    requests_hit: dict[str, int]
    trouble: dict[str, int]
    exits: dict[str, int]
    counts: dict[str, int]
    pods_created_per_s: float
    binds_per_s: float
    recoveries: list[Recovery]
    recovered_after_last_fault_s: float | None
    memory_before_mib: float
    memory_after_mib: float
    memory: list[Memory]
    violations: list[str]
    replays: list[Replay] = []
    is_complete: bool = True
    seconds: float = 0.0
    longest_wait_s: float = 0.0
    cpu_s: dict[str, float] = {}

    def with_replays(self, replays: Sequence[Replay]) -> ChaosResult:
        """The result with the replays of the recordings; those that differ are violations."""
        problems = [f"replay of {each.process}: {each.problem}" for each in replays if each.problem]
        if not replays:
            problems.append("no replica left a recording")
        return msgspec.structs.replace(
            self, violations=[*self.violations, *problems], replays=[*replays]
        )


def this_machine() -> Machine:
    """Describe this machine."""
    return Machine(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        command=shlex.join(["stowage", *sys.argv[1:]]),
        system=platform.platform(),
        processor=_processor(),
        cores=usable_cores(),
        python=platform.python_version(),
        load_average=round(os.getloadavg()[0], 2),
        niceness=os.nice(0),
    )


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


def recoveries(disturbances: Iterable[Disturbance]) -> list[Recovery]:
    """A summary for each kind."""
    by_kind: dict[str, list[Disturbance]] = {}
    for each in disturbances:
        by_kind.setdefault(each.kind, []).append(each)
    return [_recovery(kind, group) for kind, group in sorted(by_kind.items())]


def _recovery(kind: str, group: Sequence[Disturbance]) -> Recovery:
    times = [each.recovered_at - each.at for each in group if each.recovered_at is not None]
    if not times:
        return Recovery(kind, len(group), len(group))
    unrecovered = len(group) - len(times)
    return Recovery(kind, len(group), unrecovered, round(median(times), 2), round(max(times), 2))


def memory_of(lives: Iterable[Life]) -> list[Memory]:
    """Memory of every process that lived long enough to be judged."""
    found = []
    for life in lives:
        growth = life.growth()
        if growth is not None:
            settled, last, between_s = growth
            found.append(Memory(life.child.name, round(settled), round(last), round(between_s)))
    return found


def violations_so_far(ledger: Ledger) -> Iterator[str]:
    """Violations that the history shows at any time."""
    yield from ledger.violations
    recovered = (each for each in ledger.disturbances if each.recovered_at is not None)
    yield from filter(None, (each.lateness for each in recovered))


def final_violations(
    ledger: Ledger, state: ClusterState, memory: Iterable[Memory]
) -> Iterator[str]:
    """Violations that the state at the end shows."""
    yield from ledger.violations
    yield from ledger.gangs.torn()
    yield from filter(None, (each.lateness for each in ledger.disturbances))
    yield from overcommitted_nodes(state)
    yield from unjustly_pending(state, ledger.scheduler_name, ledger.gangs.held())
    for each in memory:
        if each.has_grown:
            yield (
                f"{each.process} grew from {each.settled_mib:g} MiB to {each.last_mib:g} MiB "
                f"in {each.between_s:g} s"
            )


def unjustly_pending(
    state: ClusterState, scheduler_name: str, held: Collection[str]
) -> Iterator[str]:
    """A sentence for each pod of the scheduler that is pending without a reason.

    Args:
        state: The cluster.
        scheduler_name: The scheduler.
        held: UIDs of pods that wait for companions.
    """
    for pod in state.pods:
        is_pending = pod.spec.scheduler_name == scheduler_name and not pod.spec.node_name
        if is_pending and pod.metadata.uid not in held:
            yield from _no_reason_to_wait(pod)


def _no_reason_to_wait(pod: Pod) -> Iterator[str]:
    name = pod.metadata.name
    said = next((each for each in pod.status.conditions if each.type == "PodScheduled"), None)
    if name.startswith(GATED) and pod.spec.scheduling_gates:
        return
    if not name.startswith(HUGE):
        yield f"pod {name} is pending and fits" + (f": {said.message}" if said else "")
    elif said is None or said.reason != "Unschedulable":
        yield f"pod {name} is pending and its condition gives no reason"
