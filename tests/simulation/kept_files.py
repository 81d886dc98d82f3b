"""Recordings and decision logs that simulated processes write, and what must be true of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import msgspec

from stowage.api.decisions import Decision
from stowage.engine.journal import ReplayDiverged
from stowage.operator.decisions.log_files import PATTERN as LOGS
from stowage.operator.decisions.log_files import DecisionLogOptions
from stowage.operator.run_options import RecordingOptions
from stowage.recording.limits import RecordingLimits
from stowage.recording.names import PATTERN as RECORDINGS
from stowage.state.cache import InvariantViolation
from tests.simulation.configurations import MAX_IN_UNSCHEDULABLE_S
from tests.simulation.replay import replay_recording
from tests.simulation.server import LEASES, ModelServer

_ONE_SEGMENT = RecordingLimits(max_bytes=2**30, max_age_s=1e6)


class KeptFiles:
    """The files of all processes of a simulation.

    Args:
        folder: An empty folder, with a folder for each process later.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def recording(self, process_name: str) -> RecordingOptions:
        """How a process records the calls of its engine."""
        folder = self._folder / process_name
        folder.mkdir()
        return RecordingOptions(folder, _ONE_SEGMENT, MAX_IN_UNSCHEDULABLE_S)

    def decision_log(self, process_name: str) -> DecisionLogOptions:
        """How a process logs its decisions."""
        return DecisionLogOptions(directory=self._folder / process_name / "decisions")

    def violations(self, server: ModelServer) -> Iterator[str]:
        """What is wrong once all processes have ended.

        Each recording replays equal, bit for bit, and ends in a valid state. Each line of a log is
        a decision, and for each binding the log of the process that bound the pod, or let an
        extender bind it, has a decision for the node.
        """
        decided: dict[str, set[tuple[str, str]]] = {}
        for folder in sorted(self._folder.iterdir()):
            leads = partial(_has_kept_the_lease, server, folder.name)
            for path in sorted(folder.glob(RECORDINGS)):
                try:
                    asyncio.run(replay_recording(path, leads))
                except ReplayDiverged as difference:
                    yield f"the recording of {folder.name} does not replay: {difference}"
                except InvariantViolation as broken:
                    yield f"the recording of {folder.name} ends in a broken state: {broken}"
            decisions, numbers = set(), []
            for decision in _decisions(folder):
                numbers.append(int(decision.id.rpartition("-")[2]))
                if decision.result == "scheduled":
                    decisions.add((decision.uid, decision.node))
            if numbers != sorted(set(numbers)):
                yield f"the decisions of {folder.name} are not in order"
            decided[folder.name] = decisions
        yield from _undecided(server, decided)


def _decisions(folder: Path) -> Iterator[Decision]:
    for path in sorted(folder.glob(f"decisions/{LOGS}")):
        for line in path.read_bytes().splitlines():
            yield msgspec.json.decode(line, type=Decision)


def _has_kept_the_lease(server: ModelServer, process_name: str, at: float) -> bool:
    """Whether a process had not led before a time, or still led.

    A former leader may know which devices the next one has given away, and still have its own
    writes about them in flight, which it never lets out.
    """
    holders = [
        change.after["spec"]["holderIdentity"]
        for change in server.history
        if change.path == LEASES and change.after is not None and change.at <= at
    ]
    return process_name not in holders or holders[-1] == process_name


def _undecided(server: ModelServer, decided: Mapping[str, set[tuple[str, str]]]) -> Iterator[str]:
    """Bindings without a decision in the log of their process; an extender's may be any process."""
    anywhere = set().union(*decided.values())
    for change in server.history:
        before, after = change.before, change.after
        node_name = "" if after is None else after.get("spec", {}).get("nodeName", "")
        if after is None or not node_name or (before and before["spec"].get("nodeName")):
            continue
        uid = after["metadata"]["uid"]
        for binder in server.binders.get(uid, ()):
            known = decided.get(binder, anywhere)
            if binder != "foreign" and (uid, node_name) not in known:
                yield f"{binder} bound {uid} to {node_name} without a decision in its log"
