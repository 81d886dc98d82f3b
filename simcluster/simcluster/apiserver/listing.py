"""Selects the objects that list requests ask for: consistent pages and resource versions."""

import asyncio
from itertools import islice
from typing import Any, NamedTuple

from simcluster.apiserver import errors
from simcluster.apiserver.errors import ApiError
from simcluster.apiserver.list_options import ListOptions
from simcluster.kinds.resources import Resource
from simcluster.store.continue_token import LATEST, ContinueToken, next_page, parse_continue
from simcluster.store.selection import Selection
from simcluster.store.store import HistoryLostError, Range, Store, Stored

Json = dict[str, Any]

FUTURE_REVISION_WAIT_S = 3.0
ITEMS_PER_SLICE = 1000
"""Objects that are selected before other requests run."""
_REVISION_CHECK_S = 0.05
_REVISION_BITS = 64
_LIST_EXPIRED = "The resourceVersion for the provided list is too old."
_CONTINUE_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can "
    "start a new list without the continue parameter, or use the continue token in this response "
    "to retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list."
)


class ContinueExpiredError(ApiError):
    """410 that offers a token for the rest of the list in its current state."""

    def __init__(self, start: str) -> None:
        super().__init__(410, "Expired", _CONTINUE_EXPIRED)
        self._token = ContinueToken(LATEST, start)

    def status(self) -> Json:
        """The ``Status``, with the token in its list metadata."""
        return {**super().status(), "metadata": {"continue": self._token.text()}}


def parse_revision(text: str) -> int:
    """A resourceVersion as a number; an empty one is 0.

    Raises:
        ApiError: 500, as a real server answers gets and watches.
    """
    why = _revision_error(text)
    if why:
        raise errors.internal(why)
    return int(text or "0")


def _parse_list_revision(text: str) -> int:
    why = _revision_error(text)
    if why:
        raise errors.bad_request(f"invalid resource version: {why}")
    return int(text or "0")


def _revision_error(text: str) -> str:
    why = "invalid syntax"
    if not text or (text.isascii() and text.isdigit()):
        if int(text or "0").bit_length() <= _REVISION_BITS:
            return ""
        why = "value out of range"
    why = f'strconv.ParseUint: parsing "{text}": {why}'
    return f'resourceVersion: Invalid value: "{text}": {why}'


async def wait_for_revision(store: Store, asked: int) -> None:
    """Wait a few seconds for a revision from the future.

    Raises:
        ApiError: 504, the store did not reach it.
    """
    if asked <= store.revision:
        return
    loop = asyncio.get_running_loop()
    deadline = loop.time() + FUTURE_REVISION_WAIT_S
    while asked > store.revision:
        if loop.time() >= deadline:
            raise errors.too_large_resource_version(asked, store.revision)
        await asyncio.sleep(_REVISION_CHECK_S)


class Page(NamedTuple):
    """The answer to a list request: the items and the list's metadata."""

    items: list[Stored]
    metadata: Json


async def list_page(
    store: Store, resource: Resource, namespace: str | None, options: ListOptions
) -> Page:
    """The page a list request asks for; pages after the first show the first one's revision.

    Raises:
        ApiError: 400, the options are malformed; 410, the revision is no longer kept; 504, the
            store has not reached it.
    """
    selection = Selection(resource, namespace, options.label_selector, options.field_selector)
    revision, start = await _where(store, options)
    collection = store.collection(resource.stored_in)
    try:
        found = collection.range_at(revision, selection.namespace, start)
    except HistoryLostError as lost:
        if options.continue_:
            raise ContinueExpiredError(start) from lost
        raise errors.expired(_LIST_EXPIRED) from lost
    limit = 0 if options.resource_version == "0" else options.limit
    if limit <= 0:
        metadata: Json = {"resourceVersion": str(revision)}
        unsubscribe = store.subscribe(resource.stored_in, found.outlive)
        try:
            return Page(await _selected(found, selection), metadata)
        finally:
            unsubscribe()
    return _limited(found, selection, revision, limit)


async def _where(store: Store, options: ListOptions) -> tuple[int, str]:
    """The revision to show and the key to start from."""
    if options.continue_:
        token = parse_continue(options.continue_)
        if options.resource_version not in {"", "0"}:
            raise errors.bad_request(
                "specifying resource version is not allowed when using continue"
            )
        return (store.revision if token.revision < 0 else token.revision), token.start
    asked = _parse_list_revision(options.resource_version)
    await wait_for_revision(store, asked)
    is_exact = options.resource_version_match == "Exact"
    # A limit without a match asks for exactly that revision, too.
    is_exact = is_exact or (not options.resource_version_match and options.limit > 0)
    return (asked if is_exact and asked else store.revision), ""


async def _selected(found: Range, selection: Selection) -> list[Stored]:
    """The selected objects; other requests run between slices, and may write."""
    chosen: list[Stored] = []
    rest = iter(found)
    while part := list(islice(rest, ITEMS_PER_SLICE)):
        chosen += selection.select(part) if selection.is_selective else part
        if len(part) == ITEMS_PER_SLICE:
            await asyncio.sleep(0)
    return chosen


def _limited(found: Range, selection: Selection, revision: int, limit: int) -> Page:
    """A page; it has a continue token if any object follows, selected or not."""
    metadata: Json = {"resourceVersion": str(revision)}
    rest = iter(found)
    if selection.is_selective:
        items = list(islice(filter(selection.matches, rest), limit))
    else:
        items = list(islice(rest, limit))
    if len(items) == limit and next(rest, None) is not None:
        metadata["continue"] = next_page(revision, items[-1].key).text()
        if not selection.is_selective:
            metadata["remainingItemCount"] = len(found) - limit
    return Page(items, metadata)
