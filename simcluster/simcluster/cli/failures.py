"""What ends a demo or a benchmark early: reported as a sentence, not as a traceback."""

from __future__ import annotations

from stowage.operator.client.api_client import LOST_ANSWER_ERRORS
from stowage.operator.client.api_error import ApiError

from simcluster.cli.launch import NotReadyError
from simcluster.cli.placements import WatchEndedError
from simcluster.cli.processes import ProcessDiedError

FAILURES = (ProcessDiedError, NotReadyError, WatchEndedError, ApiError, *LOST_ANSWER_ERRORS)
