"""An outage of the API server leaves a few lines in the log, not one for each failed request."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from simcluster import ClusterOptions, SimulatedCluster, make_node
from simcluster.kinds.resources import PODS
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S, wait_until
from tests.integration.faults import accelerated_scheduler
from tests.support.integration.full_cluster import CAPACITY, small_pod

FACTOR = 10.0
OUTAGE_S = 25.0
TOKEN = "administrator"


class _Log:
    def __init__(self, path: Path) -> None:
        self._path = path
        path.touch()

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._path.read_text().splitlines()]

    def events(self) -> list[str]:
        return [line["event"] for line in self.lines()]


@asynccontextmanager
async def _scheduler(kubeconfig: Path, log: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", accelerated_scheduler.__name__, str(kubeconfig), str(FACTOR)),
            stdout=output,
            stderr=output,
            env={**os.environ, "PYTHONPATH": os.pathsep.join((str(Path.cwd()), *sys.path))},
        )
    try:
        yield process
        process.terminate()
        assert await asyncio.wait_for(process.wait(), WAIT_TIMEOUT_S) == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_an_outage_of_25_seconds_leaves_a_line_for_each_cause_and_one_for_its_end(
    tmp_path: Path,
) -> None:
    nodes = [make_node("n0", dict(CAPACITY), {})]
    log = _Log(tmp_path / "log")
    async with SimulatedCluster(nodes, ClusterOptions(token=TOKEN)) as cluster:
        kubeconfig = cluster.write_kubeconfig(tmp_path / "kubeconfig")
        async with _scheduler(kubeconfig, tmp_path / "log"):
            cluster.registry.create(PODS, "default", small_pod("p"))
            await wait_until(lambda: "scheduled" in log.events())
            num_before = len(log.lines())
            await cluster.server.be_away(OUTAGE_S / FACTOR)
            await wait_until(lambda: "the API server answers again" in log.events())
            lines = log.lines()[num_before:]
    failures = [each for each in lines if each["event"] == "the API server does not answer"]
    causes = [each["error"] for each in failures]
    assert "connection refused" in causes
    assert len(causes) == len(set(causes)) <= 2
    assert {each["level"] for each in failures} == {"warning"}
    assert {each["server"] for each in failures} == {cluster.url.removeprefix("http://")}
    (recovery,) = (each for each in lines if each["event"] == "the API server answers again")
    assert recovery["seconds"] >= OUTAGE_S / 2
    assert recovery["suppressed"] > 10
    repeated = Counter(str({**line, "timestamp": None, "seconds": None}) for line in lines)
    assert max(repeated.values()) == 1, repeated
    assert "ConnectionKey" not in str(lines)
