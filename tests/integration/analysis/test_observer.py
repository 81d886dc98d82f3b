"""An observer in the test's event loop: what it records, and what it reports at its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TypeVar

import pytest

from simcluster.features import read_features
from simcluster.tests.support.timeouts import wait_until
from stowage.api.events import Event, NodeSeen, PendingPodSeen, PodGroupSeen, PodGroupsServed
from stowage.operator.client.api_error import ApiError
from stowage.operator.clock import Clock
from stowage.operator.configuration.live_configuration import LoadedConfiguration
from stowage.operator.observer import Observed, ObserverOptions, observe
from stowage.operator.run_options import RecordingOptions
from stowage.recording.limits import RecordingLimits
from stowage.recording.reader import Recording
from tests.support.integration.audited_cluster import (
    UNAUTHORIZED,
    AuditedCluster,
    audited_cluster,
)

EventT = TypeVar("EventT")
RIGHTS = Path("docs/how-to/record.md")


@pytest.fixture
async def watched(tmp_path: Path) -> AsyncIterator[AuditedCluster]:
    async with audited_cluster(RIGHTS, tmp_path) as cluster:
        yield cluster


class _Observer:
    """An observer of the cluster, and what it says."""

    def __init__(self, watched: AuditedCluster, kubeconfig: str, max_bytes: int = 2**20) -> None:
        self.folder = watched.folder / "recordings"
        self.said: list[str] = []
        self.stop = asyncio.Event()
        recording = RecordingOptions(self.folder, RecordingLimits(max_bytes, 3600.0), 300.0)
        options = ObserverOptions(
            kubeconfig, None, LoadedConfiguration(), recording, self.said.append
        )
        self.task = asyncio.create_task(observe(options, self.stop, Clock()))

    def events(self) -> list[Event]:
        """The events that are in the file by now."""
        found: list[Event] = []
        for path in self.folder.glob("*.recording"):
            if path.stat().st_size:
                with Recording(path) as read:
                    found += [each for call in read.calls() for each in getattr(call, "events", ())]
        return found

    def of(self, kind: type[EventT]) -> list[EventT]:
        """The events of a kind in the file."""
        return [each for each in self.events() if isinstance(each, kind)]

    def pods(self) -> list[str]:
        """The names of the pending pods in the file."""
        return [
            each.pod.metadata.name for each in self.events() if isinstance(each, PendingPodSeen)
        ]


async def test_an_observer_records_until_it_is_stopped_and_reports_how_much(
    watched: AuditedCluster,
) -> None:
    watched.create_pod("early")
    observer = _Observer(watched, watched.kubeconfig())
    await wait_until(lambda: observer.pods() == ["early"])
    watched.create_pod("late")
    await wait_until(lambda: observer.pods() == ["early", "late"])
    observer.stop.set()
    observed = await observer.task
    (path,) = observer.folder.iterdir()
    with Recording(path) as read:
        calls = list(read.calls())
        assert read.end == "the observer was interrupted"
    events = observer.events()
    assert observed == Observed(str(path), path.stat().st_size, len(calls), len(events), "")
    assert [each.node.metadata.name for each in events if isinstance(each, NodeSeen)] == ["savanna"]
    assert observer.said[-1] == f"recording to {path}; Ctrl-C ends it"
    assert watched.verbs == {"list", "watch"}


async def test_an_observer_records_pod_groups_where_they_are_served(tmp_path: Path) -> None:
    gates = read_features(["GenericWorkload=true"], ["scheduling.k8s.io/v1alpha2=true"])
    async with audited_cluster(RIGHTS, tmp_path, gates) as watched:
        watched.create_pod_group("g")
        observer = _Observer(watched, watched.kubeconfig())
        await wait_until(
            lambda: [each.group.metadata.name for each in observer.of(PodGroupSeen)] == ["g"]
        )
        assert {each.source: each.is_served for each in observer.of(PodGroupsServed)} == {
            "scheduling.k8s.io": True,
            "scheduling.x-k8s.io": False,
        }
        assert not any("left out" in line for line in observer.said)
        observer.stop.set()
        await observer.task
        assert watched.verbs == {"list", "watch"}


async def test_an_observer_that_is_stopped_before_its_first_list_records_nothing(
    watched: AuditedCluster,
) -> None:
    observer = _Observer(watched, watched.kubeconfig())
    observer.stop.set()
    assert await observer.task is None
    assert not observer.folder.exists()
    assert observer.said == []


async def test_an_observer_whose_recording_finds_no_room_ends_and_says_why(
    watched: AuditedCluster,
) -> None:
    observer = _Observer(watched, watched.kubeconfig(), max_bytes=1)
    observed = await observer.task
    assert observed is not None
    assert observed.end.startswith("the maximum size of 1 bytes is too small")
    assert observer.stop.is_set()


async def test_an_observer_without_the_right_to_read_pods_raises_and_records_nothing(
    watched: AuditedCluster,
) -> None:
    observer = _Observer(watched, watched.kubeconfig(UNAUTHORIZED))
    with pytest.raises(ApiError, match="unauthorized"):
        await observer.task
    assert not observer.folder.exists()
