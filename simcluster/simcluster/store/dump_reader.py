"""Reads what ``kubectl get ... -o json`` or ``-o yaml`` wrote, one object at a time.

A JSON list is cut into its items without decoding them, and a YAML list as kubectl prints it is cut
at the lines where items begin, so that a large file is never in memory as a whole tree.
"""

import mmap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import yaml

from simcluster.apiserver.yaml_text import load_yaml

Json = dict[str, Any]

_HEAD = 4096


class DumpError(ValueError):
    """A file that is no dump; the text names the file and what was expected."""


class _ListDocument(msgspec.Struct):
    kind: str = ""
    apiVersion: str = ""  # noqa: N815 - as the API writes it
    items: list[msgspec.Raw] | None = None


def read_dump(path: Path) -> Iterator[Json]:
    """The objects of a file, each with its kind and apiVersion, in the file's order.

    Raises:
        OSError: the file cannot be read.
        DumpError: it holds something else.
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
    with path.open(encoding="utf-8") as lines:
        for number, text in _chunks(lines):
            try:
                loaded = load_yaml(text)
            except yaml.YAMLError as error:
                raise DumpError(f"{path}: from line {number}: {error}") from error
            for obj in loaded if isinstance(loaded, list) else [loaded]:
                yield from _objects_in(path, number, obj)


def _objects_in(path: Path, number: int, obj: Any) -> Iterator[Json]:
    if obj is None:
        return
    if not isinstance(obj, dict):
        found = type(obj).__name__
        raise DumpError(f"{path}: from line {number}: {found} (expected a Kubernetes object)")
    kind = obj.get("kind") or ""
    if "items" not in obj:
        if kind != "List":
            yield obj
        return
    item_kind, version = _item_type(kind, obj.get("apiVersion") or "")
    for item in obj["items"] or ():
        yield {"kind": item_kind, "apiVersion": version, **item} if item_kind else item


def _chunks(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Documents with the number of their first line; of a list, its items one by one.

    kubectl writes ``items:`` and its entries in the first column, and nothing inside an entry
    starts there. What stands around the items says nothing that they do not say themselves.
    """
    chunk: list[str] = []
    start, place = 1, "document"
    for number, line in enumerate(lines, 1):
        if line.startswith("---"):
            yield start, "".join(chunk)
            chunk, start, place = [line[3:]], number, "document"
        elif place == "document" and line.rstrip() == "items:":
            chunk, start, place = [], number + 1, "items"
        elif place == "items" and line.startswith("- "):
            yield start, "".join(chunk)
            chunk, start = [line], number
        elif place == "items" and line[:1] not in {" ", "-", "#", "\n", "\r"}:
            yield start, "".join(chunk)
            chunk, place = [], "tail"
        elif place != "tail":
            chunk.append(line)
    yield start, "".join(chunk)
