"""Rules of custom resources, made from their schemas."""

from functools import partial
from typing import Any

from scheduler.cluster.custom_schema import check, fill_defaults, prune
from scheduler.cluster.custom_version import CustomVersion
from scheduler.cluster.errors import ApiError, FieldError
from scheduler.cluster.store import Store

Json = dict[str, Any]


def complete(schema: Json, obj: Json) -> None:
    """Drop what the schema does not know and fill what it has defaults for."""
    prune(obj, schema)
    fill_defaults(obj, schema)


def admit(custom: CustomVersion, _store: Store, _obj: Json) -> None:
    """Take no new object of a kind that is going.

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


def rule_functions(custom: CustomVersion) -> dict[str, Any]:
    """The four functions of a kind's rules."""
    return {
        "set_defaults": partial(complete, custom.schema),
        "admit": partial(admit, custom),
        "validate": partial(validate, custom.schema),
        "validate_update": partial(validate_update, custom.schema),
    }
