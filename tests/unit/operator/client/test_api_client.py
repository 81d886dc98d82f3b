"""Timeouts of watch requests of the API client."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from stowage.operator.client.api_client import (
    NO_ANSWER,
    ApiClient,
    ObserveRequest,
    SentRequest,
)
from stowage.operator.client.api_error import ApiError
from stowage.operator.client.connection import Connection
from stowage.operator.client.outage_log import OutageLog
from stowage.operator.client.timeouts import CONNECT_WITHIN_S, Timeouts


class _NoResponse:
    """A request that never gets response headers."""

    async def __aenter__(self) -> Any:
        await asyncio.Event().wait()

    async def __aexit__(self, *_error: object) -> None:
        raise AssertionError("the response was never opened")


async def test_a_watch_without_response_headers_ends_after_the_request_timeout() -> None:
    session = SimpleNamespace(get=lambda *_arguments, **_options: _NoResponse())
    timeouts = Timeouts(request_s=0.0, watch_idle_s=3600.0)
    dropped: list[bool] = []
    connection = SimpleNamespace(
        session=session,
        timeouts=timeouts,
        outages=OutageLog("model"),
        server="http://model",
        drop_idle=lambda: dropped.append(True),
    )
    client = ApiClient(cast("Connection", connection))
    with pytest.raises(TimeoutError):
        async for _ in client.stream("/api/v1/nodes", {}, timeouts.watch_idle_s):
            pass
    assert dropped


class _NoAnswer:
    """A session whose requests end with an error; it notes their options."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.options: list[dict[str, Any]] = []
        self.num_dropped = 0

    def request(self, _method: str, _url: object, **options: Any) -> _NoAnswer:
        self.options.append(options)
        return self

    def get(self, url: object, **options: Any) -> _NoAnswer:
        return self.request("GET", url, **options)

    async def __aenter__(self) -> Any:
        raise self.error

    async def __aexit__(self, *_error: object) -> None:
        raise AssertionError("the response was never opened")

    def drop_idle(self) -> None:
        self.num_dropped += 1

    @property
    def client(self) -> ApiClient:
        return self.observed(None)

    def observed(self, observe: ObserveRequest | None) -> ApiClient:
        connection = SimpleNamespace(
            session=self,
            timeouts=Timeouts(),
            outages=OutageLog("model"),
            server="http://model",
            drop_idle=self.drop_idle,
            generation=0,
            direct_writes=None,
        )
        return ApiClient(cast("Connection", connection), observe)


async def test_a_watch_may_be_silent_for_long_but_connects_soon() -> None:
    silent = _NoAnswer(TimeoutError())
    with pytest.raises(TimeoutError):
        async for _ in silent.client.stream("/api/v1/nodes", {}, 90.0):
            pass
    timeout = silent.options[0]["timeout"]
    limits = (timeout.total, timeout.sock_connect, timeout.sock_read)
    assert limits == (None, CONNECT_WITHIN_S, 90.0)


class _Refusal:
    """A session that answers every request with a refusal of this status."""

    def __init__(self, status: int) -> None:
        self.status, self.headers = status, dict[str, str]()

    def get(self, _url: object, **_options: Any) -> _Refusal:
        return self

    async def __aenter__(self) -> _Refusal:
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Close the response."""

    async def read(self) -> bytes:
        return b'{"reason": "No", "message": "why not"}'


@pytest.mark.parametrize("status", [400, 410])
async def test_a_refused_watch_ends_with_the_refusal(status: int) -> None:
    connection = SimpleNamespace(
        session=_Refusal(status), timeouts=Timeouts(), outages=OutageLog("m"), server="http://m"
    )
    client = ApiClient(cast("Connection", connection))
    with pytest.raises(ApiError, match="why not") as refused:
        await anext(client.stream("/api/v1/nodes", {}, 90.0))
    assert refused.value.status == status


@pytest.mark.parametrize(
    ("error", "num_dropped"), [(TimeoutError(), 1), (ConnectionRefusedError(), 0)], ids=repr
)
async def test_a_timeout_closes_the_idle_connections(error: Exception, num_dropped: int) -> None:
    """If one is dead because packets are lost, so are the others."""
    silent = _NoAnswer(error)
    with pytest.raises(type(error)):
        await silent.client.get("/x")
    assert silent.num_dropped == num_dropped


async def test_without_direct_writes_the_session_says_what_kind_of_body_it_sends() -> None:
    silent = _NoAnswer(TimeoutError())
    client = silent.client
    for request in (client.get("/x"), client.post("/x", b"{}"), client.patch("/x", b"{}")):
        with pytest.raises(TimeoutError):
            await request
    assert [each["headers"] for each in silent.options] == [
        None,
        {"Content-Type": "application/json"},
        {"Content-Type": "application/strategic-merge-patch+json"},
    ]


async def test_a_request_may_have_another_timeout_than_the_usual_one() -> None:
    silent = _NoAnswer(TimeoutError())
    client, longer = silent.client, Timeouts().list_timeout
    requests = (
        client.get("/x", timeout=longer),
        client.post("/x", b"{}", timeout=longer),
        client.put("/x", b"{}", timeout=longer),
        client.delete("/x", b"{}"),
    )
    for request in requests:
        with pytest.raises(TimeoutError):
            await request
    usual = Timeouts().request_timeout
    assert [each["timeout"] for each in silent.options] == [longer, longer, longer, usual]


async def test_the_options_of_a_deletion_are_sent() -> None:
    silent = _NoAnswer(TimeoutError())
    with pytest.raises(TimeoutError):
        await silent.client.delete("/x", b'{"gracePeriodSeconds":0}')
    assert silent.options[0]["data"] == b'{"gracePeriodSeconds":0}'


def test_a_page_of_a_list_may_take_four_times_as_long_as_one_object() -> None:
    assert Timeouts(request_s=10.0).list_timeout.total == 40.0
    assert Timeouts(request_s=10.0).request_timeout.total == 10.0


@pytest.mark.parametrize(
    ("jitter", "watch_s"), [(0.0, 40), (1.0, 60)], ids=["at the least", "at the most"]
)
def test_the_server_ends_a_watch_before_it_counts_as_broken(jitter: float, watch_s: int) -> None:
    assert Timeouts(watch_idle_s=80.0).watch_timeout_s(jitter) == watch_s


async def test_the_duration_and_the_size_of_a_request_are_observed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times = iter((10.0, 12.5))
    monkeypatch.setattr("stowage.operator.client.api_client.clock.timer", lambda: next(times))
    seen: list[SentRequest] = []
    with pytest.raises(TimeoutError):
        await _NoAnswer(TimeoutError()).observed(seen.append).post("/x", b"{}")
    assert seen == [SentRequest("POST", NO_ANSWER, 2.5, 2, None)]
