"""Watches with initial events: ``sendInitialEvents`` and its older forms."""

from typing import Any

import pytest

from simcluster.tests.support.api_client import PODS, ApiClient, pod

Json = dict[str, Any]

WATCH_LIST = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
FORBIDDEN = "Forbidden: resourceVersionMatch"
NEEDS_MATCH = "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
END = "k8s.io/initial-events-end"


def shown(event: Json) -> tuple[str, str | None]:
    """Type and name."""
    return event["type"], event["object"]["metadata"].get("name")


@pytest.mark.parametrize("revision", ["", "&resourceVersion=0"])
async def test_a_watch_list_sends_current_objects_then_a_bookmark_then_changes(
    api: ApiClient, revision: str
) -> None:
    for name in "ba":
        await api.create(PODS, pod(name))
    current = await api.revision()
    query = f"{WATCH_LIST}&allowWatchBookmarks=true{revision}"
    async with api.watch(PODS, query) as watch:
        events = await watch.take(3)
        await api.create(PODS, pod("c"))
        events.append(await watch.next())
    assert [shown(event) for event in events] == [
        ("ADDED", "a"),
        ("ADDED", "b"),
        ("BOOKMARK", None),
        ("ADDED", "c"),
    ]
    end = events[2]["object"]["metadata"]
    assert end["annotations"] == {END: "true"}
    assert int(end["resourceVersion"]) >= int(current)


async def test_a_watch_list_includes_the_requested_revision(api: ApiClient) -> None:
    created = await api.create(PODS, pod())
    revision = created["metadata"]["resourceVersion"]
    query = f"{WATCH_LIST}&allowWatchBookmarks=true&resourceVersion={revision}"
    async with api.watch(PODS, query) as watch:
        added, end = await watch.take(2)
    assert shown(added) == ("ADDED", "a")
    assert int(end["object"]["metadata"]["resourceVersion"]) >= int(revision)


async def test_a_watch_list_without_objects_sends_only_a_bookmark(api: ApiClient) -> None:
    query = f"{WATCH_LIST}&allowWatchBookmarks=true&labelSelector=app=none"
    async with api.watch(PODS, query) as watch:
        assert shown(await watch.next()) == ("BOOKMARK", None)


async def test_selectors_apply_to_initial_events(api: ApiClient) -> None:
    for name in "ab":
        await api.create(PODS, pod(name))
    await api.bind("b", "n")
    query = f"{WATCH_LIST}&allowWatchBookmarks=true&fieldSelector=spec.nodeName=n"
    async with api.watch(PODS, query) as watch:
        events = await watch.take(2)
    assert [shown(event) for event in events] == [("ADDED", "b"), ("BOOKMARK", None)]


async def test_without_bookmarks_the_end_of_the_initial_events_is_not_marked(
    api: ApiClient,
) -> None:
    await api.create(PODS, pod())
    async with api.watch(PODS, WATCH_LIST) as watch:
        added = await watch.next()
        await api.create(PODS, pod("b"))
        following = await watch.next()
    assert [shown(added), shown(following)] == [("ADDED", "a"), ("ADDED", "b")]


@pytest.mark.parametrize("revision", ["", "&resourceVersion=0"])
async def test_a_watch_without_initial_events_begins_at_the_current_revision(
    api: ApiClient, revision: str
) -> None:
    await api.create(PODS, pod())
    await api.revision()
    query = f"sendInitialEvents=false&resourceVersionMatch=NotOlderThan{revision}"
    async with api.watch(PODS, query) as watch:
        await api.create(PODS, pod("b"))
        assert shown(await watch.next()) == ("ADDED", "b")


@pytest.mark.parametrize(
    ("query", "messages"),
    [
        (
            "sendInitialEvents=true",
            [NEEDS_MATCH],
        ),
        (
            "sendInitialEvents=false",
            [NEEDS_MATCH],
        ),
        (
            "resourceVersion=1&resourceVersionMatch=NotOlderThan",
            [f"{FORBIDDEN} is forbidden for watch unless sendInitialEvents is provided"],
        ),
        (
            "sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=1",
            [
                NEEDS_MATCH,
                'Unsupported value: "Exact": supported values: "NotOlderThan"',
            ],
        ),
        (
            f"{WATCH_LIST}&continue=x",
            [f"{FORBIDDEN} is forbidden when continue is provided"],
        ),
    ],
)
async def test_contradictory_options_are_invalid(
    api: ApiClient, query: str, messages: list[str]
) -> None:
    reply = await api.get(f"{PODS}?watch=1&{query}")
    assert (reply.status, reply.body["reason"]) == (422, "Invalid")
    causes = reply.body["details"]["causes"]
    assert [cause["message"] for cause in causes] == messages
    assert {cause["field"] for cause in causes} == {"resourceVersionMatch"}


async def test_a_future_revision_is_an_error_event(api: ApiClient) -> None:
    future = int(await api.revision()) + 100_000
    query = f"{WATCH_LIST}&allowWatchBookmarks=true&resourceVersion={future}"
    async with api.watch(PODS, query) as watch:
        assert watch.status == 200
        error = await watch.next()
    assert error["type"] == "ERROR"
    assert (error["object"]["code"], error["object"]["reason"]) == (504, "Timeout")
    causes = error["object"]["details"]["causes"]
    assert causes[0]["reason"] == "ResourceVersionTooLarge"
