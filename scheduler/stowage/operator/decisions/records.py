"""Attempts with id and time, and their conversion to the records that users read."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from stowage.api.attempt_decisions import decision_of
from stowage.api.decisions import Decision
from stowage.api.instructions import AttemptResult


class RecordedAttempt(msgspec.Struct, frozen=True):
    """An attempt as it is kept.

    Attributes:
        attempt: The engine's result.
        unix_ns: When the attempt ended.
    """

    attempt: AttemptResult
    unix_ns: int


class DecisionIds(msgspec.Struct, frozen=True):
    """Makes ids from the engine's numbers: ``prefix-number``.

    Attributes:
        prefix: Differs for each start of the scheduler; a later start has a greater one.
    """

    prefix: str

    @classmethod
    def starting_at(cls, unix_ns: int) -> DecisionIds:
        """The ids of a process that starts at this time."""
        return cls(f"{unix_ns:016x}")

    def id_of(self, number: int) -> str:
        """The id of the decision with this number; empty for 0, which is none."""
        return f"{self.prefix}-{number}" if number else ""

    def number_of(self, decision_id: str) -> int:
        """The number in an id; 0 if the id is of another process."""
        prefix, _, number = decision_id.rpartition("-")
        is_ours = prefix == self.prefix and number.isascii() and number.isdigit()
        return int(number) if is_ours and len(number) < 19 else 0

    def decision(self, recorded: RecordedAttempt) -> Decision:
        """The record of an attempt, as users read it."""
        time = datetime.fromtimestamp(recorded.unix_ns // 1_000 / 1e6, UTC)
        text = time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return decision_of(recorded.attempt, self.id_of(recorded.attempt.decision), text)
