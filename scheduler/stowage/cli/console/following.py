"""Keeps the cluster of a console up to date: by watches, by the decisions of a scheduler, by time.

Each function runs until it is cancelled.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from stowage.api.decisions import MAX_DECISIONS_OF_A_PAGE, DecisionQuery
from stowage.cli.ask.decision_source import DecisionReader, UnreadableDecisions
from stowage.cli.ask.flags import ClusterFlags
from stowage.console.clusters.live import LiveCluster
from stowage.console.clusters.source import CONNECTED, RECONNECTING
from stowage.console.decisions.history import DecisionHistory
from stowage.console.stream.feed import TICK_S, Feed
from stowage.operator.clock import Clock
from stowage.operator.cluster_watch import ClusterWatch, watch_cluster
from stowage.operator.garbage_collection import freeze_tracked_objects

EVENTS_AT_ONCE = 500
"""Events that are applied before requests are answered again."""
GATHER_S = 0.05
"""Events are applied together; so an answer is valid for at least so long."""
POLL_S = 1.0

_FEW = 3
"""Kinds that are named; more are counted."""


async def follow_cluster(
    flags: ClusterFlags,
    cluster: LiveCluster,
    feed: Feed,
    fork_lock: asyncio.Lock,
    connected: asyncio.Event,
) -> None:
    """Watch a running cluster.

    Args:
        flags: Name the cluster.
        cluster: Receives its objects.
        feed: Is told about the connection.
        fork_lock: Held while another thread works.
        connected: Set as soon as the server has answered.

    Raises:
        ApiError: The server refuses to list or watch pods or nodes.
        ConfigException: There is no usable kubeconfig.
        OSError: The server cannot be reached at the start.
    """
    path = str(flags.kubeconfig) if flags.kubeconfig else None
    async with watch_cluster(path, flags.context, cluster.notes.append, Clock()) as watch:
        connected.set()
        while not (watch.has_synced and not len(watch.inbox)):
            await watch.inbox.wait(TICK_S)
            cluster.apply(watch.inbox.drain(EVENTS_AT_ONCE))
            await asyncio.sleep(0)
        async with fork_lock:
            await asyncio.to_thread(cluster.load)
        freeze_tracked_objects()
        feed.reloaded(time.monotonic())
        while True:
            await watch.inbox.wait(TICK_S)
            _tell_state(watch, feed)
            events = watch.inbox.drain(EVENTS_AT_ONCE)
            if events:
                cluster.apply(events)
                await asyncio.sleep(GATHER_S if not len(watch.inbox) else 0)


def _tell_state(watch: ClusterWatch, feed: Feed) -> None:
    waiting = sorted(set(watch.waiting_kinds))
    kinds = ", ".join(waiting) if len(waiting) <= _FEW else f"{len(waiting)} kinds"
    text = f"waits to read {kinds} again" if waiting else ""
    feed.source_is(RECONNECTING if waiting else CONNECTED, text, time.monotonic())


async def follow_decisions(
    reader: DecisionReader, history: DecisionHistory, feed: Feed, say: Callable[[str], None]
) -> None:
    """Read the decisions of a scheduler; an outage is said once.

    Raises:
        UnreadableDecisions: They cannot be read at the start.
    """
    query = DecisionQuery(limit=MAX_DECISIONS_OF_A_PAGE)
    found = await asyncio.to_thread(reader.latest, query)
    is_said = False
    while True:
        for decision in found:
            feed.decided(history.add(decision))
        if len(found) < query.limit:
            await asyncio.sleep(POLL_S)
        try:
            found = await asyncio.to_thread(reader.following, query)
            is_said = False
        except UnreadableDecisions as error:
            found = []
            if not is_said:
                say(f"{error}; trying again")
            is_said = True
            await asyncio.sleep(POLL_S)


async def keep_ticking(feed: Feed) -> None:
    """Publish what changed, a few times a second."""
    while True:
        await asyncio.sleep(TICK_S)
        feed.tick(time.monotonic(), time.time())
