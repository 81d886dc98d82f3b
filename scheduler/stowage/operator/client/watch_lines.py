"""Lines of a watch response."""

from __future__ import annotations


class WatchLines:
    """Splits chunks into lines; a line that the end of the stream cuts off is never complete."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def complete(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes."""
        *lines, rest = chunk.split(b"\n")
        if lines and self._parts:
            lines[0] = b"".join((*self._parts, lines[0]))
            self._parts.clear()
        if rest:
            self._parts.append(rest)
        return [line for line in lines if line]
