"""What `make demo` and `make install` do on a fresh checkout."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

TIMEOUT_S = 60.0


def _commands(target: str, venv: Path) -> str:
    """The commands that make would run where nothing is installed yet."""
    answer = subprocess.run(
        ["make", "--dry-run", target, f"VENV={venv}"],
        capture_output=True,
        text=True,
        check=True,
        # Not those of the `make test` that runs this test.
        env={key: value for key, value in os.environ.items() if not key.startswith("MAKE")},
        timeout=TIMEOUT_S,
    )
    return answer.stdout


def test_make_demo_installs_locked_run_time_packages_and_no_tools(tmp_path: Path) -> None:
    commands = _commands("demo", tmp_path / "venv")
    assert "--require-hashes --requirement requirements/run.txt" in commands
    assert "--no-deps --editable . --editable simcluster" in commands
    assert "requirements/build.txt" not in commands
    assert "[dev" not in commands
    assert commands.splitlines()[-1].endswith("/bin/stowage demo")


def test_make_install_adds_the_tools_to_what_make_demo_installs(tmp_path: Path) -> None:
    commands = _commands("install", tmp_path / "venv")
    assert "requirements/run.txt" in commands
    assert "requirements/build.txt" in commands
    assert "--editable '.[dev,docs,simulate,tracing]'" in commands


@pytest.mark.parametrize("target", ["demo", "install"])
def test_an_installation_shows_its_progress(tmp_path: Path, target: str) -> None:
    commands = _commands(target, tmp_path / "venv")
    assert "--quiet" not in commands
    assert "which takes" in commands


def test_pip_installs_what_uv_cannot(tmp_path: Path) -> None:
    with_uv = [
        line for line in _commands("install", tmp_path / "venv").splitlines() if "/uv " in line
    ]
    assert with_uv
    assert all("|| " in line and " -m pip install " in line for line in with_uv)
