"""Plugin AgedPrioritySort: a priority point is worth some seconds of age, so no pod starves."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime

from stowage.api.config.loading import ConfigError
from stowage.api.config.types import ConfigStruct
from stowage.framework import PluginTraits
from stowage.state.pods.pod_info import PodInfo

_NANOSECONDS = 1_000_000_000
_MAX_SECONDS = 1e9


class AgedPrioritySortArgs(ConfigStruct, frozen=True):
    """The seconds of age that a pod of one more priority point is ahead."""

    seconds_per_priority_point: float = 1.0

    def validate(self) -> Iterator[ConfigError]:
        """Yield an error if the number of seconds is out of bounds."""
        seconds = self.seconds_per_priority_point
        if not 0 <= seconds <= _MAX_SECONDS or math.isnan(seconds):
            yield ConfigError("secondsPerPriorityPoint", seconds, f"from 0 to {_MAX_SECONDS:.0f}")


class AgedPrioritySort:
    """Orders the active queue by creation time minus priority times seconds.

    The key of a pod does not change while it waits. Only pods that are created within
    ``(their priority - the pod's priority) x seconds`` after a pod go before it.
    """

    name = "AgedPrioritySort"
    traits = PluginTraits()

    def __init__(self, args: AgedPrioritySortArgs) -> None:
        # Whole numbers: a float of the time since 1970 has no room for small fractions.
        self._point_ns = round(args.seconds_per_priority_point * _NANOSECONDS)

    def sort_key(self, pod: PodInfo, queued_at: float) -> tuple[int, float]:
        """``(created - priority x seconds, queued_at)``, the first in nanoseconds since 1970.

        A pod without a creation time is the oldest.
        """
        age = _created_s(pod) * _NANOSECONDS - pod.pod_class.priority * self._point_ns
        return (age, queued_at)


def _created_s(pod: PodInfo) -> int:
    text = pod.creation_timestamp
    if text is None:
        return 0
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())
