"""A recording shows its cluster, queue and decisions at any time."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from stowage.console.answers.answer import rfc3339
from stowage.console.answers.cluster_map import cluster_map
from stowage.console.answers.pod_answer import pod_answer
from stowage.console.answers.pod_lists import PendingQuery, pending_pods
from stowage.console.clusters.recorded import MAX_MOMENTS, RecordedCluster
from stowage.console.clusters.source import NotReady, SourceName
from stowage.engine.journal import HandleCall
from tests.support.builders import make_node, make_pod
from tests.support.consoles import default_frameworks
from tests.support.recorded_cluster import START_S, write_recording
from tests.support.recorded_cluster import RecordedCluster as Cluster


def recorded(path: Path) -> RecordedCluster:
    name = SourceName("recording", path.name, f"--from {path}")
    return RecordedCluster(name, path, default_frameworks, asyncio.Lock())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """At 0 a node, at 10 a pod that fits, at 20 one that does not, at 30 a node for it."""
    cluster = Cluster(["small"], cpu="2")
    cluster.advance(10)
    cluster.create_pods([make_pod("fits", cpu="1", scheduler_name="stowage")])
    cluster.advance(10)
    cluster.create_pods([make_pod("big", cpu="8", scheduler_name="stowage")])
    cluster.advance(10)
    cluster.put_node(make_node("large", cpu="16"))
    cluster.advance(60)
    return cluster.write(tmp_path / "one.recording")


def opened(path: Path) -> RecordedCluster:
    source = recorded(path)
    source.read()
    return source


async def test_the_map_follows_the_time(path: Path) -> None:
    source = opened(path)
    found = {}
    for seconds in (5, 15, 25, 35, None):
        at = None if seconds is None else START_S + seconds
        moment = await source.at(at)
        summary = cluster_map(moment).summary
        found[seconds] = (summary.nodes, summary.placed, summary.pending)
    assert found == {
        5: (1, 0, 0),
        15: (1, 1, 0),
        25: (1, 1, 1),
        35: (2, 2, 0),
        None: (2, 2, 0),
    }


async def test_decisions_are_those_up_to_the_time(path: Path) -> None:
    source = opened(path)
    rows = (await source.at(START_S + 25)).history.newest(9)
    assert [(each.pod, each.result) for each in rows] == [
        ("default/big", "unschedulable"),
        ("default/fits", "scheduled"),
    ]
    last = (await source.at(None)).history.newest(1)[0]
    assert (last.pod, last.node, last.attempt, last.exact) == ("default/big", "large", 2, True)


async def test_a_pod_is_explained_as_of_the_time(path: Path) -> None:
    source = opened(path)
    before = pod_answer(await source.at(START_S + 25), "default/big")
    assert before.decision.outcome == "Unschedulable"
    assert before.basis == (
        f"evaluated against the cluster as of {rfc3339(START_S + 25)}, from a recording"
    )
    after = pod_answer(await source.at(None), "default/big")
    assert after.node == "large"


async def test_a_refused_pod_is_unschedulable_with_the_recorded_reason(path: Path) -> None:
    waiting = pending_pods(await opened(path).at(START_S + 25), PendingQuery(), lambda: 0.0)
    (row,) = waiting.pods
    assert (row.pod, row.queue, row.reason_from) == ("default/big", "unschedulable", "condition")
    assert row.reason.startswith("0/1 nodes are available: 1 Insufficient cpu")
    assert waiting.queues == {"active": 0, "unschedulable": 1, "gated": 0}


async def test_a_pod_without_a_time_of_creation_waits_since_it_was_first_seen(
    tmp_path: Path,
) -> None:
    cluster = Cluster(["small"], cpu="2")
    cluster.advance(10)
    pod = make_pod("big", cpu="8", scheduler_name="stowage")
    metadata = msgspec.structs.replace(pod.metadata, creation_timestamp=None)
    pod = msgspec.structs.replace(pod, metadata=metadata)
    cluster.create_pods([pod])
    cluster.advance(20)
    cluster.put_node(make_node("tiny", cpu="1"))
    cluster.advance(1)
    source = opened(cluster.write(tmp_path / "one.recording"))
    (row,) = pending_pods(await source.at(START_S + 25), PendingQuery(), lambda: 0.0).pods
    assert (row.since, row.pending_s) == (rfc3339(START_S + 10), 15.0)


def test_the_timeline_has_attempts_and_marks(path: Path) -> None:
    timeline = opened(path).timeline
    assert timeline is not None
    assert sum(timeline.points.scheduled) == 2
    assert sum(timeline.points.unschedulable) == 1
    assert timeline.points.nodes[-1] == 2
    assert [each.text for each in timeline.marks] == ["node large was added"]


async def test_the_points_of_the_timeline_can_be_asked_for(path: Path) -> None:
    source = opened(path)
    assert source.timeline is not None
    points = source.timeline.points
    for place, at in enumerate(points.time_s):
        summary = cluster_map(await source.at(at)).summary
        counted = (points.nodes[place], points.placed[place], points.pending[place])
        assert (summary.nodes, summary.placed, summary.pending) == counted


async def test_a_time_outside_the_recording_is_its_begin_or_end(path: Path) -> None:
    source = opened(path)
    assert (await source.at(0.0)).snapshot.num_nodes == 1
    assert (await source.at(9e9)).snapshot.num_nodes == 2


async def test_only_some_times_stay_loaded(path: Path) -> None:
    source = opened(path)
    for seconds in range(12):
        await source.at(START_S + seconds)
    first, again = await source.at(START_S + 11), await source.at(START_S + 11)
    assert first is again
    assert len(source._moments) == MAX_MOMENTS  # noqa: SLF001 - what is kept is not shown elsewhere


async def test_a_recording_of_an_observer_shows_what_the_watches_showed(tmp_path: Path) -> None:
    cluster = Cluster(["n"])
    cluster.advance(10)
    cluster.create_pods([make_pod("p", scheduler_name="stowage")])
    cluster.advance(10)
    entries = [each for each in cluster.journal.entries if isinstance(each, HandleCall)]
    shown = [msgspec.structs.replace(each, instructions=()) for each in entries]
    path = write_recording(tmp_path / "o.recording", shown, decisions=False)
    (row,) = (await opened(path).at(None)).history.newest(9)
    assert (row.pod, row.node, row.exact) == ("default/p", "n", False)


async def test_nothing_is_answered_before_the_recording_is_read(path: Path) -> None:
    with pytest.raises(NotReady, match="still being read"):
        await recorded(path).at(None)
