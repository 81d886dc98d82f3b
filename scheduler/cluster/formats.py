"""How stored objects are written into answers: plain, as metadata only, or as Table rows."""

from collections.abc import Sequence
from typing import Any, Protocol

from scheduler.cluster.event_conversion import to_events_v1
from scheduler.cluster.resources import EVENTS_V1, Resource
from scheduler.cluster.store import Stored, encode

Json = dict[str, Any]


class Format(Protocol):
    """One way to write objects.

    ``cache_key`` names the encoding where every watcher gets the same bytes for a revision, so
    that they are made once; it is empty where each watcher needs its own.
    """

    cache_key: str

    def one(self, stored: Stored) -> bytes:
        """An object on its own: in an answer or in a watch event."""
        ...

    def many(self, items: Sequence[Stored], metadata: Json) -> bytes:
        """A list with the given list metadata."""
        ...


class PlainFormat:
    """Objects of a resource in their own kind; list items carry no kind and no apiVersion."""

    def __init__(self, resource: Resource) -> None:
        self.cache_key = resource.api_version
        self._prefix = resource.type_prefix
        self._list_prefix = resource.list_type_prefix

    def one(self, stored: Stored) -> bytes:
        """The object with its kind and apiVersion in front."""
        return self._prefix + self._body(stored)[1:]

    def many(self, items: Sequence[Stored], metadata: Json) -> bytes:
        """A ``<Kind>List``."""
        bodies = b",".join([self._body(stored) for stored in items])
        return b"".join((self._list_prefix, encode(metadata), b',"items":[', bodies, b"]}"))

    def _body(self, stored: Stored) -> bytes:
        return stored.body


class EventsV1Format(PlainFormat):
    """Stored core Events in their events.k8s.io/v1 shape."""

    def _body(self, stored: Stored) -> bytes:
        return encode(to_events_v1(stored.obj))


class MetadataFormat:
    """``PartialObjectMetadata``: what is asked for by garbage collectors and the like."""

    cache_key = "metadata"

    def one(self, stored: Stored) -> bytes:
        """Kind, apiVersion and metadata."""
        return encode(partial_metadata(stored.obj))

    def many(self, items: Sequence[Stored], metadata: Json) -> bytes:
        """A ``PartialObjectMetadataList``."""
        return encode(
            {
                "kind": "PartialObjectMetadataList",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": metadata,
                "items": [partial_metadata(stored.obj) for stored in items],
            }
        )


def partial_metadata(obj: Json) -> Json:
    """An object cut down to its metadata."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": obj["metadata"],
    }


def plain_format(resource: Resource) -> PlainFormat:
    """The format of a resource's own kind."""
    return EventsV1Format(resource) if resource is EVENTS_V1 else PlainFormat(resource)
