"""Errors of JSON texts, worded as Go's ``encoding/json`` words them."""

import json
import math
import re

_END = "unexpected end of JSON input"
_WORDS = {
    "Expecting value": "looking for beginning of value",
    "Unexpected UTF-8 BOM (decode using utf-8-sig)": "looking for beginning of value",
    "Expecting property name enclosed in double quotes": (
        "looking for beginning of object key string"
    ),
    "Illegal trailing comma before end of object": "looking for beginning of object key string",
    "Illegal trailing comma before end of array": "looking for beginning of value",
    "Expecting ':' delimiter": "after object key",
    "Expecting ',' delimiter": "after object key:value pair",
    "Extra data": "after top-level value",
    "Invalid control character at": "in string literal",
    "Invalid \\escape": "in string escape code",
    "Invalid \\uXXXX escape": "in \\u hexadecimal character escape",
}
_TOO_DEEP = "exceeded max depth"
_LITERALS = {"t": "true", "f": "false", "n": "null"}
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


def json_error(body: bytes) -> str:
    """The message of the first error in a text that is no JSON.

    Python reports an error inside a number at its beginning, and so does this function.
    """
    text = body.decode(errors="replace")
    try:
        json.loads(
            text,
            parse_constant=_refuse_constant,
            parse_int=_check_number,
            parse_float=_check_number,
        )
    except RecursionError:
        return _TOO_DEEP
    except _RefusedError as error:
        return str(error)
    except json.JSONDecodeError as error:
        where, rest = _WORDS.get(error.msg.removesuffix(": ")), text[error.pos :]
        if error.msg.startswith("Illegal trailing comma"):
            rest = rest[1:].lstrip()  # Python 3.13 names the comma, Go what follows
        if where is None or not rest.strip():
            return _END
        if rest[0] in _LITERALS and where == _WORDS["Expecting value"]:
            return _literal_error(rest, _LITERALS[rest[0]])
        if where == _WORDS["Expecting ',' delimiter"] and _is_in_array(text[: error.pos]):
            where = "after array element"
        return f"invalid character {_quoted(rest[0])} {where}"
    return _END


class _RefusedError(Exception):
    """A value that Python reads and Go does not; the message is Go's."""


def _refuse_constant(name: str) -> None:
    """Refuse ``NaN``, ``Infinity`` and ``-Infinity``, which Python reads."""
    if name[0] == "-":
        raise _RefusedError("invalid character 'I' in numeric literal")
    raise _RefusedError(f"invalid character '{name[0]}' looking for beginning of value")


def _check_number(digits: str) -> None:
    """Refuse a number that is too large for a float of 64 bits."""
    if math.isinf(float(digits)):
        raise _RefusedError(f"json: cannot unmarshal number {digits} into Go value of type float64")


def _literal_error(rest: str, literal: str) -> str:
    for found, expected in zip(rest, literal, strict=False):
        if found != expected:
            where = f"in literal {literal} (expecting {_quoted(expected)})"
            return f"invalid character {_quoted(found)} {where}"
    return _END


def _is_in_array(text: str) -> bool:
    """Whether the innermost open bracket of a text belongs to an array."""
    open_brackets = []
    for found in _STRING_OR_BRACKET.finditer(text):
        if found[0] in "[{":
            open_brackets.append(found[0])
        elif found[0] in "]}":
            open_brackets.pop()
    return open_brackets[-1] == "["


def _quoted(character: str) -> str:
    """A character as Go quotes it, which looks at its first byte only."""
    character = chr(character.encode()[0])
    if character == "'":
        return "'\\''"
    return f"'{character}'" if character.isprintable() else repr(character)
