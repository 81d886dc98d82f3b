"""JSON that a decoder refuses: what can be mended, and what it still says about itself.

An API server does not send such a thing, but what stands between may, and then one object must not
take a page of others with it. Nothing here is on the way of an object that is in order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_PAIR = rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_ESCAPE = re.compile(_PAIR + rb"|\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\\.", re.DOTALL)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SURROGATE_LENGTH = 6
_QUOTE = ord('"')


def mended(data: bytes) -> bytes:
    """The text as Go reads it: what is no character becomes the replacement character.

    A byte order mark is left out.
    """
    text = data.removeprefix(_BYTE_ORDER_MARK).decode(errors="replace").encode()
    return _ESCAPE.sub(_mended_escape, text)


def members(data: bytes) -> dict[str, bytes]:
    """The members of an object that are strings, objects or lists, as they stand there."""
    found: dict[str, bytes] = {}
    key: tuple[str, int] | None = None
    for start, end in _top_level(data):
        if key is not None and data[key[1] : start].strip() == b":":
            found[key[0]] = data[start:end]
            key = None
        elif data[start : start + 1] == b'"':
            key = (_text(data[start:end]), end)
    return found


def elements(data: bytes) -> list[bytes]:
    """The elements of a list that are objects."""
    return [data[start:end] for start, end in _top_level(data) if data[start : start + 1] == b"{"]


def is_balanced(data: bytes) -> bool:
    """Whether every bracket is closed: else it is not known where an element ends."""
    depth = sum(
        1 if token[0] in b"{[" else -1 for token in _TOKEN.findall(data) if token[0] != _QUOTE
    )
    return depth == 0


def metadata_of(data: bytes) -> dict[str, str]:
    """What the metadata of an object, or of the object of a watch event, says in strings."""
    parts = members(data)
    if "metadata" not in parts and "object" in parts:
        parts = members(parts["object"])
    return strings(parts.get("metadata", b""))


def strings(data: bytes) -> dict[str, str]:
    """The members of an object that are strings."""
    parts = members(data)
    return {key: _text(part) for key, part in parts.items() if part.startswith(b'"')}


def _top_level(data: bytes) -> Iterator[tuple[int, int]]:
    """Where strings, objects and lists stand right inside of the outermost one.

    A loop, however deep they are nested.
    """
    depth = opened_at = 0
    for token in _TOKEN.finditer(data):
        first = data[token.start()]
        if first in b"{[":
            depth += 1
            if depth == 2:
                opened_at = token.start()
        elif first in b"}]":
            depth -= 1
            if depth == 1:
                yield opened_at, token.end()
        elif depth == 1:
            yield token.start(), token.end()


def _text(literal: bytes) -> str:
    return literal[1:-1].decode(errors="replace")


def _mended_escape(match: re.Match[bytes]) -> bytes:
    return rb"\ufffd" if len(match[0]) == _SURROGATE_LENGTH else match[0]
