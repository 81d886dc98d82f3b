"""Lists and watches everything in a cluster that scheduling reads, and writes nothing to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from stowage.api.reflected_kinds import FOR_NEW_PODS, POD_GROUP_SOURCES
from stowage.operator.cancellation import cancel
from stowage.operator.client.api_client import ApiClient
from stowage.operator.client.connection import connect
from stowage.operator.clock import Clock
from stowage.operator.inbox import Inbox
from stowage.operator.watch.reflector import Reflector
from stowage.operator.watch.visible_kinds import OBSERVED, reflectors_of, visible_kinds


class ClusterWatch:
    """The watches of a cluster.

    Args:
        reflectors: One for each kind.
        inbox: Receives their events.
    """

    def __init__(self, reflectors: Sequence[Reflector[Any]], inbox: Inbox) -> None:
        self.inbox = inbox
        self._reflectors = reflectors

    @property
    def has_synced(self) -> bool:
        """Whether the first lists are in the inbox."""
        return all(each.has_synced for each in self._reflectors)

    @property
    def waiting_kinds(self) -> list[str]:
        """The kinds whose list or watch failed, and that wait to try again."""
        return [each.kind for each in self._reflectors if each.is_backing_off]


@asynccontextmanager
async def watch_cluster(
    kubeconfig: str | None, context: str | None, say: Callable[[str], None], clock: Clock
) -> AsyncIterator[ClusterWatch]:
    """Watch a cluster until the context ends.

    Args:
        kubeconfig: Path; None for ``$KUBECONFIG``, ``~/.kube/config`` or in-cluster configuration.
        context: Context of the kubeconfig; None for its current one.
        say: Called with a sentence for each kind that is left out.
        clock: Time, sleep and jitter.

    Raises:
        ApiError: The server refuses to list or watch pods or nodes.
        InvalidObject: The server is no API server.
        ConfigException: There is no usable kubeconfig.
        OSError: The server cannot be reached.
    """
    async with AsyncExitStack() as cleanup:
        connection = await connect(kubeconfig, context=context)
        cleanup.push_async_callback(connection.close)
        client, inbox = ApiClient(connection), Inbox()
        kinds = await visible_kinds(client, say, (*OBSERVED, *FOR_NEW_PODS, *POD_GROUP_SOURCES))
        reflectors = reflectors_of(kinds, client, inbox, clock)
        tasks = [asyncio.create_task(reflector.run()) for reflector in reflectors]
        tasks.append(asyncio.create_task(connection.keep_fresh()))
        cleanup.push_async_callback(cancel, *tasks)
        yield ClusterWatch(reflectors, inbox)
