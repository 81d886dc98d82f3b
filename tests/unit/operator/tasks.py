"""Give other asyncio tasks time to run."""

import asyncio


async def let_tasks_run() -> None:
    """Let all tasks run until they wait for something other than each other."""
    for _ in range(60):
        await asyncio.sleep(0)
