"""The files in ``static`` are what the sources in ``page`` give."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from stowage.console.serving.static_files import FOLDER

PAGE = FOLDER.parent / "page"
MOST_BYTES = 900_000
BUILD_S = 300.0


def run(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=BUILD_S, check=False
    )


def contents(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in folder.iterdir()}


def test_a_build_gives_the_same_bytes(tmp_path: Path) -> None:
    """Only where npm and its registry are at hand: `npm ci` in a copy of the sources."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("npm is missing")
    source, built = tmp_path / "page", tmp_path / "static"
    shutil.copytree(PAGE, source, ignore=shutil.ignore_patterns("node_modules"))
    built.mkdir()
    installed = run("npm", "ci", "--ignore-scripts", "--fetch-retries=0", cwd=source)
    if installed.returncode != 0:
        pytest.skip(f"npm has no registry: {installed.stderr[-300:]}")
    done = run("node", "build.mjs", str(built), cwd=source)
    assert done.returncode == 0, done.stderr
    assert sorted(contents(built)) == sorted(contents(FOLDER))
    different = [name for name, data in contents(built).items() if contents(FOLDER)[name] != data]
    assert different == [], "run make console, and commit what it changes"


def test_the_lock_file_names_no_registry() -> None:
    packages = json.loads((PAGE / "package-lock.json").read_text())["packages"]
    assert len(packages) > 20
    assert [name for name, each in packages.items() if "resolved" in each] == []


def test_every_bundled_package_has_its_licence() -> None:
    text = (FOLDER / "LICENSES.txt").read_text()
    direct = json.loads((PAGE / "package.json").read_text())["dependencies"]
    named = dict(re.findall(r"^(\S+) (\S+) \(\S+\)$", text, re.MULTILINE))
    assert {name: version for name, version in direct.items() if named.get(name) != version} == {}
    bodies = text.split("-" * 72)[1:]
    assert len(bodies) == len(named) > len(direct)
    assert min(map(len, bodies)) > 500


def test_the_page_names_no_other_host_and_stays_small() -> None:
    files = contents(FOLDER)
    index = files["index.html"].decode()
    assert re.findall(r"https?://", index) == []
    assert sum(map(len, files.values())) < MOST_BYTES
    for name, data in files.items():
        if name.endswith(".css"):
            assert re.findall(rb"url\((?!\"?\./|data:)", data) == [], name
