"""Watches the resources that plugins name, while the API server serves them.

    not served --(asked again every `RETRY_S`)--> listed and watched --(404)--> not served

Neither the start nor the readiness of the scheduler waits for these resources.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import Any

import structlog

from stowage.api.events import CustomResourceGone
from stowage.api.reflected_kinds import custom_kind
from stowage.operator.client.api_client import ApiClient
from stowage.operator.clock import Clock
from stowage.operator.inbox import Inbox
from stowage.operator.watch.reflector import NotServedError, Reflector

RETRY_S = 10.0
"""A definition is usually created before the objects that pods wait for."""

log = structlog.get_logger("stowage.operator.watch.custom_resources")


class CustomResourceWatch:
    """Follows a set of resources, which may change at any time.

    Args:
        client: Client of the API server.
        inbox: Receives the events.
        clock: Time, sleep and jitter.
    """

    def __init__(self, client: ApiClient, inbox: Inbox, clock: Clock) -> None:
        self._client = client
        self._inbox = inbox
        self._clock = clock
        self._wanted: frozenset[str] = frozenset()
        self._changed = asyncio.Event()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._reflectors: dict[str, Reflector[Any]] = {}

    @property
    def reflectors(self) -> Sequence[Reflector[Any]]:
        """The reflectors of the resources that are watched now."""
        return tuple(self._reflectors.values())

    def follow(self, resources: Collection[str]) -> None:
        """Follow these resources, in the notation of `parse_custom_resource`, and no others."""
        self._wanted = frozenset(resources)
        self._changed.set()

    async def run(self) -> None:
        """List and watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                self._changed.clear()
                for resource in sorted(self._wanted - self._tasks.keys()):
                    name = f"{resource} reflector"
                    self._tasks[resource] = group.create_task(self._run(resource), name=name)
                for resource in sorted(self._tasks.keys() - self._wanted):
                    self._tasks.pop(resource).cancel()
                    self._reflectors.pop(resource, None)
                    self._inbox.put(CustomResourceGone(resource))
                await self._changed.wait()

    async def _run(self, resource: str) -> None:
        is_reported = False
        while True:
            kind = custom_kind(resource)
            reflector = Reflector(kind, self._client, self._inbox, self._clock)
            self._reflectors[resource] = reflector
            try:
                await reflector.run()
            except NotServedError:
                del self._reflectors[resource]
                is_reported = is_reported and not reflector.has_synced
                if not is_reported:
                    log.warning("resource of a plugin is not served", resource=resource)
                    is_reported = True
                self._inbox.put(CustomResourceGone(resource))
            await self._clock.sleep(RETRY_S)
