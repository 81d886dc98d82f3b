"""Pages of lists in short steps: objects may be a megabyte each, and a page has up to 500."""

from __future__ import annotations

from collections.abc import Generator
from functools import cache

import msgspec

from stowage.api.decoding.decode import (
    UNREADABLE,
    ObjectList,
    ObjectT,
    check_kind,
    decode_item,
    decode_list,
)
from stowage.api.decoding.errors import InvalidObject
from stowage.api.objects.meta import ListMeta

STEP_BYTES = 2**20
"""About as much JSON is decoded in one step."""


class _RawPage(msgspec.Struct, frozen=True, gc=False):
    """A page whose objects are not decoded yet."""

    kind: str = ""
    metadata: ListMeta = ListMeta()
    items: list[msgspec.Raw] = msgspec.field(default_factory=list)


@cache
def _raw_decoder() -> msgspec.json.Decoder[_RawPage]:
    return msgspec.json.Decoder(_RawPage)


def decode_list_steps(
    kind: type[ObjectT], data: bytes, step_bytes: int = STEP_BYTES
) -> Generator[None, None, ObjectList[ObjectT]]:
    """`decode_list` in steps, between which the caller does other work; returns the page.

    Raises:
        InvalidObject: The page itself is invalid, or a list of another kind.
    """
    if len(data) <= step_bytes:
        return decode_list(kind, data)
    try:
        raw = _raw_decoder().decode(data)
    except UNREADABLE:
        return decode_list(kind, data)
    check_kind(kind, raw.kind)
    page: ObjectList[ObjectT] = ObjectList(raw.metadata)
    num_bytes = step_bytes
    for item in raw.items:
        if num_bytes >= step_bytes:
            num_bytes = 0
            yield
        content = memoryview(item)
        num_bytes += len(content)
        try:
            page.items.append(decode_item(kind, bytes(content)))
        except InvalidObject as invalid:
            page.invalid.append(invalid)
    return page
