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
            "subresource": self.subresource,
        }
        return {key: value for key, value in entry.items() if value}


Shares = tuple[Share, ...]


class ManagedFields(NamedTuple):
    """The managedFields of an object: shares, the time of each share, and the encoded list."""

    shares: Shares
    times: tuple[str, ...]
    text: bytes

    def entries(self) -> list[Json]:
        """A decoded copy."""
        return _decode(self.text)


def managed_fields_of_entries(entries: Sequence[Json]) -> ManagedFields | None:
    """The managedFields that a client sent; ``None`` for no entries."""
    shares = tuple(
        Share(
            entry.get("operation") or "",
            entry.get("manager") or "",
            entry.get("apiVersion") or "",
            entry.get("subresource") or "",
            _encode(entry.get("fieldsV1") or {}),
        )
        for entry in entries
    )
    return managed_fields_since(shares, tuple(entry.get("time") or "" for entry in entries))


@lru_cache(maxsize=4096)
def managed_fields_since(shares: Shares, times: tuple[str, ...]) -> ManagedFields | None:
    """ManagedFields in the API server's order: appliers first, then by time and name."""
    if not shares:
        return None
    pairs = sorted(zip(shares, times, strict=True), key=_order)
    text = _encode([share.entry(time) for share, time in pairs])
    return ManagedFields(tuple(share for share, _ in pairs), tuple(time for _, time in pairs), text)


def _order(pair: tuple[Share, str]) -> tuple[str, str, str, str, str]:
    share, time = pair
    return share.operation, time, share.manager, share.api_version, share.subresource
