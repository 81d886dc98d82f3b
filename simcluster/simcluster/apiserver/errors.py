"""Errors as the API server words them: one exception that carries a ``Status``."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from simcluster.kinds.resources import Resource

Json = dict[str, Any]

MODIFIED_SINCE = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


class FieldError(NamedTuple):
    """One cause of a 422: ``spec.containers: Required value``."""

    field: str
    reason: str
    message: str


def required(field: str, detail: str = "") -> FieldError:
    """A field that must be set."""
    return FieldError(
        field, "FieldValueRequired", "Required value" + (f": {detail}" if detail else "")
    )


def invalid_value(field: str, value: object, detail: str) -> FieldError:
    """A field whose value is not acceptable."""
    return FieldError(field, "FieldValueInvalid", f"Invalid value: {_shown(value)}: {detail}")


def unsupported_value(field: str, value: object, supported: Sequence[str]) -> FieldError:
    """A field whose value is not supported; lists the supported ones in the given order."""
    known = ", ".join(f'"{word}"' for word in supported)
    message = f"Unsupported value: {_shown(value)}: supported values: {known}"
    return FieldError(field, "FieldValueNotSupported", message)


def duplicate_value(field: str, value: object, detail: str = "") -> FieldError:
    """A value that occurs twice."""
    message = f"Duplicate value: {_shown(value)}" + (f": {detail}" if detail else "")
    return FieldError(field, "FieldValueDuplicate", message)


def not_found_value(field: str, value: object) -> FieldError:
    """A value that names something that does not exist."""
    return FieldError(field, "FieldValueNotFound", f"Not found: {_shown(value)}")


def too_long(field: str, limit: int) -> FieldError:
    """A text of too many bytes."""
    return FieldError(field, "FieldValueTooLong", f"Too long: may not be more than {limit} bytes")


def too_many(field: str, count: int, limit: int) -> FieldError:
    """A list or map of too many entries."""
    items = "item" if limit == 1 else "items"
    message = f"Too many: {count}: must have at most {limit} {items}"
    return FieldError(field, "FieldValueTooMany", message)


def forbidden_field(field: str, detail: str) -> FieldError:
    """A field that must not be set or changed."""
    return FieldError(field, "FieldValueForbidden", f"Forbidden: {detail}")


_ESCAPES = dict(zip('"\\\a\b\f\n\r\t\v', '"\\abfnrtv', strict=True))


_OF_HTML = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
"""What Go escapes in JSON."""


def _shown(value: object) -> str:
    """A value as JSON, or a text as Go quotes it."""
    if not isinstance(value, str):
        text = msgspec.json.encode(value).decode()
        return text.translate(_OF_HTML) if isinstance(value, dict | list) else text
    return f'"{"".join(map(_escaped, value))}"'


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return f"\\{_ESCAPES[character]}"
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


class ApiError(Exception):
    """A request the API server refuses.

    Args:
        code: the HTTP status.
        reason: ``Status.reason``; empty where the server gives none.
        message: ``Status.message``.
        details: ``Status.details``; left out when ``None``.
        retry_after_s: sent as the ``Retry-After`` header when above 0.
    """

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: Json | None = None,
        retry_after_s: int = 0,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.retry_after_s = retry_after_s

    def status(self) -> Json:
        """The ``Status`` object sent as the answer's body."""
        body: Json = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            body["reason"] = self.reason
        details = self.details
        if self.retry_after_s:
            details = {**(details or {}), "retryAfterSeconds": self.retry_after_s}
        if details is not None:
            body["details"] = details
        body["code"] = self.code
        return body


def success(details: Json) -> Json:
    """The ``Status`` of a successful request that has no object to answer with."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    }


def _resource_details(resource: Resource, name: str) -> Json:
    details = {"name": name, "group": resource.group}
    return {**{key: value for key, value in details.items() if value}, "kind": resource.plural}


def not_found(resource: Resource, name: str) -> ApiError:
    """404: ``pods "a" not found``."""
    message = f'{resource.qualified} "{name}" not found'
    return ApiError(404, "NotFound", message, _resource_details(resource, name))


def unknown_path() -> ApiError:
    """404 for a resource or subresource that is not served."""
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(resource: Resource, name: str) -> ApiError:
    """409: ``pods "a" already exists``."""
    message = f'{resource.qualified} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, _resource_details(resource, name))


def conflict(resource: Resource, name: str, why: str = MODIFIED_SINCE) -> ApiError:
    """409: the write was based on an older revision, or the state forbids it."""
    return _not_fulfilled(resource.qualified, name, why, _resource_details(resource, name))


def precondition_failed(resource: Resource, name: str, why: str) -> ApiError:
    """409 of a deletion on conditions, whose message and details name the Kind."""
    qualified = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    details = {**_resource_details(resource, name), "kind": resource.kind}
    return _not_fulfilled(qualified, name, why, details)


def binding_conflict(pod_name: str, why: str) -> ApiError:
    """409 of the binding subresource, whose details name ``pods/binding``."""
    return _not_fulfilled("pods/binding", pod_name, why, {"name": pod_name, "kind": "pods/binding"})


def _not_fulfilled(subject: str, name: str, why: str, details: Json) -> ApiError:
    message = f'Operation cannot be fulfilled on {subject} "{name}": {why}'
    return ApiError(409, "Conflict", message, details)


def invalid(group: str, kind: str, name: str, errors: Sequence[FieldError]) -> ApiError:
    """422 with one cause per field error."""
    texts = list(dict.fromkeys(f"{error.field}: {error.message}" for error in errors))
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    qualified = f"{kind}.{group}" if group else kind
    details = {"name": name, "group": group, "kind": kind}
    shown: Json = {key: value for key, value in details.items() if value}
    shown["causes"] = [
        {"reason": error.reason, "message": error.message, "field": error.field} for error in errors
    ]
    return ApiError(422, "Invalid", f'{qualified} "{name}" is invalid: {listed}', shown)


def invalid_object(resource: Resource, name: str, errors: Sequence[FieldError]) -> ApiError:
    """422 for an object of a served kind."""
    return invalid(resource.group, resource.kind, name, errors)


def forbidden(resource: Resource, name: str, why: str) -> ApiError:
    """403, as admission plugins answer."""
    message = f'{resource.qualified} "{name}" is forbidden: {why}'
    return ApiError(403, "Forbidden", message, _resource_details(resource, name))


def namespace_terminating(resource: Resource, name: str, namespace: str) -> ApiError:
    """403: nothing is created in a terminating namespace."""
    terminated = f"namespace {namespace} is being terminated"
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    refusal = forbidden(resource, name, why)
    cause = {"reason": "NamespaceTerminating", "message": terminated, "field": "metadata.namespace"}
    refusal.details = {**(refusal.details or {}), "causes": [cause]}
    return refusal


def bad_request(message: str) -> ApiError:
    """400."""
    return ApiError(400, "BadRequest", message)


def request_entity_too_large(limit_bytes: int) -> ApiError:
    """413: the body is larger than the server takes."""
    message = f"Request entity too large: limit is {limit_bytes}"
    return ApiError(413, "RequestEntityTooLarge", message)


def unsupported_media_type(accepted: Sequence[str]) -> ApiError:
    """415: the body's content type is not among ``accepted``."""
    why = "the body of the request was in an unknown format - accepted media types include"
    return ApiError(415, "UnsupportedMediaType", f"{why}: {', '.join(accepted)}")


def rejected() -> ApiError:
    """422 without a reason, as for a JSON patch that does not apply."""
    message = "the server rejected our request due to an error in our request"
    return ApiError(422, "Invalid", message, {})


def too_many_operations(limit: int, count: int) -> ApiError:
    """413: a JSON patch of too many operations."""
    message = f"The allowed maximum operations in a JSON patch is {limit}, got {count}"
    return ApiError(413, "RequestEntityTooLarge", f"Request entity too large: {message}")


def apply_conflict(message: str, causes: list[Json]) -> ApiError:
    """409 of server-side apply: other managers own fields that it would change."""
    return ApiError(409, "Conflict", message, {"causes": causes})


def not_acceptable(message: str) -> ApiError:
    """406: the client accepts none of the served formats."""
    return ApiError(406, "NotAcceptable", message)


def method_not_allowed() -> ApiError:
    """405."""
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", message, {})


def method_not_supported(resource: Resource, verb: str) -> ApiError:
    """405 of a custom resource; ``verb`` is empty for an unknown method."""
    message = f'{verb} is not supported on resources of kind "{resource.qualified}"'
    details = {"group": resource.group, "kind": resource.plural}
    return ApiError(405, "MethodNotAllowed", message, details)


def unauthorized() -> ApiError:
    """401: no token, or a wrong one."""
    return ApiError(401, "Unauthorized", "Unauthorized")


def expired(message: str) -> ApiError:
    """410: a resourceVersion or continue token outside the kept history."""
    return ApiError(410, "Expired", message)


def too_many_requests(message: str, retry_after_s: int, causes: list[Json]) -> ApiError:
    """429."""
    details: Json | None = {"causes": causes} if causes else None
    return ApiError(429, "TooManyRequests", message, details, retry_after_s)


def internal(message: str) -> ApiError:
    """500 without a reason."""
    return ApiError(500, "", message)


def too_large_resource_version(asked: int, current: int) -> ApiError:
    """504: the asked resourceVersion has not happened yet."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    return ApiError(504, "Timeout", message, {"causes": [cause]}, retry_after_s=1)
