"""Extenders see complete pods and nodes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from stowage.api.config.extenders import NO_EXTENDERS, Extenders
from stowage.api.config.loading import Extender
from stowage.api.instructions import PodReference
from stowage.operator.client.api_error import ApiError
from stowage.operator.extenders.client import ExtenderError
from stowage.operator.extenders.objects import (
    MAX_READ_ATTEMPTS,
    ExtenderObjects,
    RawObjects,
    name_of,
)
from tests.support.fake_api import FakeApiClient, FakeTime

POD = PodReference("default", "p", "u1")
CURIOUS = Extenders([Extender(url_prefix="http://x", filter_verb="filter")])


def _objects(client: FakeApiClient, extenders: Extenders = CURIOUS) -> ExtenderObjects:
    return ExtenderObjects(client, FakeTime().clock, extenders)


def _node(name: str, **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, **fields}


def _page(*names: str, more: str = "") -> bytes:
    items = [_node(name, status={"unknown": True}) for name in names]
    return msgspec.json.encode({"metadata": {"continue": more}, "items": items})


def _line(kind: str, name: str, **fields: Any) -> bytes:
    return msgspec.json.encode({"type": kind, "object": _node(name, **fields)})


def test_nodes_are_kept_with_all_their_fields() -> None:
    nodes = RawObjects(name_of)
    nodes.handle_page(_page("m"), is_first=True)
    assert nodes.get("m") == b'{"metadata":{"name":"m"},"status":{"unknown":true}}'


def test_nodes_follow_the_watch() -> None:
    nodes = RawObjects(name_of)
    nodes.handle_page(_page("m", "n"), is_first=True)
    for line in (_line("MODIFIED", "m", x=1), _line("DELETED", "n"), _line("ADDED", "o")):
        nodes.handle_line(line)
    nodes.handle_line(_line("BOOKMARK", ""))
    assert (nodes.get("m"), nodes.get("n")) == (b'{"metadata":{"name":"m"},"x":1}', None)
    assert len(nodes) == 2


def test_a_node_that_no_page_of_a_new_list_names_is_gone() -> None:
    nodes = RawObjects(name_of)
    nodes.handle_page(_page("m", "n", "o"), is_first=True)
    nodes.handle_page(_page("m", more="token"), is_first=True)
    nodes.handle_page(_page("n"), is_first=False)
    assert (len(nodes), nodes.get("o")) == (2, None)


async def test_a_pod_that_is_kept_is_not_asked_for() -> None:
    client = FakeApiClient()
    objects = _objects(client)
    assert objects.pods is not None
    objects.pods["u1"] = {"metadata": {"name": "p"}, "anything": 1}
    assert msgspec.json.decode(await objects.pod(POD))["anything"] == 1
    assert client.requests == []


async def test_a_pod_that_is_not_kept_is_read() -> None:
    client = FakeApiClient(get=[{"metadata": {"name": "p", "uid": "u1"}}])
    assert msgspec.json.decode(await _objects(client).pod(POD))["metadata"]["name"] == "p"
    assert client.requests[0].path == "/api/v1/namespaces/default/pods/p"


@pytest.mark.parametrize("found", [ApiError(404), {"metadata": {"name": "p", "uid": "u2"}}])
async def test_a_pod_that_is_gone_or_another_is_said_to_be_gone(found: Any) -> None:
    with pytest.raises(ExtenderError, match="pod default/p is gone"):
        await _objects(FakeApiClient(get=[found])).pod(POD)


async def test_an_api_server_that_refuses_is_an_error() -> None:
    with pytest.raises(ExtenderError, match="pods/p: 403 Forbidden"):
        await _objects(FakeApiClient(get=[ApiError(403, "Forbidden")])).pod(POD)


async def test_an_api_server_that_does_not_answer_is_an_error_after_some_attempts() -> None:
    client = FakeApiClient(get=[TimeoutError()])
    with pytest.raises(ExtenderError, match="pods/p: TimeoutError"):
        await _objects(client).pod(POD)
    assert len(client.requests) == MAX_READ_ATTEMPTS


def test_nodes_that_are_gone_are_left_out() -> None:
    objects = _objects(FakeApiClient())
    assert objects.nodes is not None
    objects.nodes.handle_page(_page("m", "n"), is_first=True)
    objects.nodes.handle_line(_line("DELETED", "n"))
    assert list(objects.existing_nodes(["m", "n", "o"])) == ["m"]


def test_nothing_is_kept_that_nobody_wants_to_see() -> None:
    by_name = Extender(url_prefix="http://x", filter_verb="filter", node_cache_capable=True)
    objects = _objects(FakeApiClient(), Extenders([by_name]))
    assert (objects.pods, objects.nodes) == ({}, None)
    objects = _objects(FakeApiClient(), NO_EXTENDERS)
    assert (objects.pods, objects.nodes) == (None, None)
    assert objects.existing_nodes(["n"]) == {}
