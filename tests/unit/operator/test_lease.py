"""The Lease: what a replica writes into it, and how long it waits for answers."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp

from stowage.operator.client.api_error import ApiError
from stowage.operator.leader_election import LeaderElector
from stowage.operator.lease import LeaderElectionOptions, LeaseClient, held_spec
from tests.support.fake_api import SILENCE, FakeApiClient, FakeTime

OPTIONS = LeaderElectionOptions(identity="me", lease_duration_s=15.0)
HELD = {
    "holderIdentity": "me",
    "leaseDurationSeconds": 15,
    "acquireTime": "then",
    "renewTime": "then",
    "leaseTransitions": 3,
}


def test_a_new_lease_begins_without_a_transition() -> None:
    assert held_spec({}, OPTIONS, "now") == HELD | {
        "acquireTime": "now",
        "renewTime": "now",
        "leaseTransitions": 0,
    }


def test_a_renewal_changes_nothing_but_the_time_of_the_renewal() -> None:
    assert held_spec({**HELD, "strategy": "x"}, OPTIONS, "now") == {
        **HELD,
        "renewTime": "now",
        "strategy": "x",
    }


def test_a_lease_of_another_replica_is_acquired_now_and_counts_a_transition() -> None:
    spec = held_spec({**HELD, "holderIdentity": "other"}, OPTIONS, "now")
    assert (spec["acquireTime"], spec["leaseTransitions"]) == ("now", 4)


def test_a_renewal_adds_the_time_of_acquisition_and_the_transitions_if_they_were_lost() -> None:
    spec = held_spec({"holderIdentity": "me"}, OPTIONS, "now")
    assert (spec["acquireTime"], spec["leaseTransitions"]) == ("now", 0)


class _Client(FakeApiClient):
    """Notes how long each request to the Lease may take."""

    def __init__(self, **scripts: list[Any]) -> None:
        super().__init__(**scripts)
        self.limits: list[tuple[str, float]] = []

    def _note(self, method: str, timeout: aiohttp.ClientTimeout) -> None:
        self.limits.append((method, timeout.total or 0.0))

    async def get(self, path: str, params: Any = None, timeout: Any = None) -> bytes:  # noqa: ASYNC109
        self._note("GET", timeout)
        return await super().get(path, params)

    async def post(self, path: str, body: bytes, timeout: Any = None) -> bytes:  # noqa: ASYNC109
        self._note("POST", timeout)
        return await super().post(path, body)

    async def put(self, path: str, body: bytes, timeout: Any = None) -> bytes:  # noqa: ASYNC109
        self._note("PUT", timeout)
        return await super().put(path, body)


LEASE = {"metadata": {"name": "stowage"}, "spec": HELD}


async def test_a_request_that_is_lost_leaves_time_for_another_before_the_lease_expires() -> None:
    client = _Client(get=[LEASE], post=[LEASE], put=[LEASE])
    leases = LeaseClient(client, OPTIONS)
    await leases.get()
    await leases.create(HELD)
    await leases.update(LEASE, HELD)
    half = OPTIONS.renew_deadline_s / 2
    assert client.limits == [("GET", half), ("POST", half), ("PUT", half)]


async def test_the_release_of_a_lease_is_not_waited_for_longer_than_a_retry() -> None:
    client = _Client(put=[LEASE])
    await LeaseClient(client, OPTIONS).release(LEASE, "now")
    assert client.limits == [("PUT", OPTIONS.retry_period_s)]


async def test_a_renewal_without_an_answer_ends_with_the_lease() -> None:
    client, time = FakeApiClient(get=[LEASE], put=[LEASE]), FakeTime()
    elector = LeaderElector(client, OPTIONS, time.clock)
    await elector.acquire()
    client.script("GET", SILENCE)
    time.now += OPTIONS.renew_deadline_s - 1e-6
    async with asyncio.timeout(10.0):
        assert not await elector.try_acquire_or_renew()


async def test_a_missing_lease_is_created_at_once_on_a_host_that_has_just_started() -> None:
    client = FakeApiClient(get=[ApiError(404, "NotFound")], post=[LEASE])
    elector = LeaderElector(client, OPTIONS, FakeTime(now=0.0).clock)
    assert await elector.try_acquire_or_renew()


async def test_a_released_lease_has_no_holder_and_the_time_of_its_release() -> None:
    client = FakeApiClient(put=[LEASE])
    await LeaseClient(client, OPTIONS).release(LEASE, "now")
    spec = client.requests[0].body["spec"]
    assert (spec["holderIdentity"], spec["renewTime"]) == ("", "now")
    assert spec["leaseDurationSeconds"] == 1
