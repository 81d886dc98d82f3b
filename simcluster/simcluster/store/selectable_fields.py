"""The fields of each kind that field selectors support; read when an object is stored."""

import sys
from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]
Path = tuple[str, ...]

_EVENT_SUBJECT = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_EVENT_SOURCE = ("source", "component")
_PATHS: Mapping[str, Mapping[str, Path]] = {
    "pods": {
        "spec.nodeName": ("spec", "nodeName"),
        "spec.restartPolicy": ("spec", "restartPolicy"),
        "spec.schedulerName": ("spec", "schedulerName"),
        "spec.serviceAccountName": ("spec", "serviceAccountName"),
        "spec.hostNetwork": ("spec", "hostNetwork"),
        "status.phase": ("status", "phase"),
        "spec.host": ("spec", "nodeName"),
        "status.podIP": ("status", "podIP"),
        "status.nominatedNodeName": ("status", "nominatedNodeName"),
    },
    "nodes": {"spec.unschedulable": ("spec", "unschedulable")},
    "namespaces": {"status.phase": ("status", "phase")},
    "secrets": {"type": ("type",)},
    "services": {"spec.clusterIP": ("spec", "clusterIP"), "spec.type": ("spec", "type")},
    "replicationcontrollers": {"status.replicas": ("status", "replicas")},
    "jobs.batch": {"status.successful": ("status", "succeeded")},
    "events": {
        **{f"involvedObject.{key}": ("involvedObject", key) for key in _EVENT_SUBJECT},
        "reason": ("reason",),
        "type": ("type",),
        "source": _EVENT_SOURCE,
        "reportingComponent": ("reportingComponent",),
    },
    "certificatesigningrequests.certificates.k8s.io": {"spec.signerName": ("spec", "signerName")},
    "resourceslices.resource.k8s.io": {
        "spec.nodeName": ("spec", "nodeName"),
        "spec.driver": ("spec", "driver"),
    },
}
_OF_EVENTS_V1: Mapping[str, str] = {
    **{f"regarding.{key}": f"involvedObject.{key}" for key in _EVENT_SUBJECT},
    "reason": "reason",
    "type": "type",
    "reportingController": "reportingComponent",
}
"""Fields of events.k8s.io/v1 Events, and their names in the core Events that are stored."""
_PATHS_READ: Mapping[str, tuple[Path, ...]] = {
    collection: tuple(dict.fromkeys(fields.values())) for collection, fields in _PATHS.items()
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
    path = _PATHS.get(collection, {}).get(field)
    return None if path is None else _PATHS_READ[collection].index(path)


def has_fields(collection: str) -> bool:
    """Whether a collection supports fields besides name and namespace."""
    return collection in _PATHS


def field_values(collection: str, obj: Json) -> tuple[str, ...]:
    """The selectable fields of an object besides name and namespace, as selectors compare them."""
    return tuple([_value(obj, path) for path in _PATHS_READ.get(collection, ())])


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
