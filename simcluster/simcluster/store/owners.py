"""Encoded ``metadata.managedFields``, which many objects share.

The managedFields of objects of one template differ in their times only. They consist of shares and
times, and each combination is encoded once.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

Json = dict[str, Any]

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[Json]).decode


class Share(NamedTuple):
    """The fields of one manager without their time; ``fields`` is an encoded ``fieldsV1``."""

    operation: str
    manager: str
    api_version: str
    subresource: str
    fields: bytes

    def entry(self, time: str) -> Json:
        """The share as an entry of ``managedFields``."""
        entry: Json = {
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "time": time,
            "fieldsType": "FieldsV1",
            "fieldsV1": msgspec.Raw(self.fields),
        }
        if self.subresource:
            entry["subresource"] = self.subresource
        return entry


Shares = tuple[Share, ...]
_ENTRY_KEYS = (
    "manager",
    "operation",
    "apiVersion",
    "time",
    "fieldsType",
    "fieldsV1",
    "subresource",
)


class Owners:
    """The managedFields of an object; immutable.

    Attributes:
        text: the encoded list.
    """

    __slots__ = ("_parts", "text")

    def __init__(self, text: bytes, parts: tuple[Shares, tuple[str, ...]] | None = None) -> None:
        self.text = text
        self._parts = parts

    def entries(self) -> list[Json]:
        """A decoded copy."""
        return _decode(self.text)

    @property
    def shares(self) -> Shares:
        """The fields of each manager."""
        return self._split()[0]

    @property
    def times(self) -> tuple[str, ...]:
        """The time of each share."""
        return self._split()[1]

    def _split(self) -> tuple[Shares, tuple[str, ...]]:
        if self._parts is None:
            entries = self.entries()
            shares = tuple(_share(entry) for entry in entries)
            self._parts = shares, tuple(entry.get("time") or "" for entry in entries)
        return self._parts


def _share(entry: Json) -> Share:
    return Share(
        entry.get("operation") or "",
        entry.get("manager") or "",
        entry.get("apiVersion") or "",
        entry.get("subresource") or "",
        _encode(entry.get("fieldsV1") or {}),
    )


def owners_of_entries(entries: Sequence[Json]) -> Owners | None:
    """The managedFields that a client sent; ``None`` for no entries.

    Their keys are put in the API server's order, so that an update with unchanged managedFields
    changes nothing.
    """
    return Owners(_encode([_in_order(entry) for entry in entries])) if entries else None


def _in_order(entry: Json) -> Json:
    ordered = {key: entry[key] for key in _ENTRY_KEYS if key in entry}
    return {**ordered, **entry}


@lru_cache(maxsize=4096)
def owners_since(shares: Shares, times: tuple[str, ...]) -> Owners | None:
    """ManagedFields in the API server's order: appliers first, then by time and name."""
    if not shares:
        return None
    pairs = sorted(zip(shares, times, strict=True), key=_order)
    text = _encode([share.entry(time) for share, time in pairs])
    return Owners(text, (tuple(share for share, _ in pairs), tuple(time for _, time in pairs)))


def _order(pair: tuple[Share, str]) -> tuple[str, str, str, str]:
    share, time = pair
    return share.operation, time, share.manager, share.api_version
