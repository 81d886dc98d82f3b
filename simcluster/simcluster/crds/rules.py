"""Defaults, admission and validation of custom resources, made from their schemas."""

from typing import Any

from simcluster.apiserver.errors import ApiError, bad_request
from simcluster.crds.schema import check, fill_defaults, prune, unknown_fields
from simcluster.crds.version import CustomVersion
from simcluster.kinds.resources import Resource
from simcluster.store.store import Store

Json = dict[str, Any]


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
    """The functions of a custom kind's rules."""
    schema = custom.schema

    def set_defaults(obj: Json) -> None:
        prune(obj, schema)
        fill_defaults(obj, schema)

    def admit(_store: Store, _obj: Json) -> None:
        if custom.is_terminating:
            why = "create not allowed while custom resource definition is terminating"
            raise ApiError(405, "MethodNotAllowed", why, {})

    return {
        "set_defaults": set_defaults,
        "admit": admit,
        "validate": lambda obj: check(obj, schema),
        "validate_update": lambda new, _old: check(new, schema),
    }
