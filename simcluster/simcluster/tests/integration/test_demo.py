"""`stowage demo`, which starts a cluster process and a scheduler process."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S

STOWAGE = [sys.executable, "-m", "stowage.cli"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of this demo's files, separate from demos that run at the same time."""
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def demo(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*STOWAGE, "demo"],
        capture_output=True,
        check=False,
        text=True,
        timeout=2 * WAIT_TIMEOUT_S,
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": "/nonexistent",
            "COLUMNS": "120",
            "TMPDIR": str(folder),
        },
    )


def test_the_demo_succeeds(demo: subprocess.CompletedProcess[str]) -> None:
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert "ok: every pod that fits a node was bound, once" in demo.stdout


def test_the_demo_prints_the_placement_of_pods(demo: subprocess.CompletedProcess[str]) -> None:
    for words in ("Placed on 100 nodes", "zone-a", "large", "batch-report", "gpu-training"):
        assert words in demo.stdout


def test_the_web_pods_are_spread_evenly_over_the_zones(
    demo: subprocess.CompletedProcess[str],
) -> None:
    row = re.search(r"\bweb\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)", demo.stdout)
    assert row is not None
    pods, bound, *by_zone = map(int, row.groups())
    assert pods == bound == sum(by_zone)
    assert max(by_zone) - min(by_zone) <= 1


def test_the_demo_prints_why_pods_are_pending(demo: subprocess.CompletedProcess[str]) -> None:
    text = " ".join(demo.stdout.split())
    assert "harbour/whale" in text
    assert "0/100 nodes are available" in text
    assert "Insufficient cpu" in text
    assert "untolerated taint(s)" in text
    assert "non-empty scheduling gates" in text


def test_the_demo_prints_the_scheduling_rate(demo: subprocess.CompletedProcess[str]) -> None:
    assert re.search(r"binds/s\s+creation to binding p50\s+p99", demo.stdout)
    assert re.search(r"\d+ ms", demo.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc")
def test_the_demo_ends_its_processes(demo: subprocess.CompletedProcess[str], folder: Path) -> None:
    assert demo.returncode == 0
    left = [
        path.parent.name
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if bytes(folder) in _command_line(path)
    ]
    assert left == []


def _command_line(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
