"""Errors that end a demo or a benchmark early; they are reported without a traceback."""

from __future__ import annotations

from simcluster.harness.launch import NotReadyError
from simcluster.harness.placements import WatchEndedError
from simcluster.harness.processes import ProcessDiedError
from stowage.operator.client.api_client import LOST_ANSWER_ERRORS
from stowage.operator.client.api_error import ApiError

FAILURES = (ProcessDiedError, NotReadyError, WatchEndedError, ApiError, *LOST_ANSWER_ERRORS)
