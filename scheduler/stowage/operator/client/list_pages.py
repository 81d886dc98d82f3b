"""Decodes pages of lists while the event loop goes on with other work."""

from __future__ import annotations

import asyncio

from stowage.api.decoding.decode import ObjectList, ObjectT
from stowage.api.decoding.pages import decode_list_steps


async def decode_page(kind: type[ObjectT], body: bytes) -> ObjectList[ObjectT]:
    """Decode a page; the event loop does other work after each step.

    Raises:
        InvalidObject: The page itself is invalid, or a list of another kind.
    """
    steps = decode_list_steps(kind, body)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            page: ObjectList[ObjectT] = end.value
            return page
        await asyncio.sleep(0)
