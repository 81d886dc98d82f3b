"""What is known of our pending pods: raw watch events and lists in, engine events out.

Kopf delivers what is there, but after a gap in its watch says nothing of pods that vanished
meanwhile: what we know and a fresh list does not name is gone. An event Kopf still had in a queue
when a list or a deletion overtook it is told from a new one: by its resource version against the
list's, by its UID against those of the pods that left. A pod that left never comes back: nodeName
is never unset, a terminal phase never left, a UID never used twice.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec
from cachetools import LRUCache

from scheduler.api.decode import convert_object
from scheduler.api.errors import InvalidObject
from scheduler.api.events import PendingPodGone, PendingPodSeen
from scheduler.api.meta import ListMeta
from scheduler.api.pod import Pod
from scheduler.operator.inbox import Inbox
from scheduler.operator.reflector import object_invalid

DEFAULT_SCHEDULER = "default-scheduler"
MAX_REMEMBERED_DEPARTURES = 20_000
"""More than Kopf's queues hold: an event it has still to deliver is never older than these."""


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

    Args:
        inbox: Where events go.
        scheduler_names: Of all profiles.
        raw: Where pods are kept as they came, by UID; None keeps none.

    Attributes:
        has_synced: Whether every pod of the first list was delivered.
    """

    def __init__(
        self,
        inbox: Inbox,
        scheduler_names: Collection[str],
        raw: dict[str, dict[str, Any]] | None = None,
    ) -> None:
        self.has_synced = False
        self._inbox = inbox
        self._scheduler_names = frozenset(scheduler_names)
        self._raw = raw
        # Namespace, name and scheduler name by UID.
        self._known: dict[str, tuple[str, str, str]] = {}
        self._departed: LRUCache[str, None] = LRUCache(MAX_REMEMBERED_DEPARTURES)
        self._listing: set[str] = set()
        self._listed: set[str] = set()
        self._listed_version = 0
        self._delivered: set[str] = set()
        self._missing: set[str] | None = None

    def select(self, scheduler_names: Collection[str]) -> None:
        """Take the pods of these profiles from now on, and forget those of others.

        The engine is not told that they are gone, for they are not: one that is being bound
        still is.
        """
        self._scheduler_names = frozenset(scheduler_names)
        for uid in [uid for uid, known in self._known.items() if known[2] not in scheduler_names]:
            del self._known[uid]
            if self._raw is not None:
                self._raw.pop(uid, None)

    def take_event(self, event_type: str | None, raw: dict[str, Any]) -> None:
        """Take one watch event, or (`event_type` None) one object of a list."""
        metadata = raw["metadata"]
        uid: str = metadata["uid"]
        if event_type == "DELETED":
            self.take_departure(uid)
            return
        if self._is_ours(raw) and not self._is_stale(uid, metadata):
            self._add(uid, metadata, raw)
        if not self.has_synced:
            self._note_delivery(uid)

    def take_departure(self, uid: str) -> None:
        """Take the news that a pod left the selection, for ever."""
        self._departed[uid] = None
        self._remove(uid)
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
        """Whether the event is older than its pod's departure, seen or found out by a list."""
        if uid in self._departed:
            return True
        if uid in self._listed:
            return False
        return _as_number(metadata.get("resourceVersion", "")) <= self._listed_version

    def _add(self, uid: str, metadata: dict[str, Any], raw: dict[str, Any]) -> None:
        namespace = metadata.get("namespace", "")
        self._known[uid] = (namespace, metadata["name"], raw["spec"]["schedulerName"])
        if self._raw is not None:
            self._raw[uid] = raw
        try:
            self._inbox.put(PendingPodSeen(convert_object(Pod, raw)))
        except InvalidObject as invalid:
            self._inbox.put(object_invalid(invalid))

    def _remove(self, uid: str) -> None:
        known = self._known.pop(uid, None)
        if self._raw is not None:
            self._raw.pop(uid, None)
        if known is not None:
            namespace, name, _ = known
            self._inbox.put(PendingPodGone(namespace, name, uid))


def _as_number(resource_version: str) -> int:
    return int(resource_version) if resource_version.isdecimal() else 0
