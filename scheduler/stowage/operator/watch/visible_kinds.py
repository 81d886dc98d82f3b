"""The kinds that an API server shows to whoever only reads a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from stowage.api.decoding.decode import check_is_versioned, decode_list
from stowage.api.events import PendingPodGone, PendingPodSeen, PodGroupsServed
from stowage.api.reflected_kinds import (
    ASSIGNED_PODS,
    NODES,
    POD_GROUP_SOURCES,
    REFLECTED_KINDS,
    ReflectedKind,
    group_source,
)
from stowage.operator.client.api_client import LIST_TIMEOUT, ApiClient
from stowage.operator.client.api_error import ApiError
from stowage.operator.clock import Clock
from stowage.operator.inbox import Inbox
from stowage.operator.watch.reflector import Reflector

PENDING_PODS = msgspec.structs.replace(
    ASSIGNED_PODS,
    seen=PendingPodSeen,
    gone=lambda identity: PendingPodGone(*identity),
    field_selector="spec.nodeName=,status.phase!=Succeeded,status.phase!=Failed",
)
"""The pending pods of all schedulers."""

OBSERVED: tuple[ReflectedKind[Any], ...] = (*REFLECTED_KINDS, PENDING_PODS)
"""What a recording holds."""
_REQUIRED = (NODES, ASSIGNED_PODS, PENDING_PODS)
_NOT_SERVED = 404
_REFUSED = frozenset({403, _NOT_SERVED})


async def visible_kinds(
    client: ApiClient,
    say: Callable[[str], None],
    kinds: Sequence[ReflectedKind[Any]] = OBSERVED,
) -> list[ReflectedKind[Any]]:
    """The kinds that the server serves and shows.

    Args:
        client: Client of the API server.
        say: Called with a sentence for each kind that is left out; not for sources of pod groups
            that are not served, as on most servers.
        kinds: The kinds that are wanted.

    Raises:
        ApiError: The server refuses to list or watch pods or nodes.
        InvalidObject: The server is no API server.
        OSError: The server cannot be reached.
    """
    refusals = await asyncio.gather(*(_refusal(client, kind) for kind in kinds))
    for kind, refusal in zip(kinds, refusals, strict=True):
        is_rare = kind in POD_GROUP_SOURCES
        if refusal is not None and not (is_rare and refusal.status == _NOT_SERVED):
            say(f"{kind.kind} is left out: {refusal}")
    return [kind for kind, refusal in zip(kinds, refusals, strict=True) if refusal is None]


def reflectors_of(
    kinds: Sequence[ReflectedKind[Any]], client: ApiClient, inbox: Inbox, clock: Clock
) -> list[Reflector[Any]]:
    """Reflectors of the visible kinds; the inbox gets first which pod groups are among them.

    Pods that name a group of another source are scheduled as ordinary pods.
    """
    for source in POD_GROUP_SOURCES:
        inbox.put(PodGroupsServed(group_source(source), source in kinds))
    return [Reflector(kind, client, inbox, clock) for kind in kinds]


async def _refusal(client: ApiClient, kind: ReflectedKind[Any]) -> ApiError | None:
    """The error if the server does not show the kind; takes a second, the length of a watch."""
    selector = {"fieldSelector": kind.field_selector} if kind.field_selector else {}
    try:
        body = await client.get(kind.path, {"limit": "1", **selector}, LIST_TIMEOUT)
        page = decode_list(kind.type, body)
        check_is_versioned(page)
        version = page.metadata.resource_version
        watch = {"watch": "true", "timeoutSeconds": "1", "resourceVersion": version, **selector}
        async for _ in client.stream(kind.path, watch, client.timeouts.watch_idle_s):
            pass
    except ApiError as refusal:
        if kind in _REQUIRED or refusal.status not in _REFUSED:
            raise
        return refusal
    return None
