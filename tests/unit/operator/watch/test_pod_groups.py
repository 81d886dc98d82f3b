"""Pod groups are watched while discovery lists their kind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from stowage.api.events import Event, PodGroupGone, PodGroupSeen, PodGroupsServed
from stowage.api.objects.pod_groups import CORE_GROUPS, COSCHEDULING_GROUPS
from stowage.operator.client.api_error import ApiError
from stowage.operator.inbox import Inbox
from stowage.operator.watch.pod_groups import (
    FIRST_ANSWER_LIMIT_S,
    FIRST_RETRY_S,
    RETRY_S,
    PodGroupWatch,
)
from tests.support.fake_api import SILENCE, FakeApiClient, FakeTime, Request
from tests.unit.operator.tasks import let_tasks_run

CORE = "/apis/scheduling.k8s.io/v1alpha2"
COSCHEDULING = "/apis/scheduling.x-k8s.io/v1alpha1"
NOT_SERVED = ApiError(404, "", "404 page not found")
GANG: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": 3}}}
BASIC: dict[str, Any] = {"schedulingPolicy": {"basic": {}}}
CORE_SERVED = f"{CORE_GROUPS} is served"
CORE_UNSERVED = f"{CORE_GROUPS} is not served"
COSCHEDULING_UNSERVED = f"{COSCHEDULING_GROUPS} is not served"
LISTED: dict[str, Any] = {"resources": [{"name": "podgroups"}, {"name": "podgroups/status"}]}


def _group(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"namespace": "d", "name": name, "uid": name, "resourceVersion": "1"}
    return {"metadata": metadata, "spec": spec}


def _list(*groups: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "PodGroupList", "metadata": {"resourceVersion": "10"}, "items": list(groups)}


class _Server(FakeApiClient):
    """Answers by path; the last answer for a path repeats."""

    def __init__(self, watch: list[Any] | None = None, **_: Any) -> None:
        super().__init__(watch=watch or [[SILENCE]])
        self.answers: dict[str, list[Any]] = {}

    async def _answer(self, request: Request) -> bytes:
        self.requests.append(request)
        answers = self.answers.get(request.path, [NOT_SERVED])
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return msgspec.json.encode(answer)

    def paths(self) -> list[str]:
        return [request.path for request in self.requests]


class _Run:
    """A watch of pod groups with a scripted API server."""

    def __init__(self, server: _Server) -> None:
        self.server, self.inbox, self.time = server, Inbox(), FakeTime()
        self.has_synced = True
        self.watch = PodGroupWatch(server, self.inbox, self.time.clock, lambda: self.has_synced)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.watch.run())
        await let_tasks_run()
        yield
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    def events(self) -> list[str]:
        return [_brief(event) for event in self.inbox.drain(100)]


def _brief(event: Event) -> str:
    if isinstance(event, PodGroupSeen):
        return f"+{event.source}/{event.group.key} {event.group.min_count}"
    if isinstance(event, PodGroupsServed):
        return f"{event.source} {'is' if event.is_served else 'is not'} served"
    assert isinstance(event, PodGroupGone)
    return f"-{event.source}/{event.namespace}/{event.name}"


async def test_a_server_without_pod_groups_is_asked_by_discovery_only_and_rarely() -> None:
    run = _Run(_Server())
    with capture_logs() as logs:
        async with run.running():
            assert run.events() == [CORE_UNSERVED, COSCHEDULING_UNSERVED]
    assert set(run.server.paths()) == {CORE, COSCHEDULING}
    # A pause follows each request.
    assert len(run.time.slept) >= len(run.server.requests) - 2
    assert set(run.time.slept) == {RETRY_S}
    assert logs == []


async def test_groups_of_both_sources_become_events() -> None:
    server = _Server()
    server.answers = {
        CORE: [LISTED],
        f"{CORE}/podgroups": [_list(_group("g", GANG), _group("b", BASIC))],
        COSCHEDULING: [LISTED],
        f"{COSCHEDULING}/podgroups": [_list(_group("c", {"minMember": 4}))],
    }
    run = _Run(server)
    async with run.running():
        events = run.events()
        assert [each for each in events if COSCHEDULING_GROUPS in each] == [
            f"{COSCHEDULING_GROUPS} is served",
            f"+{COSCHEDULING_GROUPS}/d/c 4",
        ]
        assert [each for each in events if CORE_GROUPS in each] == [
            CORE_SERVED,
            f"+{CORE_GROUPS}/d/g 3",
            f"+{CORE_GROUPS}/d/b None",
        ]
        assert len(run.watch.reflectors) == 2


async def test_a_kind_that_appears_is_followed() -> None:
    server = _Server()
    server.answers = {
        COSCHEDULING: [NOT_SERVED, {"resources": [{"name": "elasticquotas"}]}, LISTED],
        f"{COSCHEDULING}/podgroups": [_list(_group("c", {"minMember": 4}))],
    }
    run = _Run(server)
    async with run.running():
        assert run.events() == [
            CORE_UNSERVED,
            COSCHEDULING_UNSERVED,
            f"{COSCHEDULING_GROUPS} is served",
            f"+{COSCHEDULING_GROUPS}/d/c 4",
        ]
    assert run.server.paths().count(COSCHEDULING) == 3


async def test_the_groups_of_a_kind_that_is_not_served_any_more_are_gone() -> None:
    server = _Server(watch=[[NOT_SERVED], [SILENCE]])
    server.answers = {
        CORE: [LISTED, NOT_SERVED],
        f"{CORE}/podgroups": [_list(_group("g", GANG))],
    }
    run = _Run(server)
    with capture_logs() as lines:
        async with run.running():
            events = run.events()
        assert [(line["log_level"], line["event"], line["path"]) for line in lines] == [
            ("info", "pod groups are served", f"{CORE}/podgroups"),
            ("info", "pod groups are not served any more", f"{CORE}/podgroups"),
        ]
        assert COSCHEDULING_UNSERVED in events
        assert [each for each in events if CORE_GROUPS in each] == [
            CORE_SERVED,
            f"+{CORE_GROUPS}/d/g 3",
            f"-{CORE_GROUPS}/d/g",
            CORE_UNSERVED,
        ]
        assert run.watch.reflectors == ()


@pytest.mark.parametrize("fault", [ApiError(403, "Forbidden"), TimeoutError(), {"resources": 1}])
async def test_discovery_is_asked_again_after_a_fault(fault: Any) -> None:
    server = _Server()
    server.answers = {CORE: [fault], COSCHEDULING: [fault]}
    run = _Run(server)
    run.has_synced = False
    with capture_logs() as logs:
        async with run.running():
            assert run.events() == []
    assert {(line["event"], line["path"]) for line in logs} == {
        ("discovery failed", CORE),
        ("discovery failed", COSCHEDULING),
    }
    assert all(line["error"] for line in logs)
    assert run.server.paths().count(CORE) >= 2
    assert set(run.time.slept) == {FIRST_RETRY_S}


async def test_a_fault_that_comes_back_is_logged_again() -> None:
    busy = ApiError(503, "ServiceUnavailable")
    server = _Server()
    server.answers = {CORE: [busy, busy, {"resources": []}, busy]}
    run = _Run(server)
    with capture_logs() as logs:
        async with run.running():
            pass
    assert [line["path"] for line in logs] == [CORE, CORE]


async def test_without_any_answer_a_kind_counts_as_not_served_after_a_while() -> None:
    server = _Server()
    server.answers = {CORE: [TimeoutError()], COSCHEDULING: [NOT_SERVED]}
    run = _Run(server)
    told: list[tuple[float, str]] = []
    run.time.on_sleep = lambda: told.extend((run.time.now, each) for each in run.events())
    began = run.time.now
    async with run.running():
        while len(told) < 2:
            await let_tasks_run()
    (_, first), (when, second) = told
    assert (first, second) == (COSCHEDULING_UNSERVED, CORE_UNSERVED)
    assert when - began >= FIRST_ANSWER_LIMIT_S


@pytest.mark.parametrize("answer", [LISTED, NOT_SERVED])
async def test_the_last_answer_stays_true_while_discovery_fails(answer: Any) -> None:
    server = _Server(watch=[[NOT_SERVED], [SILENCE]])
    server.answers = {
        CORE: [answer, ApiError(503, "ServiceUnavailable")],
        f"{CORE}/podgroups": [_list()],
    }
    run = _Run(server)
    async with run.running():
        expected = CORE_SERVED if answer is LISTED else CORE_UNSERVED
        assert run.events() == [expected, COSCHEDULING_UNSERVED]
    assert run.server.paths().count(CORE) >= 2


async def test_a_missing_right_is_no_storm() -> None:
    server = _Server()
    server.answers = {CORE: [LISTED], f"{CORE}/podgroups": [ApiError(403, "Forbidden")]}
    run = _Run(server)
    async with run.running():
        assert run.events() == [CORE_SERVED, COSCHEDULING_UNSERVED]
    lists = run.server.paths().count(f"{CORE}/podgroups")
    delays = [delay for delay in run.time.slept if delay != RETRY_S]
    assert len(delays) >= lists - 1
    assert delays == sorted(delays)
