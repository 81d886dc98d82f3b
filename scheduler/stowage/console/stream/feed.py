"""Tells the stream what changed, in steps of time: a thousand decisions a second cost little."""

from __future__ import annotations

from collections import deque

import numpy as np

from stowage.console.answers.answer import Answer
from stowage.console.answers.cluster_map import cluster_counts, node_rows
from stowage.console.answers.pod_lists import queue_counts
from stowage.console.clusters.live import LiveCluster
from stowage.console.clusters.moment import Moment
from stowage.console.clusters.source import SourceState
from stowage.console.decisions.row import DecisionRow
from stowage.console.stream.hub import RELOADED, Hub
from stowage.console.stream.messages import (
    HEARTBEAT_S,
    DecisionSample,
    PendingCounts,
    Ping,
    Refetch,
    Reset,
)

TICK_S = 0.25
"""Seconds between two messages about decisions."""
SLOW_S = 1.0
"""Seconds between two messages about nodes, pending pods and statistics."""
MAX_SAMPLE = 20
MAX_NODES = 1_000
LINGER_S = 60.0
"""Seconds without a page after which nothing is encoded any more."""
PODS_A_SECOND = 5_000
"""Pending pods are counted more rarely if there are more of them than this."""


class Feed:
    """Publishes what changed in a live cluster.

    Args:
        hub: Where to.
        cluster: The cluster.
        now: The time, in seconds of a monotonic clock.
    """

    def __init__(self, hub: Hub, cluster: LiveCluster, now: float) -> None:
        self._hub = hub
        self._cluster = cluster
        self._rows: deque[DecisionRow] = deque(maxlen=MAX_SAMPLE)
        self._num_rows = 0
        self._has_new_decisions = False
        self._wanted_at = self._said_at = now
        self._slow_at = self._pending_at = now
        self._version = -1
        self._node_generation = self._usage_generation = 0
        self._labels: dict[int, tuple[str, dict[str, str]]] = {}
        self._pending: PendingCounts | None = None

    def decided(self, row: DecisionRow) -> None:
        """Note a new decision."""
        self._rows.appendleft(row)
        self._num_rows += 1
        self._has_new_decisions = True

    def reloaded(self, now: float) -> None:
        """Tell all pages that the cluster was read anew."""
        self._follow_from_here()
        self._say("reset", Reset(self._cluster.version, RELOADED), now)

    def source_is(self, state: str, message: str, now: float) -> None:
        """Tell the state of the connection to the API server, if it changed."""
        told = SourceState(state, message)
        if told != self._cluster.state:
            self._cluster.state = told
            self._say("source", told, now)

    def tick(self, now: float, unix_s: float) -> None:
        """Publish what changed since the last tick.

        Args:
            now: Seconds of the monotonic clock.
            unix_s: Seconds since 1970.
        """
        if self._hub.subscribers:
            self._wanted_at = now
        if now - self._wanted_at > LINGER_S:
            self._sleep()
            return
        if self._num_rows:
            sample = DecisionSample(self._cluster.version, self._num_rows, list(self._rows))
            self._say("decisions", sample, now)
            self._rows.clear()
            self._num_rows = 0
        if now - self._slow_at >= SLOW_S and self._cluster.is_loaded:
            self._slow_at = now
            self._tell_changes(self._cluster.moment(unix_s), now)
        if now - self._said_at >= HEARTBEAT_S:
            self._say("ping", Ping(self._cluster.version), now)

    def _sleep(self) -> None:
        """Nobody listens: forget what pages would have to catch up with."""
        self._hub.forget()
        self._rows.clear()
        self._num_rows = 0
        self._follow_from_here()

    def _follow_from_here(self) -> None:
        self._version = -1
        self._labels.clear()

    def _tell_changes(self, moment: Moment, now: float) -> None:
        if self._has_new_decisions:
            self._has_new_decisions = False
            stats = moment.history.stats(moment.unix_s, moment.version, only_last=True)
            self._say("stats", stats, now)
        if moment.version == self._version:
            return
        self._tell_nodes(moment, now)
        self._tell_pending(moment, now)

    def _tell_nodes(self, moment: Moment, now: float) -> None:
        snapshot = moment.snapshot
        is_first = self._version < 0
        changed = snapshot.node_changes.since(self._node_generation)
        used = snapshot.usage_changes.since(self._usage_generation)
        self._node_generation = snapshot.node_changes.generation
        self._usage_generation = snapshot.usage_changes.generation
        self._version = moment.version
        if is_first:
            # A page may have fetched the map before the first change that is followed.
            self._note_labels(moment, snapshot.all_rows.tolist())
            self._say("refetch", Refetch(moment.version, ("cluster",)), now)
            return
        too_many = changed is None or used is None
        rows = np.union1d([] if changed is None else changed, [] if used is None else used).astype(
            np.int64
        )
        moved = self._note_labels(
            moment, snapshot.all_rows.tolist() if changed is None else changed.tolist()
        )
        if moved or too_many or len(rows) > MAX_NODES:
            self._say("refetch", Refetch(moment.version, ("cluster",)), now)
        elif len(rows):
            self._say("nodes", node_rows(moment, rows), now)

    def _note_labels(self, moment: Moment, rows: list[int]) -> bool:
        """Remember names and labels of nodes; whether some changed."""
        snapshot, has_changed = moment.snapshot, False
        for row in rows:
            node = snapshot.node(row)
            known = self._labels.get(row)
            if node is None:
                has_changed |= self._labels.pop(row, None) is not None
                continue
            now = (node.metadata.name, node.metadata.labels)
            if known != now:
                self._labels[row] = now
                has_changed = True
        return has_changed

    def _tell_pending(self, moment: Moment, now: float) -> None:
        counts = cluster_counts(moment.loaded)
        if now - self._pending_at < counts.pending / PODS_A_SECOND:
            return
        self._pending_at = now
        told = PendingCounts(moment.version, counts.pending, queue_counts(moment))
        known = self._pending
        if known is None or (known.total, known.queues) != (told.total, told.queues):
            self._pending = told
            self._say("pending", told, now)

    def _say(self, event: str, content: Answer, now: float) -> None:
        self._said_at = now
        self._hub.publish(event, content)
