"""Patterns of schemas: regular expressions of Go, which are those of RE2."""

from functools import lru_cache
from typing import Any

import re2

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.max_mem = 8 << 20
_GO_WORDS = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "bad repetition operator": "invalid nested repetition operator",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}
"""What RE2 says, in Go's words."""


class PatternError(ValueError):
    """A text that is no regular expression of Go; the message is Go's."""


@lru_cache(maxsize=1024)
def compiled_pattern(text: str) -> Any:
    """Compile a pattern, whose ``search`` finds it anywhere in a text.

    Raises:
        PatternError: it is not valid.
    """
    try:
        return re2.compile(text, options=_OPTIONS)
    except re2.error as error:
        told = error.args[0]
        told = told.decode(errors="replace") if isinstance(told, bytes) else str(told)
        what, _, where = told.partition(": ")
        shown = f": `{where}`" if where else ""
        why = f"error parsing regexp: {_GO_WORDS.get(what, what)}{shown}"
        raise PatternError(why) from error
