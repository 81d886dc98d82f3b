"""Errors that end a demo or a benchmark early; they are reported without a traceback."""

from __future__ import annotations

from rich.markup import escape

from simcluster.harness.launch import NotReadyError
from simcluster.harness.placements import WatchEndedError
from simcluster.harness.processes import ProcessDiedError
from stowage.operator.client.api_client import LOST_ANSWER_ERRORS
from stowage.operator.client.api_error import ApiError

FAILURES = (ProcessDiedError, NotReadyError, WatchEndedError, ApiError, *LOST_ANSWER_ERRORS)


def failure_line(error: BaseException) -> str:
    """The line that reports an error: its text, or its type and arguments if it has none."""
    return f"[red]failed:[/red] {escape(str(error) or repr(error))}"
