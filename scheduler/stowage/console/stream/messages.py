"""The contents of the messages of the stream."""

from __future__ import annotations

from stowage.console.answers.answer import Answer
from stowage.console.clusters.source import SourceState
from stowage.console.decisions.row import DecisionRow

HEARTBEAT_S = 15.0
"""Seconds without another message after which a ping is sent."""


class Reset(Answer, frozen=True):
    """Everything on the screen is to be fetched again."""

    version: int
    why: str


class Refetch(Answer, frozen=True):
    """These answers changed by more than a message tells."""

    version: int
    what: tuple[str, ...]


class PendingCounts(Answer, frozen=True):
    """The number of pending pods, and by queue."""

    version: int
    total: int
    queues: dict[str, int]


class DecisionSample(Answer, frozen=True):
    """The newest of the decisions since the last message; `since` counts all of them."""

    version: int
    since: int
    decisions: list[DecisionRow]


class Hello(Answer, frozen=True):
    """The first message of a connection; `source` as in `SourceState`."""

    version: int
    live: bool
    source: SourceState
    heartbeat_s: float = HEARTBEAT_S


class Ping(Answer, frozen=True):
    """Nothing happened."""

    version: int
