"""Events: their namespace, and the fields that events.k8s.io/v1 requires."""

from simcluster.apiserver import errors
from simcluster.validation import rules
from simcluster.validation.rules import Errors
from simcluster.values import Json

_REASON_LIMIT = 128
_NOTE_LIMIT = 1024
_FIXED = ("involvedObject", "reason", "reportingComponent", "reportingInstance", "action", "type")


def _limited(event: Json, field: str, limit: int) -> Errors:
    if len(event.get(field, "")) > limit:
        yield errors.invalid_value(field, "", f"can have at most {limit} characters")


def _namespace(event: Json, _path: str) -> Errors:
    namespace = event["metadata"].get("namespace", "")
    of_object = (event.get("involvedObject") or {}).get("namespace", "")
    allowed = {of_object} if of_object else {"", "default", "kube-system"}
    if namespace not in allowed:
        yield errors.invalid_value(
            "involvedObject.namespace", of_object, "does not match event.namespace"
        )


def _reporting(event: Json, _path: str) -> Errors:
    """The rules of events.k8s.io/v1, which an Event with an ``eventTime`` has to keep."""
    if not event.get("eventTime"):
        return
    if not event.get("reportingComponent"):
        yield errors.required("reportingController")
    for field in ("reportingInstance", "action", "reason"):
        if not event.get(field):
            yield errors.required(field)
        yield from _limited(event, field, _REASON_LIMIT)
    yield from _limited(event, "message", _NOTE_LIMIT)


def _only_series(new: Json, old: Json) -> Errors:
    """Of an Event with an ``eventTime`` only the series may change."""
    yield from _namespace(new, "")
    if new.get("eventTime") and old.get("eventTime"):
        for field in _FIXED:
            yield from rules.fixed(field)(new, old)


EVENTS = {
    "events": rules.validation(_namespace, _reporting, after=(_only_series,), revalidates=False)
}


def validate_event_of_new_api(event: Json) -> list[errors.FieldError]:
    """Errors of an Event posted to events.k8s.io/v1, in its stored shape."""
    found = []
    if not event.get("eventTime"):
        found.append(errors.required("eventTime"))
    if event.get("type") not in {"Normal", "Warning"}:
        found.append(
            errors.invalid_value("type", "", f"has invalid value: {event.get('type', '')}")
        )
    found += [
        errors.invalid_value(field, "", "needs to be unset")
        for field in ("firstTimestamp", "lastTimestamp", "count")
        if event.get(field)
    ]
    if len(event.get("message", "")) > _NOTE_LIMIT:
        found.append(errors.too_long("message", _NOTE_LIMIT))
    return found
