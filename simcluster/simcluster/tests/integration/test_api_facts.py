"""Behaviour of an API server: lists, watches and deletions."""

import asyncio
from typing import Any

from simcluster.tests.support.api_client import (
    CONFIG_MAPS,
    MERGE,
    NODES,
    PODS,
    ApiClient,
    config_map,
    node,
    pod,
)

Json = dict[str, Any]


def revision_of(event: Json) -> int:
    """The resourceVersion of a watch event's object."""
    return int(event["object"]["metadata"]["resourceVersion"])


async def test_deleting_an_unbound_pod_gives_a_modified_and_a_deleted_event(api: ApiClient) -> None:
    created = await api.create(PODS, pod())
    async with api.watch(PODS, f"resourceVersion={await api.revision()}") as watch:
        await api.delete(f"{PODS}/a")
        marked, deleted = await watch.take(2)
    assert [marked["type"], deleted["type"]] == ["MODIFIED", "DELETED"]
    metadata = marked["object"]["metadata"]
    assert metadata["deletionGracePeriodSeconds"] == 0
    assert metadata["deletionTimestamp"]
    assert metadata["generation"] == created["metadata"]["generation"] + 1
    assert revision_of(deleted) > revision_of(marked)


async def test_deleting_config_maps_and_nodes_gives_only_a_deleted_event(api: ApiClient) -> None:
    await api.create(CONFIG_MAPS, config_map())
    await api.create(NODES, node())
    for path, name in ((CONFIG_MAPS, "a"), (NODES, "n")):
        query = f"resourceVersion={await api.revision(path)}&fieldSelector=metadata.name={name}"
        async with api.watch(path, query) as watch:
            await api.delete(f"{path}/{name}")
            assert (await watch.next())["type"] == "DELETED"


async def test_a_deleted_event_has_the_revision_of_the_deletion(api: ApiClient) -> None:
    created = await api.create(CONFIG_MAPS, config_map())
    async with api.watch(CONFIG_MAPS, f"resourceVersion={await api.revision()}") as watch:
        await api.delete(f"{CONFIG_MAPS}/a")
        deleted = await watch.next()
    assert revision_of(deleted) > int(created["metadata"]["resourceVersion"])


async def test_an_object_that_leaves_a_selector_gives_a_deleted_event_with_its_last_matching_state(
    api: ApiClient,
) -> None:
    await api.create(PODS, pod())
    query = f"resourceVersion={await api.revision()}&fieldSelector=spec.nodeName="
    async with api.watch(PODS, query) as watch:
        await api.bind("a", "n")
        gone = await watch.next()
    assert gone["type"] == "DELETED"
    assert "nodeName" not in gone["object"]["spec"]
    bound = (await api.get(f"{PODS}/a")).body
    assert gone["object"]["metadata"]["resourceVersion"] == bound["metadata"]["resourceVersion"]


async def test_an_object_that_enters_a_selector_gives_an_added_event(api: ApiClient) -> None:
    await api.create(PODS, pod())
    query = f"resourceVersion={await api.revision()}&fieldSelector=spec.nodeName!="
    async with api.watch(PODS, query) as watch:
        await api.bind("a", "n")
        entered = await watch.next()
    assert (entered["type"], entered["object"]["spec"]["nodeName"]) == ("ADDED", "n")


async def test_delete_returns_the_pod_a_status_or_the_deleted_list(api: ApiClient) -> None:
    await api.create(PODS, pod())
    created = await api.create(CONFIG_MAPS, config_map())
    await api.create(CONFIG_MAPS, config_map("b"))
    assert (await api.delete(f"{PODS}/a")).body["kind"] == "Pod"
    status = (await api.delete(f"{CONFIG_MAPS}/a")).body
    assert (status["kind"], status["status"]) == ("Status", "Success")
    uid = created["metadata"]["uid"]
    assert status["details"] == {"name": "a", "kind": "configmaps", "uid": uid}
    listed = (await api.delete(f"{CONFIG_MAPS}?fieldSelector=metadata.name=b")).body
    assert listed["kind"] == "ConfigMapList"
    assert [item["metadata"]["name"] for item in listed["items"]] == ["b"]


async def test_a_finished_pod_is_deleted_without_a_grace_period(api: ApiClient) -> None:
    await api.create(PODS, pod())
    await api.bind("a", "n")
    await api.patch(f"{PODS}/a/status", {"status": {"phase": "Succeeded"}})
    await api.delete(f"{PODS}/a")
    assert (await api.get(f"{PODS}/a")).status == 404


async def test_a_second_delete_can_shorten_the_grace_period(api: ApiClient) -> None:
    await api.create(PODS, pod())
    await api.bind("a", "n")
    first = (await api.delete(f"{PODS}/a")).body["metadata"]
    assert first["deletionGracePeriodSeconds"] == 30
    second = (await api.delete(f"{PODS}/a?gracePeriodSeconds=5")).body["metadata"]
    assert second["deletionGracePeriodSeconds"] == 5
    assert second["deletionTimestamp"] < first["deletionTimestamp"]
    longer = (await api.delete(f"{PODS}/a?gracePeriodSeconds=20")).body["metadata"]
    assert longer["deletionGracePeriodSeconds"] == 5
    await api.delete(f"{PODS}/a?gracePeriodSeconds=0")
    assert (await api.get(f"{PODS}/a")).status == 404


async def test_a_write_without_changes_keeps_the_revision_and_gives_no_event(
    api: ApiClient,
) -> None:
    await api.create(PODS, pod())
    created = (await api.get(f"{PODS}/a")).body
    before = created["metadata"]["resourceVersion"]
    query = f"resourceVersion={await api.revision()}"
    async with api.watch(PODS, query) as watch:
        replies = [
            await api.put(f"{PODS}/a", created),
            await api.patch(f"{PODS}/a", {"metadata": {"labels": {"app": "a"}}}),
            await api.patch(f"{PODS}/a/status", {"status": {"phase": "Pending"}}),
        ]
        await api.patch(f"{PODS}/a", {"metadata": {"labels": {"x": "y"}}})
        event = await watch.next()
    assert [reply.body["metadata"]["resourceVersion"] for reply in replies] == [before] * 3
    assert event["object"]["metadata"]["labels"]["x"] == "y"


async def test_a_watch_without_a_revision_starts_with_existing_objects(api: ApiClient) -> None:
    await api.create(CONFIG_MAPS, config_map())
    for query in ("", "resourceVersion=0"):
        async with api.watch(CONFIG_MAPS, f"{query}&fieldSelector=metadata.name=a") as watch:
            event = await watch.next()
        assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "a")


async def test_a_watch_without_a_revision_marks_the_end_of_the_initial_events_with_a_bookmark(
    api: ApiClient,
) -> None:
    await api.create(CONFIG_MAPS, config_map())
    query = "allowWatchBookmarks=true&fieldSelector=metadata.name=a"
    async with api.watch(CONFIG_MAPS, query) as watch:
        added, mark = await watch.take(2)
    assert [added["type"], mark["type"]] == ["ADDED", "BOOKMARK"]
    annotations = mark["object"]["metadata"]["annotations"]
    assert annotations == {"k8s.io/initial-events-end": "true"}


async def test_a_watch_list_sends_existing_objects_and_a_bookmark(api: ApiClient) -> None:
    await api.create(CONFIG_MAPS, config_map())
    query = (
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        "&fieldSelector=metadata.name=a"
    )
    async with api.watch(CONFIG_MAPS, query) as watch:
        events = await watch.take(2)
    assert [event["type"] for event in events] == ["ADDED", "BOOKMARK"]


async def test_sending_initial_events_needs_a_version_match(api: ApiClient) -> None:
    async with api.watch(CONFIG_MAPS, "sendInitialEvents=true") as watch:
        assert watch.status == 422


async def test_a_bookmark_is_sent_before_a_watch_times_out(api: ApiClient) -> None:
    query = f"resourceVersion={await api.revision()}&allowWatchBookmarks=true&timeoutSeconds=2"
    async with api.watch(PODS, query) as watch:
        events = await watch.rest()
    mark = events[-1]
    assert mark["type"] == "BOOKMARK"
    assert (mark["object"]["kind"], mark["object"]["apiVersion"]) == ("Pod", "v1")
    assert int(mark["object"]["metadata"]["resourceVersion"]) > 0
    assert not {"name", "uid"} & set(mark["object"]["metadata"])


async def test_pages_show_one_revision_and_the_number_of_remaining_items(api: ApiClient) -> None:
    for name in "abc":
        await api.create(PODS, pod(name))
    first = (await api.get(f"{PODS}?limit=2")).body
    assert first["metadata"]["remainingItemCount"] == 1
    await api.create(PODS, pod("d"))
    token = first["metadata"]["continue"]
    second = (await api.get(f"{PODS}?limit=2&continue={token}")).body
    assert [item["metadata"]["name"] for item in second["items"]] == ["c"]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_limit_is_ignored_at_revision_zero(api: ApiClient) -> None:
    for name in "ab":
        await api.create(PODS, pod(name))
    assert len((await api.get(f"{PODS}?limit=1&resourceVersion=0")).body["items"]) == 2


async def test_the_remaining_count_is_left_out_with_a_selector(api: ApiClient) -> None:
    for name in "ab":
        await api.create(PODS, pod(name))
    metadata = (await api.get(f"{PODS}?limit=1&labelSelector=app")).body["metadata"]
    assert metadata["continue"]
    assert "remainingItemCount" not in metadata


async def test_listing_a_namespace_that_does_not_exist_is_empty(api: ApiClient) -> None:
    reply = await api.get("/api/v1/namespaces/nowhere/pods")
    assert (reply.status, reply.body["items"]) == (200, [])


async def test_a_list_of_a_future_revision_times_out(api: ApiClient) -> None:
    future = int(await api.revision()) + 100_000
    replies = await asyncio.gather(
        api.get(f"{PODS}?resourceVersion={future}"), api.get(f"{PODS}/a?resourceVersion={future}")
    )
    assert [reply.status for reply in replies] == [504, 504]
    assert replies[0].body["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


async def test_items_of_a_list_have_no_kind(api: ApiClient) -> None:
    await api.create(PODS, pod())
    listed = (await api.get(PODS)).body
    assert (listed["kind"], listed["apiVersion"]) == ("PodList", "v1")
    assert not {"kind", "apiVersion"} & set(listed["items"][0])


async def test_label_and_field_selectors_filter_lists(api: ApiClient) -> None:
    for name in "abc":
        await api.create(PODS, pod(name))
    await api.bind("b", "n")

    async def names(query: str) -> list[str]:
        reply = await api.get(f"{PODS}?{query}")
        return [item["metadata"]["name"] for item in reply.body["items"]]

    assert await names("labelSelector=app in (a,c)") == ["a", "c"]
    assert await names("labelSelector=app notin (a)") == ["b", "c"]
    assert await names("labelSelector=!app") == []
    assert await names("fieldSelector=spec.nodeName=n") == ["b"]
    pending = "spec.schedulerName=nobody,spec.nodeName=,status.phase!=Failed"
    assert await names(f"fieldSelector={pending}") == ["a", "c"]
    assert await names("fieldSelector=metadata.name=a,metadata.namespace=default") == ["a"]


async def test_a_malformed_selector_is_a_bad_request(api: ApiClient) -> None:
    replies = [
        await api.get(f"{PODS}?labelSelector=a in b"),
        await api.get(f"{PODS}?fieldSelector=spec.image=x"),
    ]
    assert [reply.status for reply in replies] == [400, 400]


TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


async def test_a_list_can_be_requested_as_a_table(api: ApiClient) -> None:
    await api.create(PODS, pod())
    listed = (await api.get(PODS, accept=TABLE)).body
    assert [column["name"] for column in listed["columnDefinitions"]] == [
        "Name", "Ready", "Status", "Restarts", "Age", "IP", "Node", "Nominated Node",
        "Readiness Gates",
    ]  # fmt: skip
    assert listed["rows"][0]["cells"][:4] == ["a", "0/1", "Pending", "0"]
    assert listed["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


async def test_only_the_first_table_of_a_watch_has_columns(api: ApiClient) -> None:
    for name in "ab":
        await api.create(PODS, pod(name))
    async with api.watch(PODS, accept=TABLE) as watch:
        first, second = await watch.take(2)
    assert [event["object"]["kind"] for event in (first, second)] == ["Table", "Table"]
    assert first["object"]["columnDefinitions"]
    assert not second["object"]["columnDefinitions"]


async def test_an_object_stays_until_its_finalizer_is_removed(api: ApiClient) -> None:
    held = config_map()
    held["metadata"]["finalizers"] = ["example.com/hold"]
    await api.create(CONFIG_MAPS, held)
    waiting = (await api.delete(f"{CONFIG_MAPS}/a")).body
    assert waiting["metadata"]["deletionTimestamp"]
    assert (await api.get(f"{CONFIG_MAPS}/a")).status == 200
    await api.patch(f"{CONFIG_MAPS}/a", {"metadata": {"finalizers": None}}, MERGE)
    assert (await api.get(f"{CONFIG_MAPS}/a")).status == 404


async def test_unknown_paths_and_unknown_resources_have_different_errors(api: ApiClient) -> None:
    root = await api.get("/nosuch")
    assert (root.status, root.text.strip()) == (404, "404 page not found")
    resource = await api.get("/api/v1/nosuches")
    assert (resource.status, resource.body["kind"]) == (404, "Status")
    assert resource.body["message"] == "the server could not find the requested resource"
    group = await api.get("/apis/nosuch.example.com/v1/things")
    assert (group.status, group.text.strip()) == (404, "404 page not found")


async def test_errors_contain_the_plural_with_its_group_or_the_kind(api: ApiClient) -> None:
    missing = await api.get("/apis/apps/v1/namespaces/default/deployments/x")
    assert missing.body["message"] == 'deployments.apps "x" not found'
    assert missing.body["details"] == {"name": "x", "group": "apps", "kind": "deployments"}
    await api.create(PODS, pod())
    again = await api.post(PODS, pod())
    assert (again.status, again.body["message"]) == (409, 'pods "a" already exists')
    invalid = await api.post(PODS, pod("b", containers=[]))
    assert (invalid.status, invalid.body["details"]["kind"]) == (422, "Pod")
    assert invalid.body["message"] == 'Pod "b" is invalid: spec.containers: Required value'


async def test_discovery_lists_groups_and_resources(api: ApiClient) -> None:
    groups = (await api.get("/apis")).body
    names = {group["name"] for group in groups["groups"]}
    assert {"apps", "batch", "policy", "events.k8s.io", "coordination.k8s.io"} <= names
    core = (await api.get("/api/v1")).body
    assert core["kind"] == "APIResourceList"
    assert {"pods", "pods/binding", "nodes/status"} <= {r["name"] for r in core["resources"]}
    assert (await api.get("/version")).body["major"] == "1"
    assert [(await api.get(path)).text for path in ("/healthz", "/livez", "/readyz")] == ["ok"] * 3
