"""Which fields each kind can be selected by, read out of an object once, when it is stored."""

import sys
from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]
Path = tuple[str, ...]

_EVENT_SUBJECT = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_PATHS: Mapping[str, Mapping[str, Path]] = {
    "pods": {
        "spec.nodeName": ("spec", "nodeName"),
        "spec.restartPolicy": ("spec", "restartPolicy"),
        "spec.schedulerName": ("spec", "schedulerName"),
        "spec.serviceAccountName": ("spec", "serviceAccountName"),
        "spec.hostNetwork": ("spec", "hostNetwork"),
        "status.phase": ("status", "phase"),
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
        **{
            f"{prefix}.{key}": ("involvedObject", key)
            for prefix in ("involvedObject", "regarding")
            for key in _EVENT_SUBJECT
        },
        "reason": ("reason",),
        "type": ("type",),
        "source": ("source", "component"),
        "reportingComponent": ("reportingComponent",),
        "reportingController": ("reportingComponent",),
    },
}
_PATHS_READ: Mapping[str, tuple[Path, ...]] = {
    collection: tuple(dict.fromkeys(fields.values())) for collection, fields in _PATHS.items()
}
_FALSE_WHEN_UNSET = frozenset((("spec", "unschedulable"), ("spec", "hostNetwork")))


def field_position(collection: str, field: str) -> int | None:
    """Where in :func:`field_values` a field is found; ``None`` if objects have no such field."""
    path = _PATHS.get(collection, {}).get(field)
    return None if path is None else _PATHS_READ[collection].index(path)


def has_fields(collection: str) -> bool:
    """Whether objects can be selected by more than name and namespace."""
    return collection in _PATHS


def field_values(collection: str, obj: Json) -> tuple[str, ...]:
    """The selectable fields of an object besides name and namespace, as selectors compare them."""
    return tuple([_value(obj, path) for path in _PATHS_READ.get(collection, ())])


def _value(obj: Json, path: Path) -> str:
    found: Any = obj
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    if isinstance(found, str):
        return sys.intern(found)
    if found is None:
        return "false" if path in _FALSE_WHEN_UNSET else ""
    if isinstance(found, bool):
        return "true" if found else "false"
    return str(found)
