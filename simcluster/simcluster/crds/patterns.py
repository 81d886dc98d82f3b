"""Patterns of schemas: regular expressions of Go."""

from functools import lru_cache
from typing import Any

from stowage.cel.errors import CelRuntimeError
from stowage.cel.functions.regexes import compiled_regex


class PatternError(ValueError):
    """A text that is no regular expression of Go; the message is Go's."""


@lru_cache(maxsize=1024)
def compiled_pattern(text: str) -> Any:
    """Compile a pattern, whose ``search`` finds it anywhere in a text.

    Raises:
        PatternError: it is not valid.
    """
    try:
        return compiled_regex(text)
    except CelRuntimeError as error:
        raise PatternError(str(error)) from error
