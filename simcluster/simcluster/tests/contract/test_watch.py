"""Watches: their events, first revision and end."""

import asyncio
from typing import Any

import pytest

from simcluster import SimulatedCluster
from simcluster.tests.support.api_client import (
    CONFIG_MAPS,
    PODS,
    ApiClient,
    Watch,
    config_map,
    node,
    pod,
)

Json = dict[str, Any]

ALL_PODS = "/api/v1/pods"


def shown(event: Json) -> tuple[str, str]:
    """Type and name."""
    return event["type"], event["object"]["metadata"]["name"]


def revision_of(obj: Json) -> int:
    return int(obj["metadata"]["resourceVersion"])


async def test_a_watch_replays_the_changes_after_its_revision(api: ApiClient) -> None:
    first = await api.create(PODS, pod("a"))
    await api.create(PODS, pod("b"))
    await api.patch(f"{PODS}/a", {"metadata": {"labels": {"x": "y"}}})
    await api.bind("b", "n")
    async with api.watch(PODS, f"resourceVersion={revision_of(first)}") as watch:
        events = await watch.take(3)
        await api.create(PODS, pod("c"))
        events.append(await watch.next())
    assert [shown(event) for event in events] == [
        ("ADDED", "b"),
        ("MODIFIED", "a"),
        ("MODIFIED", "b"),
        ("ADDED", "c"),
    ]
    revisions = [revision_of(event["object"]) for event in events]
    assert revisions == sorted(set(revisions))


async def test_revisions_order_the_events_of_different_kinds(api: ApiClient) -> None:
    start = await api.revision()
    async with (
        api.watch(PODS, f"resourceVersion={start}") as pods,
        api.watch(CONFIG_MAPS, f"resourceVersion={start}") as config_maps,
    ):
        for name in "ab":
            await api.create(PODS, pod(name))
            await api.create(CONFIG_MAPS, config_map(name))
        seen = [*await pods.take(2), *await config_maps.take(2)]
    in_order = sorted(seen, key=lambda event: revision_of(event["object"]))
    kinds = [event["object"]["kind"] for event in in_order]
    assert kinds == ["Pod", "ConfigMap", "Pod", "ConfigMap"]


async def test_leaving_and_entering_a_label_selector_are_deleted_and_added_events(
    api: ApiClient,
) -> None:
    created = await api.create(PODS, pod())
    query = f"resourceVersion={revision_of(created)}&labelSelector=app=a"
    async with api.watch(PODS, query) as watch:
        left = (await api.patch(f"{PODS}/a", {"metadata": {"labels": {"app": "b"}}})).body
        await api.patch(f"{PODS}/a", {"metadata": {"labels": {"other": "x"}}})
        back = (await api.patch(f"{PODS}/a", {"metadata": {"labels": {"app": "a"}}})).body
        gone, added = await watch.take(2)
    assert (gone["type"], gone["object"]["metadata"]["labels"]) == ("DELETED", {"app": "a"})
    assert revision_of(gone["object"]) == revision_of(left)
    assert (added["type"], revision_of(added["object"])) == ("ADDED", revision_of(back))


async def test_an_object_deleted_outside_a_selector_is_not_shown(api: ApiClient) -> None:
    for name in "ab":
        await api.create(PODS, pod(name))
    query = f"resourceVersion={await api.revision()}&labelSelector=app=b"
    async with api.watch(PODS, query) as watch:
        for name in "ab":
            await api.delete(f"{PODS}/{name}?gracePeriodSeconds=0")
        last = await watch.next()
        while last["type"] != "DELETED":
            last = await watch.next()
    assert shown(last) == ("DELETED", "b")


async def test_a_watch_from_the_past_shows_objects_that_left_a_field_selector(
    api: ApiClient,
) -> None:
    created = await api.create(PODS, pod())
    await api.bind("a", "n")
    await api.patch(f"{PODS}/a/status", {"status": {"phase": "Running"}})
    await api.patch(f"{PODS}/a/status", {"status": {"phase": "Succeeded"}})
    query = (
        f"resourceVersion={revision_of(created)}"
        "&fieldSelector=spec.nodeName!=,status.phase!=Succeeded"
    )
    async with api.watch(PODS, query) as watch:
        events = await watch.take(3)
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    assert events[2]["object"]["status"]["phase"] == "Running"


async def test_a_single_object_can_be_watched_by_name(api: ApiClient) -> None:
    query = f"resourceVersion={await api.revision()}&fieldSelector=metadata.name=b"
    async with api.watch(PODS, query) as watch:
        for name in "abc":
            await api.create(PODS, pod(name))
        await api.bind("b", "n")
        events = await watch.take(2)
    assert [shown(event) for event in events] == [("ADDED", "b"), ("MODIFIED", "b")]


async def test_a_watch_of_a_namespace_shows_only_its_objects(api: ApiClient) -> None:
    start = await api.revision()
    elsewhere = "/api/v1/namespaces/kube-public/configmaps"
    async with (
        api.watch(CONFIG_MAPS, f"resourceVersion={start}") as one,
        api.watch("/api/v1/configmaps", f"resourceVersion={start}") as every,
    ):
        created = await api.post(elsewhere, config_map("there"))
        await api.create(CONFIG_MAPS, config_map("here"))
        assert created.status == 201
        assert shown(await one.next()) == ("ADDED", "here")
        assert [shown(event)[1] for event in await every.take(2)] == ["there", "here"]
    await api.delete(f"{elsewhere}/there")


@pytest.mark.parametrize("path", ["/api/v1/watch/pods", "/api/v1/watch/namespaces/default/pods"])
async def test_the_deprecated_watch_paths_work(api: ApiClient, path: str) -> None:
    await api.create(PODS, pod())
    async with api.watch(path, f"resourceVersion={await api.revision()}") as watch:
        await api.create(PODS, pod("b"))
        assert shown(await watch.next()) == ("ADDED", "b")


async def test_the_deprecated_watch_path_of_one_object_works(api: ApiClient) -> None:
    path = "/api/v1/watch/namespaces/default/pods/b"
    async with api.watch(path, f"resourceVersion={await api.revision()}") as watch:
        for name in "ab":
            await api.create(PODS, pod(name))
        assert shown(await watch.next()) == ("ADDED", "b")
    other = await api.get(f"{path}?fieldSelector=metadata.name=c")
    assert (other.status, other.body["message"]) == (
        400,
        "fieldSelector metadata.name doesn't match requested name",
    )


async def test_a_watch_ignores_the_limit(api: ApiClient) -> None:
    start = await api.revision()
    for name in "abc":
        await api.create(PODS, pod(name))
    async with api.watch(PODS, f"resourceVersion={start}&limit=1") as watch:
        assert [shown(event)[1] for event in await watch.take(3)] == ["a", "b", "c"]


async def test_a_watch_ends_after_its_timeout(api: ApiClient) -> None:
    async with api.watch(PODS, f"resourceVersion={await api.revision()}&timeoutSeconds=1") as watch:
        assert await watch.rest() == []


async def test_a_watch_from_a_future_revision_begins_there(api: ApiClient) -> None:
    future = int(await api.revision()) + 100_000
    async with api.watch(PODS, f"resourceVersion={future}&timeoutSeconds=1") as watch:
        await api.create(PODS, pod())
        assert [event for event in await watch.rest() if event["type"] != "BOOKMARK"] == []


async def test_a_watch_from_before_the_history_gets_an_error_event(
    simulated_cluster: SimulatedCluster, api: ApiClient
) -> None:
    before = await api.revision()
    await api.create(PODS, pod())
    simulated_cluster.server.forget_history()
    async with api.watch(PODS, f"resourceVersion={before}") as watch:
        assert watch.status == 200
        events = await watch.rest()
    assert [event["type"] for event in events] == ["ERROR"]
    status = events[0]["object"]
    assert (status["kind"], status["reason"], status["code"]) == ("Status", "Expired", 410)
    assert status["message"].startswith(f"too old resource version: {before} (")


async def test_a_watch_from_before_the_start_gets_an_error_event(api: ApiClient) -> None:
    async with api.watch(PODS, "resourceVersion=1") as watch:
        events = await watch.rest()
    assert [(event["type"], event["object"]["code"]) for event in events] == [("ERROR", 410)]


async def test_a_revision_that_is_not_a_number_is_an_internal_error(api: ApiClient) -> None:
    reply = await api.get(f"{PODS}?watch=1&resourceVersion=abc")
    assert reply.status == 500
    why = 'strconv.ParseUint: parsing "abc": invalid syntax'
    assert reply.body["message"] == f'resourceVersion: Invalid value: "abc": {why}'


async def test_every_watcher_gets_all_events_of_a_burst_in_order(api: ApiClient) -> None:
    start = await api.revision()
    expected = [f"burst-{number:03d}" for number in range(300)]

    async def follow(watch: Watch) -> list[str]:
        return [shown(event)[1] for event in await watch.take(len(expected))]

    async with (
        api.watch(CONFIG_MAPS, f"resourceVersion={start}") as first,
        api.watch(CONFIG_MAPS, f"resourceVersion={start}") as second,
    ):
        following = [asyncio.create_task(follow(watch)) for watch in (first, second)]
        await asyncio.gather(*(api.create(CONFIG_MAPS, config_map(name)) for name in expected))
        seen = await asyncio.gather(*following)
    assert seen[0] == seen[1]
    assert sorted(seen[0]) == expected


async def test_deleting_a_collection_shows_every_object_once(api: ApiClient) -> None:
    for number in range(250):
        await api.create(CONFIG_MAPS, config_map(f"swept-{number:03d}"))
    query = f"resourceVersion={await api.revision(CONFIG_MAPS)}"
    async with api.watch(CONFIG_MAPS, query) as watch:
        reply = await api.delete(CONFIG_MAPS)
        events = [event for event in await watch.take(250) if event["type"] == "DELETED"]
    assert reply.status == 200
    assert len({shown(event)[1] for event in events}) == 250


async def test_bookmarks_are_sent_on_request_only(api: ApiClient) -> None:
    query = f"resourceVersion={await api.revision()}&timeoutSeconds=2"
    async with api.watch(PODS, query) as watch:
        assert await watch.rest() == []


async def test_a_bookmark_is_not_older_than_the_events_before_it(api: ApiClient) -> None:
    query = f"resourceVersion={await api.revision()}&timeoutSeconds=3&allowWatchBookmarks=true"
    created = await api.create(PODS, pod())
    async with api.watch(PODS, query) as watch:
        events = await watch.rest()
    assert [event["type"] for event in events[:2]] == ["ADDED", "BOOKMARK"]
    assert revision_of(events[-1]["object"]) >= revision_of(created)


async def test_nodes_can_be_watched_by_unschedulable(api: ApiClient) -> None:
    nodes = "/api/v1/nodes"
    await api.create(nodes, node())
    query = f"resourceVersion={await api.revision(nodes)}&fieldSelector=spec.unschedulable=false"
    async with api.watch(nodes, query) as watch:
        await api.patch(f"{nodes}/n", {"spec": {"unschedulable": True}})
        assert shown(await watch.next()) == ("DELETED", "n")
