"""Replays of what the replicas recorded under chaos: every instruction has to be equal."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

RECORDINGS = "recordings"
_WITHOUT_CALLS = "the recording ends before its first call"
"""How `stowage replay` ends for a process that was killed at its start."""
NO_MEMORY = "a plugin got no memory"
"""The end of a recording whose rest is not compared."""
_REPLAYED = ", replayed "
"""What stands between the recorded instruction and the replayed one."""
_CALLED_S = 3600.0
"""A replay that takes longer hangs."""


class Replay(msgspec.Struct, frozen=True):
    """The replay of the recording of one process.

    Attributes:
        process: The replica and the number of the process.
        size: The size of the recording in bytes.
        end: Why the recording ends.
        problem: Why the replay failed, with the first difference; empty if all was equal.
    """

    process: str
    size: int
    calls: int = 0
    events: int = 0
    instructions: int = 0
    end: str = ""
    problem: str = ""


class _Report(msgspec.Struct, frozen=True):
    """What ``stowage replay -o json`` prints, as far as it is read here."""

    calls: int
    events: int
    instructions: int
    end: str


def replay_all(directory: Path, say: Callable[[str], None]) -> list[Replay]:
    """Replay the recordings of all processes, each in a process of its own."""
    replays = []
    for folder in sorted((directory / RECORDINGS).glob("*")):
        replays.append(_replay(folder))
        found = replays[-1]
        outcome = found.problem or f"{found.instructions} instructions are equal"
        say(f"replay of {found.process}: {outcome}")
    return replays


def _replay(folder: Path) -> Replay:
    process, size = folder.name, sum(path.stat().st_size for path in folder.iterdir())
    command = [sys.executable, "-m", "stowage.cli", "replay", str(folder), "-o", "json"]
    done = subprocess.run(  # noqa: S603 - our own command line
        command, capture_output=True, text=True, check=False, timeout=_CALLED_S
    )
    if done.returncode:
        problem = " ".join(done.stderr.split()) or f"status {done.returncode}"
        if problem.endswith(_WITHOUT_CALLS):
            return Replay(process, size, end="killed before the first call")
        if _had_no_memory(problem):
            return Replay(process, size, end=NO_MEMORY)
        return Replay(process, size, problem=problem)
    report = msgspec.json.decode(done.stdout, type=_Report)
    return Replay(process, size, report.calls, report.events, report.instructions, report.end)


def _had_no_memory(difference: str) -> bool:
    """Whether a plugin failed for want of memory, which it has in the replay."""
    recorded, _, replayed = difference.partition(_REPLAYED)
    return MemoryError.__name__ in recorded and MemoryError.__name__ not in replayed
