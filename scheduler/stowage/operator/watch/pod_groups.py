"""Watches the pod groups of each source while the API server serves their kind.

    discovery --(served)--> list and watch
        ^                        |
        +------- RETRY_S <-------+ 404, or not served

Most API servers serve neither kind: those of ``scheduling.k8s.io`` are alpha, those of the
coscheduling plugin are a CustomResourceDefinition. Neither the start nor the readiness of the
scheduler waits for them. The engine learns what discovery says: until then it holds the pods that
name a group, and while the kind is not served it schedules them as ordinary pods.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import structlog

from stowage.api.events import PodGroupsServed
from stowage.api.reflected_kinds import POD_GROUP_SOURCES, ReflectedKind, group_source
from stowage.operator.client.api_client import LOST_ANSWER_ERRORS, ApiClient
from stowage.operator.client.api_error import ApiError
from stowage.operator.client.outage_log import plain_message
from stowage.operator.clock import Clock
from stowage.operator.inbox import Inbox
from stowage.operator.watch.reflector import NOT_SERVED, NotServedError, Reflector

RETRY_S = 10.0
"""A kind appears when a CustomResourceDefinition is made, or the API server starts anew."""

FIRST_ANSWER_LIMIT_S = 30.0
"""Once all other objects are listed, a kind without an answer of discovery counts as not served
after this time."""

FIRST_RETRY_S = 1.0
"""The pause between two questions before the first answer."""

log = structlog.get_logger("stowage.operator.watch.pod_groups")


class _Resource(msgspec.Struct, frozen=True):
    name: str


class _Resources(msgspec.Struct, frozen=True):
    """An ``APIResourceList``, reduced to the names."""

    resources: tuple[_Resource, ...] = ()


class PodGroupWatch:
    """Follows the pod groups of all sources that are served.

    Args:
        client: Client of the API server.
        inbox: Receives the events.
        clock: Time, sleep and jitter.
        has_synced: Whether the engine knows all other objects, and so may schedule.
    """

    def __init__(
        self, client: ApiClient, inbox: Inbox, clock: Clock, has_synced: Callable[[], bool]
    ) -> None:
        self._client = client
        self._inbox = inbox
        self._clock = clock
        self._reflectors: dict[str, Reflector[Any]] = {}
        self._failures: dict[str, str] = {}
        self._has_synced = has_synced
        # Path of a source -> what the engine was told.
        self._told: dict[str, bool] = {}
        # When the engine began to wait for the first answers.
        self._waits_since: float | None = None

    @property
    def reflectors(self) -> Sequence[Reflector[Any]]:
        """The reflectors of the sources that are served now."""
        return tuple(self._reflectors.values())

    async def run(self) -> None:
        """List and watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            for kind in POD_GROUP_SOURCES:
                group.create_task(self._follow(kind), name=f"{kind.kind} reflector")

    async def _follow(self, kind: ReflectedKind[Any]) -> None:
        while True:
            is_served = await self._is_served(kind)
            self._tell(kind, is_served)
            if is_served:
                await self._reflect(kind)
            await self._clock.sleep(RETRY_S if kind.path in self._told else FIRST_RETRY_S)

    def _tell(self, kind: ReflectedKind[Any], is_served: bool | None) -> None:
        """Tell the engine whether a kind is served, if that is news; None is no answer.

        Without an answer the last one stays true.
        """
        known = self._told.get(kind.path)
        if is_served is None and (known is not None or not self._has_waited()):
            return
        if known is not bool(is_served):
            self._told[kind.path] = bool(is_served)
            self._inbox.put(PodGroupsServed(group_source(kind), bool(is_served)))

    def _has_waited(self) -> bool:
        """Whether the engine has waited long enough for the first answers."""
        if not self._has_synced():
            return False
        now = self._clock.monotonic()
        if self._waits_since is None:
            self._waits_since = now
        return now - self._waits_since >= FIRST_ANSWER_LIMIT_S

    async def _reflect(self, kind: ReflectedKind[Any]) -> None:
        """List and watch until the kind is not served any more."""
        log.info("pod groups are served", path=kind.path)
        reflector = Reflector(kind, self._client, self._inbox, self._clock)
        self._reflectors[kind.kind] = reflector
        try:
            await reflector.run()
        except NotServedError:
            log.info("pod groups are not served any more", path=kind.path)
            reflector.report_all_gone()
        finally:
            del self._reflectors[kind.kind]

    async def _is_served(self, kind: ReflectedKind[Any]) -> bool | None:
        """Whether discovery lists the kind; None if it does not answer."""
        version, _, plural = kind.path.rpartition("/")
        try:
            found = msgspec.json.decode(await self._client.get(version), type=_Resources)
        except (ApiError, msgspec.DecodeError, *LOST_ANSWER_ERRORS) as error:
            is_answer = isinstance(error, ApiError) and error.status == NOT_SERVED
            self._note_failure(version, "" if is_answer else plain_message(error))
            return False if is_answer else None
        self._note_failure(version, "")
        return any(resource.name == plural for resource in found.resources)

    def _note_failure(self, path: str, text: str) -> None:
        """Log a failure once for as long as it stays the same; an empty text ends it."""
        if text and self._failures.get(path) != text:
            log.info("discovery failed", path=path, error=text)
        self._failures[path] = text
