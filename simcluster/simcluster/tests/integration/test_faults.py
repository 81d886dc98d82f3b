"""Fault rules of the simulated cluster."""

import asyncio
import json
from contextlib import suppress

import aiohttp
import pytest

from simcluster import FaultRule, Faults, SimulatedCluster
from simcluster.tests.support.api_client import CONFIG_MAPS, PODS, ApiClient, config_map, pod
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S, wait_until


async def test_a_rule_applies_to_a_number_of_matching_requests(
    simulated_cluster: SimulatedCluster, api: ApiClient
) -> None:
    simulated_cluster.faults.add(FaultRule("POST", "/pods", times=2, status=429, retry_after_s=3))
    assert (await api.get(PODS)).status == 200
    failed = [await api.post(PODS, pod()) for _ in range(2)]
    assert [reply.status for reply in failed] == [429, 429]
    assert failed[0].headers["Retry-After"] == "3"
    assert (await api.post(PODS, pod())).status == 201
    assert simulated_cluster.faults.hits == 2


async def test_a_rule_can_skip_requests(
    simulated_cluster: SimulatedCluster, api: ApiClient
) -> None:
    simulated_cluster.faults.add(FaultRule("GET", skip=1, status=500))
    assert [(await api.get(PODS)).status for _ in range(3)] == [200, 500, 200]


async def test_an_applied_and_dropped_request_is_written(
    simulated_cluster: SimulatedCluster, api: ApiClient
) -> None:
    simulated_cluster.faults.add(FaultRule("POST", "/configmaps", is_applied=True, is_dropped=True))
    with pytest.raises(aiohttp.ClientError):
        await api.post(CONFIG_MAPS, config_map())
    assert (await api.get(f"{CONFIG_MAPS}/a")).status == 200


async def test_a_hanging_request_keeps_the_client_waiting(
    simulated_cluster: SimulatedCluster, api: ApiClient
) -> None:
    simulated_cluster.faults.add(
        FaultRule("POST", "/configmaps", is_applied=True, hang_s=WAIT_TIMEOUT_S)
    )
    waiting = asyncio.create_task(api.post(CONFIG_MAPS, config_map()))
    async with asyncio.timeout(WAIT_TIMEOUT_S):
        while (await api.get(f"{CONFIG_MAPS}/a")).status != 200:  # noqa: ASYNC110 - polled
            await asyncio.sleep(0.01)
    assert not waiting.done()
    waiting.cancel()
    await asyncio.wait([waiting])


async def test_a_dropped_request_is_not_written(
    simulated_cluster: SimulatedCluster, api: ApiClient
) -> None:
    simulated_cluster.faults.add(FaultRule("POST", is_dropped=True))
    with pytest.raises(aiohttp.ClientError):
        await api.post(CONFIG_MAPS, config_map())
    assert (await api.get(f"{CONFIG_MAPS}/a")).status == 404


async def test_all_watches_can_be_closed(
    simulated_cluster: SimulatedCluster, api: ApiClient
) -> None:
    async with api.watch(PODS, f"resourceVersion={await api.revision()}") as watch:
        assert simulated_cluster.server.watchers.close_all() == 1
        with pytest.raises(EOFError):
            await watch.next()


async def test_the_server_can_be_unreachable_and_returns_on_its_port(
    simulated_cluster: SimulatedCluster, api: ApiClient
) -> None:
    url = simulated_cluster.url
    await api.create(PODS, pod())
    async with asyncio.timeout(WAIT_TIMEOUT_S):
        # A client that is delayed until the server is back sees no failure.
        while not await _fails_while_away(simulated_cluster, api):
            pass
    assert simulated_cluster.url == url
    assert len((await api.get(PODS)).body["items"]) == 1


async def _fails_while_away(simulated_cluster: SimulatedCluster, api: ApiClient) -> bool:
    """Make the server unreachable once; returns whether a request failed meanwhile."""
    absence = asyncio.create_task(simulated_cluster.server.be_away(0.2))
    has_failed = False
    while not absence.done():
        try:
            await api.get(PODS)
        except aiohttp.ClientError:
            has_failed = True
            await asyncio.sleep(0.01)
    await absence
    return has_failed


async def test_faults_can_be_set_over_http(
    simulated_cluster: SimulatedCluster, api: ApiClient
) -> None:
    rule = {"method": "GET", "path": "/pods", "status": 503}
    assert len((await api.post("/stowage/faults", rule)).body["rules"]) == 1
    assert (await api.get(PODS)).status == 503
    assert (await api.get("/stowage/faults")).body == {
        "rules": [],
        "hits": 1,
        "hits_by_name": {"": 1},
    }
    assert (await api.post("/stowage/faults", {"nonsense": 1})).status == 400
    async with api.watch(PODS) as watch:
        assert (await api.post("/stowage/faults/drop-watches", {})).body == {"closed": 1}
        assert await watch.rest() == []
    await api.post("/stowage/faults", rule)
    await api.delete("/stowage/faults")
    assert (await api.get(PODS)).status == 200


async def test_a_backup_is_made_and_restored_over_http(
    simulated_cluster: SimulatedCluster, api: ApiClient
) -> None:
    assert (await api.post("/stowage/faults/restore", {})).status == 400
    await api.create(CONFIG_MAPS, config_map("a"))
    revision = (await api.post("/stowage/faults/back-up", {})).body["revision"]
    await api.create(CONFIG_MAPS, config_map("b"))
    refused = await api.post("/stowage/faults/restore", {"bump": "x"})
    assert (refused.status, "$.bump" in refused.body["message"]) == (400, True)
    answer = await api.post("/stowage/faults/restore", {"bump": 7})
    assert answer.body == {"revision": revision + 7}

    async def has_only_a() -> bool:
        with suppress(aiohttp.ClientError):  # while the server is away
            found = (await api.get(CONFIG_MAPS)).body["items"]
            return [each["metadata"]["name"] for each in found] == ["a"]
        return False

    await wait_until(has_only_a)
    assert simulated_cluster.store.revision == revision + 7


async def test_an_answer_can_be_cut_off_in_the_middle(
    simulated_cluster: SimulatedCluster, api: ApiClient
) -> None:
    await api.create(PODS, pod())
    simulated_cluster.faults.add(FaultRule("GET", "/pods", is_cut=True))
    with pytest.raises(aiohttp.ClientPayloadError):
        await api.get(PODS)
    assert len((await api.get(PODS)).body["items"]) == 1


async def test_a_watch_can_be_cut_within_an_event(
    simulated_cluster: SimulatedCluster, api: ApiClient
) -> None:
    query = f"resourceVersion={await api.revision(CONFIG_MAPS)}"
    simulated_cluster.faults.add(FaultRule("GET", "watch|resourceVersion", times=10, is_cut=True))
    async with api.watch(CONFIG_MAPS, query) as watch:
        for number in range(50):
            await api.create(CONFIG_MAPS, config_map(f"m{number}"))
        with pytest.raises((aiohttp.ClientError, json.JSONDecodeError)):
            await watch.take(50)


async def test_a_watch_can_repeat_events_until_the_fault_ends(
    simulated_cluster: SimulatedCluster, api: ApiClient
) -> None:
    query = f"resourceVersion={await api.revision(CONFIG_MAPS)}"
    simulated_cluster.faults.add(
        FaultRule("GET", "watch|resourceVersion", times=10, repeat_rate=1.0)
    )
    async with api.watch(CONFIG_MAPS, query) as watch:
        await api.create(CONFIG_MAPS, config_map("a"))
        names = [event["object"]["metadata"]["name"] for event in await watch.take(2)]
        assert names == ["a", "a"]
        simulated_cluster.faults.clear()
        await api.create(CONFIG_MAPS, config_map("b"))
        await api.create(CONFIG_MAPS, config_map("c"))
        names = [event["object"]["metadata"]["name"] for event in await watch.take(2)]
        assert names == ["b", "c"]


async def test_a_list_can_show_an_old_revision(
    simulated_cluster: SimulatedCluster, api: ApiClient
) -> None:
    await api.create(PODS, pod("a"))
    revision = await api.revision()
    await api.create(PODS, pod("b"))
    simulated_cluster.faults.add(FaultRule("GET", "/pods", revisions_behind=1))
    old = (await api.get(PODS)).body
    assert [item["metadata"]["name"] for item in old["items"]] == ["a"]
    assert old["metadata"]["resourceVersion"] == revision
    assert len((await api.get(PODS)).body["items"]) == 2


def test_a_rule_with_a_rate_applies_to_some_requests_and_counts_them_by_name() -> None:
    draws = iter([0.1, 0.9, 0.4, 0.5])
    faults = Faults(chance=lambda: next(draws))
    faults.add(FaultRule("GET", status=500, times=10, rate=0.5, name="some"))
    hit = [faults.take("GET", "/pods") is not None for _ in range(4)]
    assert hit == [True, False, True, False]
    assert (faults.hits, faults.hits_by_name) == (2, {"some": 2})


def test_a_rule_can_apply_for_a_duration() -> None:
    now = [100.0]
    faults = Faults(clock=lambda: now[0])
    faults.add(FaultRule("GET", status=500, times=10, lasts_s=2.0))
    faults.add(FaultRule("POST", status=500, times=10))
    assert faults.take("GET", "/pods") is not None
    now[0] = 102.0
    assert faults.take("GET", "/pods") is None
    assert faults.take("POST", "/pods") is not None


async def test_only_a_watcher_that_falls_behind_is_closed(
    simulated_cluster: SimulatedCluster, api: ApiClient
) -> None:
    from simcluster.apiserver.formats import plain_format
    from simcluster.kinds.resources import CONFIG_MAPS as RESOURCE
    from simcluster.store.selection import Selection
    from simcluster.store.watch import Watcher

    slow = Watcher(Selection(RESOURCE), plain_format(RESOURCE), max_pending=2)
    simulated_cluster.server.watchers.open(RESOURCE.stored_in, slow)
    query = f"resourceVersion={await api.revision(CONFIG_MAPS)}"
    async with api.watch(CONFIG_MAPS, query) as quick:
        for name in "abcd":
            await api.create(CONFIG_MAPS, config_map(name))
        events = await quick.take(4)
    assert slow.is_closed
    assert [event["object"]["metadata"]["name"] for event in events] == list("abcd")
