"""The base of all controllers: a queue of keys, and a loop that reconciles one after the other."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import structlog

from simcluster.apiserver.errors import ApiError
from simcluster.controllers.ownership import with_list
from simcluster.controllers.shared import Shared
from simcluster.kinds.resources import Resource
from simcluster.store.deletion import DeleteOptions
from simcluster.store.registry import Registry
from simcluster.store.store import Change, Store, Stored
from simcluster.timers import Timer
from simcluster.worker import Worker

RETRY_S = 0.2

log = structlog.get_logger(__name__)


class Key(NamedTuple):
    """Names an object of the kind a controller looks after."""

    namespace: str
    name: str


def key_of(change: Change) -> Key:
    """The key of a changed object."""
    return Key(change.current.namespace, change.current.name)


class _Due(NamedTuple):
    at: float
    timer: Timer


class Reconciler(Worker):
    """Reconciles the objects whose keys are enqueued; a key that is enqueued twice is done once.

    A subclass subscribes to changes in :meth:`follow` and does its work in :meth:`reconcile`,
    which compares the actual state with the desired one and never waits.

    Args:
        shared: the registry, its indexes and the timers, which all controllers share.
    """

    def __init__(self, shared: Shared) -> None:
        super().__init__()
        self.shared = shared
        self._queue: dict[Key, None] = {}
        self._timers: dict[Key, _Due] = {}

    @property
    def registry(self) -> Registry:
        """Where objects are written."""
        return self.shared.registry

    @property
    def store(self) -> Store:
        """Where objects are read."""
        return self.shared.registry.store

    @abstractmethod
    def reconcile(self, key: Key) -> None:
        """Bring one object closer to its desired state."""

    def find(self, resource: Resource, namespace: str, name: str) -> Stored | None:
        """An object, if it exists."""
        return self.store.get(resource.stored_in, namespace, name)

    def delete(self, resource: Resource, stored: Stored, propagation_policy: str = "") -> None:
        """Delete an object unless another one has taken its name."""
        uid = stored.obj["metadata"]["uid"]
        options = DeleteOptions(propagation_policy=propagation_policy, uid=uid)
        self.registry.delete(resource, stored.namespace, stored.name, options)

    def write_list(self, resource: Resource, stored: Stored, field: str, values: list[Any]) -> None:
        """Write a list of an object's metadata, such as its finalizers."""
        self.registry.replace(resource, stored, with_list(stored, field, values))

    def subscribe(self, resource: Resource, subscriber: Callable[[Change], None]) -> None:
        """Follow a resource until the controller stops."""
        self._unsubscribe.append(self.store.subscribe(resource.stored_in, subscriber))

    def enqueue(self, key: Key) -> None:
        """Reconcile a key soon."""
        self._queue[key] = None
        self._wake.set()

    def enqueue_after(self, key: Key, seconds: float) -> None:
        """Reconcile a key later; of two times for one key the earlier counts."""
        at = self.registry.clock.time_s() + seconds
        due = self._timers.get(key)
        if due is not None:
            if due.at <= at:
                return
            due.timer.cancel()
        timer = self.shared.timers.after(seconds, lambda: self._fire(key))
        self._timers[key] = _Due(at, timer)

    def forget_timer(self, key: Key) -> None:
        """Cancel the timer of a key."""
        due = self._timers.pop(key, None)
        if due is not None:
            due.timer.cancel()

    def _fire(self, key: Key) -> None:
        self._timers.pop(key, None)
        self.enqueue(key)

    def enqueue_all(self, resource: Resource) -> None:
        """Reconcile every existing object of a resource."""
        for stored in self.store.collection(resource.stored_in).items():
            self.enqueue(Key(stored.namespace, stored.name))

    def cancel_timers(self) -> None:
        """Cancel all timers."""
        for due in self._timers.values():
            due.timer.cancel()
        self._timers.clear()

    def work_next(self) -> bool:
        """Reconcile one enqueued key; False if there is none."""
        if not self._queue:
            return False
        key = next(iter(self._queue))
        del self._queue[key]
        try:
            self.reconcile(key)
        except ApiError as error:
            log.info("retrying", controller=type(self).__name__, key=key, why=error.message)
            self.enqueue_after(key, RETRY_S)
        except Exception:
            log.exception("controller failed", controller=type(self).__name__, key=key)
        return True
