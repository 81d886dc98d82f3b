"""The values of literals in the text: numbers, strings and bytes with their escapes."""

from __future__ import annotations

import re

from stowage.cel.errors import CelCompileError
from stowage.cel.values.numbers import INT_MAX, INT_MIN, UINT_MAX, Uint

_ESCAPE = re.compile(
    r"\\(?:[xX](?P<byte>[0-9a-fA-F]{2})|u(?P<short>[0-9a-fA-F]{4})|U(?P<long>[0-9a-fA-F]{8})"
    r"|(?P<octal>[0-3][0-7]{2})|(?P<simple>[abfnrtv\\'\"`?]))"
)
_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_LAST_CODE_POINT = 0x10FFFF


def int_value(text: str) -> int:
    """The value of ``-12`` or ``0x1F``, at most 64 bits."""
    value = int(text, 16) if "x" in text else _decimal(text)
    if not INT_MIN <= value <= INT_MAX:
        raise CelCompileError("invalid int literal")
    return value


def uint_value(text: str) -> Uint:
    """The value of ``12u`` or ``0x1Fu``, at most 64 bits."""
    digits = text[:-1]
    value = int(digits, 16) if "x" in digits else _decimal(digits)
    if value > UINT_MAX:
        raise CelCompileError("invalid uint literal")
    return Uint(value)


def double_value(text: str) -> float:
    """The value of ``1.5e3``; a value beyond the range of a double is an error."""
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise CelCompileError("invalid double literal")
    return value


def string_value(text: str) -> str:
    """The value of a quoted string, with or without the prefix ``r``."""
    body, raw = _body(text)
    return body if raw else _ESCAPE.sub(_unescaped, body)


def bytes_value(text: str) -> bytes:
    r"""The value of ``b"..."``; ``\x`` and octal escapes are single bytes."""
    body, raw = _body(text[1:])
    if raw:
        return body.encode()
    parts: list[bytes] = []
    end = 0
    for match in _ESCAPE.finditer(body):
        parts += [body[end : match.start()].encode(), _unescaped_bytes(match)]
        end = match.end()
    return b"".join([*parts, body[end:].encode()])


def _decimal(text: str) -> int:
    if len(text) > 40:  # Python refuses to convert numbers of thousands of digits
        raise CelCompileError("invalid int literal")
    return int(text)


def _body(text: str) -> tuple[str, bool]:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    raw = text[0] in "rR"
    quoted = text[1:] if raw else text
    width = 3 if len(quoted) >= 6 and quoted[:3] in ('"""', "'''") else 1
    return quoted[width:-width], raw


def _unescaped(match: re.Match[str]) -> str:
    if match["simple"]:
        return _SIMPLE.get(match["simple"], match["simple"])
    if match["octal"]:
        return chr(int(match["octal"], 8))
    point = int(match["byte"] or match["short"] or match["long"], 16)
    if point > _LAST_CODE_POINT or 0xD800 <= point < 0xE000:
        raise CelCompileError("unable to unescape string")
    return chr(point)


def _unescaped_bytes(match: re.Match[str]) -> bytes:
    if match["simple"]:
        return _SIMPLE.get(match["simple"], match["simple"]).encode()
    if match["octal"]:
        return bytes([int(match["octal"], 8)])
    if match["byte"]:
        return bytes([int(match["byte"], 16)])
    raise CelCompileError("unable to unescape string")
