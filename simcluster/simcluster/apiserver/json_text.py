"""JSON as a Go server reads it."""

import json
import re

import msgspec

from simcluster.apiserver.json_errors import json_error

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_REPLACEMENT = "\ufffd"


class JsonError(ValueError):
    """A text that is no JSON; the message is that of ``encoding/json``."""


def load_json(text: bytes) -> object:
    """The value of a JSON text. Bytes and escapes that are no characters become U+FFFD.

    Raises:
        JsonError: it is no JSON.
    """
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError) as error:  # a ValueError, too, if a number is too long
        try:
            return _lenient(text)
        except (ValueError, RecursionError):
            raise JsonError(json_error(text)) from error


def _lenient(text: bytes) -> object:
    decoded = json.loads(text.decode(errors="replace"))
    characters = json.dumps(decoded, ensure_ascii=False)
    return msgspec.json.decode(_LONE_SURROGATE.sub(_REPLACEMENT, characters))
