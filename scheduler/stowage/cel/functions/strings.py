"""Strings: the functions of the standard library and of ``ext.Strings`` (version 2) of cel-go."""

from __future__ import annotations

from collections.abc import Callable

from stowage.cel.errors import CelRuntimeError
from stowage.cel.functions import costs
from stowage.cel.functions.formatting import format_string
from stowage.cel.signatures.functions import Overload, overload
from stowage.cel.values.equality import Work

_CHARACTERS_PER_WORK = 100
"""A replacement is charged by the length of its input; this bounds that of its result."""

_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_WHITE_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
_QUOTED = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    }
)


def _out_of_range(index: int) -> CelRuntimeError:
    return CelRuntimeError(f"index out of range: {index}")


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


def _index_of(text: str, part: str, offset: int = 0) -> int:
    if not part:
        return offset
    if offset < 0:
        raise _out_of_range(offset)
    return text.find(part, offset)


def _last_index_of(text: str, part: str) -> int:
    return text.rfind(part)


def _last_index_from(text: str, part: str, offset: int) -> int:
    if not part:
        return offset
    if offset < 0:
        raise _out_of_range(offset)
    return -1 if offset >= len(text) else text.rfind(part, 0, offset + len(part))


def _replace(work: Work, text: str, old: str, new: str, limit: int = -1) -> str:
    count = len(text) + 1 if not old else text.count(old)
    count = count if limit < 0 else min(count, limit)
    work.charge_work((len(text) + count * len(new)) // _CHARACTERS_PER_WORK)
    return text.replace(old, new, min(count, len(text) + 1))


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if separator:
        return text.split(separator, min(limit - 1, len(text)) if limit > 0 else -1)
    whole = limit < 0 or limit >= len(text)
    return list(text) if whole else [*text[: limit - 1], text[limit - 1 :]]


def _substring(text: str, start: int) -> str:
    if not 0 <= start <= len(text):
        raise _out_of_range(start)
    return text[start:]


def _substring_range(text: str, start: int, end: int) -> str:
    if start > end:
        raise CelRuntimeError(f"invalid substring range. start: {start}, end: {end}")
    if not 0 <= start <= len(text):
        raise _out_of_range(start)
    if end > len(text):
        raise _out_of_range(end)
    return text[start:end]


def _join(work: Work, parts: list[str], separator: str = "") -> str:
    if any(type(each) is not str for each in parts):
        raise CelRuntimeError("type conversion error from list to '[]string'")
    work.charge_work((sum(map(len, parts)) + len(parts) * len(separator)) // _CHARACTERS_PER_WORK)
    return separator.join(parts)


def _contains(text: str, part: str) -> bool:
    return part in text


def _quote(text: str) -> str:
    return f'"{text.translate(_QUOTED)}"'


def _stripped(characters: str) -> Callable[[str], str]:
    return lambda text: text.strip(characters)


FUNCTIONS: list[Overload] = [
    overload("string.contains(string) -> bool", _contains, costs.contains),
    overload("string.endsWith(string) -> bool", str.endswith, costs.traversal),
    overload("string.startsWith(string) -> bool", str.startswith, costs.traversal),
    overload("string.charAt(int) -> string", _char_at),
    overload("string.indexOf(string) -> int", _index_of),
    overload("string.indexOf(string, int) -> int", _index_of),
    overload("string.lastIndexOf(string) -> int", _last_index_of),
    overload("string.lastIndexOf(string, int) -> int", _last_index_from),
    overload("string.lowerAscii() -> string", lambda text: text.translate(_LOWER)),
    overload("string.upperAscii() -> string", lambda text: text.translate(_UPPER)),
    overload("string.replace(string, string) -> string", _replace, needs_frame=True),
    overload("string.replace(string, string, int) -> string", _replace, needs_frame=True),
    overload("string.split(string) -> list(string)", _split),
    overload("string.split(string, int) -> list(string)", _split),
    overload("string.substring(int) -> string", _substring),
    overload("string.substring(int, int) -> string", _substring_range),
    overload("string.trim() -> string", _stripped(_WHITE_SPACE)),
    overload("list(string).join() -> string", _join, needs_frame=True),
    overload("list(string).join(string) -> string", _join, needs_frame=True),
    overload("string.format(list(dyn)) -> string", format_string, costs.traversal),
    overload("strings.quote(string) -> string", _quote, costs.traversal),
]
