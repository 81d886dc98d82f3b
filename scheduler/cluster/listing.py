"""List requests: consistent pages, resource versions and what they refuse."""

import asyncio
import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from scheduler.cluster import errors
from scheduler.cluster.resources import Resource
from scheduler.cluster.selection import Selection
from scheduler.cluster.store import Collection, HistoryLostError, Store, Stored, encode

Json = dict[str, Any]

FUTURE_REVISION_WAIT_S = 3.0
_REVISION_CHECK_S = 0.05
_CONTINUE_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can "
    "start a new list without the continue parameter."
)


@dataclass(frozen=True)
class ListOptions:
    """The query of a list or watch request."""

    label_selector: str = ""
    field_selector: str = ""
    resource_version: str = ""
    resource_version_match: str = ""
    limit: int = 0
    continue_: str = ""
    watch: bool = False
    allow_watch_bookmarks: bool = False
    send_initial_events: bool | None = None
    timeout_s: float | None = None


def parse_list_options(query: Mapping[str, str]) -> ListOptions:
    """Read list options.

    Raises:
        ApiError: 400, a number or flag is malformed.
    """
    timeout = query.get("timeoutSeconds")
    initial = query.get("sendInitialEvents")
    return ListOptions(
        label_selector=query.get("labelSelector", ""),
        field_selector=query.get("fieldSelector", ""),
        resource_version=query.get("resourceVersion", ""),
        resource_version_match=query.get("resourceVersionMatch", ""),
        limit=_number("limit", query.get("limit") or "0"),
        continue_=query.get("continue", ""),
        watch=_flag(query.get("watch")),
        allow_watch_bookmarks=_flag(query.get("allowWatchBookmarks")),
        send_initial_events=None if initial is None else _flag(initial),
        timeout_s=_number("timeoutSeconds", timeout) if timeout else None,
    )


def _flag(text: str | None) -> bool:
    return text is not None and text.lower() not in {"false", "0"}


def _number(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise errors.bad_request(f"{name}: {text!r} is no integer") from error


def parse_revision(text: str) -> int:
    """A resourceVersion as a number.

    Raises:
        ApiError: 400.
    """
    if not text.isdigit():
        raise errors.bad_request(f'Invalid value: "{text}": resourceVersion is no number')
    return int(text)


async def wait_for_revision(store: Store, text: str) -> None:
    """Give a resourceVersion from the future a few seconds to happen.

    Raises:
        ApiError: 504, it did not.
    """
    if not text or (asked := parse_revision(text)) <= store.revision:
        return
    deadline = asyncio.get_running_loop().time() + FUTURE_REVISION_WAIT_S
    while asked > store.revision:
        if asyncio.get_running_loop().time() >= deadline:
            raise errors.too_large_resource_version(asked, store.revision)
        await asyncio.sleep(_REVISION_CHECK_S)


class Page:
    """What one list request answers: the items and the list's metadata."""

    def __init__(self, items: list[Stored], metadata: Json) -> None:
        self.items = items
        self.metadata = metadata


def list_page(
    store: Store, resource: Resource, namespace: str | None, options: ListOptions
) -> Page:
    """The page a list request asks for; pages after the first show the first one's revision.

    Raises:
        ApiError: 400, options that contradict each other; 410, the revision is no longer kept.
    """
    selection = Selection(resource, namespace, options.label_selector, options.field_selector)
    revision, start = _where(store, options)
    collection = store.collection(resource.stored_in)
    items = selection.select(_items(collection, revision, selection.namespace, options))
    if start:
        items = [stored for stored in items if _key(stored) >= start]
    metadata: Json = {"resourceVersion": str(revision)}
    limit = 0 if options.resource_version == "0" else options.limit
    if 0 < limit < len(items):
        metadata["continue"] = _token(revision, _key(items[limit - 1]))
        if not selection.is_selective:
            metadata["remainingItemCount"] = len(items) - limit
        items = items[:limit]
    return Page(items, metadata)


def _where(store: Store, options: ListOptions) -> tuple[int, str]:
    if options.continue_:
        if options.resource_version not in {"", "0"}:
            raise errors.bad_request(
                "specifying resource version is not allowed when using continue"
            )
        return _read_token(options.continue_)
    if options.resource_version_match == "Exact":
        return parse_revision(options.resource_version), ""
    return store.revision, ""


def _items(
    collection: Collection, revision: int, namespace: str | None, options: ListOptions
) -> list[Stored]:
    try:
        return collection.items_at(revision, namespace)
    except HistoryLostError as lost:
        raise errors.expired(_CONTINUE_EXPIRED if options.continue_ else str(lost)) from lost


def _key(stored: Stored) -> str:
    return f"{stored.namespace}/{stored.name}"


def _token(revision: int, last: str) -> str:
    body = encode({"v": "meta.k8s.io/v1", "rv": revision, "start": f"{last}\0"})
    return base64.urlsafe_b64encode(body).decode().rstrip("=")


def _read_token(text: str) -> tuple[int, str]:
    try:
        body: Json = msgspec.json.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        return int(body["rv"]), str(body["start"])
    except (binascii.Error, ValueError, KeyError, TypeError) as error:
        raise errors.bad_request("continue key is not valid") from error
