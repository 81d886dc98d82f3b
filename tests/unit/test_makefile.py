"""What `make demo` and `make install` do on a fresh checkout."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 60.0


def _make(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", *arguments],
        check=False,
        cwd=ROOT,
        capture_output=True,
        text=True,
        # Not those of the `make test` that runs this test.
        env={key: value for key, value in os.environ.items() if not key.startswith("MAKE")},
        timeout=TIMEOUT_S,
    )


def _commands(target: str, venv: Path) -> str:
    """The commands that make would run with this environment."""
    answer = _make("--dry-run", target, f"VENV={venv}")
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def _environment(folder: Path, checkout: str) -> Path:
    """An environment that was installed in a checkout."""
    venv = folder / "venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").symlink_to(sys.executable)
    (venv / ".runtime").write_text(f"{checkout}\n")
    return venv


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


def test_what_is_installed_is_not_installed_again(tmp_path: Path) -> None:
    venv = _environment(tmp_path, str(ROOT))
    assert _commands("demo", venv).splitlines() == [f"{venv}/bin/stowage demo"]


def test_the_environment_of_a_checkout_that_was_moved_is_made_anew(tmp_path: Path) -> None:
    venv = _environment(tmp_path, "/where/it/was")
    assert f"-m venv --clear {venv}" in _commands("demo", venv)


def test_an_environment_whose_python_is_gone_is_made_anew(tmp_path: Path) -> None:
    venv = _environment(tmp_path, str(ROOT))
    (venv / "bin" / "python").unlink()
    (venv / "bin" / "python").symlink_to("/removed/by/an/upgrade")
    assert f"-m venv --clear {venv}" in _commands("demo", venv)


def test_a_python_that_is_too_old_is_refused_before_anything_is_installed(tmp_path: Path) -> None:
    old = tmp_path / "python3"
    old.write_text(
        "#!/bin/sh\n"
        f"exec '{sys.executable}' -c "
        "'import sys; sys.version_info = (3, 9, 6); exec(sys.argv[2])' \"$@\"\n"
    )
    old.chmod(0o755)
    answer = _make("demo", f"VENV={tmp_path / 'venv'}", f"PYTHON={old}")
    assert answer.returncode != 0
    assert f"Stowage needs Python 3.11 or newer, and {old} is 3.9" in answer.stderr
    assert not (tmp_path / "venv").exists()


def test_help_lists_targets_and_what_they_do_in_two_columns() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    described = re.findall(r"^([a-z-]+):.*?## (.*)$", makefile, re.MULTILINE)
    assert {"install", "demo", "test"} <= {name for name, _ in described}
    assert _make("help").stdout == "".join(f"{name:14}{text}\n" for name, text in described)
