"""Forgets changes by age."""

from simcluster.store.store import Store
from simcluster.timers import Timer, Timers

COMPACTION_INTERVAL_S = 300.0
"""The ``--etcd-compaction-interval`` of kube-apiserver."""


class Compactor:
    """Drops at each interval the changes from before the previous one.

    So a change is kept for one to two intervals. From before the start there are none, as in a
    kube-apiserver, which begins with a list of each kind.

    Args:
        store: forgets the changes.
        timers: of the event loop, or of a test.
        interval_s: between compactions.
    """

    def __init__(
        self, store: Store, timers: Timers, interval_s: float = COMPACTION_INTERVAL_S
    ) -> None:
        self._store = store
        self._timers = timers
        self._interval_s = interval_s
        self._timer: Timer | None = None

    def start(self) -> None:
        """Forget the history up to now, and old changes at each interval."""
        self._store.forget_history()
        self._wait()

    def stop(self) -> None:
        """Forget no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _wait(self) -> None:
        reached = self._store.revision
        self._timer = self._timers.after(self._interval_s, lambda: self._compact(reached))

    def _compact(self, revision: int) -> None:
        self._store.forget_changes(revision)
        self._wait()
