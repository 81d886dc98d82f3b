"""Runs a coroutine whose result is large."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_coroutine(coroutine: Coroutine[Any, Any, T]) -> T:
    """As `asyncio.run`, but in constant time after the end of the coroutine.

    `asyncio.run` puts the handler of SIGINT back, and ``signal`` then makes the ``repr`` of the old
    one, in which the task stands with its result. For a large cluster that took a second.
    """
    results: list[T] = []

    async def keep_result() -> None:
        results.append(await coroutine)

    asyncio.run(keep_result())
    return results[0]
