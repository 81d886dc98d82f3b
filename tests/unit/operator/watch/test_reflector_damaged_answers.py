"""What a reflector cannot read is reported or ignored, and costs no other object."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from stowage.api.events import AssignedPodGone
from stowage.api.reflected_kinds import ASSIGNED_PODS, NODES
from stowage.operator.client.api_error import ApiError
from stowage.operator.extenders.objects import RawObjects
from stowage.operator.inbox import Inbox
from stowage.operator.watch.reflector import Reflector
from tests.support.fake_api import FakeApiClient, FakeTime
from tests.unit.operator.watch.scripted_reflector import (
    GONE,
    EndOfScript,
    ScriptedReflector,
    list_json,
    node_json,
    pod_json,
    watch_line,
)


async def test_an_invalid_object_is_reported_and_the_others_are_handled() -> None:
    bad = node_json("bad", allocatable=7)
    run = ScriptedReflector(
        [list_json(bad, node_json("a"))],
        [
            [
                watch_line("MODIFIED", node_json("bad", version=12, images="x")),
                watch_line("ADDED", node_json("c", version=13)),
            ]
        ],
    )
    assert await run.arrived() == ["+a", "!bad status.allocatable", "!bad status.images", "+c"]


async def test_the_deletion_of_an_invalid_object_is_handled() -> None:
    run = ScriptedReflector(
        [list_json(node_json("a"))],
        [[watch_line("DELETED", node_json("a", version=12, allocatable=7))]],
    )
    assert await run.arrived() == ["+a", "-a"]


async def test_an_object_that_an_invalid_one_replaced_is_gone_when_that_is_deleted() -> None:
    inbox = Inbox()
    bad = pod_json("p", "u2", version=11)
    bad["spec"]["priority"] = "high"
    client = FakeApiClient(
        get=[list_json(pod_json("p", "u1")), list_json(bad)],
        watch=[
            [ApiError(410)],
            [watch_line("DELETED", pod_json("p", "u2", version=12))],
            [EndOfScript()],
        ],
    )
    reflector = Reflector(ASSIGNED_PODS, client, inbox, FakeTime().clock)
    with pytest.raises(EndOfScript):
        await reflector.run()
    gone = [event.uid for event in inbox.drain(20) if isinstance(event, AssignedPodGone)]
    assert sorted(gone) == ["u1", "u2"]


async def test_the_deletion_of_an_invalid_object_names_its_namespace() -> None:
    inbox = Inbox()
    bad = pod_json("p", "u", version=12)
    bad["spec"]["priority"] = "high"
    client = FakeApiClient(
        get=[list_json(pod_json("p", "u"))],
        watch=[[watch_line("DELETED", bad)], [EndOfScript()]],
    )
    with pytest.raises(EndOfScript):
        await Reflector(ASSIGNED_PODS, client, inbox, FakeTime().clock).run()
    (gone,) = [event for event in inbox.drain(20) if isinstance(event, AssignedPodGone)]
    assert (gone.namespace, gone.name, gone.uid) == ("d", "p", "u")


async def test_a_listed_object_that_is_invalid_is_not_gone() -> None:
    run = ScriptedReflector(
        [list_json(node_json("a")), list_json(node_json("a", allocatable=7), version=50)],
        [[watch_line("ERROR", GONE)]],
    )
    assert await run.arrived() == ["+a", "!a status.allocatable"]


async def test_an_object_of_invalid_json_is_reported_and_costs_no_new_list_or_watch() -> None:
    page = msgspec.json.encode(list_json(node_json("a"), node_json("b")))
    bad = msgspec.json.encode(node_json("c", version=11)).replace(b'"status":{}', b'"status":NaN')
    changed = [
        b'{"type":"MODIFIED","object":' + bad + b"}\n",
        watch_line("ADDED", node_json("d", version=12)),
    ]
    run = ScriptedReflector([page.replace(b'"status":{}', b'"status":Infinity', 1)], [changed])
    assert await run.arrived() == ["+b", "!a status", "!c status", "+d"]
    assert run.watched_from() == ["10", "12"]
    assert run.reflector.num_lists == 1


async def test_no_object_is_gone_while_the_list_has_one_without_a_name() -> None:
    nameless = msgspec.json.encode(list_json(node_json("b"), version=20))
    nameless = nameless.replace(b'"items":[', b'"items":[{"metadata":7},')
    run = ScriptedReflector(
        [list_json(node_json("a"), node_json("b")), nameless], [[watch_line("ERROR", GONE)]]
    )
    assert await run.arrived() == ["+a", "+b", "! metadata"]


OTHER_LISTS = {
    "nothing": {},
    "a list of another kind": {
        "kind": "PodList",
        "metadata": {"resourceVersion": "11"},
        "items": [],
    },
    "without a version": {"metadata": {}, "items": []},
}


@pytest.mark.parametrize("answer", OTHER_LISTS.values(), ids=OTHER_LISTS.keys())
async def test_an_answer_that_is_no_list_of_the_kind_is_ignored(answer: dict[str, Any]) -> None:
    run = ScriptedReflector(
        [answer, list_json(node_json("a")), answer, list_json(node_json("a"))],
        [[watch_line("ERROR", GONE)]],
    )
    assert await run.arrived() == ["+a"]
    assert len(run.requests("GET")) == 4


async def test_a_watch_resumes_after_a_line_of_invalid_json() -> None:
    run = ScriptedReflector(
        [list_json(node_json("a"))],
        [
            [watch_line("ADDED", node_json("b", version=11)), b"<html>502 Bad Gateway</html>\n"],
            [watch_line("ADDED", node_json("c", version=12))],
        ],
    )
    assert await run.arrived() == ["+a", "+b", "+c"]
    assert run.watched_from() == ["10", "11", "12"]


@pytest.mark.parametrize("change", ["ADDED", "DELETED"])
async def test_a_line_with_nan_for_an_extender_does_not_end_the_watch(change: str) -> None:
    run = ScriptedReflector([list_json(node_json("a"))], [])
    line = watch_line(change, node_json("a", version=11, unknown=7)).replace(b":7}", b":NaN}")
    raw = RawObjects("name")
    run.client.script(
        "WATCH", [line, watch_line("ADDED", node_json("b", version=12))], [EndOfScript()]
    )
    run.reflector = Reflector(NODES, run.client, run.inbox, run.time.clock, raw)
    assert await run.arrived() == (["+a"] if change == "ADDED" else ["+a", "-a"]) + ["+b"]
    assert run.watched_from() == ["10", "12"]
    assert (raw.get("a") is None) == (change == "DELETED")
