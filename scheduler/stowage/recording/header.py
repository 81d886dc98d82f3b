"""The header of a segment: how the engine was made, and when."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec


class Header(msgspec.Struct, frozen=True, rename="camel"):
    """What a replay needs besides the calls.

    Attributes:
        stowage: The version of Stowage that made the decisions.
        unix_offset_s: Seconds since 1970 at the engine's time 0.
        configuration: The configuration of the engine, in the format of its file.
        configuration_hash: Its hash, as in the results of attempts.
        max_in_unschedulable_s: Value of ``--pod-max-in-unschedulable-pods-duration``.
        decisions: Whether the calls hold the decisions of an engine. An observer of another
            scheduler records events only.
        feature_gates: The feature gates that were set by name.
        segment: Number of the segment; the first is 1.
        checkpoint: Whether the segment begins with a checkpoint. The first one of a process does
            not: nothing was known before.
    """

    stowage: str
    unix_offset_s: float
    configuration: dict[str, Any]
    configuration_hash: str
    max_in_unschedulable_s: float
    decisions: bool = True
    feature_gates: dict[str, bool] = {}
    segment: int = 1
    checkpoint: bool = False

    @property
    def is_repeatable(self) -> bool:
        """Whether the calls can be repeated and compared: all decisions since the start."""
        return self.decisions and not self.checkpoint

    def time_of_day(self, now: float) -> str:
        """The time of a call, as in ``metav1.MicroTime``."""
        at = datetime.fromtimestamp(self.unix_offset_s + now, UTC)
        return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


_PRIVATE = ("clientConnection", "leaderElection")


def recorded_configuration(engine_part: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration without what concerns the connection to the API server."""
    return {name: value for name, value in engine_part.items() if name not in _PRIVATE}
