"""Converts Events between core v1, which is stored, and events.k8s.io/v1."""

from typing import Any

Json = dict[str, Any]

_RENAMED = (
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
)
_TO_EVENTS_V1 = dict(_RENAMED)
_TO_CORE = {new: old for old, new in _RENAMED}


def to_events_v1(event: Json) -> Json:
    """A stored core Event as events.k8s.io/v1 shows it."""
    return {_TO_EVENTS_V1.get(key, key): value for key, value in event.items()}


def to_core(event: Json) -> Json:
    """An events.k8s.io/v1 Event as it is stored."""
    return {_TO_CORE.get(key, key): value for key, value in event.items()}
