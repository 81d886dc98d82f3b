"""What ends a demo or a benchmark early: reported as a sentence, not as a traceback."""

from __future__ import annotations

from scheduler.cli.launch import NotReadyError
from scheduler.cli.placements import WatchEndedError
from scheduler.cli.processes import ProcessDiedError
from scheduler.operator.api_client import LOST_ANSWER_ERRORS
from scheduler.operator.api_error import ApiError

FAILURES = (ProcessDiedError, NotReadyError, WatchEndedError, ApiError, *LOST_ANSWER_ERRORS)
