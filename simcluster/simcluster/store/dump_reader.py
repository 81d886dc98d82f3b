"""Reads the objects of files that ``kubectl get -o json`` or ``-o yaml`` wrote.

The items of a JSON list are decoded one by one, so that a large file is never in memory as a whole
tree. YAML is meant for small files.
"""

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import yaml

from simcluster.apiserver.yaml_text import load_yaml_documents

Json = dict[str, Any]

_HEAD = 4096


class DumpError(ValueError):
    """A file is no dump; the text names the file and the expected content."""


class _ListDocument(msgspec.Struct):
    kind: str = ""
    apiVersion: str = ""  # noqa: N815 - as the API writes it
    items: list[msgspec.Raw] | None = None


def read_dump(path: Path) -> Iterator[Json]:
    """The objects of a file, each with its kind and apiVersion, in the file's order.

    Raises:
        OSError: the file cannot be read.
        DumpError: it holds something else than objects.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD).lstrip()
        if not head:
            return
        if head.startswith(b"{"):
            yield from _read_json(path, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
            return
    yield from _read_yaml(path)


def _read_json(path: Path, content: mmap.mmap) -> Iterator[Json]:
    try:
        document = msgspec.json.decode(content, type=_ListDocument)
        if document.items is None:
            yield msgspec.json.decode(content, type=Json)
            return
    except msgspec.DecodeError as error:
        raise DumpError(f"{path}: {error}") from error
    kind, version = _item_type(document.kind, document.apiVersion)
    for position, item in enumerate(document.items):
        obj = _decode_item(path, item, position)
        yield {"kind": kind, "apiVersion": version, **obj} if kind else obj


def _decode_item(path: Path, item: msgspec.Raw, position: int) -> Json:
    try:
        return msgspec.json.decode(item, type=Json)
    except msgspec.DecodeError as error:
        raise DumpError(f"{path}: items[{position}]: {error}") from error


def _item_type(kind: str, version: str) -> tuple[str, str]:
    """Items of a ``PodList`` need not say what they are; those of a ``List`` do."""
    return (kind.removesuffix("List"), version) if kind not in {"", "List"} else ("", "")


def _read_yaml(path: Path) -> Iterator[Json]:
    try:
        for number, document in enumerate(load_yaml_documents(path.read_bytes()), 1):
            yield from _objects_in(f"{path}: document {number}", document)
    except yaml.YAMLError as error:
        raise DumpError(f"{path}: {error}") from error


def _objects_in(where: str, document: Any) -> Iterator[Json]:
    if document is None:
        return
    if not isinstance(document, dict):
        found = type(document).__name__
        raise DumpError(f"{where}: {found} (expected a Kubernetes object)")
    if "items" not in document:
        yield document
        return
    kind, version = _item_type(document.get("kind") or "", document.get("apiVersion") or "")
    for item in document["items"] or ():
        yield {"kind": kind, "apiVersion": version, **item} if kind else item
