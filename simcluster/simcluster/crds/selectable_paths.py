"""Validation of the fields by which a definition lets its resources be selected."""

import re
from collections.abc import Iterator
from typing import Any

from simcluster.apiserver.errors import FieldError, duplicate_value, invalid_value, required
from simcluster.crds.definition_parts import are_same

Json = dict[str, Any]

_TOKEN = re.compile(r"[.\[\]]|[^.\[\]]+")
_TYPES = frozenset(("boolean", "integer", "string"))
_MOST = 8
_WRONG_TYPE = (
    "must point to a field of type string, boolean or integer. Enum string fields and strings with "
    "formats are allowed."
)


class _PathError(ValueError):
    """A path that leads to no field."""


def selectable_errors(versions: list[Json]) -> Iterator[FieldError]:
    """Errors of the selectable fields of all versions.

    Fields and schemas that are the same in all versions stand below the spec. The API server looks
    for both in one place, so the fields may differ only where the schemas do.
    """
    fields = [version.get("selectableFields") for version in versions]
    schemas = [(version.get("schema") or {}).get("openAPIV3Schema") for version in versions]
    has_one_schema = are_same(schemas)
    if are_same(fields):
        schema = schemas[0] if has_one_schema else None
        why = "may only be set when validations.schema is included"
        yield from _version_errors(fields[0] or [], schema, "spec.selectableFields", why)
        return
    why = "may only be set when `version.schema.openAPIV3Schema` is not included"
    for index, found in enumerate(fields):
        schema = None if has_one_schema else schemas[index]
        place = f"spec.versions[{index}].selectableFields"
        yield from _version_errors(found or [], schema, place, why)


def _version_errors(
    fields: list[Json], schema: Json | None, place: str, why: str
) -> Iterator[FieldError]:
    if schema is None:
        if fields:
            yield invalid_value(place, "", why)
        return
    found: set[tuple[str, ...]] = set()
    for index, field in enumerate(fields):
        yield from _field_errors(field.get("jsonPath") or "", schema, f"{place}[{index}]", found)
    if len(found) > _MOST:
        message = f"Too many: {len(found)}: must have at most {_MOST} items"
        yield FieldError(place, "FieldValueTooMany", message)


def _field_errors(
    path: str, schema: Json, place: str, found: set[tuple[str, ...]]
) -> Iterator[FieldError]:
    place = f"{place}.jsonPath"
    if not path:
        yield required(place)
        return
    try:
        names, leaf = _followed(path, schema)
    except _PathError as error:
        yield invalid_value(place, path, f"is an invalid path: {error}")
        return
    if names[0] == "metadata":
        yield invalid_value(place, path, "must not point to fields in metadata")
    if leaf.get("type") not in _TYPES:
        yield invalid_value(place, path, _WRONG_TYPE)
    if names in found:
        yield duplicate_value(place, path)
    found.add(names)


def _followed(path: str, schema: Json) -> tuple[tuple[str, ...], Json]:
    """The names in a path, and the schema of the field that it leads to."""
    tokens, names = iter(_TOKEN.findall(path)), []
    for token in tokens:
        if token == "[":  # noqa: S105 - of a path
            raise _PathError("array notation is not allowed")
        if token != ".":  # noqa: S105 - of a path
            raise _PathError(f"expected [ or . but got: {token}")
        name = next(tokens, None)
        if name is None:
            raise _PathError("unexpected end of JSON path")
        properties = schema.get("properties")
        inner = properties.get(name) if properties else schema.get("additionalProperties")
        if not isinstance(inner, dict):
            raise _PathError("does not refer to a valid field")
        names.append(name)
        schema = inner
    return tuple(names), schema
