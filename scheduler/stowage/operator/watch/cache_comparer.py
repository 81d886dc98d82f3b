"""Logs the engine's state on SIGUSR2 and compares it with the API server's objects.

upstream: ``pkg/scheduler/backend/cache/debugger``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
import structlog

from stowage.api.objects.meta import ListMeta, ObjectMeta
from stowage.engine import Engine
from stowage.operator.client.api_client import LOST_ANSWER_ERRORS, ApiClient
from stowage.operator.client.api_error import ApiError
from stowage.operator.client.outage_log import plain_message
from stowage.operator.clock import Clock
from stowage.operator.state_dump import dump_for_people

NODES = "/api/v1/nodes"
PODS = "/api/v1/pods"
ASSIGNED = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
PAGE_SIZE = 500

PAUSE_S = 0.05
"""Between two looks at whether the engine still tries a pod group."""

log = structlog.get_logger("stowage.operator.watch.cache_comparer")


class _Item(msgspec.Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


class _Page(msgspec.Struct, frozen=True):
    metadata: ListMeta = ListMeta()
    items: tuple[_Item, ...] = ()


_PAGE_DECODER = msgspec.json.Decoder(_Page)


class CacheComparer:
    """Logs the engine's state and its differences from the API server's objects.

    Args:
        client: Of the API server; nodes and assigned pods are listed.
        engine: The engine whose state is compared.
        clock: Times of day in the dump.
    """

    def __init__(self, client: ApiClient, engine: Engine, clock: Clock) -> None:
        self._client = client
        self._engine = engine
        self._clock = clock
        self._running: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Dump and compare in the background, unless a comparison is already running."""
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self.run(), name="cache comparer")

    async def run(self) -> None:
        """Dump and compare once; log it if the API server does not answer."""
        self.log_state()
        try:
            await self.compare()
        except (ApiError, *LOST_ANSWER_ERRORS, msgspec.DecodeError) as error:
            log.warning("cache not compared", error=plain_message(error))

    def log_state(self) -> None:
        """Log a line for each node and one for the scheduling queue."""
        state = dump_for_people(self._engine, self._clock)
        nodes = state.get("nodes", {})
        for name, node in nodes.items():
            log.info("Dump of cached NodeInfo", node=name, **node)
        rest = {part: content for part, content in state.items() if part != "nodes"}
        log.info("Dump of scheduling queue", nodes=len(nodes), **rest)

    async def compare(self) -> None:
        """List nodes and assigned pods, and log which the engine lacks or has too many of.

        Objects that change during the lists are not reported: an object is redundant only if the
        engine has it before and after the lists. Pods that are being bound are left out.

        Raises:
            ApiError: the API server refuses the list.
        """
        await self._until_consistent()
        nodes_before, pods_before = set(self._engine.node_names()), self._placed()
        nodes = {item.metadata.name async for item in self._list(NODES, "")}
        pods = {item.metadata.uid: item async for item in self._list(PODS, ASSIGNED)}
        await self._until_consistent()
        nodes_after, pods_after = set(self._engine.node_names()), self._placed()
        binding = set(self._engine.dump().get("bindings", ()))
        missing_nodes = sorted(nodes - nodes_after)
        redundant_nodes = sorted((nodes_before & nodes_after) - nodes)
        if missing_nodes or redundant_nodes:
            log.info("Cache mismatch", missingNodes=missing_nodes, redundantNodes=redundant_nodes)
        missing = [_key(item) for uid, item in pods.items() if uid not in pods_after]
        stayed = pods_before.keys() & pods_after.keys()
        redundant = [pods_after[uid] for uid in stayed - pods.keys()]
        redundant = [key for key in redundant if key not in binding]
        if missing or redundant:
            log.info("Cache mismatch", missingPods=sorted(missing), redundantPods=sorted(redundant))
        log.info("cache compared", nodes=len(nodes), pods=len(pods))

    async def _until_consistent(self) -> None:
        """Wait while the engine tries the members of a pod group, perhaps without other pods."""
        while self._engine.is_in_steps:
            await self._clock.sleep(PAUSE_S)

    def _placed(self) -> dict[str, str]:
        """UID -> namespace/name of the pods that have a node."""
        return {pod.uid: pod.key for pod in self._engine.pods() if pod.node_name}

    async def _list(self, path: str, field_selector: str) -> AsyncIterator[_Item]:
        params = {"limit": str(PAGE_SIZE)}
        if field_selector:
            params["fieldSelector"] = field_selector
        while True:
            page = _PAGE_DECODER.decode(
                await self._client.get(path, params, self._client.timeouts.list_timeout)
            )
            for item in page.items:
                yield item
            if not page.metadata.continue_:
                return
            params["continue"] = page.metadata.continue_


def _key(item: _Item) -> str:
    return item.metadata.namespaced_name
