"""What the parts of a process notice reaches the parts that act on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from stowage.api.config.loading import load_configuration
from stowage.api.instructions import ReportProblem
from stowage.cli.composition import run_options
from stowage.operator import process
from stowage.operator.client.connection import Connection
from stowage.operator.state_validator import StateValidator
from stowage.operator.watch.reflector import Reflector
from stowage.operator.watch.restore import Restore
from tests.support.integration.running_scheduler import CONFIGURATION


def _make_process() -> None:
    options = run_options(load_configuration(CONFIGURATION), None, None, 300.0)
    process.Process(replace(options, leader_election=None), Connection(None))


async def test_each_watch_can_note_that_the_api_server_was_restored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    restore, told = Restore(), list[Callable[[], None]]()

    class Noted(Reflector[Any]):
        def __init__(self, *parts: Any) -> None:
            super().__init__(*parts)
            told.append(self._on_restored)

    monkeypatch.setattr(process, "Restore", lambda: restore)
    monkeypatch.setattr(process, "Reflector", Noted)
    _make_process()
    assert len(told) > 5
    assert set(told) == {restore.note}


async def test_what_is_wrong_with_the_state_is_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Callable[[ReportProblem], None]] = []

    class Noted(StateValidator):
        def __init__(self, *parts: Any) -> None:
            super().__init__(*parts)
            told.append(self._report)

    monkeypatch.setattr(process, "StateValidator", Noted)
    _make_process()
    (report,) = told
    with capture_logs() as lines:
        report(ReportProblem("state", "a pod is counted twice"))
    line = {"event": "problem", "subject": "state", "text": "a pod is counted twice"}
    assert lines == [line | {"log_level": "warning"}]
