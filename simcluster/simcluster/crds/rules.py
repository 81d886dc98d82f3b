"""Defaults, admission and validation of custom resources, made from their schemas."""

from functools import partial
from typing import Any

from simcluster.apiserver.errors import ApiError, FieldError, bad_request
from simcluster.crds.schema import check, fill_defaults, prune, unknown_fields
from simcluster.crds.version import CustomVersion
from simcluster.kinds.resources import Resource
from simcluster.store.store import Store

Json = dict[str, Any]


def complete(schema: Json, obj: Json) -> None:
    """Drop unknown fields and set defaults."""
    prune(obj, schema)
    fill_defaults(obj, schema)


def admit(custom: CustomVersion, _store: Store, _obj: Json) -> None:
    """Refuse new objects while the definition is being deleted.

    Raises:
        ApiError: 405.
    """
    if custom.is_terminating:
        why = "create not allowed while custom resource definition is terminating"
        raise ApiError(405, "MethodNotAllowed", why, {})


def validate(schema: Json, obj: Json) -> list[FieldError]:
    """Errors of an object."""
    return check(obj, schema)


def validate_update(schema: Json, new: Json, _old: Json) -> list[FieldError]:
    """Errors of a changed object."""
    return check(new, schema)


def unknown_field_warnings(resource: Resource, obj: Json, directive: str) -> tuple[str, ...]:
    """Warnings about unknown fields of a custom resource.

    Args:
        resource: its kind; there are no warnings for built-in kinds.
        obj: as it was sent.
        directive: ``fieldValidation``: Ignore, Warn or Strict; empty means Warn.

    Raises:
        ApiError: 400, there are unknown fields and the directive is Strict.
    """
    if resource.custom is None or directive == "Ignore":
        return ()
    unknown = unknown_fields(obj, resource.custom.schema)
    told = tuple(f'unknown field "{path}"' for path in unknown)
    if told and directive == "Strict":
        kind = resource.kind
        subject = f'{kind} in version "{resource.version}" cannot be handled as a {kind}'
        raise bad_request(f"{subject}: strict decoding error: {', '.join(told)}")
    return told


def rule_functions(custom: CustomVersion) -> dict[str, Any]:
    """The four functions of a kind's rules."""
    return {
        "set_defaults": partial(complete, custom.schema),
        "admit": partial(admit, custom),
        "validate": partial(validate, custom.schema),
        "validate_update": partial(validate_update, custom.schema),
    }
