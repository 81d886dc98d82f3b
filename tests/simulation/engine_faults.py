"""Exceptions that the engine survives: those of event handlers, of its cycles and of plugins."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from stowage.api.status import Status
from stowage.engine.state.outbox import Outbox
from stowage.framework import PluginFailed
from stowage.framework import failure as failures
from tests.simulation.loop import PROCESS

_EXPECTED = (
    "not evicted for ",
    "no profile any more, ",
    "not tried again, no profile: ",
    "assumed on node ",
)
"""How problems begin that faults of the network, other schedulers and configurations cause."""


@contextmanager
def engine_faults(note: Callable[[str], None]) -> Iterator[None]:
    """Note each problem that no fault around the engine explains, and each plugin that raises.

    The scheduler itself only logs these problems, and retries the pods of these plugins.
    """
    report, failed = Outbox.report, failures.failed

    def noting_report(outbox: Outbox, subject: str, problem: str) -> None:
        if not problem.startswith(_EXPECTED):
            note(f"{PROCESS.get()} reports about {subject}: {problem}")
        report(outbox, subject, problem)

    def noting_failed(doing: str, plugin: str, cause: Exception | Status) -> PluginFailed:
        if isinstance(cause, Exception) and not isinstance(cause, PluginFailed):
            note(f"{PROCESS.get()} failed at {doing}: {cause!r}")
        return failed(doing, plugin, cause)

    with ExitStack() as stack:
        stack.enter_context(patch.object(Outbox, "report", noting_report))
        for module in _modules_with(failed):
            stack.enter_context(patch.object(module, "failed", noting_failed))
        yield


def _modules_with(failed: object) -> list[Any]:
    """The modules of the framework that use this function."""
    return [
        module
        for name, module in list(sys.modules.items())
        if name.startswith("stowage.framework") and vars(module).get("failed") is failed
    ]
