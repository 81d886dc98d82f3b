"""Defaults, admission and validation of custom resources, made from their schemas."""

from typing import Any

from simcluster.apiserver.errors import ApiError
from simcluster.crds.schema import check, fill_defaults, prune
from simcluster.crds.version import CustomVersion
from simcluster.store.store import Store

Json = dict[str, Any]


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
