"""Events: their namespace, and the fields the newer API asks for."""

from typing import Any

from simcluster.apiserver.errors import FieldError, invalid_value, required, too_long

Json = dict[str, Any]

_TYPES = ("Normal", "Warning")
_REASON_LIMIT = 128
_NOTE_LIMIT = 1024


def validate_event(event: Json) -> list[FieldError]:
    """Errors of a new Event, in its stored (core) shape.

    One with an ``eventTime`` was written through events.k8s.io/v1, or might have been, and has to
    hold to its rules; any other need only be in its object's namespace.
    """
    found = _validate_namespace(event)
    if not event.get("eventTime"):
        return found
    if not event.get("reportingComponent"):
        found.append(required("reportingController"))
    if not event.get("reportingInstance"):
        found.append(required("reportingInstance"))
    elif len(event["reportingInstance"]) > _REASON_LIMIT:
        found.append(_over("reportingInstance", _REASON_LIMIT))
    for field in ("action", "reason"):
        if not event.get(field):
            found.append(required(field))
        elif len(event[field]) > _REASON_LIMIT:
            found.append(_over(field, _REASON_LIMIT))
    if len(event.get("message", "")) > _NOTE_LIMIT:
        found.append(_over("message", _NOTE_LIMIT))
    return found


def _over(field: str, limit: int) -> FieldError:
    return invalid_value(field, "", f"can have at most {limit} characters")


def _validate_namespace(event: Json) -> list[FieldError]:
    namespace = event["metadata"].get("namespace", "")
    of_object = (event.get("involvedObject") or {}).get("namespace", "")
    if of_object:
        if namespace != of_object:
            detail = "does not match event.namespace"
            return [invalid_value("involvedObject.namespace", of_object, detail)]
    elif namespace not in {"", "default", "kube-system"}:
        detail = "does not match event.namespace"
        return [invalid_value("involvedObject.namespace", of_object, detail)]
    return []


_FIXED = ("involvedObject", "reason", "reportingComponent", "reportingInstance", "action", "type")


def validate_event_update(new: Json, old: Json) -> list[FieldError]:
    """Errors of a changed Event: of one with an ``eventTime``, only the series goes on."""
    found = _validate_namespace(new)
    if not (new.get("eventTime") and old.get("eventTime")):
        return found
    return found + [
        invalid_value(field, new.get(field), "field is immutable")
        for field in _FIXED
        if new.get(field) != old.get(field)
    ]


def validate_event_of_new_api(event: Json) -> list[FieldError]:
    """Errors of an Event posted to events.k8s.io/v1, in its stored shape."""
    found = []
    if not event.get("eventTime"):
        found.append(required("eventTime"))
    if event.get("type") not in _TYPES:
        detail = f"has invalid value: {event.get('type', '')}"
        found.append(invalid_value("type", "", detail))
    found += [
        invalid_value(field, "", "needs to be unset")
        for field in ("firstTimestamp", "lastTimestamp", "count")
        if event.get(field)
    ]
    if len(event.get("message", "")) > _NOTE_LIMIT:
        found.append(too_long("message", _NOTE_LIMIT))
    return found
