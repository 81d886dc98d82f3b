"""Records the attempts of the engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stowage.api.instructions import AttemptResult
from stowage.operator.decisions.records import DecisionIds, RecordedAttempt


class DecisionRecorder:
    """Gives attempts their time and id, and passes them on.

    Args:
        ids: Makes the ids.
        unix_nanoseconds: Returns the present time.
        keep: Called with each attempt; must not block.
    """

    def __init__(
        self,
        ids: DecisionIds,
        unix_nanoseconds: Callable[[], int],
        keep: Sequence[Callable[[RecordedAttempt], None]],
    ) -> None:
        self._ids = ids
        self._unix_nanoseconds = unix_nanoseconds
        self._keep = keep

    def record(self, attempt: AttemptResult) -> str:
        """Record an attempt that has just ended; returns the id of the decision."""
        recorded = RecordedAttempt(attempt, self._unix_nanoseconds())
        for keep in self._keep:
            keep(recorded)
        return self._ids.id_of(attempt.decision)
