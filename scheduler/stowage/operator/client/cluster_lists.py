"""Reads the objects of a whole cluster once, for questions about it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.api.decoding.decode import check_is_versioned, decode_list
from stowage.api.objects.meta import ApiStruct
from stowage.api.objects.pod import Pod
from stowage.api.reflected_kinds import (
    ASSIGNED_PODS,
    POD_GROUP_SOURCES,
    READ_BY_ADMISSION,
    REFLECTED_KINDS,
    custom_kind,
    group_source,
)
from stowage.operator.client.api_client import LIST_TIMEOUT, ApiClient
from stowage.operator.client.api_error import ApiError
from stowage.operator.client.connection import connect

_PAGE = 1000
_REQUIRED = frozenset({"Pod", "Node"})
_NOT_SERVED = 404
_REFUSED = frozenset({403, _NOT_SERVED})

_GROUP_SOURCES = {kind.kind: group_source(kind) for kind in POD_GROUP_SOURCES}
"""Kind -> the API group, by which events name the source; few API servers serve one."""

_PATHS: Mapping[str, tuple[type[ApiStruct], str]] = (
    {
        kind.kind: (kind.type, kind.path)
        for kind in (*REFLECTED_KINDS, *POD_GROUP_SOURCES)
        if kind is not ASSIGNED_PODS
    }
    | {
        struct.__name__: (struct, custom_kind(resource).path)
        for resource, struct in READ_BY_ADMISSION.items()
    }
    | {"Pod": (Pod, ASSIGNED_PODS.path)}
)


async def read_cluster(
    kubeconfig: str | None, context: str | None = None
) -> tuple[ClusterObjects, list[str]]:
    """List every kind that scheduling reads.

    A kind other than pods and nodes may be left out if the server does not serve or show it.

    Args:
        kubeconfig: Path; None for ``$KUBECONFIG``, ``~/.kube/config`` or in-cluster configuration.
        context: Context of the kubeconfig; None for its current one.

    Returns:
        The objects, and a sentence for each kind that was left out.

    Raises:
        ApiError: The server refuses to list pods or nodes.
        InvalidObject: The server is no API server.
        ConfigException: There is no usable kubeconfig.
        OSError: The server cannot be reached.
    """
    connection = await connect(kubeconfig, context=context)
    try:
        client = ApiClient(connection)
        objects = ClusterObjects()
        notes = await asyncio.gather(*(_read_kind(client, kind, objects) for kind in _PATHS))
        return objects, [note for note in notes if note]
    finally:
        await connection.close()


async def _read_kind(client: ApiClient, kind: str, objects: ClusterObjects) -> str:
    """Add all objects of a kind; a sentence if the server does not show it."""
    decoded_type, path = _PATHS[kind]
    params: dict[str, str] = {"limit": str(_PAGE)}
    try:
        while True:
            page: Any = decode_list(decoded_type, await client.get(path, params, LIST_TIMEOUT))
            check_is_versioned(page)
            for found in page.items:
                objects.add(found)
            objects.invalid += page.invalid
            if not page.metadata.continue_:
                return ""
            params["continue"] = page.metadata.continue_
    except ApiError as refusal:
        if kind in _REQUIRED or refusal.status not in _REFUSED:
            raise
        if refusal.status == _NOT_SERVED and kind in _GROUP_SOURCES:
            objects.unserved_groups.add(_GROUP_SOURCES[kind])
            return ""
        return f"{kind} is left out: {refusal}"
