"""``string.format`` as ``ext/formatting.go`` of cel-go formats with the locale en_US."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from stowage.cel.errors import CelLimitError, CelRuntimeError
from stowage.cel.functions.conversions import type_name
from stowage.cel.values.containers import CelMap, TypeValue
from stowage.cel.values.doubles import double_text
from stowage.cel.values.numbers import Uint
from stowage.cel.values.times import Duration, Timestamp

_CLAUSE = re.compile(
    r"%(?:(?P<percent>%)|(?:\.(?P<precision>[0-9]+))?(?P<verb>[sdfebxXo]))", re.ASCII
)
_MAX_PRECISION = 1_000
_MAX_CHARACTERS = 10_000_000
_DEFAULT_PRECISION = 6
_SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_ESCAPES = {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t"}
_ESCAPES |= {"\v": r"\v", "\\": r"\\", '"': r"\""}


_HEX = "only integers, byte buffers, and strings can be formatted as hex"
CLAUSE_ERRORS: Mapping[str, str] = {
    "s": (
        "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, "
        "types, durations, and timestamps"
    ),
    "d": "decimal clause can only be used on integers",
    "f": "fixed-point clause can only be used on doubles",
    "e": "scientific clause can only be used on doubles",
    "b": "only integers and bools can be formatted as binary",
    "x": _HEX,
    "X": _HEX,
    "o": "octal clause can only be used on integers",
}
"""What is wrong with a value of another type, by the verb of the clause."""


class Clause(NamedTuple):
    """A clause like ``%.2f`` of a format."""

    verb: str
    precision: int


def clauses_of(pattern: str) -> Iterator[str | Clause]:
    """Split a format into text and clauses.

    Raises:
        CelRuntimeError: a clause is not known.
    """
    end = 0
    while (start := pattern.find("%", end)) >= 0:
        yield pattern[end:start]
        match = _CLAUSE.match(pattern, start)
        if match is None:
            raise CelRuntimeError(_not_a_clause(pattern[start + 1 :]))
        if match["percent"]:
            yield "%"
        else:
            yield Clause(match["verb"], _precision(match["precision"]))
        end = match.end()
    yield pattern[end:]


def _not_a_clause(text: str) -> str:
    """Why cel-go does not take `text`, behind ``%``, for a clause."""
    if not text:
        return "unexpected end of string"
    reason = f'unrecognized formatting clause "{text[0]}"'
    if text[0] == ".":
        digits = re.match(r"[0-9]*", text[1:], re.ASCII)
        after = text[1 + (digits.end() if digits else 0) :]
        reason = f'unrecognized formatting clause "{after[:1]}"'
        if not after:
            reason = "error while parsing precision: could not find end of precision specifier"
    return f"could not parse formatting clause: {reason}"


def _precision(text: str | None) -> int:
    if text is None:
        return _DEFAULT_PRECISION
    if len(text) > 4 or int(text) > _MAX_PRECISION:
        raise CelRuntimeError("precision is too large")
    return int(text)


def format_string(pattern: str, args: list[Any]) -> str:
    """Format `args` by `pattern`; arguments that are left over are ignored."""
    parts: list[str] = []
    length = index = 0
    for part in clauses_of(pattern):
        if isinstance(part, Clause):
            if index >= len(args):
                raise CelRuntimeError(f"index {index} out of range")
            parts.append(_FORMATTERS[part.verb](args[index], part.precision))
            index += 1
        else:
            parts.append(part)
        length += len(parts[-1])
        if length > _MAX_CHARACTERS:
            raise CelLimitError("string is too long")
    return "".join(parts)


def _clause_error(verb: str, value: Any) -> CelRuntimeError:
    return CelRuntimeError(
        f"error during formatting: {CLAUSE_ERRORS[verb]}, was given {type_name(value)}"
    )


def _text(value: Any, _precision: int = 0) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    match value:
        case str():
            return value
        case bytes():
            return value.decode(errors="replace")
        case None:
            return "null"
        case int():
            return str(int(value))
        case float():
            return double_text(value)
        case TypeValue(name=name):
            return name
        case Duration() | Timestamp():
            return str(value)
        case list() | CelMap():
            return _nested(value, _Budget())
    raise _clause_error("s", value)


class _Budget:
    """Ends the formatting of values that contain others many times over."""

    def __init__(self) -> None:
        self.left = 20_000

    def take(self, depth: int) -> None:
        self.left -= 1
        if not self.left or depth > 100:
            raise CelLimitError("value is too large to be formatted")


def _nested(value: Any, budget: _Budget, depth: int = 0) -> str:
    """A value in a list or map, written like a literal."""
    budget.take(depth)
    match value:
        case str():
            return _quoted(value)
        case bytes():
            return "b" + _quoted(value.decode(errors="replace"))
        case float():
            if math.isfinite(value):
                return f"{value:.{_DEFAULT_PRECISION}f}"
            return _quoted(double_text(value))
        case Timestamp():
            return f"timestamp({_quoted(str(value))})"
        case Duration():
            return f"duration({_quoted(str(value))})"
        case list():
            return f"[{', '.join(_nested(each, budget, depth + 1) for each in value)}]"
        case CelMap():
            pairs = (
                f"{_nested(key, budget, depth + 1)}:{_nested(each, budget, depth + 1)}"
                for key, each in value.items()
            )
            return f"{{{', '.join(sorted(pairs))}}}"
    return _text(value)


def _quoted(text: str) -> str:
    escaped = (_ESCAPES.get(each) or (each if each.isprintable() else _code(each)) for each in text)
    return f'"{"".join(escaped)}"'


def _code(character: str) -> str:
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _decimal(value: Any, _precision: int) -> str:
    if type(value) in (int, Uint):
        return str(int(value))
    raise _clause_error("d", value)


def _double(value: Any, verb: str) -> float:
    if isinstance(value, str) and value in _SPECIAL:
        return _SPECIAL[value]
    if isinstance(value, float):
        return value
    raise _clause_error(verb, value)


def _special(value: float) -> str:
    return "NaN" if math.isnan(value) else "∞" if value > 0 else "-∞"


def _fixed(value: Any, precision: int) -> str:
    number = _double(value, "f")
    return f"{number:,.{precision}f}" if math.isfinite(number) else _special(number)


def _scientific(value: Any, precision: int) -> str:
    number = _double(value, "e")
    if not math.isfinite(number):
        return _special(number)
    mantissa, _, exponent = f"{number:.{precision}e}".partition("e")
    return f"{mantissa}\u202f×\u202f10{exponent.lstrip('+').translate(_SUPERSCRIPTS)}"  # noqa: RUF001 - as cel-go writes it


def _in_base(kind: str) -> Callable[[Any, int], str]:
    def formatted(value: Any, _precision: int) -> str:
        if type(value) in (int, Uint):
            return format(int(value), kind)
        if kind == "b" and isinstance(value, bool):
            return "1" if value else "0"
        if kind in "xX" and isinstance(value, str | bytes):
            digits = (value.encode() if isinstance(value, str) else value).hex()
            return digits.upper() if kind == "X" else digits
        raise _clause_error(kind, value)

    return formatted


_FORMATTERS: Mapping[str, Callable[[Any, int], str]] = {
    "s": _text,
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    **{kind: _in_base(kind) for kind in "bxXo"},
}
