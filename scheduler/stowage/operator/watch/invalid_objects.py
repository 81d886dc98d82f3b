"""Events about objects that cannot be decoded."""

from __future__ import annotations

from stowage.api.decoding.errors import InvalidObject
from stowage.api.events import ObjectInvalid


def invalid_object_event(invalid: InvalidObject, scheduler_name: str = "") -> ObjectInvalid:
    """The decoding error as an event for the engine.

    Args:
        invalid: The error.
        scheduler_name: Of a pending pod; empty for every other object.
    """
    namespace, _, name = invalid.name.rpartition("/")
    return ObjectInvalid(
        kind=invalid.kind,
        namespace=namespace,
        name=name,
        uid=invalid.uid,
        field=invalid.field,
        value=invalid.value,
        expectation=invalid.expectation,
        scheduler_name=scheduler_name,
    )
