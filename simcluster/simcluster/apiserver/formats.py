"""Formats of stored objects in answers: plain, or metadata only."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from simcluster.apiserver.event_conversion import to_events_v1
from simcluster.kinds.resources import EVENTS_V1, Resource
from simcluster.store.store import Stored, encode

Json = dict[str, Any]


class Format(ABC):
    """One way to write objects.

    ``cache_key`` identifies an encoding that is the same for every watcher, so that each revision
    is encoded once; it is empty if each watcher needs its own. ``items_per_slice`` items of a list
    are encoded without interruption.
    """

    cache_key: str
    items_per_slice = 50

    @abstractmethod
    def one(self, stored: Stored) -> bytes:
        """An object on its own: in an answer or in a watch event."""

    @abstractmethod
    def list_opening(self, metadata: Json) -> bytes:
        """The opening of a list with this metadata, up to the bracket before the items."""

    @abstractmethod
    def list_item(self, stored: Stored) -> bytes:
        """An object within a list."""

    @abstractmethod
    def bookmark(self, metadata: Json) -> bytes:
        """An object with this metadata only, for bookmarks."""

    def many(self, items: Sequence[Stored], metadata: Json) -> bytes:
        """A list with the given list metadata."""
        return b"".join(self.slices(items, metadata))

    def slices(self, items: Sequence[Stored], metadata: Json) -> Iterator[bytes]:
        """The list in parts, each encoded on demand."""
        yield self.list_opening(metadata)
        for first in range(0, len(items), self.items_per_slice):
            part = items[first : first + self.items_per_slice]
            encoded = b",".join([self.list_item(stored) for stored in part])
            yield b"," + encoded if first else encoded
        yield b"]}"


class PlainFormat(Format):
    """Objects of a resource in their own kind; list items carry no kind and no apiVersion."""

    items_per_slice = 250

    def __init__(self, resource: Resource) -> None:
        self.cache_key = resource.api_version
        self._prefix = resource.type_prefix
        self._list_prefix = resource.list_type_prefix

    def one(self, stored: Stored) -> bytes:
        """The object with its kind and apiVersion in front."""
        return self._prefix + self.list_item(stored)[1:]

    def list_opening(self, metadata: Json) -> bytes:
        """A ``<Kind>List``."""
        return b"".join((self._list_prefix, encode(metadata), b',"items":['))

    def list_item(self, stored: Stored) -> bytes:
        """The object as it is stored."""
        return stored.body

    def bookmark(self, metadata: Json) -> bytes:
        """Kind, apiVersion and the metadata."""
        return self._prefix + encode({"metadata": metadata})[1:]


class EventsV1Format(PlainFormat):
    """Stored core Events in their events.k8s.io/v1 shape."""

    items_per_slice = 50

    def list_item(self, stored: Stored) -> bytes:
        """The object in its other shape."""
        return encode(to_events_v1(stored.whole))


class CustomFormat(PlainFormat):
    """Custom resources: list items carry their kind and apiVersion, too."""

    def list_opening(self, metadata: Json) -> bytes:
        """A ``<Kind>List``; the last page has an empty continue token."""
        return super().list_opening({"continue": "", **metadata})

    def list_item(self, stored: Stored) -> bytes:
        """The same as alone."""
        return self.one(stored)

    def one(self, stored: Stored) -> bytes:
        """The object with its kind and apiVersion in front."""
        return self._prefix + stored.body[1:]


class MetadataFormat(Format):
    """``PartialObjectMetadata``, for garbage collectors and similar clients.

    Args:
        version: of ``meta.k8s.io``.
    """

    def __init__(self, version: str = "v1") -> None:
        self.cache_key = f"metadata {version}"
        self._version = version

    def one(self, stored: Stored) -> bytes:
        """Kind, apiVersion and metadata."""
        return self.bookmark(stored.whole["metadata"])

    def bookmark(self, metadata: Json) -> bytes:
        """The same without an object."""
        return encode(partial_metadata({"metadata": metadata}, self._version))

    def list_opening(self, metadata: Json) -> bytes:
        """A ``PartialObjectMetadataList``."""
        return encode(self._head(metadata))[:-1] + b',"items":['

    def slices(self, items: Sequence[Stored], metadata: Json) -> Iterator[bytes]:
        """The list in parts; the items of an empty list are null."""
        if items:
            yield from super().slices(items, metadata)
        else:
            yield encode({**self._head(metadata), "items": None})

    def _head(self, metadata: Json) -> Json:
        return {
            "kind": "PartialObjectMetadataList",
            "apiVersion": f"meta.k8s.io/{self._version}",
            "metadata": metadata,
        }

    def list_item(self, stored: Stored) -> bytes:
        """The same as alone."""
        return self.one(stored)


def partial_metadata(obj: Json, version: str) -> Json:
    """An object cut down to its metadata, in a version of ``meta.k8s.io``."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": obj["metadata"],
    }


def plain_format(resource: Resource) -> PlainFormat:
    """The format of a resource's own kind."""
    if resource.custom is not None:
        return CustomFormat(resource)
    return EventsV1Format(resource) if resource is EVENTS_V1 else PlainFormat(resource)
