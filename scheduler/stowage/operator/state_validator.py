"""Checks the invariants of the engine's state while it runs, a few milliseconds at a time.

On SIGUSR2, and again and again while the replica stands by. A violation is reported as a problem.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator

import structlog

from stowage.api.instructions import ReportProblem
from stowage.engine import Engine
from stowage.operator.clock import Clock
from stowage.state import InvariantViolation

SLICE_S = 0.002
"""Time for steps before the event loop gets its turn; the last step may end later."""
PAUSE_S = 0.018
"""Between two slices, so that a validation takes a tenth of the time of the event loop."""
STANDBY_INTERVAL_S = 600.0
"""Between two validations of a standby."""
MAX_TEXT = 1_000
"""A violation may name every node."""

CONSISTENT, INCONSISTENT, FAILED = "consistent", "inconsistent", "failed"

log = structlog.get_logger("stowage.operator.state_validator")


class StateValidator:
    """Validates the state of an engine, which goes on working meanwhile.

    Args:
        engine: The engine.
        report: Takes the problems that are found.
        is_standby: Whether this replica stands by and has synced.
        clock: Time and sleep.
    """

    def __init__(
        self,
        engine: Engine,
        report: Callable[[ReportProblem], None],
        is_standby: Callable[[], bool],
        clock: Clock,
    ) -> None:
        self._engine = engine
        self._report = report
        self._is_standby = is_standby
        self._clock = clock
        self._counts = Counter({CONSISTENT: 0, INCONSISTENT: 0, FAILED: 0})
        self._running: asyncio.Task[None] | None = None

    def result_counts(self) -> Counter[str]:
        """The number of validations that ended, by result."""
        return self._counts

    def start(self) -> None:
        """Validate in the background, unless a validation that was started here still runs."""
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self.validate(lambda: True), name="validation")

    async def run(self) -> None:
        """Validate from time to time while this replica stands by; runs until cancelled."""
        while True:
            await self._clock.sleep(STANDBY_INTERVAL_S)
            if self._is_standby():
                await self.validate(self._is_standby)

    async def validate(self, goes_on: Callable[[], bool]) -> None:
        """Validate once; report what is wrong.

        Args:
            goes_on: Called before each slice; false ends the validation without a result.
        """
        began_at, steps = self._clock.monotonic(), self._engine.validation_steps()
        try:
            while goes_on():
                if not self._take_slice(steps):
                    self._counts[CONSISTENT] += 1
                    seconds = round(self._clock.monotonic() - began_at, 3)
                    log.info("state validated", seconds=seconds)
                    return
                await self._clock.sleep(PAUSE_S)
        except InvariantViolation as violation:
            self._counts[INCONSISTENT] += 1
            self._report(ReportProblem("state", str(violation)[:MAX_TEXT]))
        except Exception as error:
            # An inconsistent state may break a check, too.
            self._counts[FAILED] += 1
            log.exception("state not validated")
            self._report(ReportProblem("state", f"not validated: {error!r}"[:MAX_TEXT]))

    def _take_slice(self, steps: Iterator[None]) -> bool:
        """Take steps for a slice of time; returns whether there are more.

        While the engine tries the members of a pod group its state is not consistent.
        """
        if self._engine.is_in_steps:
            return True
        ends_at = self._clock.monotonic() + SLICE_S
        return any(self._clock.monotonic() >= ends_at for _ in steps)
