"""At most one replica holds the lease, measured by each replica's own clock."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from stowage.operator.client.api_error import ApiError
from stowage.operator.leader_election import ElectionObservers, LeaderElector
from stowage.operator.lease import LeaderElectionOptions
from tests.support.fake_api import FakeApiClient, FakeTime
from tests.unit.operator.elections import NOT_FOUND, elector_of, lease_of


async def test_a_missing_lease_is_created() -> None:
    client, time = FakeApiClient(get=[NOT_FOUND], post=[lease_of("me")]), FakeTime()
    elector = elector_of(client, time)
    assert not elector.may_write()
    await elector.acquire()
    assert elector.may_write()
    body = client.sent("POST")[0].body
    assert body["metadata"] == {"name": "stowage", "namespace": "kube-system"}
    assert body["spec"]["holderIdentity"] == "me"
    assert body["spec"]["leaseTransitions"] == 0


async def test_the_lease_is_read_and_written_at_its_path() -> None:
    path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    client = FakeApiClient(
        get=[NOT_FOUND], post=[lease_of("me")], put=[lease_of("me", version="2")]
    )
    elector = elector_of(client, FakeTime())
    await elector.acquire()
    client.script("GET", lease_of("me"))
    assert await elector.try_acquire_or_renew()
    assert [(each.method, each.path) for each in client.requests] == [
        ("GET", f"{path}/stowage"),
        ("POST", path),
        ("GET", f"{path}/stowage"),
        ("PUT", f"{path}/stowage"),
    ]


async def test_a_lease_that_another_replica_holds_is_not_taken() -> None:
    client, time = FakeApiClient(get=[lease_of("other")]), FakeTime()
    assert not await elector_of(client, time).try_acquire_or_renew()
    assert client.sent("PUT") == []


async def test_jobs_that_wait_for_the_first_attempt_run_as_leader_if_it_succeeds() -> None:
    client, time = FakeApiClient(get=[NOT_FOUND], post=[lease_of("me")]), FakeTime()
    elector = elector_of(client, time)
    seen: list[bool] = []

    async def job() -> None:
        seen.append(elector.may_write())

    waiting = asyncio.create_task(elector.after_first_attempt(job))
    await asyncio.sleep(0)
    assert seen == []
    await elector.acquire()
    await waiting
    assert seen == [True]


async def test_jobs_that_wait_for_the_first_attempt_run_on_a_standby_too() -> None:
    client, time = FakeApiClient(get=[lease_of("other")] * 2), FakeTime()
    elector = elector_of(client, time)
    ran = asyncio.Event()

    async def job() -> None:
        ran.set()

    acquiring = asyncio.create_task(elector.acquire())
    await elector.after_first_attempt(job)
    assert ran.is_set()
    assert not elector.may_write()
    acquiring.cancel()


async def test_a_lease_is_taken_once_it_was_not_renewed_for_its_duration() -> None:
    client, time = FakeApiClient(get=[lease_of("other")], put=[lease_of("me")]), FakeTime()
    elector = elector_of(client, time)
    assert not await elector.try_acquire_or_renew()
    time.now += 14.9
    assert not await elector.try_acquire_or_renew()
    time.now += 0.2
    assert await elector.try_acquire_or_renew()
    put = client.sent("PUT")[0].body
    assert put["metadata"]["resourceVersion"] == "1"
    assert put["spec"]["leaseTransitions"] == 1


@pytest.mark.parametrize("jitter", [0.0, 0.5, 1.0])
async def test_a_candidate_takes_the_lease_at_the_moment_it_expires(jitter: float) -> None:
    client, time = FakeApiClient(get=[lease_of("other")], put=[lease_of("me")]), FakeTime()
    clock = replace(time.clock, jitter=lambda: jitter)
    elector = LeaderElector(client, LeaderElectionOptions(identity="me"), clock)
    started_at = time.now
    await elector.acquire()
    assert time.now - started_at == pytest.approx(15.0)


@pytest.mark.parametrize(("jitter", "pause_s"), [(0.0, 1.0), (1.0, 1.5)])
async def test_a_candidate_reads_the_lease_more_often_than_once_per_retry_period(
    jitter: float, pause_s: float
) -> None:
    client, time = FakeApiClient(get=[lease_of("other")], put=[lease_of("me")]), FakeTime()
    clock = replace(time.clock, jitter=lambda: jitter)
    elector = LeaderElector(client, LeaderElectionOptions(identity="me"), clock)
    await elector.acquire()
    assert set(time.slept[:-1]) == {pause_s}


async def test_a_holder_that_renews_keeps_the_lease() -> None:
    renewals = [lease_of("other", renewed=str(number)) for number in range(4)]
    client, time = FakeApiClient(get=list(renewals)), FakeTime()
    elector = elector_of(client, time)
    for _ in renewals:
        assert not await elector.try_acquire_or_renew()
        time.now += 10


async def test_a_released_lease_is_taken_at_once() -> None:
    client, time = FakeApiClient(get=[lease_of("")], put=[lease_of("me")]), FakeTime()
    assert await elector_of(client, time).try_acquire_or_renew()


async def test_a_candidate_whose_update_conflicts_does_not_become_leader() -> None:
    client = FakeApiClient(get=[lease_of("")], put=[ApiError(409, "Conflict")])
    elector = elector_of(client, FakeTime())
    assert not await elector.try_acquire_or_renew()
    assert not elector.may_write()


async def test_a_leader_that_cannot_renew_stops_writing_at_the_renew_deadline() -> None:
    client = FakeApiClient(get=[lease_of("me"), ApiError(503)], put=[lease_of("me")])
    time = FakeTime()
    elector = elector_of(client, time)
    await elector.acquire()
    time.now += 9.9
    assert elector.may_write()
    time.now += 0.2
    assert not elector.may_write()


async def test_renewing_ends_when_the_lease_is_lost() -> None:
    client = FakeApiClient(
        get=[lease_of("me"), lease_of("me"), ApiError(503)], put=[lease_of("me")]
    )
    time = FakeTime()
    elector = elector_of(client, time)
    await elector.acquire()
    await elector.renew()
    # The second and last renewal was at 1002 s.
    assert time.now == pytest.approx(1012.0)
    assert not elector.may_write()


async def test_a_leader_loses_the_lease_at_once_when_another_replica_holds_it() -> None:
    client = FakeApiClient(get=[lease_of("me"), lease_of("other")], put=[lease_of("me")])
    elector = elector_of(client, FakeTime())
    await elector.acquire()
    assert not await elector.try_acquire_or_renew()
    assert not elector.may_write()


async def test_a_released_lease_has_no_holder() -> None:
    client, time = FakeApiClient(get=[lease_of("me")], put=[lease_of("me")]), FakeTime()
    elector = elector_of(client, time)
    await elector.acquire()
    await elector.release()
    assert client.sent("PUT")[-1].body["spec"]["holderIdentity"] == ""
    assert not elector.may_write()


async def test_a_lease_is_left_to_expire_while_writes_may_be_on_their_way() -> None:
    client, time = FakeApiClient(get=[lease_of("me")], put=[lease_of("me")]), FakeTime()
    elector = elector_of(client, time)
    await elector.acquire()
    with capture_logs() as lines:
        await elector.release(num_unknown_outcomes=2)
    assert client.sent("PUT")[-1].body["spec"]["holderIdentity"] == "me"
    assert not elector.may_write()
    reason = {"event": "lease not released", "error": "2 writes may still be on their way"}
    assert lines == [reason | {"log_level": "warning"}]


async def test_a_leader_suspended_past_the_deadline_does_not_renew() -> None:
    client, time = FakeApiClient(get=[lease_of("me")], put=[lease_of("me")]), FakeTime()
    elector = elector_of(client, time)
    await elector.acquire()
    num_requests = len(client.requests)

    def oversleep() -> None:
        time.now += 60.0

    time.on_sleep = oversleep
    await elector.renew()
    assert len(client.requests) == num_requests
    assert not elector.may_write()


async def test_a_lease_that_expires_during_its_renewal_stays_lost() -> None:
    client, time = FakeApiClient(get=[lease_of("me")], put=[lease_of("me")]), FakeTime()
    elector = elector_of(client, time)
    await elector.acquire()
    time.now += 9.0
    renewing = asyncio.create_task(elector.try_acquire_or_renew())
    await asyncio.sleep(0)
    time.now += 2.0
    assert not await renewing
    assert not elector.may_write()


async def test_a_released_lease_is_not_renewed_again() -> None:
    client, time = FakeApiClient(get=[lease_of("me")], put=[lease_of("me")]), FakeTime()
    elector = elector_of(client, time)
    await elector.acquire()
    renewing = asyncio.create_task(elector.try_acquire_or_renew())
    await asyncio.sleep(0)
    await elector.release()
    await renewing
    assert client.sent("PUT")[-1].body["spec"]["holderIdentity"] == ""
    assert not await elector.try_acquire_or_renew()
    assert client.sent("PUT")[-1].body["spec"]["holderIdentity"] == ""


async def test_the_published_lease_duration_is_rounded_up() -> None:
    client, time = FakeApiClient(get=[NOT_FOUND], post=[lease_of("me")]), FakeTime()
    clock = replace(time.clock, jitter=lambda: 0.0)
    options = LeaderElectionOptions(
        identity="me", lease_duration_s=1.5, renew_deadline_s=1.2, retry_period_s=0.2
    )
    await LeaderElector(client, options, clock).acquire()
    assert client.sent("POST")[0].body["spec"]["leaseDurationSeconds"] == 2


async def test_an_expired_lease_is_distinguished_from_one_never_held() -> None:
    client, time = FakeApiClient(get=[lease_of("me")], put=[lease_of("me")]), FakeTime()
    elector = elector_of(client, time)
    assert not elector.has_run_out
    await elector.acquire()
    assert not elector.has_run_out
    time.now += 60.0
    assert elector.has_run_out


async def test_a_leader_that_has_not_renewed_for_long_is_unhealthy() -> None:
    client, time = FakeApiClient(get=[lease_of("me")], put=[lease_of("me")]), FakeTime()
    elector = elector_of(client, time)
    assert elector.is_healthy
    await elector.acquire()
    time.now += 34.9
    assert elector.is_healthy
    time.now += 0.2
    assert not elector.is_healthy


def test_inconsistent_durations_are_refused() -> None:
    with pytest.raises(ValueError, match="leaseDuration > renewDeadline > retryPeriod"):
        LeaderElectionOptions(identity="me", lease_duration_s=10.0, renew_deadline_s=10.0)


async def test_a_deleted_lease_is_created_only_after_the_old_one_would_have_expired() -> None:
    client = FakeApiClient(get=[lease_of("other"), NOT_FOUND], post=[lease_of("me")])
    time = FakeTime()
    elector = elector_of(client, time)
    started_at = time.now
    await elector.acquire()
    assert time.now - started_at == pytest.approx(15.0)


@pytest.mark.parametrize("duration", [15, None, 1], ids=["emptied by hand", "bare", "released"])
async def test_a_lease_without_a_holder_is_taken_at_once_only_if_it_was_released(
    duration: int | None,
) -> None:
    empty = lease_of("")
    empty["spec"]["leaseDurationSeconds"] = duration
    client = FakeApiClient(get=[lease_of("other"), empty], put=[lease_of("me")])
    elector = elector_of(client, FakeTime())
    assert not await elector.try_acquire_or_renew()
    assert await elector.try_acquire_or_renew() == (duration == 1)


async def test_a_lease_whose_duration_was_edited_is_not_taken_sooner() -> None:
    short = lease_of("other")
    short["spec"]["leaseDurationSeconds"] = 1
    client, time = FakeApiClient(get=[short], put=[lease_of("me")]), FakeTime()
    elector = elector_of(client, time)
    started_at = time.now
    await elector.acquire()
    assert time.now - started_at == pytest.approx(15.0)


ODD_LEASES = {
    "nothing": b"null",
    "a list": b"[1]",
    "no metadata": b'{"spec":{}}',
    "null metadata": b'{"metadata":null,"spec":{}}',
    "another object": b'{"metadata":{"name":"x"},"spec":{}}',
    "other types": b'{"metadata":{"name":"stowage"},"spec":{"holderIdentity":5}}',
    "a page": b"<html>",
}


@pytest.mark.parametrize("answer", ODD_LEASES.values(), ids=ODD_LEASES.keys())
async def test_an_answer_that_is_no_lease_is_ignored(answer: bytes) -> None:
    client = FakeApiClient(get=[lease_of("me"), answer], put=[lease_of("me")])
    elector = elector_of(client, FakeTime())
    assert await elector.try_acquire_or_renew()
    assert not await elector.try_acquire_or_renew()
    assert elector.may_write()


async def test_a_lease_without_a_spec_is_taken() -> None:
    bare = {"metadata": {"name": "stowage"}, "spec": None}
    client = FakeApiClient(get=[bare], put=[lease_of("me")])
    assert await elector_of(client, FakeTime()).try_acquire_or_renew()


@pytest.mark.parametrize("error", [TimeoutError(), ApiError(503), OSError()], ids=repr)
async def test_the_return_of_the_api_server_is_reported_once(error: Exception) -> None:
    client, time = (
        FakeApiClient(get=[error, error, lease_of("me")], put=[lease_of("me")]),
        FakeTime(),
    )
    reported: list[float | None] = []
    clock = replace(time.clock, jitter=lambda: 0.0)
    elector = LeaderElector(
        client, LeaderElectionOptions(identity="me"), clock, ElectionObservers(reported.append)
    )
    began_at = time.now
    for _ in range(4):
        await elector.try_acquire_or_renew()
        time.now += 2.0
    assert reported == [began_at if isinstance(error, TimeoutError) else None]


async def test_a_conflict_is_not_reported_as_an_outage_of_the_api_server() -> None:
    client = FakeApiClient(get=[lease_of("")], put=[ApiError(409, "Conflict"), lease_of("me")])
    reported: list[float | None] = []
    time = FakeTime()
    clock = replace(time.clock, jitter=lambda: 0.0)
    elector = LeaderElector(
        client, LeaderElectionOptions(identity="me"), clock, ElectionObservers(reported.append)
    )
    await elector.try_acquire_or_renew()
    await elector.try_acquire_or_renew()
    assert reported == []


async def test_a_renewal_that_times_out_leaves_time_for_another() -> None:
    answers = [lease_of("me"), TimeoutError(), lease_of("me"), ApiError(503)]
    client, time = FakeApiClient(get=answers, put=[lease_of("me")]), FakeTime()
    elector = elector_of(client, time)
    await elector.acquire()

    def seven_seconds_pass() -> None:
        if len(client.sent("GET")) == 1:
            time.now += 7.0

    time.on_sleep = seven_seconds_pass
    await elector.renew()
    assert len(client.sent("PUT")) == 2
