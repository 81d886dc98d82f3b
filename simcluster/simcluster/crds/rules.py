"""Defaults, admission and validation of custom resources, made from their schemas."""

from typing import Any

from simcluster.apiserver.errors import FieldError, forbidden
from simcluster.crds.cel_rules import broken_rules
from simcluster.crds.correlation import ABSENT
from simcluster.crds.scale_paths import scale_errors
from simcluster.crds.schema import check, fill_defaults, prune
from simcluster.crds.version import CustomVersion
from simcluster.kinds.resources import Resource
from simcluster.store.store import Store
from simcluster.validation.metadata import validate_metadata, validate_metadata_update

Json = dict[str, Any]

_BLOCKING = frozenset(
    (
        "FieldValueNotSupported",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueTypeInvalid",
    )
)
_NOT_CHECKED = FieldError(
    "<nil>",
    "FieldValueInvalid",
    "Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
)


def rule_functions(resource: Resource, custom: CustomVersion) -> dict[str, Any]:
    """The functions of a custom kind's rules."""
    schema = custom.schema
    type_meta = {"apiVersion": resource.api_version, "kind": resource.kind}

    def set_defaults(obj: Json) -> None:
        prune(obj, schema)
        fill_defaults(obj, schema)

    def admit(_store: Store, obj: Json) -> None:
        if custom.is_terminating:
            why = "create not allowed while custom resource definition is terminating"
            raise forbidden(resource, obj["metadata"].get("name", ""), why)

    def _metadata_errors(new: Json, old: Any) -> list[FieldError]:
        if old is ABSENT:
            return validate_metadata(resource, new["metadata"])
        return validate_metadata_update(resource, new["metadata"], old["metadata"])

    def validate_update(new: Json, old: Any) -> list[FieldError]:
        found = check(new, schema, old=old)
        if custom.scale is not None:
            found += scale_errors(new, custom.scale)
        if custom.rules is None:
            return found
        if any(error.reason in _BLOCKING for error in (*found, *_metadata_errors(new, old))):
            return [*found, _NOT_CHECKED]
        before = old if old is ABSENT else {**old, **type_meta}
        return [*found, *broken_rules(custom.rules, {**new, **type_meta}, before)]

    return {
        "set_defaults": set_defaults,
        "admit": admit,
        "validate": lambda obj: validate_update(obj, ABSENT),
        "validate_update": validate_update,
    }
