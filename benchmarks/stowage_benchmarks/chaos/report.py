"""Prints the result of `stowage bench chaos`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from stowage_benchmarks.chaos.replays import NO_MEMORY, Replay
from stowage_benchmarks.chaos.result import ChaosResult


def write_report(file: Path, result: ChaosResult) -> None:
    """Write a report as JSON; a reader never sees half of it.

    Raises:
        OSError: the file cannot be written.
    """
    beside = file.with_name(f".{file.name}.part")
    beside.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n")
    beside.replace(file)


def print_chaos(console: Console, result: ChaosResult) -> None:
    """Print the faults, their effects and every violation."""
    _print_counts(console, "requests hit by a fault", result.requests_hit)
    _print_counts(console, "trouble", result.trouble)
    _print_counts(console, "ends of replicas", result.exits)
    _print_counts(console, "what happened", result.counts)
    table = Table("until pods were bound again", "times", "median s", "max s", box=None)
    for each in result.recoveries:
        table.add_row(each.kind, str(each.times), _seconds(each.median_s), _seconds(each.max_s))
    table.add_row("last fault over", "1", *[_seconds(result.recovered_after_last_fault_s)] * 2)
    console.print(table)
    console.print(
        f"memory of a replica: {result.memory_before_mib:g} MiB before, "
        f"{result.memory_after_mib:g} MiB after"
    )
    used = ", ".join(f"{name} {seconds:,g} s" for name, seconds in result.cpu_s.items())
    console.print(
        f"CPU time in {result.seconds:,.0f} s: {used}; "
        f"a write waited up to {result.longest_wait_s:.2f} s in front of the server"
    )
    for memory in sorted(result.memory, key=lambda each: each.settled_mib - each.last_mib)[:3]:
        console.print(
            f"most growth: {memory.process}, from {memory.settled_mib:g} MiB to "
            f"{memory.last_mib:g} MiB in {memory.between_s:g} s"
        )
    if result.replays:
        _print_replays(console, result.replays)
    console.print(
        f"{result.counts.get('pods bound', 0):,} pods bound, {result.binds_per_s:g} a second; "
        f"seed {result.seed}, plan {result.plan}; {len(result.violations)} violations"
    )
    for violation in result.violations:
        console.print(f"[red]violation:[/red] {escape(violation)}")


def _print_replays(console: Console, replays: Sequence[Replay]) -> None:
    equal = [each for each in replays if not each.problem and each.end != NO_MEMORY]
    console.print(
        f"{len(equal)} of {len(replays)} recordings replay equal: "
        f"{sum(each.calls for each in equal):,} calls with "
        f"{sum(each.events for each in equal):,} events and "
        f"{sum(each.instructions for each in equal):,} instructions, "
        f"{sum(each.size for each in replays) / 2**20:.1f} MiB"
    )


def _print_counts(console: Console, heading: str, counts: Mapping[str, int]) -> None:
    table = Table(heading, "", box=None)
    for name, count in counts.items():
        table.add_row(escape(name), f"{count:,}")
    console.print(table)


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
