"""Kopf, embedded: watches our pending pods and turns them into events.

Kopf (``kopf.spawn_tasks``, not ``kopf.operator``) runs in our loop, because ``kopf.operator`` ends
by cancelling every task younger than itself, ours among them. It never writes: no finalizers, no
annotations, no peering, no Kubernetes events.

After a gap in its watch Kopf lists again and delivers what is there, but says nothing of pods that
vanished meanwhile. The session we give it reads its lists along: what we know and the list does
not name is gone. An event Kopf still had in a queue when such a list arrived is told from a new
one by its resource version.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

import aiohttp
import kopf
import msgspec
import structlog

from scheduler.api.decode import convert_object
from scheduler.api.errors import InvalidObject
from scheduler.api.events import PendingPodGone, PendingPodSeen
from scheduler.api.meta import ListMeta
from scheduler.api.pod import Pod
from scheduler.operator.backoff import Backoff, Jitter, Sleep
from scheduler.operator.connection import Connection
from scheduler.operator.inbox import Inbox
from scheduler.operator.reflector import object_invalid

PODS_PATH = "/api/v1/pods"
PAGE_SIZE = 500
WORKER_IDLE_S = 0.1
"""How long Kopf keeps a worker, and 23 KiB, for a pod nothing happens to."""
REQUEST_TIMEOUT_S = 120.0
CONNECT_TIMEOUT_S = 5.0
STOP_TIMEOUT_S = 5.0
DEFAULT_SCHEDULER = "default-scheduler"

log = structlog.get_logger("scheduler.operator.kopf_watch")


class _Metadata(msgspec.Struct, frozen=True, gc=False):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class _ListedPod(msgspec.Struct, frozen=True, gc=False):
    metadata: _Metadata = _Metadata()


class _PodPage(msgspec.Struct, frozen=True):
    metadata: ListMeta = ListMeta()
    items: list[_ListedPod] | None = None


_PAGE_DECODER = msgspec.json.Decoder(_PodPage)


def pending_pods_selector(scheduler_names: Collection[str]) -> str:
    """The narrowest field selector that includes all pending pods of these profiles.

    A selector cannot say OR, so with several profiles the handler sorts out the rest.
    """
    terms = ["spec.nodeName=", "status.phase!=Succeeded", "status.phase!=Failed"]
    if len(scheduler_names) == 1:
        terms.insert(0, f"spec.schedulerName={next(iter(scheduler_names))}")
    elif DEFAULT_SCHEDULER not in scheduler_names:
        terms.insert(0, f"spec.schedulerName!={DEFAULT_SCHEDULER}")
    return ",".join(terms)


class PendingPods:
    """What is known of our pending pods; turns raw Kopf events and lists into ours.

    Attributes:
        has_synced: Whether every pod of the first list was delivered.
    """

    def __init__(self, inbox: Inbox, scheduler_names: Collection[str]) -> None:
        self.has_synced = False
        self._inbox = inbox
        self._scheduler_names = frozenset(scheduler_names)
        self._known: dict[str, tuple[str, str]] = {}
        self._listing: set[str] = set()
        self._listed: set[str] = set()
        self._listed_version = 0
        self._delivered: set[str] = set()
        self._missing: set[str] | None = None

    def take_event(self, event_type: str | None, raw: dict[str, Any]) -> None:
        """Take one watch event, or (`event_type` None) one object of a list."""
        metadata = raw["metadata"]
        uid: str = metadata["uid"]
        if event_type == "DELETED":
            self._remove(uid)
        elif self._is_ours(raw) and not self._is_stale(uid, metadata):
            self._add(uid, metadata, raw)
        if not self.has_synced:
            self._note_delivery(uid)

    def take_page(self, body: bytes, *, is_first: bool) -> None:
        """Take one page of a list Kopf asked for.

        Raises:
            msgspec.DecodeError: this is no list of pods.
        """
        page = _PAGE_DECODER.decode(body)
        if is_first:
            self._listing = set()
        self._listing.update(pod.metadata.uid for pod in page.items or ())
        if not page.metadata.continue_:
            self._take_list(page.metadata.resource_version)

    def _take_list(self, resource_version: str) -> None:
        self._listed, self._listing = self._listing, set()
        self._listed_version = _as_number(resource_version)
        for uid in [uid for uid in self._known if uid not in self._listed]:
            self._remove(uid)
        if not self.has_synced:
            # Kopf delivers page by page: some of these have come already.
            self._missing = self._listed - self._delivered
            self._finish_sync()

    def _note_delivery(self, uid: str) -> None:
        if self._missing is None:
            self._delivered.add(uid)
        else:
            self._missing.discard(uid)
            self._finish_sync()

    def _finish_sync(self) -> None:
        if not self._missing:
            self.has_synced = True
            self._delivered = set()
            # The loop may wait for nothing but this.
            self._inbox.wake()

    def _is_ours(self, raw: dict[str, Any]) -> bool:
        return raw["spec"].get("schedulerName") in self._scheduler_names

    def _is_stale(self, uid: str, metadata: dict[str, Any]) -> bool:
        """Whether the event is older than a list that does not name its pod any more."""
        if uid in self._listed:
            return False
        return _as_number(metadata.get("resourceVersion", "")) <= self._listed_version

    def _add(self, uid: str, metadata: dict[str, Any], raw: dict[str, Any]) -> None:
        self._known[uid] = (metadata.get("namespace", ""), metadata["name"])
        try:
            self._inbox.put(PendingPodSeen(convert_object(Pod, raw)))
        except InvalidObject as invalid:
            self._inbox.put(object_invalid(invalid))

    def _remove(self, uid: str) -> None:
        key = self._known.pop(uid, None)
        if key is not None:
            self._inbox.put(PendingPodGone(*key, uid))


class PendingPodWatch:
    """Runs Kopf, and runs it again should it end.

    Args:
        connection: Kopf gets sessions of its own from it.
        pods: Where its events and lists go.
        scheduler_names: Of all profiles.
        after_start: Called each time Kopf has started; it takes over the process's signal handlers.
        jitter: Random numbers in 0..1.
        sleep: Waits that many seconds.
    """

    def __init__(
        self,
        connection: Connection,
        pods: PendingPods,
        scheduler_names: Collection[str],
        after_start: Callable[[], None],
        jitter: Jitter,
        sleep: Sleep,
    ) -> None:
        self._connection = connection
        self._pods = pods
        self._after_start = after_start
        self._jitter = jitter
        self._sleep = sleep
        self._is_first_login = True
        self._settings = _settings(pending_pods_selector(scheduler_names), jitter)
        self._registry = kopf.OperatorRegistry()
        kopf.on.login(registry=self._registry)(self._login)
        kopf.on.event("", "v1", "pods", registry=self._registry)(self._take_event)

    async def run(self) -> None:
        """Watch until cancelled."""
        backoff = Backoff(self._jitter, initial_s=0.5)
        while True:
            tasks = await kopf.spawn_tasks(
                registry=self._registry,
                settings=self._settings,
                clusterwide=True,
                standalone=True,
            )
            self._after_start()
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                errors = await _stop(tasks)
            log.warning("kopf ended, starting it again", errors=errors)
            await self._sleep(backoff.next_delay())

    async def _login(self, **_kwargs: Any) -> kopf.AiohttpSession:
        if not self._is_first_login:
            # Kopf logs in again after a 401.
            await self._connection.reload(self._connection.generation)
        self._is_first_login = False
        session = self._connection.new_session(middlewares=(self._read_lists_along,))
        return kopf.AiohttpSession(server=self._connection.server, aiohttp_session=session)

    async def _take_event(self, event: Any, **_kwargs: Any) -> None:
        self._pods.take_event(event["type"], event["object"])

    async def _read_lists_along(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        response = await handler(request)
        query = request.url.query
        if request.url.path.endswith(PODS_PATH) and "watch" not in query and response.ok:
            # The body stays in the response, where Kopf finds it.
            self._pods.take_page(await response.read(), is_first="continue" not in query)
        return response


class _NoDiffBase(kopf.DiffBaseStorage):
    """Kopf keeps no last-seen state: nobody here asks what changed."""

    def build(self, *, body: Any, extra_fields: Any = None) -> Any:  # noqa: ARG002
        return {}

    def fetch(self, *, body: Any) -> Any:  # noqa: ARG002
        return None

    def store(self, *, body: Any, patch: Any, essence: Any) -> None:
        """Store nothing."""


class _NoProgress(kopf.ProgressStorage):
    """Kopf keeps no handler progress: event handlers have none."""

    def fetch(self, *, key: Any, body: Any) -> Any:  # noqa: ARG002
        return None

    def store(self, *, key: Any, record: Any, body: Any, patch: Any) -> None:
        """Store nothing."""

    def purge(self, *, key: Any, body: Any, patch: Any) -> None:
        """Purge nothing."""

    def touch(self, *, body: Any, patch: Any, value: Any) -> None:
        """Touch nothing."""

    def clear(self, *, essence: Any) -> Any:
        return essence


class _EndlessBackoffs:
    """Delays between Kopf's retries of one request; it gives up only when they end."""

    def __init__(self, jitter: Jitter) -> None:
        self._jitter = jitter

    def __iter__(self) -> Iterator[float]:
        backoff = Backoff(self._jitter, initial_s=0.5)
        while True:
            yield backoff.next_delay()


def _settings(field_selector: str, jitter: Jitter) -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.persistence.diffbase_storage = _NoDiffBase()
    settings.persistence.progress_storage = _NoProgress()
    settings.queueing.idle_timeout = WORKER_IDLE_S
    settings.watching.field_selectors["", "v1", "pods"] = field_selector
    settings.watching.chunk_size = PAGE_SIZE
    settings.networking.request_timeout = REQUEST_TIMEOUT_S
    settings.networking.connect_timeout = CONNECT_TIMEOUT_S
    settings.networking.error_backoffs = _EndlessBackoffs(jitter)
    settings.process.ultimate_exiting_timeout = None
    return settings


async def _stop(tasks: Iterable[asyncio.Task[Any]]) -> list[str]:
    """Cancel Kopf's tasks and say what made any of them end by itself."""
    tasks = list(tasks)
    ended = [task for task in tasks if task.done()]
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks, timeout=STOP_TIMEOUT_S)
    return [repr(task.exception()) for task in ended if not task.cancelled()]


def _as_number(resource_version: str) -> int:
    return int(resource_version) if resource_version.isdecimal() else 0
