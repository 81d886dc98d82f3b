"""Recordings and decision logs of simulated processes are right, and faults in them show."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from stowage.engine import Engine
from stowage.engine.journal import HandleCall
from stowage.operator.decisions.log import DecisionLog
from stowage.recording.recorder import Recorder
from stowage.state.cache import InvariantViolation
from tests.simulation.plan import Emphasis
from tests.simulation.report import EMPHASES
from tests.simulation.run import simulate


@pytest.mark.parametrize("emphasis", EMPHASES)
def test_recordings_replay_and_logs_agree_with_the_bindings(emphasis: str, tmp_path: Path) -> None:
    assert not simulate(2, EMPHASES[emphasis], files=tmp_path).violations
    assert len(list(tmp_path.rglob("*.recording"))) > 1
    assert sum(len(each.read_bytes()) for each in tmp_path.rglob("*.jsonl")) > 10_000


def test_a_former_leader_may_know_what_the_next_one_gave_away(tmp_path: Path) -> None:
    """Of devices: its own write about one of them was in flight when it lost the Lease."""
    assert not simulate(840048, EMPHASES["devices"], files=tmp_path).violations


def _loses_some_decisions(usual: Any) -> Any:
    def add(self: Any, recorded: Any) -> None:
        if recorded.attempt.decision % 5:
            usual(self, recorded)

    return add


def _logs_twice(usual: Any) -> Any:
    def add(self: Any, recorded: Any) -> None:
        usual(self, recorded)
        usual(self, recorded)

    return add


def _names_another_node(usual: Any) -> Any:
    def add(self: Any, recorded: Any) -> None:
        attempt = replace(recorded.attempt, node_name=recorded.attempt.node_name.upper())
        usual(self, replace(recorded, attempt=attempt))

    return add


def _loses_some_events(usual: Any) -> Any:
    def record(self: Any, entry: Any) -> None:
        if isinstance(entry, HandleCall) and len(entry.events) > 1:
            entry = replace(entry, events=entry.events[1:])
        usual(self, entry)

    return record


def _is_never_valid(_usual: Any) -> Any:
    def validate(self: Any) -> None:
        raise InvariantViolation("everything", "right", "wrong")

    return validate


class FileFault(NamedTuple):
    """A fault in what a process writes: the method to replace, its replacement, the finding."""

    owner: Any
    method: str
    plant: Callable[[Any], Any]
    finding: str


PLANTED = {
    "a recording lacks events": FileFault(
        Recorder, "record", _loses_some_events, "does not replay"
    ),
    "a state is not valid": FileFault(
        Engine, "validate", _is_never_valid, "ends in a broken state"
    ),
    "a log lacks decisions": FileFault(
        DecisionLog, "add", _loses_some_decisions, "without a decision in its log"
    ),
    "a log has decisions twice": FileFault(DecisionLog, "add", _logs_twice, "are not in order"),
    "a log names another node": FileFault(
        DecisionLog, "add", _names_another_node, "without a decision in its log"
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fault = PLANTED[name]
    usual = getattr(fault.owner, fault.method)
    monkeypatch.setattr(fault.owner, fault.method, fault.plant(usual))
    emphasis = Emphasis(often=frozenset(["create_burst"]))
    violations = simulate(2, emphasis, files=tmp_path).violations
    assert [each for each in violations if fault.finding in each]
