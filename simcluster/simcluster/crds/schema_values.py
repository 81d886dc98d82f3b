"""Validation of single values by a structural schema: type, format and limits."""

from collections.abc import Iterator
from typing import Any

from simcluster.apiserver.errors import FieldError, invalid_value, too_long, unsupported_value
from simcluster.clock import parse_timestamp
from simcluster.crds.patterns import PatternError, compiled_pattern

Json = dict[str, Any]


def type_name(value: Any) -> str:
    """The JSON type of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    names: dict[type, str] = {float: "number", str: "string", list: "array", dict: "object"}
    return names[type(value)]


def range_error(value: Any, schema: Json, path: str) -> Iterator[FieldError]:
    """The further error of a number that is no integer where one is expected."""
    if schema.get("type") == "integer" and isinstance(value, float):
        format_ = schema.get("format") or "default"
        why = f"Checked value must be of type integer ({format_} format) in {path}"
        yield FieldError("<nil>", "FieldValueInvalid", f'Invalid value: "": {why}')


def wrong_type(value: Any, schema: Json, path: str) -> FieldError | None:
    """The error of a value that has not its schema's type or format."""
    if value is None and schema.get("nullable"):
        return None
    if schema.get("x-kubernetes-int-or-string"):
        is_right = type_name(value) in {"integer", "string"}
        return None if is_right else _type_error(path, "integer,string", value)
    expected, actual = schema.get("type"), type_name(value)
    if not expected or actual == expected or (expected, actual) == ("number", "integer"):
        return _wrong_format(value, schema.get("format"), path)
    if expected == "integer" and isinstance(value, float) and value.is_integer():
        return None
    return _type_error(path, expected, value)


def _type_error(path: str, expected: str, value: Any) -> FieldError:
    actual = type_name(value)
    message = f'Invalid value: "{actual}": {path} in body must be of type {expected}: "{actual}"'
    return FieldError(path or "<nil>", "FieldValueTypeInvalid", message)


def _wrong_format(value: Any, format_: str | None, path: str) -> FieldError | None:
    if format_ != "date-time" or not isinstance(value, str):
        return None
    try:
        parse_timestamp(value)
    except ValueError:
        return invalid_value(path, value, f'{path} in body must be of type date-time: "{value}"')
    return None


def _pattern(text: str) -> Any:
    """The compiled pattern; ``None`` for one, from a dump, that is not valid."""
    try:
        return compiled_pattern(text)
    except PatternError:
        return None


def broken_limits(value: Any, schema: Json, path: str) -> Iterator[FieldError]:
    """Errors of a value of the right type: enum, ranges, lengths and patterns."""
    allowed = schema.get("enum")
    if allowed is not None and value not in allowed:
        yield unsupported_value(path, value, allowed)
    if isinstance(value, bool):
        return
    if isinstance(value, int | float):
        yield from _number_limits(value, schema, path)
    elif isinstance(value, str):
        yield from _text_limits(value, schema, path)
    elif isinstance(value, list):
        yield from _size_limits(value, schema, path, "Items", "items")
    elif isinstance(value, dict):
        yield from _size_limits(value, schema, path, "Properties", "properties")


def _number_limits(value: float, schema: Json, path: str) -> Iterator[FieldError]:
    low, high, step = schema.get("minimum"), schema.get("maximum"), schema.get("multipleOf")
    if step and value % step:
        yield invalid_value(path, value, f"{path} in body should be a multiple of {step}")
    if high is not None and (value > high or (schema.get("exclusiveMaximum") and value == high)):
        words = "less than" if schema.get("exclusiveMaximum") else "less than or equal to"
        yield invalid_value(path, value, f"{path} in body should be {words} {high}")
    if low is not None and (value < low or (schema.get("exclusiveMinimum") and value == low)):
        words = "greater than" if schema.get("exclusiveMinimum") else "greater than or equal to"
        yield invalid_value(path, value, f"{path} in body should be {words} {low}")


def _text_limits(value: str, schema: Json, path: str) -> Iterator[FieldError]:
    """The first error of a text."""
    shortest, longest = schema.get("minLength"), schema.get("maxLength")
    text = schema.get("pattern")
    pattern = _pattern(text) if text else None
    if longest is not None and len(value) > longest:
        yield too_long(path, longest)
    elif shortest is not None and len(value) < shortest:
        detail = f"{path} in body should be at least {shortest} chars long"
        yield invalid_value(path, value, detail)
    elif pattern is not None and not pattern.search(value):
        yield invalid_value(path, value, f"{path} in body should match '{text}'")


def _size_limits(
    value: list[Any] | Json, schema: Json, path: str, kind: str, noun: str
) -> Iterator[FieldError]:
    fewest, most = schema.get(f"min{kind}"), schema.get(f"max{kind}")
    if fewest is not None and len(value) < fewest:
        detail = f"{path} in body should have at least {fewest} {noun}"
        yield invalid_value(path, len(value), detail)
    if most is not None and len(value) > most:
        message = f"Too many: {len(value)}: must have at most {most} items"
        yield FieldError(path, "FieldValueTooMany", message)
