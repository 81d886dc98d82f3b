"""Resources of plugins are watched while they are served."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from msgspec.structs import replace
from structlog.testing import capture_logs

from stowage.api.events import CustomObjectGone, CustomObjectSeen, CustomResourceGone, Event
from stowage.operator.client.api_error import ApiError
from stowage.operator.inbox import Inbox
from stowage.operator.watch.custom_resources import RETRY_S, CustomResourceWatch
from tests.support.fake_api import SILENCE, FakeApiClient, FakeTime
from tests.unit.operator.tasks import let_tasks_run

FOOS = "foos.v1.example.com"
PATH = "/apis/example.com/v1/foos"


def _not_served() -> ApiError:
    return ApiError(404, "", "404 page not found")


def _foo(name: str, version: int = 1) -> dict[str, Any]:
    metadata = {"namespace": "d", "name": name, "uid": name, "resourceVersion": str(version)}
    return {"apiVersion": "example.com/v1", "kind": "Foo", "metadata": metadata, "size": None}


def _list(*foos: dict[str, Any], version: int = 10) -> bytes:
    metadata = {"resourceVersion": str(version)}
    return msgspec.json.encode({"kind": "FooList", "metadata": metadata, "items": list(foos)})


def _line(change: str, found: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"type": change, "object": found}) + b"\n"


def _brief(event: Event) -> str:
    match event:
        case CustomObjectSeen():
            return f"+{event.object['metadata']['name']}"
        case CustomObjectGone():
            return f"-{event.namespace}/{event.name}"
        case CustomResourceGone():
            return f"no {event.resource}"
        case _:
            return repr(event)


class _Run:
    """A watch of custom resources with a scripted API server."""

    def __init__(self, lists: list[Any], watches: list[Any]) -> None:
        self.inbox = Inbox()
        self.time = FakeTime()
        self.client = FakeApiClient(get=lists, watch=watches)
        clock = replace(self.time.clock, sleep=self.time.sleep)
        self.watch = CustomResourceWatch(self.client, self.inbox, clock)

    @asynccontextmanager
    async def running(self, *resources: str) -> AsyncIterator[None]:
        self.watch.follow(resources)
        task = asyncio.create_task(self.watch.run())
        await let_tasks_run()
        yield
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    def events(self) -> list[str]:
        return [_brief(event) for event in self.inbox.drain(100)]


async def test_a_resource_is_asked_for_again_until_it_is_served() -> None:
    lists = [_not_served(), _not_served(), _list(_foo("a"))]
    run = _Run(lists, [[_line("ADDED", _foo("b", 11)), SILENCE]])
    with capture_logs() as logs:
        async with run.running(FOOS):
            await let_tasks_run()
    assert [each for each in logs if each["log_level"] == "warning"] == [
        {"event": "resource of a plugin is not served", "resource": FOOS, "log_level": "warning"}
    ]
    assert run.events() == [f"no {FOOS}", f"no {FOOS}", "+a", "+b"]
    assert {request.path for request in run.client.requests} == {PATH}
    assert run.time.slept == [RETRY_S, RETRY_S]
    (reflector,) = run.watch.reflectors
    assert reflector.num_failures == 0


async def test_objects_are_passed_whole() -> None:
    run = _Run([_list(_foo("a"))], [[SILENCE]])
    async with run.running(FOOS):
        (event,) = run.inbox.drain(10)
        assert isinstance(event, CustomObjectSeen)
        assert event.object == _foo("a")


async def test_a_definition_that_is_deleted_and_made_again_is_followed() -> None:
    lists = [_list(_foo("a")), _not_served(), _list(_foo("c"))]
    run = _Run(lists, [[_not_served()], [SILENCE]])
    async with run.running(FOOS):
        assert run.events() == ["+a", f"no {FOOS}", f"no {FOOS}", "+c"]


async def test_a_resource_that_no_plugin_names_any_more_is_dropped() -> None:
    run = _Run([_list(_foo("a"))], [[SILENCE]])
    async with run.running(FOOS):
        assert run.events() == ["+a"]
        run.watch.follow(())
        await let_tasks_run()
        assert run.events() == [f"no {FOOS}"]
        assert run.watch.reflectors == ()


async def test_nothing_is_asked_without_a_plugin_that_names_a_resource() -> None:
    run = _Run([], [])
    async with run.running():
        assert run.client.requests == []
