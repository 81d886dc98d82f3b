"""What a recording holds, after its calls were repeated."""

from __future__ import annotations

from collections import Counter

import msgspec
from rich.console import RenderableType

from stowage.api.instructions import AttemptResult, EvictPod, PodBound
from stowage.cli.ask.output import plain_table
from stowage.engine import Engine
from stowage.engine.journal import Entry, HandleCall
from stowage.recording.reader import Recording


class Counts(msgspec.Struct):
    """Counts of repeated calls.

    Attributes:
        started: The time of the first call, of the engine's clock.
        ended: The time of the last call.
    """

    calls: int = 0
    events: int = 0
    instructions: int = 0
    attempts: Counter[str] = msgspec.field(default_factory=Counter)
    bound: int = 0
    evicted: int = 0
    started: float = 0.0
    ended: float = 0.0

    def add(self, entry: Entry) -> None:
        """Count a call."""
        if not self.calls:
            self.started = entry.now
        self.ended = entry.now
        self.calls += 1
        self.instructions += len(entry.instructions)
        if isinstance(entry, HandleCall):
            self.events += len(entry.events)
        for each in entry.instructions:
            if isinstance(each, AttemptResult):
                self.attempts[each.result] += 1
            elif isinstance(each, PodBound):
                self.bound += 1
            elif isinstance(each, EvictPod):
                self.evicted += 1


class ReplayReport(msgspec.Struct, frozen=True, rename="camel"):
    """The repeated calls, all of which gave the recorded instructions.

    Attributes:
        stowage: The version of Stowage that recorded.
        started: The time of the first call.
        ended: The time of the last repeated call.
        attempts: Result -> number of attempts.
        bound: Number of pods that were bound.
        evicted: Number of pods that were evicted for others.
        end: Why the recording ends; empty if the replay stopped before.
        nodes: Number of nodes at the end.
        placed: Number of pods on nodes at the end.
        pending: Queue -> number of pods at the end.
    """

    stowage: str
    started: str
    ended: str
    calls: int
    events: int
    instructions: int
    attempts: dict[str, int]
    bound: int
    evicted: int
    end: str
    nodes: int
    placed: int
    pending: dict[str, int]

    @classmethod
    def of(cls, recording: Recording, counts: Counts, engine: Engine) -> ReplayReport:
        """The report about an engine that has repeated the counted calls."""
        cached, header = engine.cache_counts(), recording.header
        return cls(
            header.stowage,
            header.time_of_day(counts.started) if counts.calls else "",
            header.time_of_day(counts.ended) if counts.calls else "",
            counts.calls,
            counts.events,
            counts.instructions,
            dict(sorted(counts.attempts.items())),
            counts.bound,
            counts.evicted,
            recording.end,
            cached["nodes"],
            cached["pods"],
            dict(engine.pending_counts()),
        )


def report_tables(report: ReplayReport, _wide: bool) -> list[RenderableType]:
    """The report for people."""
    attempts = ", ".join(f"{number} {result}" for result, number in report.attempts.items())
    pending = ", ".join(f"{number} {queue}" for queue, number in report.pending.items() if number)
    table = plain_table("", "", show_header=False)
    for name, value in (
        ("recorded by", f"Stowage {report.stowage}"),
        ("from", report.started or "none"),
        ("to", report.ended or "none"),
        ("calls", f"{report.calls} with {report.events} events"),
        ("attempts", attempts or "none"),
        ("pods bound", str(report.bound)),
        ("pods evicted", str(report.evicted)),
        ("end", report.end or "the replay stopped before the end"),
        ("nodes at the end", str(report.nodes)),
        ("pods on nodes", str(report.placed)),
        ("pending pods", pending or "none"),
    ):
        table.add_row(name, value)
    return [f"all {report.instructions} instructions are equal to the recorded ones", table]
