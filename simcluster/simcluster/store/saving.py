"""Writes the objects of a cluster to a file from which a cluster can start."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from simcluster.kinds.resources import Resource
from simcluster.store.registry import Registry
from simcluster.store.store import Stored

_HEAD = b'{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":""},"items":[\n'
_TAIL = b"\n]}\n"


class SavedObject(NamedTuple):
    """An object at the moment of saving."""

    resource: Resource
    stored: Stored


def everything_in(registry: Registry) -> list[SavedObject]:
    """All current objects, kind by kind; later writes do not change the list."""
    return [
        SavedObject(resource, stored)
        for resource in registry.catalog.collections()
        for stored in registry.store.collection(resource.stored_in).items()
    ]


def write_dump(path: Path, objects: Iterable[SavedObject]) -> None:
    """Write objects as one JSON ``List``; an existing file is replaced at once or not at all.

    Raises:
        OSError: the file cannot be written.
    """
    write_items(path, (found.resource.type_prefix + found.stored.body[1:] for found in objects))


def write_items(path: Path, items: Iterable[bytes]) -> None:
    """Write encoded objects, each with its kind and apiVersion, as one JSON ``List``.

    Raises:
        OSError: the file cannot be written.
    """
    if path.exists() and not path.is_file():  # a pipe or a device is not to be replaced
        with path.open("wb") as stream:
            stream.writelines(_list_of(items))
        return
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with unfinished.open("wb") as file:
            file.writelines(_list_of(items))
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _list_of(items: Iterable[bytes]) -> Iterator[bytes]:
    yield _HEAD
    separator = b""
    for item in items:
        yield separator + item
        separator = b",\n"
    yield _TAIL
