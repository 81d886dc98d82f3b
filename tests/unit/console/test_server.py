"""Every endpoint of the console, over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from aiohttp import StreamReader

from stowage.api.events import AssignedPodSeen
from stowage.console.answers.cluster_map import cluster_map
from stowage.console.clusters.live import LiveCluster
from stowage.console.clusters.recorded import RecordedCluster
from stowage.console.clusters.source import RECONNECTING, SourceName, SourceState
from stowage.console.decisions.history import OBSERVED, DecisionHistory
from stowage.console.stream.messages import Ping
from tests.support.builders import make_node, make_pod
from tests.support.console_server import ConsoleClient, bearer, console_of
from tests.support.consoles import START_S, decision, default_frameworks, live_cluster
from tests.support.recorded_cluster import RecordedCluster as Cluster

POD = "kind: Pod\nmetadata: {name: new}\nspec: {containers: [{name: c}]}\n"


def small() -> LiveCluster:
    cluster = live_cluster(
        make_node("a", cpu="2", zone="z"),
        make_node("b", cpu="4"),
        make_pod("placed", cpu="1", node="a"),
        make_pod("fits", cpu="1"),
        make_pod("big", cpu="9"),
    )
    cluster.history.add(decision(1, pod="default/placed", node_name="a"))
    return cluster


@pytest.fixture
async def console() -> AsyncIterator[ConsoleClient]:
    async with console_of(small()) as client:
        yield client


async def test_about_names_source_profiles_and_version(console: ConsoleClient) -> None:
    about = await console.get("/api/about")
    assert about["source"] == {"kind": "cluster", "name": "test", "flags": "--context test"}
    assert (about["live"], about["timeline"]) == (True, False)
    (profile,) = about["profiles"]
    assert profile["schedulerName"] == "default-scheduler"
    assert {"plugin": "TaintToleration", "weight": 3} in profile["scores"]


async def test_the_map_is_that_of_the_cluster(console: ConsoleClient) -> None:
    answer = await console.get("/api/cluster")
    moment = small().moment(START_S)
    assert answer == msgspec.json.decode(msgspec.json.encode(cluster_map(moment)))
    by_host = await console.get("/api/cluster?group=kubernetes.io/hostname")
    assert by_host["group"]["values"] == ["a", "b"]


async def test_the_verdicts_about_a_pod(console: ConsoleClient) -> None:
    answer = await console.get("/api/verdicts?pod=default/big")
    assert answer["verdict"] == [0, 0]
    assert answer["rejections"][0]["plugin"] == "NodeResourcesFit"


async def test_a_node_is_shown_with_its_pods_and_decisions(console: ConsoleClient) -> None:
    answer = await console.get("/api/nodes/a")
    assert [each["pod"] for each in answer["pods"]] == ["default/placed"]
    assert [each["id"] for each in answer["decisions"]] == ["d-1"]
    refusal = await console.get("/api/nodes/x", want=404)
    assert refusal == {"error": {"message": "there is no node x"}}


async def test_pods_are_found_and_explained(console: ConsoleClient) -> None:
    found = await console.get("/api/pods?q=fit&limit=5")
    assert [each["pod"] for each in found["pods"]] == ["default/fits"]
    answer = await console.get("/api/pods/default/fits")
    assert answer["decision"]["outcome"] == "Scheduled"
    assert answer["table"]["nodes"] == ["b", "a"]
    refusal = await console.get("/api/pods/default/none", want=404)
    assert refusal["error"]["message"] == "there is no pod default/none"


async def test_pending_pods_are_listed(console: ConsoleClient) -> None:
    answer = await console.get("/api/pending?sort=pod&limit=1&offset=1")
    assert (answer["total"], [each["pod"] for each in answer["pods"]]) == (2, ["default/fits"])


async def test_decisions_are_listed_counted_and_explained(console: ConsoleClient) -> None:
    page = await console.get("/api/decisions?limit=5&result=scheduled")
    assert [each["id"] for each in page["decisions"]] == ["d-1"]
    stats = await console.get("/api/decisions/stats")
    assert stats["total"]["scheduled"] == 1
    assert sum(stats["buckets"]["scheduled"]) == 1
    detail = await console.get("/api/decisions/d-1")
    assert detail["explanation"]["recorded"]
    assert detail["decision"]["runnerUp"] == "n2"
    await console.get("/api/decisions/d-9", want=404)


async def test_a_what_if_leaves_the_cluster_as_it_is(console: ConsoleClient) -> None:
    before = await console.get("/api/cluster")
    answer = await console.post("/api/what-if", {"manifests": POD, "drain": ["a"]})
    assert {each["pod"] for each in answer["placed"]} == {"default/fits", "default/new"}
    assert answer["commandLine"] == "stowage what-if --context test -f manifests.yaml --drain a"
    assert await console.get("/api/cluster") == before


async def test_a_what_if_names_the_kinds_that_scheduling_does_not_read(
    console: ConsoleClient,
) -> None:
    manifests = f"{POD}\n---\nkind: Deploymnt\nmetadata: {{name: web}}\n"
    answer = await console.post("/api/what-if", {"manifests": manifests})
    note = "scheduling does not read these kinds of the manifests: Deploymnt"
    assert answer["notes"][-1] == note


async def test_an_invalid_what_if_is_refused_by_line_and_field(console: ConsoleClient) -> None:
    refusal = await console.post("/api/what-if", {"manifests": "a: b: c"}, want=422)
    assert refusal["error"]["errors"][0]["line"] == 1
    refusal = await console.post("/api/what-if", {"weights": {"Nonsense": 1}}, want=422)
    assert refusal["error"]["field"] == "weights"
    await console.post("/api/what-if", {"drain": ["x"]}, want=404)
    bodies: list[object] = [
        {"drain": "a"},
        {"unknown": 1},
        {"addNodes": {"count": 10**6, "like": "a"}},
        {"weights": {"ImageLocality": -1}},
        [],
    ]
    for body in bodies:
        refusal = await console.post("/api/what-if", body, want=400)
        assert refusal["error"]["field"] == "body"


async def test_manifests_are_checked(console: ConsoleClient) -> None:
    check = await console.post("/api/manifests", {"manifests": f"{POD}---\nkind: 1\n"})
    assert [each["name"] for each in check["objects"]] == ["new"]
    assert [each["line"] for each in check["errors"]] == [5]


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("/api/cluster?at=soon", "at: "),
        ("/api/cluster?at=nan", "at: "),
        ("/api/cluster?at=1e300", "at: "),
        ("/api/cluster?at=5", "at: "),
        ("/api/cluster?colour=red", "colour: "),
        (f"/api/cluster?group={'x' * 600}", "group: "),
        ("/api/pods/no-namespace", "pod: expected NAMESPACE/NAME, got 'no-namespace'"),
        ("/api/pods/default/fits/more", "pod: expected NAMESPACE/NAME, got 'default/fits/more'"),
        ("/api/pods?limit=0", "limit: "),
        ("/api/pods?limit=1001", "limit: "),
        ("/api/pods?limit=%C2%B2", "limit: "),
        ("/api/pending?sort=colour", "sort: "),
        ("/api/pending?offset=-1", "offset: "),
        ("/api/decisions?limit=x", "limit: "),
        ("/api/decisions?result=good", "result: "),
        ("/api/decisions?colour=red", "colour: "),
        ("/api/about?x=1", "x: "),
    ],
)
async def test_a_bad_parameter_is_named(console: ConsoleClient, path: str, problem: str) -> None:
    refusal = await console.get(path, want=400)
    assert refusal["error"]["message"].startswith(problem)


async def test_an_unknown_path_of_the_interface_is_not_the_page(console: ConsoleClient) -> None:
    for path in ("/api/nothing", "/api/", "/api/what-if"):
        await console.get(path, want=404)


async def test_an_answer_is_not_sent_twice(console: ConsoleClient) -> None:
    async with console.session.get(console.url("/api/cluster"), headers=bearer()) as response:
        tag = response.headers["ETag"]
    assert await console.status("/api/cluster", If_None_Match=tag) == 304


async def test_a_large_answer_is_compressed_if_the_client_takes_it() -> None:
    nodes = [make_node(f"n{number}") for number in range(200)]
    async with console_of(live_cluster(*nodes)) as console:
        bodies = []
        for encoding in ("gzip", "identity"):
            headers = bearer() | {"Accept-Encoding": encoding}
            url = console.url("/api/cluster")
            async with console.session.get(url, headers=headers) as response:
                assert response.headers.get("Content-Encoding", "identity") == encoding
                bodies.append(await response.json())
        assert bodies[0] == bodies[1]


async def test_before_the_cluster_is_read_clients_are_told_to_wait() -> None:
    name, history = SourceName("cluster", "x", ""), DecisionHistory(OBSERVED)
    source = LiveCluster(name, default_frameworks(), history, lambda: START_S, is_live=True)
    async with (
        console_of(source) as console,
        console.session.get(console.url("/api/about"), headers=bearer()) as response,
    ):
        assert (response.status, response.headers["Retry-After"]) == (503, "1")


async def test_a_recording_is_asked_at_its_times(tmp_path: Path) -> None:
    cluster = Cluster(["n"])
    cluster.advance(10)
    cluster.create_pods([make_pod("p", scheduler_name="stowage")])
    cluster.advance(10)
    path = cluster.write(tmp_path / "r.recording")
    name = SourceName("recording", path.name, f"--from {path}")
    source = RecordedCluster(name, path, default_frameworks, asyncio.Lock())
    source.read()
    async with console_of(source) as console:
        timeline = await console.get("/api/timeline")
        first = await console.get(f"/api/cluster?at={timeline['start']}")
        last = await console.get("/api/cluster")
        assert (first["summary"]["placed"], last["summary"]["placed"]) == (0, 1)
        page = await console.get(f"/api/decisions?at={timeline['start']}")
        assert page["decisions"] == []
        detail = await console.get("/api/decisions/recorded-1")
        assert detail["explanation"]["recorded"]


async def test_only_a_recording_has_a_timeline(console: ConsoleClient) -> None:
    refusal = await console.get("/api/timeline", want=404)
    assert "no recording" in refusal["error"]["message"]


async def test_the_stream_greets_and_goes_on(console: ConsoleClient) -> None:
    async with console.session.get(console.url("/stream"), headers=bearer()) as response:
        assert response.content_type == "text/event-stream"
        assert await _events(response.content, 2) == ["hello", "ping"]
        console.hub.publish("ping", Ping(7))
        assert await _events(response.content, 1) == ["ping"]


async def test_the_greeting_tells_the_state_of_the_connection() -> None:
    cluster = small()
    cluster.state = SourceState(RECONNECTING, "waits to read Pod again")
    async with (
        console_of(cluster) as console,
        console.session.get(console.url("/stream"), headers=bearer()) as response,
    ):
        await _events(response.content, 1)
        hello = msgspec.json.decode((await response.content.readline()).removeprefix(b"data: "))
        expected = {"state": "reconnecting", "message": "waits to read Pod again"}
        assert hello["source"] == expected


async def test_a_page_that_comes_back_gets_what_it_missed(console: ConsoleClient) -> None:
    for version in range(3):
        console.hub.publish("ping", Ping(version))
    headers = bearer() | {"Last-Event-ID": "e-1"}
    async with console.session.get(console.url("/stream"), headers=headers) as response:
        assert await _events(response.content, 4) == ["hello", "ping", "ping", "ping"]
    headers["Last-Event-ID"] = "other-1"
    async with console.session.get(console.url("/stream"), headers=headers) as response:
        assert await _events(response.content, 3) == ["hello", "reset", "ping"]


async def test_a_slow_page_is_told_to_start_over(console: ConsoleClient) -> None:
    async with console.session.get(console.url("/stream"), headers=bearer()) as response:
        await _events(response.content, 2)
        for version in range(600):
            console.hub.publish("ping", Ping(version))
        assert (await _events(response.content, 1)) == ["reset"]


async def test_a_closed_page_is_forgotten(console: ConsoleClient) -> None:
    async with console.session.get(console.url("/stream"), headers=bearer()) as response:
        await _events(response.content, 2)
        assert len(console.hub.subscribers) == 1
    console.hub.publish("ping", Ping(7))
    await _no_subscriber(console)


async def _no_subscriber(console: ConsoleClient) -> None:
    """Return as soon as the server sees that the connection is closed."""
    while console.hub.subscribers:  # noqa: ASYNC110 - there is no event for it
        await asyncio.sleep(0)


async def test_the_stream_ends_when_the_server_stops() -> None:
    async with console_of(small()) as console:
        response = await console.session.get(console.url("/stream"), headers=bearer())
        await _events(response.content, 2)
        await console.server.stop()
        assert b"event: " not in await response.content.read()


async def _events(content: StreamReader, number: int) -> list[str]:
    """The names of the next messages."""
    found: list[str] = []
    while len(found) < number:
        line = (await content.readline()).decode()
        if line.startswith("event: "):
            found.append(line.removeprefix("event: ").strip())
    return found


async def test_a_change_of_the_cluster_changes_the_answer(console: ConsoleClient) -> None:
    cluster = small()
    async with console_of(cluster) as other:
        assert (await other.get("/api/cluster"))["summary"]["placed"] == 1
        cluster.apply([AssignedPodSeen(make_pod("fits", cpu="1", node="b"))])
        answer = await other.get("/api/nodes/b")
        assert [each["pod"] for each in answer["pods"]] == ["default/fits"]


async def test_a_body_that_is_no_text_is_refused(console: ConsoleClient) -> None:
    headers = {**bearer(), "Content-Type": "application/json"}
    url = console.url("/api/manifests")
    async with console.session.post(url, headers=headers, data=b'{"manifests": "\xff"}') as answer:
        assert answer.status == 400
        assert (await answer.json())["error"]["field"] == "body"
