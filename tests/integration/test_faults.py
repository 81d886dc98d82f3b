"""The embedded cluster fails when a test asks it to, and only then."""

import asyncio

import aiohttp
import pytest

from scheduler.cluster import EmbeddedCluster, FaultRule
from tests.integration.api_client import CONFIG_MAPS, PODS, ApiClient, config_map, pod


async def test_the_next_matching_requests_fail_and_then_no_more(
    embedded: EmbeddedCluster, api: ApiClient
) -> None:
    embedded.faults.add(FaultRule("POST", "/pods", times=2, status=429, retry_after_s=3))
    assert (await api.get(PODS)).status == 200
    failed = [await api.post(PODS, pod()) for _ in range(2)]
    assert [reply.status for reply in failed] == [429, 429]
    assert failed[0].headers["Retry-After"] == "3"
    assert (await api.post(PODS, pod())).status == 201
    assert embedded.faults.hits == 2


async def test_requests_can_pass_before_a_fault(embedded: EmbeddedCluster, api: ApiClient) -> None:
    embedded.faults.add(FaultRule("GET", skip=1, status=500))
    assert [(await api.get(PODS)).status for _ in range(3)] == [200, 500, 200]


async def test_a_lost_answer_has_been_written(embedded: EmbeddedCluster, api: ApiClient) -> None:
    embedded.faults.add(FaultRule("POST", "/configmaps", is_applied=True, is_dropped=True))
    with pytest.raises(aiohttp.ClientError):
        await api.post(CONFIG_MAPS, config_map())
    assert (await api.get(f"{CONFIG_MAPS}/a")).status == 200


async def test_a_hanging_answer_keeps_the_client_waiting(
    embedded: EmbeddedCluster, api: ApiClient
) -> None:
    embedded.faults.add(FaultRule("POST", "/configmaps", is_applied=True, hang_s=30))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(api.post(CONFIG_MAPS, config_map()), 0.2)
    assert (await api.get(f"{CONFIG_MAPS}/a")).status == 200


async def test_a_dropped_connection_has_written_nothing(
    embedded: EmbeddedCluster, api: ApiClient
) -> None:
    embedded.faults.add(FaultRule("POST", is_dropped=True))
    with pytest.raises(aiohttp.ClientError):
        await api.post(CONFIG_MAPS, config_map())
    assert (await api.get(f"{CONFIG_MAPS}/a")).status == 404


async def test_every_watch_can_be_dropped(embedded: EmbeddedCluster, api: ApiClient) -> None:
    async with api.watch(PODS, f"resourceVersion={await api.revision()}") as watch:
        assert embedded.server.watchers.close_all() == 1
        with pytest.raises(EOFError):
            await watch.next()


async def test_a_forgotten_history_is_410_inside_a_200(
    embedded: EmbeddedCluster, api: ApiClient
) -> None:
    old = await api.revision()
    await api.create(PODS, pod())
    embedded.server.forget_history()
    async with api.watch(PODS, f"resourceVersion={old}") as watch:
        assert watch.status == 200
        events = await watch.rest()
    assert [event["type"] for event in events] == ["ERROR"]
    status = events[0]["object"]
    assert (status["kind"], status["reason"], status["code"]) == ("Status", "Expired", 410)


async def test_a_page_of_a_forgotten_revision_is_410(
    embedded: EmbeddedCluster, api: ApiClient
) -> None:
    for name in "ab":
        await api.create(PODS, pod(name))
    token = (await api.get(f"{PODS}?limit=1")).body["metadata"]["continue"]
    await api.create(PODS, pod("c"))
    embedded.server.forget_history()
    reply = await api.get(f"{PODS}?limit=1&continue={token}")
    assert (reply.status, reply.body["reason"]) == (410, "Expired")


async def test_the_server_can_be_away_and_come_back_on_its_port(
    embedded: EmbeddedCluster, api: ApiClient
) -> None:
    url = embedded.url
    await api.create(PODS, pod())
    absence = asyncio.create_task(embedded.server.be_away(0.2))
    await asyncio.sleep(0.05)
    with pytest.raises(aiohttp.ClientError):
        await api.get(PODS)
    await absence
    assert embedded.url == url
    assert len((await api.get(PODS)).body["items"]) == 1


async def test_faults_can_be_set_over_http(embedded: EmbeddedCluster, api: ApiClient) -> None:
    rule = {"method": "GET", "path": "/pods", "status": 503}
    assert len((await api.post("/stowage/faults", rule)).body["rules"]) == 1
    assert (await api.get(PODS)).status == 503
    assert (await api.get("/stowage/faults")).body == {"rules": [], "hits": 1}
    assert (await api.post("/stowage/faults", {"nonsense": 1})).status == 400
    async with api.watch(PODS) as watch:
        assert (await api.post("/stowage/faults/drop-watches", {})).body == {"closed": 1}
        assert await watch.rest() == []
    await api.post("/stowage/faults", rule)
    await api.delete("/stowage/faults")
    assert (await api.get(PODS)).status == 200


async def test_a_watcher_that_falls_behind_is_closed_and_others_are_not(
    embedded: EmbeddedCluster, api: ApiClient
) -> None:
    from scheduler.cluster.formats import plain_format
    from scheduler.cluster.resources import CONFIG_MAPS as RESOURCE
    from scheduler.cluster.selection import Selection
    from scheduler.cluster.watch import Watcher

    slow = Watcher(Selection(RESOURCE), plain_format(RESOURCE), max_pending=2)
    embedded.server.watchers.open(RESOURCE.stored_in, slow)
    query = f"resourceVersion={await api.revision(CONFIG_MAPS)}"
    async with api.watch(CONFIG_MAPS, query) as quick:
        for name in "abcd":
            await api.create(CONFIG_MAPS, config_map(name))
        events = await quick.take(4)
    assert slow.is_closed
    assert [event["object"]["metadata"]["name"] for event in events] == list("abcd")
