"""What clients see of the compaction after five and ten minutes, on a clock that the test moves."""

from collections.abc import AsyncIterator

import pytest

from simcluster import ClusterOptions, SimulatedCluster
from simcluster.store.compaction import COMPACTION_INTERVAL_S
from simcluster.tests.support.api_client import PODS, ApiClient, pod
from simcluster.tests.support.manual_cluster import ManualTime

OPTIONS = ClusterOptions(with_kubelet=False, with_controllers=False)


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> ManualTime:
    """The clock of the compaction alone."""
    made = ManualTime()
    monkeypatch.setattr("simcluster.cluster.LoopTimers", lambda: made)
    return made


@pytest.fixture
async def client(time: ManualTime) -> AsyncIterator[ApiClient]:
    async with SimulatedCluster(options=OPTIONS) as cluster, ApiClient(cluster.url, "") as made:
        yield made


def pass_intervals(time: ManualTime, count: float) -> None:
    time.run_until(time.now + count * COMPACTION_INTERVAL_S)


async def watched(client: ApiClient, revision: str) -> list[str]:
    """The types of the events of a watch from a revision."""
    async with client.watch(PODS, f"resourceVersion={revision}&timeoutSeconds=1") as watch:
        assert watch.status == 200
        return [event["type"] for event in await watch.rest()]


async def test_a_watch_starts_from_the_past_until_its_revision_is_compacted(
    client: ApiClient, time: ManualTime
) -> None:
    pass_intervals(time, 1)
    before = await client.revision()
    await client.create(PODS, pod("a"))
    pass_intervals(time, 0.99)
    await client.create(PODS, pod("b"))
    assert await watched(client, before) == ["ADDED", "ADDED"]
    pass_intervals(time, 1.01)
    assert await watched(client, before) == ["ERROR"]
    assert await watched(client, await client.revision()) == []


async def test_pages_and_exact_lists_expire_with_their_revision(
    client: ApiClient, time: ManualTime
) -> None:
    for name in "abc":
        await client.create(PODS, pod(name))
    first = (await client.get(f"{PODS}?limit=1")).body["metadata"]
    await client.create(PODS, pod("d"))
    exact = f"resourceVersion={first['resourceVersion']}&resourceVersionMatch=Exact"
    page = f"limit=1&continue={first['continue']}"
    for query in (exact, page):
        assert (await client.get(f"{PODS}?{query}")).status == 200
    pass_intervals(time, 2)
    for query in (exact, page):
        reply = await client.get(f"{PODS}?{query}")
        assert (reply.status, reply.body["reason"]) == (410, "Expired")


async def test_a_watch_that_is_open_lives_through_compactions(
    client: ApiClient, time: ManualTime
) -> None:
    async with client.watch(PODS, f"resourceVersion={await client.revision()}") as watch:
        await client.create(PODS, pod("a"))
        pass_intervals(time, 3)
        await client.create(PODS, pod("b"))
        names = [(await watch.next())["object"]["metadata"]["name"] for _ in range(2)]
    assert names == ["a", "b"]
