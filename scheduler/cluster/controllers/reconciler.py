"""The loop every controller shares: keys that need a look, looked at one after the other."""

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import structlog

from scheduler.cluster.errors import ApiError
from scheduler.cluster.registry import Registry
from scheduler.cluster.resources import Resource
from scheduler.cluster.store import Change, Store

Json = dict[str, Any]

RETRY_S = 0.2
_YIELD_AFTER = 16

log = structlog.get_logger(__name__)


class Key(NamedTuple):
    """Names an object of the kind a controller looks after."""

    namespace: str
    name: str


def key_of(change: Change) -> Key:
    """The key of a changed object."""
    return Key(change.current.namespace, change.current.name)


class Reconciler(ABC):
    """Looks at the objects whose keys were enqueued; a key enqueued twice is looked at once.

    A subclass subscribes to changes in :meth:`follow` and does its work in :meth:`reconcile`,
    which compares what is with what should be and never waits.

    Args:
        registry: where everything lives.
    """

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self._queue: dict[Key, None] = {}
        self._wake = asyncio.Event()
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._unsubscribe: list[Callable[[], None]] = []
        self._task: asyncio.Task[None] | None = None

    @property
    def store(self) -> Store:
        """Where objects are read."""
        return self.registry.store

    @abstractmethod
    def follow(self) -> None:
        """Subscribe to what matters and enqueue what exists."""

    @abstractmethod
    def reconcile(self, key: Key) -> None:
        """Bring one object closer to what it should be."""

    def subscribe(self, resource: Resource, subscriber: Callable[[Change], None]) -> None:
        """Follow a resource until the controller stops."""
        self._unsubscribe.append(self.store.subscribe(resource.stored_in, subscriber))

    def enqueue(self, key: Key) -> None:
        """Have a key looked at soon."""
        self._queue[key] = None
        self._wake.set()

    def enqueue_after(self, key: Key, seconds: float) -> None:
        """Have a key looked at later."""
        if key not in self._timers:
            loop = asyncio.get_running_loop()
            self._timers[key] = loop.call_later(seconds, self._fire, key)

    def _fire(self, key: Key) -> None:
        self._timers.pop(key, None)
        self.enqueue(key)

    def enqueue_all(self, resource: Resource) -> None:
        """Have every existing object of a resource looked at."""
        for stored in self.store.collection(resource.stored_in).items():
            self.enqueue(Key(stored.namespace, stored.name))

    def start(self) -> None:
        """Follow changes and start looking."""
        self.follow()
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Stop following and looking."""
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        looked_at = 0
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._queue:
                key = next(iter(self._queue))
                del self._queue[key]
                self._look_at(key)
                looked_at += 1
                if looked_at % _YIELD_AFTER == 0:
                    await asyncio.sleep(0)

    def _look_at(self, key: Key) -> None:
        try:
            self.reconcile(key)
        except ApiError as error:
            log.info("retrying", controller=type(self).__name__, key=key, why=error.message)
            self.enqueue_after(key, RETRY_S)
        except Exception:
            log.exception("controller failed", controller=type(self).__name__, key=key)
