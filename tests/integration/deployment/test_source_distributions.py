"""The source distributions: what they contain, and that the wheels can be built from them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from email.parser import Parser
from pathlib import Path

import pytest

from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S

ROOT = Path(__file__).parents[3]
VERSION = (ROOT / "scheduler/stowage/VERSION").read_text(encoding="utf-8").strip()
#: Distribution -> its project folder, and the folder of its package.
PROJECTS: Mapping[str, tuple[str, str]] = {
    "stowage": (".", "scheduler/stowage"),
    "stowage_simcluster": ("simcluster", "simcluster/simcluster"),
    "stowage_benchmarks": ("benchmarks", "benchmarks/stowage_benchmarks"),
}
#: Folders of the repository; what else lies there was made by tools.
FOLDERS = (
    *(".ci", "benchmarks", "config", "docs", "examples", "manifests"),
    *("requirements", "scheduler", "simcluster", "tests"),
)
GENERATED = (
    "__pycache__",
    "*.egg-info",
    "build",
    ".venv",
    "*_cache",
    ".hypothesis",
    ".git",
    "dist",
    "node_modules",
)


def _run(*command: str, cwd: Path) -> None:
    subprocess.run(
        [sys.executable, *command],
        cwd=cwd,
        check=True,
        capture_output=True,
        timeout=WAIT_TIMEOUT_S,
    )


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Each source distribution, built from a copy of the repository and unpacked."""
    folder = tmp_path_factory.mktemp("sdist")
    copy = folder / "repository"
    shutil.copytree(ROOT, copy, symlinks=True, ignore=shutil.ignore_patterns(*GENERATED))
    build = f"import setuptools.build_meta as backend; backend.build_sdist({str(folder)!r})"
    for name, (project, _) in PROJECTS.items():
        _run("-c", build, cwd=copy / project)
        with tarfile.open(folder / f"{name}-{VERSION}.tar.gz") as archive:
            archive.extractall(folder, filter="data")
    return {name: folder / f"{name}-{VERSION}" for name in PROJECTS}


def _files(root: Path, below: str = ".") -> set[Path]:
    files = {
        Path(folder, file).relative_to(root)
        for folder, _, names in os.walk(root / below, followlinks=True)
        for file in names
    }
    made = ("__pycache__", ".egg-info", "_cache", "node_modules")
    return {file for file in files if not any(part.endswith(made) for part in file.parts)}


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_source_distribution_contains_the_folders_of_the_repository(
    unpacked: dict[str, Path], folder: str
) -> None:
    expected = _files(ROOT, folder)
    assert expected
    assert _files(unpacked["stowage"], folder) == expected


def test_the_source_distribution_contains_the_files_of_the_top_level(
    unpacked: dict[str, Path],
) -> None:
    needed = "CHANGELOG.md CONTRIBUTING.md Dockerfile LICENSE Makefile README.md conftest.py"
    files = {file.name for file in unpacked["stowage"].iterdir() if file.is_file()}
    assert {*needed.split(), ".dockerignore", ".gitignore", "pyproject.toml"} <= files


@pytest.fixture(scope="module")
def wheels(unpacked: dict[str, Path]) -> dict[str, Path]:
    """The contents of the wheel that is built from each source distribution."""
    return {name: _unpacked_wheel(folder) for name, folder in unpacked.items()}


def _unpacked_wheel(source: Path) -> Path:
    target = source.with_name(f"{source.name}-wheel")
    _run(
        *("-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"),
        *("--wheel-dir", str(target), "."),
        cwd=source,
    )
    (wheel,) = target.glob("*.whl")
    shutil.unpack_archive(wheel, target / "content", format="zip")
    return target / "content"


@pytest.mark.parametrize("name", PROJECTS)
def test_a_wheel_of_a_source_distribution_contains_every_module(
    wheels: dict[str, Path], name: str
) -> None:
    source = ROOT / PROJECTS[name][1]
    expected = {file for file in _files(source.parent, source.name) if "tests" not in file.parts}
    modules = {file for file in expected if file.suffix == ".py"}
    assert modules
    assert {file for file in _files(wheels[name]) if file.suffix == ".py"} == modules


@pytest.mark.parametrize("name", PROJECTS)
def test_a_wheel_contains_licence_and_metadata(wheels: dict[str, Path], name: str) -> None:
    (information,) = wheels[name].glob("*.dist-info")
    assert (information / "licenses/LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    metadata = Parser().parsestr((information / "METADATA").read_text(encoding="utf-8"))
    assert metadata["Version"] == VERSION
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Summary"]
    assert metadata["Keywords"]
    assert "Programming Language :: Python :: 3 :: Only" in metadata.get_all("Classifier", [])
