"""Pending pods: pages of lists and lines of watches in, events for the engine out.

Each line is decoded once. A known pod that a new list does not contain is gone. An event may arrive
after a newer list or removal: a watch resumes before it, or a proxy repeats it. It is recognised by
its resource version, compared with the list's, and by its UID, compared with those of the removed
pods. A removed pod never comes back: nodeName is never unset, a terminal phase never left, a UID
never used twice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Literal, NamedTuple

import msgspec
from cachetools import LRUCache

from stowage.api.decoding.decode import (
    ObjectList,
    WatchError,
    check_is_versioned,
    decode_builtins,
    decode_event_metadata,
    decode_watch_event,
)
from stowage.api.decoding.errors import InvalidObject
from stowage.api.events import PendingPodGone, PendingPodSeen
from stowage.api.objects.meta import ListMeta, ObjectMeta
from stowage.api.objects.pod import Pod
from stowage.operator import clock
from stowage.operator.client.resource_version import parse_resource_version
from stowage.operator.inbox import Inbox
from stowage.operator.watch.invalid_objects import invalid_object_event

DEFAULT_SCHEDULER = "default-scheduler"
MAX_REMEMBERED_REMOVALS = 20_000
"""More than the pods that are removed while a watch resumes."""


class _Metadata(msgspec.Struct, frozen=True):
    uid: Any = ""


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    scheduler_name: Any = ""


class _Pod(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()
    spec: _Spec = _Spec()


class _Identity(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    uid: str
    resource_version: str
    namespace: str = ""


class _IdentifiedPod(msgspec.Struct, frozen=True):
    metadata: _Identity
    spec: _Spec


class _IdentityEvent(msgspec.Struct, frozen=True):
    """The event of a pod that is gone or invalid, reduced to what identifies the pod."""

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    object: _IdentifiedPod


_IDENTITY_DECODER = msgspec.json.Decoder(_IdentityEvent)
_NOT_A_POD = InvalidObject("Pod", "", "metadata", "", "an object with name and uid")
_OBJECT_EVENTS = ("ADDED", "MODIFIED", "DELETED")
BOOKMARK = "BOOKMARK"
_DELETED_LINE = b'{"type":"DELETED",'


class _KnownPod(NamedTuple):
    """A pod that the engine knows, with the latest version seen."""

    namespace: str
    name: str
    scheduler_name: str
    version: int


class _SchedulerNames(msgspec.Struct, frozen=True):
    """A list of pods, reduced to UIDs and scheduler names."""

    items: tuple[_Pod, ...] = ()


def pending_pods_selector(scheduler_names: Collection[str]) -> str:
    """The narrowest field selector that includes all pending pods of these profiles.

    Field selectors have no OR: with several profiles, `PendingPods` filters the rest.
    """
    terms = ["spec.nodeName=", "status.phase!=Succeeded", "status.phase!=Failed"]
    if len(scheduler_names) == 1:
        terms.insert(0, f"spec.schedulerName={next(iter(scheduler_names))}")
    elif DEFAULT_SCHEDULER not in scheduler_names:
        terms.insert(0, f"spec.schedulerName!={DEFAULT_SCHEDULER}")
    return ",".join(terms)


class PendingPods:
    """Tracks the pending pods of our profiles and puts events about them into the inbox.

    Args:
        inbox: Receives the events.
        scheduler_names: Scheduler names of all profiles.
        raw: Receives the raw pods by UID, for extenders; None if no extender is configured.
        monotonic: Returns monotonic seconds.

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
        self._last_activity_at = monotonic()
        self._inbox = inbox
        self._scheduler_names = frozenset(scheduler_names)
        self._raw = raw
        # By UID.
        self._known: dict[str, _KnownPod] = {}
        self._removed: LRUCache[str, None] = LRUCache(MAX_REMEMBERED_REMOVALS)
        self._listing: set[str] = set()
        self._listed_version = 0

    @property
    def last_activity_at(self) -> float:
        """When the API server last accepted a watch or sent data."""
        return self._last_activity_at

    @property
    def idle_s(self) -> float:
        """Seconds since the API server last accepted a watch or sent data."""
        return self._monotonic() - self._last_activity_at

    def note_activity(self) -> None:
        """Note that the API server has just accepted a watch or sent data."""
        self._last_activity_at = self._monotonic()

    def select(self, scheduler_names: Collection[str]) -> None:
        """Follow the pods of these profiles from now on.

        The engine gets no event for the pods of others: they still exist, and the engine may be
        binding one. But they stay known here: the engine may have removed the profile, added it
        again and seen such a pod before it reports either. A list for that profile then tells
        whether the pod is gone.
        """
        self._scheduler_names = frozenset(scheduler_names)
        if self._raw is None:
            return
        for uid, pod in self._known.items():
            if pod.scheduler_name not in scheduler_names:
                self._raw.pop(uid, None)

    def handle_line(self, line: bytes) -> str | WatchError:
        """Handle a line of the watch; ignore it if it is stale, report it if it is invalid.

        Returns:
            The resource version of the event; empty if an invalid line has none.
        """
        if line.startswith(_DELETED_LINE):
            removed = self._handle_deleted_line(line)
            if removed is not None:
                return removed
        try:
            event = decode_watch_event(Pod, line)
        except InvalidObject as invalid:
            return self._handle_invalid_line(line, invalid)
        if isinstance(event, WatchError):
            return event
        metadata = event.object.metadata
        if event.type == BOOKMARK:
            return metadata.resource_version
        if event.type not in _OBJECT_EVENTS or not _is_identified(metadata):
            return self._handle_invalid_line(line, _NOT_A_POD)
        if event.type == "DELETED":
            self.handle_removal(metadata.uid)
        else:
            self._handle_pod(event.object, line)
        return metadata.resource_version

    def _handle_deleted_line(self, line: bytes) -> str | None:
        """Handle a removal without decoding the whole pod; None if the pod is not identified."""
        try:
            metadata = _IDENTITY_DECODER.decode(line).object.metadata
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return None
        if not _is_identified(metadata):
            return None
        self.handle_removal(metadata.uid)
        return metadata.resource_version

    def _handle_pod(self, pod: Pod, line: bytes) -> None:
        if pod.spec.scheduler_name in self._scheduler_names and not self._is_stale(
            pod.metadata.uid, pod.metadata.resource_version
        ):
            if self._raw is not None:
                self._raw[pod.metadata.uid] = decode_builtins(line)["object"]
            self._add(pod)

    def handle_removal(self, uid: str) -> None:
        """Handle the event that a pod left the field selector: it is bound, finished or deleted."""
        self._removed[uid] = None
        self._remove(uid)

    def handle_page(self, page: ObjectList[Pod], body: bytes, *, is_first: bool) -> ListMeta:
        """Handle one page of a list; returns its metadata.

        Args:
            page: The decoded page.
            body: The same as the API server sent it.
            is_first: Whether a list begins with it.

        Raises:
            InvalidObject: It has no resource version, so it is no list.
        """
        check_is_versioned(page)
        self.note_activity()
        if is_first:
            self._listing = set()
        for pod in page.items:
            if pod.spec.scheduler_name in self._scheduler_names:
                self._listing.add(pod.metadata.uid)
                self._add(pod)
        if page.invalid:
            self._report_invalid(page.invalid, body)
        if self._raw is not None:
            self._keep_raw(self._raw, body)
        if not page.metadata.continue_:
            self._end_list(page.metadata.resource_version)
        return page.metadata

    def _report_invalid(self, found: Collection[InvalidObject], body: bytes) -> None:
        """Report the invalid pods of our profiles, and those without a scheduler name."""
        try:
            pods = msgspec.json.decode(body, type=_SchedulerNames).items
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            pods = ()
        names = {pod.metadata.uid: pod.spec.scheduler_name for pod in pods}
        for invalid in found:
            self._listing.add(invalid.uid)
            name = names.get(invalid.uid, "")
            if not name or name in self._scheduler_names:
                self._inbox.put(invalid_object_event(invalid, name))

    def _keep_raw(self, kept: dict[str, dict[str, Any]], body: bytes) -> None:
        try:
            pods = decode_builtins(body)["items"]
        except InvalidObject:
            return  # extenders need valid pods
        kept.update((pod["metadata"]["uid"], pod) for pod in pods if pod)

    def _handle_invalid_line(self, line: bytes, invalid: InvalidObject) -> str:
        """Report a line whose object is not a valid pod; returns its resource version, if any."""
        try:
            event = _IDENTITY_DECODER.decode(line)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            self._inbox.put(invalid_object_event(invalid))
            return decode_event_metadata(line)[1].get("resourceVersion", "")
        metadata, scheduler_name = event.object.metadata, event.object.spec.scheduler_name
        uid, version = metadata.uid, metadata.resource_version
        if event.type == "DELETED":
            self.handle_removal(uid)
        elif scheduler_name in self._scheduler_names and not self._is_stale(uid, version):
            self._known[uid] = _KnownPod(
                metadata.namespace, metadata.name, scheduler_name, parse_resource_version(version)
            )
            self._inbox.put(invalid_object_event(invalid, scheduler_name))
        return version

    def _end_list(self, resource_version: str) -> None:
        self._listed_version = parse_resource_version(resource_version)
        for uid, pod in list(self._known.items()):
            if uid not in self._listing and pod.scheduler_name in self._scheduler_names:
                self._remove(uid)
        self._listing = set()
        self.has_synced = True
        # The loop may be waiting for the first list only.
        self._inbox.wake()

    def _is_stale(self, uid: str, resource_version: str) -> bool:
        """Whether the event is older than the pod's removal, its latest event or the last list."""
        if uid in self._removed:
            return True
        known = self._known.get(uid)
        newest = self._listed_version if known is None else max(self._listed_version, known.version)
        return parse_resource_version(resource_version) <= newest

    def _add(self, pod: Pod) -> None:
        metadata = pod.metadata
        self._known[metadata.uid] = _KnownPod(
            metadata.namespace,
            metadata.name,
            pod.spec.scheduler_name,
            parse_resource_version(metadata.resource_version),
        )
        self._inbox.put(PendingPodSeen(pod))

    def _remove(self, uid: str) -> None:
        known = self._known.pop(uid, None)
        if self._raw is not None:
            self._raw.pop(uid, None)
        if known is not None:
            self._inbox.put(PendingPodGone(known.namespace, known.name, uid))


def _is_identified(metadata: ObjectMeta | _Identity) -> bool:
    """Whether it names an object; a damaged text has characters that no name has."""
    name, uid, version = metadata.name, metadata.uid, metadata.resource_version
    return bool(name and uid and version) and f"{name}{uid}{version}".isascii()
