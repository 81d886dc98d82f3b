"""Pods and nodes are kept in full for extenders that need them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from stowage.api.config.extenders import NO_EXTENDERS, Extenders
from stowage.api.config.loading import Extender
from stowage.api.instructions import PodReference
from stowage.api.objects.meta import ObjectMeta
from stowage.operator.client.api_error import ApiError
from stowage.operator.extenders.client import ExtenderError
from stowage.operator.extenders.objects import (
    MAX_READ_ATTEMPTS,
    ExtenderObjects,
    RawObjects,
)
from tests.support.fake_api import FakeApiClient, FakeTime

POD = PodReference("default", "p", "u1")
NEEDS_NODES = Extenders([Extender(url_prefix="http://x", filter_verb="filter")])


def _objects(client: FakeApiClient, extenders: Extenders = NEEDS_NODES) -> ExtenderObjects:
    return ExtenderObjects(client, FakeTime().clock, extenders)


def _node(name: str, **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, **fields}


def _page(*names: str, more: str = "") -> bytes:
    items = [_node(name, status={"unknown": True}) for name in names]
    return msgspec.json.encode({"metadata": {"continue": more}, "items": items})


def _line(kind: str, name: str, **fields: Any) -> bytes:
    return msgspec.json.encode({"type": kind, "object": _node(name, **fields)})


def test_nodes_are_kept_with_all_their_fields() -> None:
    nodes = RawObjects("name")
    nodes.handle_page(_page("m"), is_first=True)
    assert nodes.get("m") == b'{"metadata":{"name":"m"},"status":{"unknown":true}}'


def test_nodes_are_updated_by_watch_events() -> None:
    nodes = RawObjects("name")
    nodes.handle_page(_page("m", "n"), is_first=True)
    for line in (_line("MODIFIED", "m", x=1), _line("ADDED", "o")):
        nodes.handle_line(line)
    nodes.drop(ObjectMeta(name="n"))
    assert (nodes.get("m"), nodes.get("n")) == (b'{"metadata":{"name":"m"},"x":1}', None)
    assert len(nodes) == 2


def test_numbers_that_json_does_not_have_are_null_for_extenders() -> None:
    nodes = RawObjects("name")
    nodes.handle_page(_page("m").replace(b"true", b"NaN"), is_first=True)
    nodes.handle_line(_line("ADDED", "n", x=1).replace(b'"x":1', b'"x":-Infinity'))
    assert nodes.get("m") == b'{"metadata":{"name":"m"},"status":{"unknown":null}}'
    assert nodes.get("n") == b'{"metadata":{"name":"n"},"x":null}'


def test_a_node_missing_from_all_pages_of_a_new_list_is_removed() -> None:
    nodes = RawObjects("name")
    nodes.handle_page(_page("m", "n", "o"), is_first=True)
    nodes.handle_page(_page("m", more="token"), is_first=True)
    nodes.handle_page(_page("n"), is_first=False)
    assert (len(nodes), nodes.get("o")) == (2, None)


async def test_a_kept_pod_is_not_read_from_the_api_server() -> None:
    client = FakeApiClient()
    objects = _objects(client)
    assert objects.pods is not None
    objects.pods["u1"] = {"metadata": {"name": "p"}, "anything": 1}
    assert msgspec.json.decode(await objects.pod(POD))["anything"] == 1
    assert client.requests == []


async def test_a_pod_that_is_not_kept_is_read_from_the_api_server() -> None:
    client = FakeApiClient(get=[{"metadata": {"name": "p", "uid": "u1"}}])
    assert msgspec.json.decode(await _objects(client).pod(POD))["metadata"]["name"] == "p"
    assert client.requests[0].path == "/api/v1/namespaces/default/pods/p"


@pytest.mark.parametrize("found", [ApiError(404), {"metadata": {"name": "p", "uid": "u2"}}])
async def test_a_missing_pod_or_another_uid_means_that_the_pod_is_gone(found: Any) -> None:
    with pytest.raises(ExtenderError, match="pod default/p is gone"):
        await _objects(FakeApiClient(get=[found])).pod(POD)


async def test_a_refused_read_is_an_error() -> None:
    with pytest.raises(ExtenderError, match="pods/p: 403 Forbidden"):
        await _objects(FakeApiClient(get=[ApiError(403, "Forbidden")])).pod(POD)


async def test_a_read_without_an_answer_is_an_error_after_the_maximum_of_attempts() -> None:
    client = FakeApiClient(get=[TimeoutError()])
    with pytest.raises(ExtenderError, match="pods/p: no answer in time"):
        await _objects(client).pod(POD)
    assert len(client.requests) == MAX_READ_ATTEMPTS


def test_deleted_nodes_are_left_out() -> None:
    objects = _objects(FakeApiClient())
    assert objects.nodes is not None
    objects.nodes.handle_page(_page("m", "n"), is_first=True)
    objects.nodes.drop(ObjectMeta(name="n"))
    assert list(objects.existing_nodes(["m", "n", "o"])) == ["m"]


def test_only_objects_that_extenders_need_are_kept() -> None:
    by_name = Extender(url_prefix="http://x", filter_verb="filter", node_cache_capable=True)
    objects = _objects(FakeApiClient(), Extenders([by_name]))
    assert (objects.pods, objects.nodes) == ({}, None)
    objects = _objects(FakeApiClient(), NO_EXTENDERS)
    assert (objects.pods, objects.nodes) == (None, None)
    assert objects.existing_nodes(["n"]) == {}


async def test_a_read_without_an_answer_is_repeated_after_a_tenth_of_a_second() -> None:
    time = FakeTime()
    objects = ExtenderObjects(FakeApiClient(get=[TimeoutError()]), time.clock, NEEDS_NODES)
    with pytest.raises(ExtenderError) as error:
        await objects.pod(POD)
    assert time.slept[0] <= 0.1
    assert not error.value.may_have_acted


async def test_a_pod_that_is_gone_or_cannot_be_read_was_shown_to_no_extender() -> None:
    for answer in (ApiError(404, "NotFound"), ApiError(403, "Forbidden")):
        with pytest.raises(ExtenderError) as error:
            await _objects(FakeApiClient(get=[answer])).pod(POD)
        assert not error.value.may_have_acted


async def test_an_assigned_pod_that_is_kept_whole_is_not_read() -> None:
    client = FakeApiClient()
    review = Extender(url_prefix="http://x", preempt_verb="preempt")
    objects = _objects(client, Extenders([review]))
    assert objects.assigned_pods is not None
    kept = {"metadata": {"name": "p", "namespace": "default", "uid": "u1"}, "unknown": 1}
    page = {"metadata": {"resourceVersion": "5"}, "items": [kept]}
    objects.assigned_pods.handle_page(msgspec.json.encode(page), is_first=True)
    assert msgspec.json.decode(await objects.pod(POD)) == kept
    assert client.requests == []
