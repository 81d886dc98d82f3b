"""Lines of a watch response."""

from __future__ import annotations

from collections.abc import AsyncIterator


async def complete_lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[list[bytes]]:
    """Split chunks into complete lines; drop a line that the end of the stream cuts off."""
    parts: list[bytes] = []
    async for chunk in chunks:
        *lines, rest = chunk.split(b"\n")
        if lines:
            lines[0] = b"".join((*parts, lines[0]))
            parts.clear()
            yield [line for line in lines if line]
        if rest:
            parts.append(rest)
