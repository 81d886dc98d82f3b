"""What the leader election tells: Events of the Lease, log lines, and a restored API server."""

from __future__ import annotations

from typing import Any

from structlog.testing import capture_logs

from stowage.operator.client.api_error import ApiError
from stowage.operator.leader_election import ElectionObservers, LeaderElector
from stowage.operator.lease import LeaderElectionOptions
from stowage.operator.writers.object_events import ObjectEventRecorder, OwnObject
from tests.support.fake_api import FakeApiClient, FakeTime
from tests.unit.operator.elections import elector_of, lease_of


def _events(client: FakeApiClient) -> list[dict[str, Any]]:
    return [request.body for request in client.sent("POST") if request.body["kind"] == "Event"]


def _recorded(client: FakeApiClient, time: FakeTime) -> LeaderElector:
    lease = OwnObject("coordination.k8s.io/v1", "Lease", "kube-system", "stowage")
    events = ObjectEventRecorder(client, lease, "LeaderElection", time.clock)
    return LeaderElector(client, LeaderElectionOptions(identity="me"), time.clock, events=events)


async def test_a_leader_writes_client_gos_events_on_the_lease() -> None:
    held = lease_of("me")
    held["metadata"]["uid"] = "lease-uid"
    client, time = FakeApiClient(get=[held], put=[held]), FakeTime()
    elector = _recorded(client, time)
    await elector.acquire()
    await elector.release()
    became, stopped = _events(client)
    assert became["note"] == "me became leader"
    assert (became["type"], became["reason"]) == ("Normal", "LeaderElection")
    assert became["metadata"]["namespace"] == "kube-system"
    assert became["regarding"] == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "namespace": "kube-system",
        "name": "stowage",
        "uid": "lease-uid",
    }
    assert stopped["note"] == "me stopped leading"


async def test_a_leader_that_loses_its_lease_says_so_in_an_event() -> None:
    client, time = FakeApiClient(get=[lease_of("me")], put=[lease_of("me")]), FakeTime()
    elector = _recorded(client, time)
    await elector.acquire()
    client.script("GET", ApiError(503, "ServiceUnavailable"))
    await elector.renew()
    await elector.release()
    assert [event["note"] for event in _events(client)] == [
        "me became leader",
        "me stopped leading",
    ]


async def test_a_candidate_writes_no_event() -> None:
    client, time = FakeApiClient(get=[lease_of("other")]), FakeTime()
    elector = _recorded(client, time)
    assert not await elector.try_acquire_or_renew()
    await elector.release()
    assert client.sent("POST") == []


def _watched_elector(client: FakeApiClient, time: FakeTime) -> tuple[LeaderElector, list[str]]:
    told: list[str] = []
    observers = ElectionObservers(on_restored=lambda: told.append("restored"))
    options = LeaderElectionOptions(identity="me")
    return LeaderElector(client, options, time.clock, observers), told


async def test_a_candidate_that_reads_an_older_lease_tells_that_the_server_was_restored() -> None:
    older = lease_of("other", "then", "7")
    client = FakeApiClient(get=[lease_of("other", "now", "9"), older, older])
    elector, told = _watched_elector(client, FakeTime())
    await elector.try_acquire_or_renew()
    assert told == []
    await elector.try_acquire_or_renew()
    assert told == ["restored"]


async def test_one_answer_from_the_past_does_not_show_that_the_server_was_restored() -> None:
    """As from a proxy or a server that lags behind; a restored server answers the same again."""
    old, new = lease_of("me", "then", "6"), lease_of("me", "now", "9")
    client = FakeApiClient(get=[old, old, new], put=[new, lease_of("me", "later", "11")])
    elector, told = _watched_elector(client, FakeTime())
    assert await elector.try_acquire_or_renew()
    assert await elector.try_acquire_or_renew()
    assert (told, elector.may_write(), elector.lease_version) == ([], True, 11)


async def test_a_leader_that_reads_an_older_lease_stops_writing_and_leaves_it_to_be_seen() -> None:
    leases = [lease_of("me", "then", "6")] * 3
    client = FakeApiClient(get=leases, put=[lease_of("me", "now", "9")])
    elector, told = _watched_elector(client, FakeTime())
    assert await elector.try_acquire_or_renew()
    assert elector.may_write()
    assert not await elector.try_acquire_or_renew()
    await elector.release()
    assert (told, elector.may_write()) == (["restored"], False)
    assert len(client.sent("PUT")) == 1


async def test_the_log_tells_the_life_of_a_leader() -> None:
    refused = ApiError(503, "ServiceUnavailable", "try later")
    client = FakeApiClient(get=[lease_of("me"), refused], put=[lease_of("me")])
    elector = elector_of(client, FakeTime())
    with capture_logs() as lines:
        await elector.acquire()
        await elector.renew()
    failed = {"event": "lease not renewed", "error": str(refused)}
    assert lines[:3] == [
        {"event": "waiting for the lease", "lease": "stowage", "log_level": "info"},
        {"event": "became leader", "identity": "me", "log_level": "info"},
        {**failed, "log_level": "warning"},
    ]
    assert lines[-1] == {"event": "lost the lease", "identity": "me", "log_level": "error"}
    assert lines[3:-1]
    assert all(line == {**failed, "log_level": "debug"} for line in lines[3:-1])


async def test_failures_to_renew_are_logged_as_warnings_once_a_minute() -> None:
    client, time = FakeApiClient(get=[ApiError(503)]), FakeTime()
    elector = elector_of(client, time)
    levels = []
    for pause_s in (0.0, 59.9, 0.1, 60.0):
        time.now += pause_s
        with capture_logs() as lines:
            await elector.try_acquire_or_renew()
        levels += [line["log_level"] for line in lines]
    assert levels == ["warning", "debug", "warning", "warning"]


async def test_a_lease_that_cannot_be_released_is_logged() -> None:
    client = FakeApiClient(
        get=[lease_of("me")], put=[lease_of("me"), ApiError(403, "", "no right")]
    )
    elector = elector_of(client, FakeTime())
    await elector.acquire()
    with capture_logs() as lines:
        await elector.release()
    assert lines == [
        {"event": "lease not released", "error": "403: no right", "log_level": "warning"}
    ]
