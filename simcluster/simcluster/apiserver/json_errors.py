"""Errors of JSON texts, worded as Go's ``encoding/json`` words them."""

import json

_END = "unexpected end of JSON input"
_WORDS = {
    "Expecting value": "looking for beginning of value",
    "Expecting property name enclosed in double quotes": (
        "looking for beginning of object key string"
    ),
    "Illegal trailing comma before end of object": "looking for beginning of object key string",
    "Expecting ':' delimiter": "after object key",
    "Expecting ',' delimiter": "after object key:value pair",
    "Extra data": "after top-level value",
    "Invalid control character at": "in string literal",
    "Invalid \\escape": "in string escape code",
    "Invalid \\uXXXX escape": "in \\u hexadecimal character escape",
}


def json_error(body: bytes) -> str:
    """The message of the first error in a text that is no JSON.

    Python distinguishes fewer cases than Go: it reports an error inside a number or a literal at
    its beginning, and does not tell objects from arrays after an item.
    """
    text = body.decode(errors="replace")
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        where = _WORDS.get(error.msg.removesuffix(": "))
        rest = text[error.pos :]
        if where is None or not rest.strip():
            return _END
        return f"invalid character {_quoted(rest[0])} {where}"
    return _END


def _quoted(character: str) -> str:
    """A character as Go quotes it."""
    if character == "'":
        return "'\\''"
    return f"'{character}'" if character.isprintable() else repr(character)
