"""What is known of our pending pods: lists and raw watch events in, engine events out.

Lists are taken whole: what we know and a fresh list does not name vanished while nobody watched.
An event Kopf still had in a queue when a list or a departure overtook it is told from a new one:
by its resource version against the list's, by its UID against those of the pods that left. A pod
that left never comes back: nodeName is never unset, a terminal phase never left, a UID never used
twice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import msgspec
from cachetools import LRUCache

from stowage.api.decoding.decode import (
    check_is_versioned,
    convert_object,
    decode_event_metadata,
    decode_list,
    decode_watch_event,
)
from stowage.api.decoding.errors import InvalidObject
from stowage.api.events import PendingPodGone, PendingPodSeen
from stowage.api.objects.meta import ListMeta
from stowage.api.objects.pod import Pod
from stowage.operator import clock
from stowage.operator.inbox import Inbox
from stowage.operator.watch.reflector import as_number, object_invalid

DEFAULT_SCHEDULER = "default-scheduler"
MAX_REMEMBERED_DEPARTURES = 20_000
"""More than Kopf's queues hold: an event it has still to deliver is never older than these."""


class _Metadata(msgspec.Struct, frozen=True):
    uid: Any = ""


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    scheduler_name: Any = ""


class _Pod(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()
    spec: _Spec = _Spec()


class _Known(NamedTuple):
    """What a pod's departure, or older news of it, are judged by."""

    namespace: str
    name: str
    scheduler_name: str
    version: int


class _SchedulerNames(msgspec.Struct, frozen=True):
    """A list of pods as far as it says whose they are."""

    items: tuple[_Pod, ...] = ()


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
    """What is known of our pending pods; turns lists and Kopf's raw events into ours.

    Args:
        inbox: Where events go.
        scheduler_names: Of all profiles.
        raw: Where pods are kept as they came, by UID; None keeps none.
        monotonic: The process's clock, seconds.

    Attributes:
        has_synced: Whether the first list is in the inbox.
    """

    def __init__(
        self,
        inbox: Inbox,
        scheduler_names: Collection[str],
        raw: dict[str, dict[str, Any]] | None = None,
        monotonic: Callable[[], float] = clock.monotonic,
    ) -> None:
        self.has_synced = False
        self._monotonic = monotonic
        self._heard_at = monotonic()
        self._inbox = inbox
        self._scheduler_names = frozenset(scheduler_names)
        self._raw = raw
        # By UID.
        self._known: dict[str, _Known] = {}
        self._departed: LRUCache[str, None] = LRUCache(MAX_REMEMBERED_DEPARTURES)
        self._listing: set[str] = set()
        self._listed_version = 0

    @property
    def heard_at(self) -> float:
        """When the server last said anything, a bookmark at least."""
        return self._heard_at

    @property
    def silence_s(self) -> float:
        """How long ago the server said anything, a bookmark at least."""
        return self._monotonic() - self._heard_at

    def hear(self) -> None:
        """Note that the server has just said something."""
        self._heard_at = self._monotonic()

    def select(self, scheduler_names: Collection[str]) -> None:
        """Take the pods of these profiles from now on, and forget those of others.

        The engine is not told that they are gone, for they are not: one that is being bound
        still is.
        """
        self._scheduler_names = frozenset(scheduler_names)
        others = [
            uid for uid, pod in self._known.items() if pod.scheduler_name not in scheduler_names
        ]
        for uid in others:
            del self._known[uid]
            if self._raw is not None:
                self._raw.pop(uid, None)

    def take_event(self, event_type: str | None, raw: dict[str, Any]) -> None:
        """Take one watch event; of nothing older than the last list."""
        metadata = raw["metadata"]
        uid: str = metadata["uid"]
        if event_type == "DELETED":
            self.take_departure(uid)
        elif raw["spec"].get("schedulerName") in self._scheduler_names and not self._is_stale(
            uid, metadata
        ):
            self._take_raw(uid, metadata, raw)

    def take_departure(self, uid: str) -> None:
        """Take the news that a pod left the selection, for ever."""
        self._departed[uid] = None
        self._remove(uid)

    def take_page(self, body: bytes, *, is_first: bool) -> ListMeta:
        """Take one page of a list; returns its metadata.

        Raises:
            InvalidObject: this is no list of pods.
        """
        page = decode_list(Pod, body)
        check_is_versioned(page)
        self.hear()
        if is_first:
            self._listing = set()
        for pod in page.items:
            if pod.spec.scheduler_name in self._scheduler_names:
                self._listing.add(pod.metadata.uid)
                self._add(pod)
        if page.invalid:
            self._take_invalid(page.invalid, body)
        if self._raw is not None:
            self._keep_raw(self._raw, body)
        if not page.metadata.continue_:
            self._end_list(page.metadata.resource_version)
        return page.metadata

    def _take_invalid(self, found: Collection[InvalidObject], body: bytes) -> None:
        """Pass on what cannot be read of our pods; others' pods are none of our business."""
        try:
            pods = msgspec.json.decode(body, type=_SchedulerNames).items
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            pods = ()
        names = {pod.metadata.uid: pod.spec.scheduler_name for pod in pods}
        for invalid in found:
            self._listing.add(invalid.uid)
            name = names.get(invalid.uid, "")
            if not name or name in self._scheduler_names:
                self._inbox.put(object_invalid(invalid, name))

    def _keep_raw(self, kept: dict[str, dict[str, Any]], body: bytes) -> None:
        try:
            pods = msgspec.json.decode(body)["items"]
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return  # extenders are sent pods as they came, and these did not come as such
        kept.update((pod["metadata"]["uid"], pod) for pod in pods if pod)

    def take_unreadable(self, line: bytes) -> str:
        """Take a line of the watch that is no event of a pod; the version it tells, if any."""
        try:
            decode_watch_event(Pod, line)
            invalid = InvalidObject("Pod", "", "metadata", "", "an object with uid and spec")
        except InvalidObject as found:
            invalid = found
        self._inbox.put(object_invalid(invalid))
        return decode_event_metadata(line)[1].get("resourceVersion", "")

    def _end_list(self, resource_version: str) -> None:
        self._listed_version = as_number(resource_version)
        for uid in [uid for uid in self._known if uid not in self._listing]:
            self._remove(uid)
        self._listing = set()
        self.has_synced = True
        # The loop may wait for nothing but this.
        self._inbox.wake()

    def _is_stale(self, uid: str, metadata: dict[str, Any]) -> bool:
        """Whether the event is older than its pod's departure, the last list or other news."""
        if uid in self._departed:
            return True
        known = self._known.get(uid)
        newest = self._listed_version if known is None else max(self._listed_version, known.version)
        return as_number(metadata.get("resourceVersion", "")) <= newest

    def _take_raw(self, uid: str, metadata: dict[str, Any], raw: dict[str, Any]) -> None:
        if self._raw is not None:
            self._raw[uid] = raw
        try:
            self._add(convert_object(Pod, raw))
        except InvalidObject as invalid:
            scheduler_name = raw["spec"]["schedulerName"]
            self._known[uid] = _Known(
                metadata.get("namespace", ""),
                metadata["name"],
                scheduler_name,
                as_number(metadata.get("resourceVersion", "")),
            )
            self._inbox.put(object_invalid(invalid, scheduler_name))

    def _add(self, pod: Pod) -> None:
        metadata = pod.metadata
        self._known[metadata.uid] = _Known(
            metadata.namespace,
            metadata.name,
            pod.spec.scheduler_name,
            as_number(metadata.resource_version),
        )
        self._inbox.put(PendingPodSeen(pod))

    def _remove(self, uid: str) -> None:
        known = self._known.pop(uid, None)
        if self._raw is not None:
            self._raw.pop(uid, None)
        if known is not None:
            self._inbox.put(PendingPodGone(known.namespace, known.name, uid))
