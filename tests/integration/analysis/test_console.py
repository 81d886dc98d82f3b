"""``stowage console`` shows a running cluster, and writes nothing to it."""

from __future__ import annotations

import asyncio
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S
from tests.support.integration.audited_cluster import (
    UNAUTHORIZED,
    AuditedCluster,
    audited_cluster,
)

RIGHTS = Path("docs/how-to/console.md")
_ADDRESS = re.compile(r"the console is at (http://127\.0\.0\.1:\d+)/\?token=(\S+)")


@pytest.fixture
async def shown(tmp_path: Path) -> AsyncIterator[AuditedCluster]:
    async with audited_cluster(RIGHTS, tmp_path) as cluster:
        yield cluster


async def start(*arguments: str) -> asyncio.subprocess.Process:
    command = (sys.executable, "-m", "stowage.cli", "console", *arguments)
    return await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)


class Page:
    """Asks a running console."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def get(self, path: str) -> Any:
        """The answer, as soon as the cluster is read."""
        while True:
            async with self._session.get(path) as response:
                if response.status == 200:
                    return await response.json()
                assert response.status == 503, await response.text()
            await asyncio.sleep(0.05)

    async def told(self, event: str) -> str:
        """The data of the next message of a kind on the stream."""
        async with self._session.get("/stream") as response:
            async for line in response.content:
                if line.decode().strip() == f"event: {event}":
                    return (await response.content.readline()).decode()
        raise AssertionError("the stream ended")


@asynccontextmanager
async def console(*arguments: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, Page]]:
    """A running console, and its page."""
    process = await start(*arguments)
    assert process.stderr is not None
    try:
        async with asyncio.timeout(WAIT_TIMEOUT_S):
            line = (await process.stderr.readline()).decode()
            match = _ADDRESS.match(line)
            assert match, line
            headers = {"Authorization": f"Bearer {match[2]}"}
            async with aiohttp.ClientSession(match[1], headers=headers) as session:
                yield process, Page(session)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_a_binding_in_the_cluster_is_shown_and_nothing_is_written(
    shown: AuditedCluster,
) -> None:
    shown.create_pod("early")
    async with console("--kubeconfig", shown.kubeconfig()) as (process, page):
        pending = await page.get("/api/pending")
        assert [each["pod"] for each in pending["pods"]] == ["default/early"]
        told = asyncio.create_task(page.told("decisions"))
        await page.get("/api/cluster")
        shown.bind_pod("early", "savanna")
        assert '"pod":"default/early"' in await told
        node = await page.get("/api/nodes/savanna")
        assert [each["pod"] for each in node["pods"]] == ["default/early"]
        (row,) = (await page.get("/api/decisions"))["decisions"]
        assert (row["node"], row["result"], row["exact"]) == ("savanna", "scheduled", False)
        about = await page.get("/api/about")
        assert about["notes"] == []
        answers = [await page.get(path) for path in ("/api/pods/default/early", "/api/pods?q=")]
        assert "hunter2" not in repr([node, about, *answers])
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 0
    assert shown.verbs == {"list", "watch"}


async def test_a_user_without_rights_is_told(shown: AuditedCluster) -> None:
    process = await start("--kubeconfig", shown.kubeconfig(UNAUTHORIZED))
    async with asyncio.timeout(WAIT_TIMEOUT_S):
        _, errors = await process.communicate()
    assert process.returncode == 1
    assert "forbidden" in errors.decode()


async def test_objects_in_a_file_are_shown(tmp_path: Path) -> None:
    file = tmp_path / "node.yaml"
    file.write_text("kind: Node\nmetadata: {name: n, uid: u}\n")
    async with console("--from", str(file)) as (process, page):
        assert (await page.get("/api/cluster"))["names"] == ["n"]
        about = await page.get("/api/about")
        assert about["source"]["kind"] == "files"
        assert (about["live"], about["decisions"]) == (False, "none")
        process.terminate()
        assert await process.wait() == 0


async def test_an_unreadable_file_ends_the_command(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("just text")
    process = await start("--from", str(file))
    async with asyncio.timeout(WAIT_TIMEOUT_S):
        _, errors = await process.communicate()
    assert process.returncode == 1
    assert "expected an object with a kind" in " ".join(errors.decode().split())
