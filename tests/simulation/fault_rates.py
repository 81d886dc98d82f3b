"""Probabilities of the faults between processes, the server and the extenders."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

RECOVERY_S = 45.0
"""Longest wait after the last fault until the cache is complete and a fitting pod is bound."""


@dataclass(slots=True)
class FaultRates:
    """The probability of each kind of fault.

    Attributes:
        refused: A connection is refused: nothing was sent.
        lost: The request is lost on its way.
        answer_lost: The server acts, and its answer is lost.
        torn: The server acts, and the connection is reset in the middle of its answer.
        error: The server answers 500, 503 or 504 without acting.
        too_many: The server answers 429, with Retry-After.
        conflict: The server answers a write with 409 without acting.
        slow: Request or answer takes seconds.
        cut: A watch is cut in the middle of a line, at an event.
        repeated: A watch event comes twice.
        replayed: A watch event comes again after later ones.
        reordered: A watch event comes after its successor.
        stalled: A watch event, and all after it, comes late by seconds.
        stale: A list shows an older state.
        extender_refused: A connection to an extender is refused.
        extender_lost: A request to an extender is lost on its way.
        extender_hung: An extender acts, and its answer never ends.
        extender_slow: An answer of an extender takes seconds, perhaps longer than the timeout.
        extender_torn: An extender acts, and the connection is reset in the middle of its answer.
        extender_error: An extender answers with another code than 200 without acting.
        extender_failed: An extender answers with an Error.
        extender_garbage: An extender acts, and its answer cannot be decoded.
        extender_wrong: An extender answers with objects that do not exist.
        extender_late: An extender binds after the timeout of the request.
        is_down: The server is unreachable.
        happened: How often each fault and action happened.
        calm_since: When the last fault ended.
    """

    refused: float = 0.0
    lost: float = 0.0
    answer_lost: float = 0.0
    torn: float = 0.0
    error: float = 0.0
    too_many: float = 0.0
    conflict: float = 0.0
    slow: float = 0.0
    cut: float = 0.0
    repeated: float = 0.0
    replayed: float = 0.0
    reordered: float = 0.0
    stalled: float = 0.0
    stale: float = 0.0
    extender_refused: float = 0.0
    extender_lost: float = 0.0
    extender_hung: float = 0.0
    extender_slow: float = 0.0
    extender_torn: float = 0.0
    extender_error: float = 0.0
    extender_failed: float = 0.0
    extender_garbage: float = 0.0
    extender_wrong: float = 0.0
    extender_late: float = 0.0
    is_down: bool = False
    happened: Counter[str] = field(default_factory=Counter)
    calm_since: float = float("inf")

    def reset(self) -> None:
        """End all faults."""
        for name in (*FAULTS, *EXTENDER_FAULTS):
            setattr(self, name, 0.0)
        self.is_down = False


FAULTS = (
    "refused",
    "lost",
    "answer_lost",
    "torn",
    "error",
    "too_many",
    "conflict",
    "slow",
    "cut",
    "repeated",
    "replayed",
    "reordered",
    "stalled",
    "stale",
)

EXTENDER_FAULTS = (
    "extender_refused",
    "extender_lost",
    "extender_hung",
    "extender_slow",
    "extender_torn",
    "extender_error",
    "extender_failed",
    "extender_garbage",
    "extender_wrong",
    "extender_late",
)
