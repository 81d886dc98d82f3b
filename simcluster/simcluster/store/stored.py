"""One revision of one object, encoded to save memory.

A revision keeps the encoded object and the few values that selectors compare. The dict tree, three
times the size and work for the garbage collector, is decoded on demand; the most recent trees are
kept. The managedFields, often half of an object and equal for many objects, are kept separately and
inserted into answers.
"""

import sys
from collections.abc import Mapping
from typing import Any

import msgspec

from simcluster.store.managed_fields import ManagedFields

Json = dict[str, Any]

encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Json).decode

_MAX_TREES = 1024
_MAX_LABEL_SETS = 16_384
_NO_LABELS: Mapping[str, str] = {}
_OWNERS_KEY = b',"managedFields":'


class _RecentTrees:
    """A ring of the revisions that keep a dict tree; the oldest one drops its tree."""

    def __init__(self, size: int) -> None:
        self._holders: list[Stored | None] = [None] * size
        self._next = 0

    def keep(self, holder: "Stored") -> None:
        position = self._next
        oldest = self._holders[position]
        if oldest is not None:
            oldest.drop_tree()
        self._holders[position] = holder
        self._next = (position + 1) % len(self._holders)


_recent_trees = _RecentTrees(_MAX_TREES)
_label_sets: dict[tuple[tuple[str, str], ...], Mapping[str, str]] = {}


class Stored(msgspec.Struct, gc=False, eq=False):
    """One revision of one object: ``Stored(obj, revision, fields, managed_fields)``.

    Args:
        tree: the object without its managedFields; must not be changed any more.
        revision: its resourceVersion.
        fields: values of its selectable fields, see :mod:`simcluster.store.selectable_fields`.
        managed_fields: its managedFields, if it has any.

    Attributes:
        content: the object encoded, without kind, apiVersion and managedFields.
        name: ``metadata.name``.
        namespace: ``metadata.namespace``; empty for a cluster-scoped object.
        labels: ``metadata.labels``, shared by all objects with the same ones; read-only.
    """

    tree: Json | None
    revision: int
    fields: tuple[str, ...] = ()
    managed_fields: ManagedFields | None = None
    content: bytes = b""
    name: str = ""
    namespace: str = ""
    labels: Mapping[str, str] = _NO_LABELS
    _metadata_end: int = 0

    def __post_init__(self) -> None:
        obj = self.obj
        metadata = obj["metadata"]
        self.name = metadata["name"]
        self.namespace = sys.intern(metadata.get("namespace") or "")
        self.labels = _shared_labels(metadata.get("labels"))
        if self.managed_fields is None:
            self.content = encode(obj)
        else:
            self.content, self._metadata_end = _encoded(obj)
        _recent_trees.keep(self)

    @property
    def key(self) -> str:
        """``namespace/name``, or the name alone; lists are in this order."""
        return object_key(self.namespace, self.name)

    @property
    def body(self) -> bytes:
        """The object encoded, without kind and apiVersion."""
        managed_fields, content = self.managed_fields, self.content
        if managed_fields is None:
            return content
        end = self._metadata_end
        return b"".join((content[:end], _OWNERS_KEY, managed_fields.text, content[end:]))

    @property
    def obj(self) -> Json:
        """The object without its managedFields as a dict that must not be changed.

        Each access may decode it again.
        """
        tree = self.tree
        if tree is None:
            tree = self.tree = _decode(self.content)
            _recent_trees.keep(self)
        return tree

    @property
    def whole(self) -> Json:
        """The object with its managedFields as a dict that must not be changed."""
        obj = self.obj
        if self.managed_fields is None:
            return obj
        metadata = {**obj["metadata"], "managedFields": self.managed_fields.entries()}
        return {**obj, "metadata": metadata}

    def copy_of_obj(self) -> Json:
        """The object without its managedFields as a new dict."""
        return _decode(self.content)

    def drop_tree(self) -> None:
        """Keep only the encoded object."""
        self.tree = None


def _encoded(obj: Json) -> tuple[bytes, int]:
    """An encoded object, and the offset of the end of its metadata."""
    rest = dict(obj)
    opening = b'{"metadata":' + encode(rest.pop("metadata"))
    closing = b"," + encode(rest)[1:] if rest else b"}"
    return opening + closing, len(opening) - 1


def object_key(namespace: str, name: str) -> str:
    """The key of an object in its collection; lists are in the order of keys."""
    return f"{namespace}/{name}" if namespace else name


def _shared_labels(labels: object) -> Mapping[str, str]:
    """One mapping for equal labels; none for malformed labels, which fault injection creates."""
    if not isinstance(labels, dict) or not labels:
        return _NO_LABELS
    pairs = tuple(labels.items())
    try:
        found = _label_sets.get(pairs)
    except TypeError:  # values that cannot be hashed are not shared
        return dict(labels)
    if found is None:
        if len(_label_sets) >= _MAX_LABEL_SETS:
            _label_sets.clear()
        found = _label_sets[pairs] = dict(pairs)
    return found
