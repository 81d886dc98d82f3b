"""A full disk ends neither scheduling nor the process, and is said once."""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from collections import Counter
from pathlib import Path

import pytest

from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S
from tests.support.integration.full_cluster import full_cluster

ROOM = 1
"""Bytes that a file may have."""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits a process that runs already")
async def test_scheduling_goes_on_without_room_for_recording_and_decisions(tmp_path: Path) -> None:
    async with full_cluster(tmp_path / "kubeconfig", num_nodes=4) as full:
        full.fill(4)
        flags = (
            *("--leader-elect=false", "--secure-port=0", f"--kubeconfig={full.kubeconfig}"),
            *(f"--record={tmp_path / 'recording'}", f"--decision-log={tmp_path / 'decisions'}"),
            "--logging-format=json",
        )
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "stowage.cli", "run", *flags),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            await full.drained(1.0)
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (ROOM, resource.RLIM_INFINITY))
            for _ in range(3):
                full.fill(4)
                await full.drained(1.0)
            process.terminate()
            output, _ = await asyncio.wait_for(process.communicate(), WAIT_TIMEOUT_S)
        finally:
            if process.returncode is None:
                process.kill()
    lines = [json.loads(line) for line in output.splitlines() if line.startswith(b"{")]
    said = Counter(line["event"] for line in lines)
    assert process.returncode == 0
    assert (said["the recording ended"], said["decision log not written"]) == (1, 1)
    assert all("File too large" in str(line) for line in lines if "not written" in line["event"])
    assert full.auditor.violations == []
