"""Loads versions of the ConfigMap in a thread, so that the event loop goes on meanwhile.

The longest text takes a second to load; renewals of the lease and watches must not wait for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, TypeVar

from stowage.operator.writers.worker_pool import WorkerPool

_Loaded = TypeVar("_Loaded")
_Version: TypeAlias = tuple[Callable[[], Any], Callable[[Any], None]]


class Read(Protocol):
    """Calls `load`, now or later, and then `take` with the result; in the order of the calls."""

    def __call__(self, load: Callable[[], _Loaded], take: Callable[[_Loaded], None], /) -> None:
        """Load a version; `take` is called on the event loop."""
        ...


class ConfigurationReader(Protocol):
    """Loads versions of the ConfigMap."""

    @property
    def read(self) -> Read:
        """Loads one version."""
        ...

    async def close(self) -> None:
        """Load no more versions."""
        ...


def read_at_once(load: Callable[[], _Loaded], take: Callable[[_Loaded], None], /) -> None:
    """Load a version before returning."""
    take(load())


class ThreadReader:
    """Calls each `load` in a thread, one after the other, and each `take` on the event loop."""

    def __init__(self) -> None:
        self._versions: WorkerPool[_Version] = WorkerPool("configuration", 1, _load_in_thread)

    def read(self, load: Callable[[], _Loaded], take: Callable[[_Loaded], None], /) -> None:
        """Load a version after those that were passed before."""
        self._versions.add((load, take))

    async def close(self) -> None:
        """Load no more versions. A thread that runs ends by itself; its result is dropped."""
        await self._versions.close(0)


async def _load_in_thread(version: _Version) -> None:
    load, take = version
    take(await asyncio.to_thread(load))
