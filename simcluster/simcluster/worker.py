"""The base of kubelets and controllers: a task that does one piece of work after another."""

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable

_YIELD_AFTER = 32


class Worker(ABC):
    """Follows changes of the store, and works on the event loop until it is stopped.

    Tests call :meth:`follow` and :meth:`work_next` themselves, without an event loop.
    """

    def __init__(self) -> None:
        self._wake = asyncio.Event()
        self._unsubscribe: list[Callable[[], None]] = []
        self._task: asyncio.Task[None] | None = None

    @abstractmethod
    def follow(self) -> None:
        """Subscribe to changes and take over what exists."""

    @abstractmethod
    def work_next(self) -> bool:
        """Do one piece of work; False if there is none."""

    @abstractmethod
    def cancel_timers(self) -> None:
        """Cancel all timers."""

    def start(self) -> None:
        """Follow changes and start to work."""
        self.follow()
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Stop following changes and working."""
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        self._unsubscribe.clear()
        self.cancel_timers()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        num_done = 0
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self.work_next():
                num_done += 1
                if num_done % _YIELD_AFTER == 0:
                    await asyncio.sleep(0)
