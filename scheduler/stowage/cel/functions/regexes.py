"""Regular expressions: RE2, as in Go, so that the time of a match is linear in the text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import re2

from stowage.cel.errors import CelRuntimeError
from stowage.cel.functions import costs
from stowage.cel.signatures.functions import Overload, overload
from stowage.cel.values.equality import Work

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.max_mem = 8 << 20

_COMPILE_WORK = 1_000
"""Work of a pattern that is not constant: cel-go does not charge the time to compile it."""
_INSTRUCTIONS_PER_WORK = 2
"""So many instructions of a compiled pattern are made in a microsecond."""
_TOO_LARGE_WORK = 50_000
"""Work of a pattern that is found to be too large after a tenth of a second."""
_MAX_CONSTANT_INSTRUCTIONS = 200_000
"""Of the constant patterns of one expression: compiling more takes over a tenth of a second."""
_SEARCH_WORK = 5
"""Work of a search: it takes microseconds, of which cel-go charges one for a short text."""
_STEPS_PER_WORK = 250
"""A search takes up to a step, some nanoseconds, for each byte and each instruction: "x{500}" has
five hundred, and cel-go charges its six characters."""
_MAX_BYTES = 4
"""Of a character in UTF-8."""
_TOO_LARGE = "pattern too large"
"""What RE2 says."""
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
_ANY_BYTE = re.compile(r"(?:[^\\]|\\[^C])*?\\C")


@lru_cache(maxsize=128)
def compiled_regex(pattern: str) -> Any:
    """Compile a pattern.

    Raises:
        CelRuntimeError: it is not a regular expression of Go.
    """
    if _ANY_BYTE.match(pattern):  # RE2 has it, Go has not
        raise CelRuntimeError(r"error parsing regexp: invalid escape sequence: `\C`")
    try:
        return re2.compile(pattern, options=_OPTIONS)
    except re2.error as error:
        raise CelRuntimeError(f"error parsing regexp: {_in_go_words(error)}") from None


def _in_go_words(error: re2.error) -> str:
    what, _, where = error.args[0].decode(errors="replace").partition(": ")
    if what == "trailing \\":
        return "trailing backslash at end of expression: ``"
    shown = f": `{where}`" if where else ""
    return f"{_GO_WORDS.get(what, what)}{shown}"


class ConstantPatterns:
    """Compiles the constant patterns of one expression."""

    def __init__(self) -> None:
        self._left = _MAX_CONSTANT_INSTRUCTIONS

    def compiled(self, pattern: str) -> Any:
        """A pattern, compiled.

        Raises:
            CelRuntimeError: it is not a regular expression of Go, or the patterns are too large.
        """
        regex = compiled_regex(pattern)
        self._left -= regex.programsize
        if self._left < 0:
            raise CelRuntimeError("the regular expressions are too large")
        return regex


def precompiled(candidate: Overload, regex: Any) -> Overload:
    """The overload for calls with a constant pattern, which is compiled."""
    operation = _OPERATIONS[candidate.function]

    def implementation(work: Work, text: str, _pattern: str, *limit: int) -> Any:
        return operation(work, regex, text, *limit)

    return replace(candidate, implementation=implementation, needs_frame=True)


def _compiled_late(work: Work, pattern: str) -> Any:
    """A pattern that is not constant; always charged, whether it is known or not."""
    work.charge_work(_COMPILE_WORK)
    try:
        regex = compiled_regex(pattern)
    except CelRuntimeError as error:
        if _TOO_LARGE in str(error):
            work.charge_work(_TOO_LARGE_WORK)
        raise
    work.charge_work(regex.programsize // _INSTRUCTIONS_PER_WORK)
    return regex


def _charge_search(work: Work, regex: Any, text: str, start: int = 0) -> None:
    size = (len(text) - start) * (1 if text.isascii() else _MAX_BYTES)
    work.charge_work(_SEARCH_WORK + size * regex.programsize // _STEPS_PER_WORK)


def _matches(work: Work, regex: Any, text: str) -> bool:
    _charge_search(work, regex, text)
    return regex.search(text) is not None


def _find(work: Work, regex: Any, text: str) -> str:
    _charge_search(work, regex, text)
    match = regex.search(text)
    return match.group() if match else ""


def _find_all(work: Work, regex: Any, text: str, limit: int = -1) -> list[str]:
    """All matches from the left; an empty match right after another match does not count."""
    found: list[str] = []
    position, last_end = 0, -1
    while position <= len(text) and (limit < 0 or len(found) < limit):
        _charge_search(work, regex, text, position)
        match = regex.search(text, position)
        if match is None:
            break
        start, end = match.span()
        if end > start or start != last_end:
            found.append(match.group())
            last_end = end
        position = end + (end == start)
    return found


_OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "matches": _matches,
    "find": _find,
    "findAll": _find_all,
}


def _compiling(function: str) -> Callable[..., Any]:
    operation = _OPERATIONS[function]

    def implementation(work: Work, text: str, pattern: str, *limit: int) -> Any:
        return operation(work, _compiled_late(work, pattern), text, *limit)

    return implementation


FUNCTIONS: list[Overload] = [
    overload("matches(string, string) -> bool", _compiling("matches"), needs_frame=True),
    overload("string.matches(string) -> bool", _compiling("matches"), costs.regex, True),
    overload("string.find(string) -> string", _compiling("find"), needs_frame=True),
    overload("string.findAll(string) -> list(string)", _compiling("findAll"), needs_frame=True),
    overload(
        "string.findAll(string, int) -> list(string)", _compiling("findAll"), needs_frame=True
    ),
]
