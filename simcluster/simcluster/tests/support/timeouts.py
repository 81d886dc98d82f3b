"""How long tests wait for what other processes and tasks do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

WAIT_TIMEOUT_S = 180.0
"""Only what hangs takes as long: a machine that is busy with other things may take a minute."""
_POLL_S = 0.01


async def wait_until(holds: Callable[[], bool] | Callable[[], Awaitable[bool]]) -> None:
    """Poll until a condition holds."""
    async with asyncio.timeout(WAIT_TIMEOUT_S):
        while True:
            answer = holds()
            if answer if isinstance(answer, bool) else await answer:
                return
            await asyncio.sleep(_POLL_S)
