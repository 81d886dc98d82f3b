"""The fields of each kind that field selectors support; read when an object is stored."""

import sys
from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]
Path = tuple[str, ...]

_OF_SUBJECT = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_EVENT_SOURCE = ("source", "component")
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "pods": (
        "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
        "spec.hostNetwork", "status.phase", "spec.host", "status.podIP", "status.nominatedNodeName",
    ),
    "nodes": ("spec.unschedulable",),
    "namespaces": ("status.phase",),
    "secrets": ("type",),
    "services": ("spec.clusterIP", "spec.type"),
    "replicationcontrollers": ("status.replicas",),
    "jobs.batch": ("status.successful",),
    "events": (
        *(f"involvedObject.{key}" for key in _OF_SUBJECT),
        "reason", "type", "source", "reportingComponent",
    ),
    "certificatesigningrequests.certificates.k8s.io": ("spec.signerName",),
    "resourceslices.resource.k8s.io": ("spec.nodeName", "spec.driver"),
}  # fmt: skip
_RENAMED: Mapping[tuple[str, str], Path] = {
    ("pods", "spec.host"): ("spec", "nodeName"),
    ("jobs.batch", "status.successful"): ("status", "succeeded"),
    ("events", "source"): _EVENT_SOURCE,
}
"""Fields whose path is not their name."""
_OF_EVENTS_V1: Mapping[str, str] = {
    **{f"regarding.{key}": f"involvedObject.{key}" for key in _OF_SUBJECT},
    "reason": "reason",
    "type": "type",
    "reportingController": "reportingComponent",
}
"""Fields of events.k8s.io/v1 Events, and their names in the core Events that are stored."""
_PATHS: Mapping[str, tuple[Path, ...]] = {
    collection: tuple(_RENAMED.get((collection, each), tuple(each.split("."))) for each in fields)
    for collection, fields in _FIELDS.items()
}
_FALSE_WHEN_UNSET = frozenset((("spec", "unschedulable"), ("spec", "hostNetwork")))


def field_position(collection: str, field: str, *, events_v1: bool = False) -> int | None:
    """The index of a field in :func:`field_values`; ``None`` if it is not supported.

    Args:
        collection: of the objects.
        field: its name in the version that is served.
        events_v1: that version is events.k8s.io/v1.
    """
    if events_v1:
        field = _OF_EVENTS_V1.get(field, "")
    fields = _FIELDS.get(collection, ())
    return fields.index(field) if field in fields else None


def has_fields(collection: str) -> bool:
    """Whether a collection supports fields besides name and namespace."""
    return collection in _FIELDS


def field_values(collection: str, obj: Json) -> tuple[str, ...]:
    """The selectable fields of an object besides name and namespace, as selectors compare them."""
    return tuple([_value(obj, path) for path in _PATHS.get(collection, ())])


def _value(obj: Json, path: Path) -> str:
    found: Any = obj
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    if not found and path == _EVENT_SOURCE:
        found = obj.get("reportingComponent")
    if isinstance(found, str):
        return sys.intern(found)
    if found is None:
        return "false" if path in _FALSE_WHEN_UNSET else ""
    if isinstance(found, bool):
        return "true" if found else "false"
    return str(found)
