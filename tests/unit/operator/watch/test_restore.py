"""Once a restore of the API server was noted, a process writes nothing any more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from stowage.api.config.loading import load_configuration
from stowage.cli.composition import run_options
from stowage.operator import process
from stowage.operator.client.connection import Connection
from stowage.operator.client.gated_client import GatedClient
from stowage.operator.watch.restore import Restore
from tests.support.integration.running_scheduler import CONFIGURATION


async def test_nothing_is_written_after_a_restore(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even without leader election, nor what was queued before: it is of another past."""
    restore, gates = Restore(), list[Callable[[], bool]]()

    def gated(connection: Connection, may_write: Callable[[], bool], *rest: Any) -> GatedClient:
        gates.append(may_write)
        return GatedClient(connection, may_write, *rest)

    monkeypatch.setattr(process, "Restore", lambda: restore)
    monkeypatch.setattr(process, "GatedClient", gated)
    options = run_options(load_configuration(CONFIGURATION), None, None, 300.0)
    process.Process(replace(options, leader_election=None), Connection(None))
    assert [may_write() for may_write in gates] == [True]
    restore.note()
    with capture_logs() as lines:
        await restore.until_noted()
    text = "the API server was set back to an earlier state"
    assert lines == [{"event": text, "log_level": "error"}]
    assert [may_write() for may_write in gates] == [False]
