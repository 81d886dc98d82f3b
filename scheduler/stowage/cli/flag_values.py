"""The flags of a running command with their values, as ``/flagz`` shows them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from stowage.api.values.duration import Duration


def flag_values(context: Any) -> Mapping[str, str]:
    """The name and value of every flag of a command; the default of a flag that was not given.

    Args:
        context: The context of the command that runs.
    """
    flags = {}
    for parameter in context.command.params:
        if parameter.param_type_name == "option" and parameter.expose_value:
            name = max(parameter.opts, key=len).lstrip("-")
            flags[name] = _text(context.params.get(parameter.name), parameter.show_default)
    return flags


def _text(value: object, default: object) -> str:
    """The value in Go's notation; a default that depends on something else by its description."""
    if value is None:
        return default if isinstance(default, str) else ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    if isinstance(value, float) and not isinstance(value, Duration):
        return f"{value:g}"
    return str(value)
