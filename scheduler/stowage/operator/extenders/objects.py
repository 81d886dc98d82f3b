"""Complete pods and nodes as JSON, for extenders.

The engine keeps only the fields that scheduling reads, but an extender may read any field. So
complete pending pods are kept if an extender is configured, and complete nodes and assigned pods if
an extender needs them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from stowage.api.config.extenders import Extenders
from stowage.api.decoding.decode import as_valid_json
from stowage.api.instructions import PodReference
from stowage.api.objects.meta import ObjectMeta
from stowage.operator.client.api_client import LOST_ANSWER_ERRORS, ApiClient
from stowage.operator.client.api_error import ApiError
from stowage.operator.client.backoff import Backoff, retry
from stowage.operator.client.outage_log import plain_message
from stowage.operator.clock import Clock
from stowage.operator.extenders.client import ExtenderError

MAX_READ_ATTEMPTS = 3
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError)


class _Metadata(msgspec.Struct, frozen=True):
    name: str | None = ""
    uid: str | None = ""
    continue_: str | None = msgspec.field(default="", name="continue")


class _Head(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()


class _Page(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()
    items: list[msgspec.Raw] | None = None


class _WatchLine(msgspec.Struct, frozen=True):
    type: str
    object: msgspec.Raw


_decode_page = msgspec.json.Decoder(_Page).decode
_decode_line = msgspec.json.Decoder(_WatchLine).decode
_decode_head = msgspec.json.Decoder(_Head).decode


class RawObjects:
    """Objects of one kind as JSON, by key; a reflector passes on what it reads.

    Args:
        key: The field of the metadata that is the key.
    """

    def __init__(self, key: Literal["name", "uid"]) -> None:
        self._key = key
        self._objects: dict[str, bytes] = {}
        self._listed: set[str] = set()

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, key: str) -> bytes | None:
        """The object; None if it is not known."""
        return self._objects.get(key)

    def handle_page(self, body: bytes, *, is_first: bool) -> None:
        """Handle one page of a list; objects that no page contains are removed after the last.

        Raises:
            InvalidObject: the body is not JSON.
            msgspec.ValidationError: the body is not a list.
        """
        try:
            page = _decode_page(body)
        except _UNREADABLE:
            page = _decode_page(as_valid_json(body))
        if is_first:
            self._listed = set()
        for item in page.items or ():
            key = self._key_of(item)
            self._listed.add(key)
            self._objects[key] = bytes(item)
        if not page.metadata.continue_:
            for key in self._objects.keys() - self._listed:
                del self._objects[key]

    def handle_line(self, line: bytes) -> None:
        """Handle an ADDED or MODIFIED line of a watch.

        Raises:
            InvalidObject: the line is not JSON.
            msgspec.ValidationError: the line is not a watch event.
        """
        try:
            event = _decode_line(line)
        except _UNREADABLE:
            event = _decode_line(as_valid_json(line))
        self._objects[self._key_of(event.object)] = bytes(event.object)

    def drop(self, metadata: ObjectMeta) -> None:
        """Forget a deleted object."""
        self._objects.pop(metadata.name if self._key == "name" else metadata.uid, None)

    def _key_of(self, raw: msgspec.Raw) -> str:
        metadata = _decode_head(raw).metadata
        return (metadata.name if self._key == "name" else metadata.uid) or ""


class ExtenderObjects:
    """Provides the objects that extenders see, from memory or, for pods, from the API server.

    Args:
        client: Of the API server, for pods that are not in memory.
        clock: Time, sleep and jitter.
        extenders: The configured extenders; they decide which objects are kept in memory.

    Attributes:
        pods: Pending pods by UID, as the API server sent them; None if they are not kept.
        nodes: All nodes by name; None if they are not kept.
        assigned_pods: All assigned pods by UID; None if they are not kept.
    """

    def __init__(self, client: ApiClient, clock: Clock, extenders: Extenders) -> None:
        self.pods: dict[str, dict[str, Any]] | None = {} if extenders else None
        self.nodes = RawObjects("name") if extenders.need_whole_nodes else None
        self.assigned_pods = RawObjects("uid") if extenders.need_whole_victims else None
        self._client = client
        self._clock = clock

    async def pod(self, reference: PodReference) -> bytes:
        """The pod as JSON.

        Raises:
            ExtenderError: the pod is gone, or the API server does not return it.
        """
        known = self.pods.get(reference.uid) if self.pods is not None else None
        if known is not None:
            return msgspec.json.encode(known)
        assigned = self.assigned_pods.get(reference.uid) if self.assigned_pods else None
        if assigned is not None:
            return assigned
        path = f"/api/v1/namespaces/{reference.namespace}/pods/{reference.name}"
        body = await self._read(path)
        if body is None or _decode_head(body).metadata.uid != reference.uid:
            raise ExtenderError(f"pod {reference.key} is gone", may_have_acted=False)
        return body

    def existing_nodes(self, names: Iterable[str]) -> dict[str, bytes]:
        """The nodes by name, each as JSON, without those that are gone.

        A reflector stores a node here before the engine sees it, so a missing node is gone.
        """
        if self.nodes is None:
            return {}
        found = ((name, self.nodes.get(name)) for name in names)
        return {name: node for name, node in found if node is not None}

    async def _read(self, path: str) -> bytes | None:
        backoff = Backoff(self._clock.jitter, initial_s=0.1)
        try:
            return await retry(
                lambda: self._client.get(path), backoff, self._clock.sleep, MAX_READ_ATTEMPTS
            )
        except ApiError as error:
            if error.status == 404:
                return None
            raise ExtenderError(f"GET {path}: {error}", may_have_acted=False) from error
        except LOST_ANSWER_ERRORS as error:
            raise ExtenderError(
                f"GET {path}: {plain_message(error)}", may_have_acted=False
            ) from error
