"""``stowage record`` records a cluster beside any scheduler, and writes nothing to it."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import pytest

from simcluster import write_kubeconfig
from simcluster.tests.support.api_client import ApiClient
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S, wait_until
from stowage.api.events import AssignedPodSeen, Event, NodeSeen, PendingPodGone, PendingPodSeen
from stowage.recording.reader import Recording, find_recording
from tests.support.integration.audited_cluster import (
    ADMIN,
    RBAC,
    AuditedCluster,
    audited_cluster,
    documented_rights,
)

RIGHTS = Path("docs/how-to/record.md")
READS = {"get", "list", "watch"}


@pytest.fixture
async def watched(tmp_path: Path) -> AsyncIterator[AuditedCluster]:
    async with audited_cluster(RIGHTS, tmp_path) as cluster:
        yield cluster


async def start(*arguments: str) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    command = (sys.executable, "-m", "stowage.cli", "record", *arguments)
    return await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)


async def ended(process: asyncio.subprocess.Process) -> tuple[int | None, str]:
    """The exit status, and what was written to standard error."""
    out, err = await asyncio.wait_for(process.communicate(), WAIT_TIMEOUT_S)
    assert out == b""
    return process.returncode, err.decode()


@asynccontextmanager
async def recording(
    watched: AuditedCluster, *flags: str
) -> AsyncIterator[tuple[asyncio.subprocess.Process, Path]]:
    """A running observer and its folder."""
    folder = watched.folder / "recordings"
    process = await start(str(folder), "--kubeconfig", watched.kubeconfig(), *flags)
    try:
        yield process, folder
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def events_in(folder: Path) -> tuple[list[Event], str]:
    """The events that are in the file by now, and why the recording ends."""
    with Recording(find_recording(folder)) as read:
        assert not read.header.decisions
        found: list[Event] = []
        for entry in read.calls():
            assert entry.instructions == ()
            found += getattr(entry, "events", ())
        return found, read.end


def is_recorded(folder: Path, condition: Callable[[Event], bool]) -> bool:
    written = any(path.stat().st_size for path in folder.glob("*.recording"))
    return written and any(map(condition, events_in(folder)[0]))


async def until_recorded(folder: Path, condition: Callable[[Event], bool]) -> None:
    await wait_until(lambda: is_recorded(folder, condition))


async def test_pods_of_another_scheduler_are_recorded_without_a_write(
    watched: AuditedCluster,
) -> None:
    watched.create_pod("early")
    async with recording(watched) as (process, folder):
        await until_recorded(folder, lambda event: isinstance(event, PendingPodSeen))
        watched.create_pod("late", annotations={"token": "hunter2"})
        watched.bind_pod("late", "savanna")
        await until_recorded(folder, lambda event: isinstance(event, AssignedPodSeen))
        process.send_signal(signal.SIGINT)
        status, messages = await ended(process)
    assert status == 0
    events, end = events_in(folder)
    assert end == "the observer was interrupted"
    assert f"{len(events)} events in " in messages
    pending = [each.pod.metadata.name for each in events if isinstance(each, PendingPodSeen)]
    assert pending == ["early", "late"]
    assert [each.name for each in events if isinstance(each, PendingPodGone)] == ["late"]
    (assigned,) = [each.pod for each in events if isinstance(each, AssignedPodSeen)]
    assert assigned.spec.node_name == "savanna"
    assert watched.verbs == {"list", "watch"} <= READS
    assert "hunter2" not in repr(events)
    assert any(isinstance(each, NodeSeen) for each in events)


async def test_a_killed_observer_leaves_a_readable_recording(watched: AuditedCluster) -> None:
    watched.create_pod("early")
    async with recording(watched) as (process, folder):
        await until_recorded(folder, lambda event: isinstance(event, PendingPodSeen))
        process.kill()
        await process.wait()
    events, end = events_in(folder)
    assert any(isinstance(each, PendingPodSeen) for each in events)
    assert end.startswith(("open", "cut"))


async def test_an_anonymous_recording_holds_no_name(watched: AuditedCluster) -> None:
    watched.create_pod("zebra", labels={"herd": "zebra"})
    watched.bind_pod("zebra", "savanna")
    async with recording(watched, "--anonymise") as (process, folder):
        await until_recorded(folder, lambda event: isinstance(event, AssignedPodSeen))
        process.terminate()
        assert (await ended(process))[0] == 0
    events, _ = events_in(folder)
    assert not any(name in repr(events) for name in ("zebra", "savanna", "herd"))
    (node,) = [each.node for each in events if isinstance(each, NodeSeen)]
    (pod,) = [each.pod for each in events if isinstance(each, AssignedPodSeen)]
    assert pod.spec.node_name == node.metadata.name
    assert node.status.allocatable["cpu"] == "4"


async def test_old_segments_are_removed_while_the_observer_records(watched: AuditedCluster) -> None:
    async with recording(watched, "--max-age=2s") as (process, folder):
        await until_recorded(folder, lambda event: isinstance(event, NodeSeen))
        first = find_recording(folder)
        async with asyncio.timeout(WAIT_TIMEOUT_S):
            for number in count():
                watched.create_pod(f"p{number}")
                await asyncio.sleep(0.05)
                if not first.exists():
                    break
        process.send_signal(signal.SIGINT)
        status, messages = await ended(process)
    assert status == 0
    assert "error" not in messages
    events, end = events_in(folder)
    assert end == "the observer was interrupted"
    nodes = [each.node.metadata.name for each in events if isinstance(each, NodeSeen)]
    pods = [each.pod.metadata.name for each in events if isinstance(each, PendingPodSeen)]
    assert nodes == ["savanna"]
    assert sorted(pods) == sorted(f"p{each}" for each in range(number + 1))


async def test_a_kind_that_may_not_be_read_is_left_out(watched: AuditedCluster) -> None:
    async with ApiClient(watched.cluster.url, ADMIN) as api:
        role = documented_rights(RIGHTS)[0]
        role["rules"] = [rule for rule in role["rules"] if rule["apiGroups"] != ["policy"]]
        await api.delete(f"{RBAC}/clusterroles/stowage-observer")
        await api.post(f"{RBAC}/clusterroles", role)
    async with recording(watched) as (process, folder):
        await until_recorded(folder, lambda event: isinstance(event, NodeSeen))
        process.send_signal(signal.SIGINT)
        status, messages = await ended(process)
    assert status == 0
    assert "PodDisruptionBudget is left out: " in messages
    assert 'User "jane" cannot list resource "poddisruptionbudgets"' in messages


@pytest.mark.parametrize("missing", ["list", "watch"])
async def test_a_user_who_may_not_read_pods_is_told_so(
    watched: AuditedCluster, missing: str
) -> None:
    async with ApiClient(watched.cluster.url, ADMIN) as api:
        role = documented_rights(RIGHTS)[0]
        role["rules"][0]["verbs"].remove(missing)
        await api.delete(f"{RBAC}/clusterroles/stowage-observer")
        await api.post(f"{RBAC}/clusterroles", role)
    folder = watched.folder / "recordings"
    process = await start(str(folder), "--kubeconfig", watched.kubeconfig())
    status, messages = await ended(process)
    assert status == 1
    assert messages.startswith("error: ")
    assert f'User "jane" cannot {missing} resource' in messages
    assert not folder.exists()


async def test_an_unreachable_server_is_an_error_without_a_recording(tmp_path: Path) -> None:
    kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", "http://127.0.0.1:1", "")
    process = await start(str(tmp_path / "recordings"), "--kubeconfig", str(kubeconfig))
    status, messages = await ended(process)
    assert status == 1
    assert messages.startswith("error: Cannot connect to host 127.0.0.1:1")
    assert not (tmp_path / "recordings").exists()


async def test_a_folder_that_cannot_be_made_is_named(watched: AuditedCluster) -> None:
    file = watched.folder / "file"
    file.write_text("")
    process = await start(str(file / "folder"), "--kubeconfig", watched.kubeconfig())
    status, messages = await ended(process)
    assert status == 1
    assert f"error: {file}/folder: Not a directory" in messages
