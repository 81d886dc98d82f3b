"""The parts of a process are connected: what one of them finds reaches those who act on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from stowage.operator import process as module
from stowage.operator.client.connection import Connection
from stowage.operator.decisions.log_files import DecisionLogOptions
from stowage.operator.lease import LeaderElectionOptions
from stowage.operator.metrics.scheduler_metrics import Metrics
from stowage.operator.process import Process
from stowage.operator.run_options import RunOptions
from stowage.operator.signals import SignalHandlers
from stowage.operator.watch.cache_comparer import CacheComparer
from stowage.state import InvariantViolation
from tests.support.round_robin_engine import RoundRobinEngine
from tests.unit.operator.tasks import let_tasks_run


class _Inconsistent(RoundRobinEngine):
    """An engine whose state is wrong."""

    def validation_steps(self) -> Iterator[None]:
        yield
        raise InvariantViolation("pods by row", 3, 2)


class _Assembled:
    """A process that is not started, and the parts that it made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
        self._monkeypatch = monkeypatch
        metrics, signals = self.made("Metrics"), self.made("SignalHandlers")
        self.gates, self.reflectors = self.made("GatedClient"), self.made("Reflector")
        options = RunOptions(
            engine_factory=lambda _parts: _Inconsistent(),
            scheduler_names=("stowage",),
            owns_process=False,
        )
        self.process = Process(replace(options, **changes), Connection(None))
        ((_, metrics_made),) = metrics
        assert isinstance(metrics_made, Metrics)
        self.metrics = metrics_made
        (((_stop, self.check_state, *_rest), handlers),) = signals
        assert isinstance(handlers, SignalHandlers)

    def made(self, name: str) -> list[tuple[tuple[Any, ...], object]]:
        """The arguments and the results of each time that the process makes such a part."""
        make: Callable[..., object] = getattr(module, name)
        found: list[tuple[tuple[Any, ...], object]] = []

        def note(*arguments: Any, **options: Any) -> object:
            part = make(*arguments, **options)
            found.append((arguments, part))
            return part

        self._monkeypatch.setattr(module, name, note)
        return found

    def value(self, metric: str, **labels: str) -> float | None:
        """The value of a metric at a scrape."""
        return self.metrics.registry.get_sample_value(metric, labels)


async def test_a_violation_that_a_signal_finds_is_a_problem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(CacheComparer, "start", lambda _self: None)  # it asks the API server
    it = _Assembled(monkeypatch)
    with capture_logs() as logs:
        it.check_state()
        await let_tasks_run()
    problems = [(line["subject"], line["text"]) for line in logs if line["event"] == "problem"]
    assert problems == [("state", "pods by row: expected 3, found 2")]
    assert it.value("stowage_problems_total") == 1
    assert it.value("stowage_state_validations_total", result="inconsistent") == 1


async def test_each_reflector_can_end_all_writes_when_the_server_was_restored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    it = _Assembled(monkeypatch)
    (((_connection, may_write, *_rest), _client),) = it.gates
    assert may_write()
    notes = {arguments[-1] for arguments, _ in it.reflectors}
    (note,) = notes
    note()
    assert not may_write()


@pytest.mark.parametrize("logs_decisions", [True, False])
async def test_the_decision_log_has_metrics_if_there_is_one(
    logs_decisions: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = DecisionLogOptions(directory=tmp_path) if logs_decisions else None
    it = _Assembled(monkeypatch, decision_log=options)
    want = 0.0 if logs_decisions else None
    assert it.value("stowage_decision_log_decisions_total", outcome="written") == want


async def test_a_replica_counts_as_leader_only_while_it_may_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    election = LeaderElectionOptions(identity="me")
    it = _Assembled(monkeypatch, leader_election=election)
    (((_connection, may_write, *_rest), _client),) = it.gates
    assert not may_write()
    assert it.value("leader_election_master_status", name="stowage") == 0.0
