"""Reads the values of flags without Pydantic, which nothing else in a start imports.

Typer reads every value with Pydantic, also the defaults. Here valid values of the usual types are
read directly. All others are left to Typer, so that its error messages stay.
"""

from __future__ import annotations

import os
import re
import stat
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_origin

_NUMBERS = {
    int: re.compile(r"[+-]?[0-9]{1,18}"),
    float: re.compile(r"[+-]?[0-9]{1,18}(\.[0-9]{1,18})?"),
}


class _UnusualError(Exception):
    """The value is left to Typer."""


class FlagCoercion:
    """Stands for Typer's own coercion of one parameter."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value for the command; raises Typer's errors."""
        is_multiple = param.multiple or param.nargs == -1
        if value is None:
            return () if is_multiple else None
        try:
            return _read(value, param.type_descriptor.annotation, param.type_descriptor)
        except Exception:
            # Whatever it is, Typer finds the fault again and says it in its words; and a version of
            # Typer with other parameters reads its values itself.
            param._runtime_param = None  # noqa: SLF001 - see `read_flags_directly`
            return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


def read_flags_directly(parameters: list[Any]) -> list[Any]:
    """Let the parameters of a Typer command read their values with `FlagCoercion`; returns them.

    A version of Typer that knows no such attribute ignores it and reads the values itself.
    """
    for parameter in parameters:
        if getattr(parameter, "_runtime_param", None) is None:
            parameter._runtime_param = FlagCoercion()  # noqa: SLF001 - Typer offers no other way
    return parameters


def _read(value: Any, annotation: Any, descriptor: Any) -> Any:
    parser = descriptor.parameter_info.parser
    if get_origin(annotation) is list:
        (item,) = get_args(annotation)
        return [_read(each, item, descriptor) for each in value]
    if not isinstance(value, str):
        if type(value) is annotation:  # a default
            return value
        raise _UnusualError
    if parser is not None:
        return parser(value)
    if annotation is str:
        return value
    if annotation in _NUMBERS and _NUMBERS[annotation].fullmatch(value):
        return _in_range(annotation(value), descriptor.parameter_info)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return annotation(value)
    if annotation is Path and _is_acceptable(value, descriptor.parameter_info):
        return Path(value)
    raise _UnusualError


def _in_range(number: float, info: Any) -> float:
    is_too_low = info.min is not None and number < info.min
    is_too_high = info.max is not None and number > info.max
    if is_too_low or is_too_high:
        raise _UnusualError
    return number


def _is_acceptable(path: str, info: Any) -> bool:
    """Whether Typer takes the path as it is."""
    if info.resolve_path or info.writable or info.allow_dash:
        return False
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - the same call as Typer's
    except OSError:
        return not info.exists
    is_right = info.dir_okay if stat.S_ISDIR(mode) else info.file_okay
    return is_right and os.access(path, os.R_OK)
