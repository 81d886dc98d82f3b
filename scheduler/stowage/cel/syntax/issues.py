"""What is wrong with an expression, and how cel-go prints it (``common/errors.go``)."""

from __future__ import annotations

from stowage.cel.errors import CelCompileError

_MOST_SHOWN = 100
_LONGEST_LINE = 16_384
_WIDE_DOT, _WIDE_CARET = "\uff0e", "\uff3e"


class Issues:
    """The errors that were found in a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._found: list[tuple[int, str]] = []

    def report(self, position: int, message: str) -> None:
        """Add an error at `position`."""
        self._found.append((position, message))

    def raise_any(self) -> None:
        """Raise all errors as one.

        Raises:
            CelCompileError: at least one was reported.
        """
        if self._found:
            raise self.error()

    def error(self) -> CelCompileError:
        """Return all errors as one, in the order of the text."""
        found = sorted(self._found, key=lambda each: each[0])
        shown = [self._shown(*each) for each in found[:_MOST_SHOWN]]
        if len(found) > _MOST_SHOWN:
            shown.append(f"{len(found) - _MOST_SHOWN} more errors were truncated")
        return CelCompileError("compilation failed: " + "\n".join(shown))

    def _shown(self, position: int, message: str) -> str:
        before = self._text[:position]
        line, column = before.count("\n") + 1, position - (before.rfind("\n") + 1)
        shown = self._text.split("\n")[line - 1].replace("\t", " ")
        error = f"ERROR: <input>:{line}:{column + 1}: {message}"
        if len(shown.encode()) > _LONGEST_LINE:
            return error
        dots = "".join("." if each.isascii() else _WIDE_DOT for each in shown[:column])
        caret = "^" if shown[column : column + 1].isascii() else _WIDE_CARET
        return f"{error}\n | {shown}\n | {dots}{caret}"
