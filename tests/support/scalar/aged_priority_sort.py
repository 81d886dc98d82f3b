"""The order of AgedPrioritySort, as a comparison of two pods in exact fractions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction

from stowage.api.objects.pod import Pod

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def goes_before(first: Pod, second: Pod, seconds: Fraction) -> bool:
    """Whether the first pod is further ahead than the second, whenever they were queued."""
    lead = ((first.spec.priority or 0) - (second.spec.priority or 0)) * seconds
    return created(first) - created(second) < lead


def created(pod: Pod) -> Fraction:
    """When the pod was created, in seconds since 1970; 0 if it has no creation time."""
    text = pod.metadata.creation_timestamp
    if text is None:
        return Fraction(0)
    moment = datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    return Fraction((moment - _EPOCH) // timedelta(seconds=1))
