"""``stowage run --record`` records a process, and ``stowage replay`` repeats it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from secrets import token_hex
from typing import Any

import pytest

from simcluster import FaultRule
from simcluster.tests.support.timeouts import wait_until
from tests.support.integration.full_cluster import (
    BINDINGS,
    NUM_PODS,
    TOO_MUCH,
    FullCluster,
    full_cluster,
    small_pod,
)
from tests.support.integration.running_scheduler import scheduler_process

Json = dict[str, Any]


def stowage_replay(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command with another seed of the hashes than the recorded process."""
    return subprocess.run(
        [sys.executable, "-m", "stowage.cli", "replay", *arguments],
        env={**os.environ, "PYTHONHASHSEED": str(Random().randrange(1, 1000))},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
async def full(tmp_path: Path) -> AsyncIterator[FullCluster]:
    async with full_cluster(tmp_path / "kubeconfig") as cluster:
        yield cluster


async def test_a_process_with_faults_replays_equal_and_is_explained(
    full: FullCluster, tmp_path: Path
) -> None:
    folder = tmp_path / "recordings"
    full.fail(FaultRule("POST", BINDINGS, times=10, is_applied=True, is_dropped=True))
    full.fail(FaultRule("POST", BINDINGS, times=10, status=500))
    big = small_pod("big", cpu=TOO_MUCH)
    big["metadata"]["annotations"] = {"token": "hunter2"}
    full.create(big)
    names = full.fill(NUM_PODS // 2)
    process = scheduler_process(full.kubeconfig, tmp_path / "log", f"--record={folder}")
    async with process as scheduler:
        await full.drained(0.5)
        full.forget_history()
        full.delete_node(3)
        full.add_node(3)
        full.fill(4)
        await full.expect_recovery(stays=lambda pod: pod["metadata"]["name"] == "big")
        scheduler.terminate()
        assert await scheduler.wait() == 0
    answer = await _json(folder)
    assert answer["end"] == "the scheduler stopped"
    assert answer["bound"] >= NUM_PODS // 2
    # The last events may have moved it to the backoff queue.
    assert sum(answer["pending"].values()) == 1
    assert answer["nodes"] == len(full.auditor.nodes)
    pending = await _json(folder, "--until", "big")
    assert pending["decision"]["outcome"] == "Unschedulable"
    assert pending["decision"]["reasonCounts"] == {"Insufficient cpu": 20}
    placed = await _json(folder, "--until", f"default/{names[0]}")
    assert placed["node"] in placed["decision"]["best"]
    changed = await _json(folder, "--weights", "NodeResourcesFit=0")
    assert [each["name"] for each in changed["lives"]] == ["recorded", "replayed", "changed"]
    recorded, *lived = changed["lives"]
    assert [each["unplaced"] for each in lived] == [1, 1]
    assert len({each["placed"] for each in lived}) == 1
    # The process may end before it hears of its last bindings.
    assert NUM_PODS // 2 <= recorded["placed"] <= lived[0]["placed"]


async def _json(*arguments: object) -> Json:
    done = await asyncio.to_thread(stowage_replay, *map(str, arguments), "-o", "json")
    assert (done.returncode, done.stderr) == (0, "")
    answer: Json = json.loads(done.stdout)
    return answer


async def test_a_process_that_records_in_segments_replays_equal(
    full: FullCluster, tmp_path: Path
) -> None:
    folder, max_bytes = tmp_path / "recordings", 200 * 1024
    flags = (f"--record={folder}", f"--record-max-size={max_bytes}")
    process = scheduler_process(full.kubeconfig, tmp_path / "log", *flags)
    async with process as scheduler:
        sizes = []
        for turn in range(2):
            for number in range(15):
                pod = small_pod(f"p{turn}-{number}")
                # What cannot be compressed fills the segments.
                pod["metadata"]["labels"] = {f"k{key}": token_hex(30) for key in range(30)}
                full.create(pod)
            await wait_until(lambda: len(list(folder.glob("*.recording"))) > 1)
            sizes.append(sum(path.stat().st_size for path in folder.iterdir()))
        await full.told_of_bindings(30)
        scheduler.terminate()
        assert await scheduler.wait() == 0
    sizes.append(sum(path.stat().st_size for path in folder.iterdir()))
    assert max(sizes) <= max_bytes
    segments = sorted(folder.iterdir())
    assert len(segments) >= 2
    answer = await _json(folder)
    assert (answer["end"], answer["nodes"]) == ("the scheduler stopped", len(full.auditor.nodes))
    assert answer["bound"] == answer["placed"] == 30
    segments[0].unlink()
    later = await _json(folder)
    assert [each["name"] for each in later["lives"]] == ["recorded", "replayed"]
    assert later["lives"][0]["unplaced"] == 0


async def test_a_killed_process_leaves_a_recording_that_replays(
    full: FullCluster, tmp_path: Path
) -> None:
    folder = tmp_path / "recordings"
    full.fill(10)
    process = scheduler_process(full.kubeconfig, tmp_path / "log", f"--record={folder}")
    async with process as scheduler:
        await full.drained(1.0)
        (recording,) = folder.iterdir()
        # The header alone is shorter.
        written = recording.stat().st_size
        await wait_until(lambda: recording.stat().st_size != written)
        scheduler.kill()
        await scheduler.wait()
    answer = await _json(folder)
    assert answer["end"].startswith(("open", "cut"))
    assert answer["calls"] > 0
