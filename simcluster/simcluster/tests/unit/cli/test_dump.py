"""``stowage dump`` writes what it may read."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from typer.testing import CliRunner

from simcluster import ClusterOptions, SimulatedCluster, write_kubeconfig
from stowage.cli.main import app


async def test_nothing_is_written_if_nothing_may_be_read(tmp_path: Path) -> None:
    file, kubeconfig = tmp_path / "dump.json", tmp_path / "kubeconfig"
    options = ClusterOptions(token="administrator", rbac=True)
    async with SimulatedCluster(options=options) as cluster:
        write_kubeconfig(kubeconfig, cluster.url)
        command = ["dump", str(file), f"--kubeconfig={kubeconfig}"]
        result = await asyncio.to_thread(CliRunner().invoke, app, command)
    assert result.exit_code == 1
    assert "left out nodes: " in result.stderr
    assert "not written: nothing could be read" in result.stderr
    assert not file.exists()


def test_a_refused_file_is_named_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a:cat:b.json").touch()
    result = CliRunner().invoke(app, ["dump", "a:cat:b.json"])
    assert result.exit_code == 1
    assert "a:cat:b.json exists" in result.stderr
