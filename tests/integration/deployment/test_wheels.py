"""The wheels of the three distributions: their files and their commands."""

import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S
from tests.support.installed_packages import link_dependencies

ROOT = Path(__file__).parents[3]
#: Distribution -> its project folder, and what that folder needs from the repository.
PROJECTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "stowage": (".", ("pyproject.toml", "README.md", "LICENSE", "scheduler")),
    "stowage_simcluster": ("simcluster", ("simcluster", "scheduler/stowage/VERSION", "examples")),
    "stowage_benchmarks": ("benchmarks", ("benchmarks", "scheduler/stowage/VERSION")),
}
VERSION = (ROOT / "scheduler/stowage/VERSION").read_text().strip()


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheel of each distribution, built from a copy of its sources."""
    return {name: _build(name, tmp_path_factory.mktemp(name)) for name in PROJECTS}


def _build(name: str, folder: Path) -> Path:
    project, sources = PROJECTS[name]
    for source in sources:
        _copy(ROOT / source, folder / "src" / source)
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index"),
            *("--no-build-isolation", "--wheel-dir", str(folder), str(folder / "src" / project)),
        ],
        check=True,
        timeout=WAIT_TIMEOUT_S,
    )
    (wheel,) = folder.glob("*.whl")
    return wheel


def _copy(source: Path, target: Path) -> None:
    """Copy without files that builds and tests create."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        ignore = shutil.ignore_patterns("__pycache__", "*.egg-info", "build", "node_modules")
        shutil.copytree(source, target, ignore=ignore, symlinks=True)
    else:
        shutil.copy(source, target)


def _files(wheel: Path) -> list[str]:
    return zipfile.ZipFile(wheel).namelist()


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("stowage", "stowage"),
        ("stowage_simcluster", "simcluster"),
        ("stowage_benchmarks", "stowage_benchmarks"),
    ],
)
def test_a_wheel_contains_its_package_without_tests(
    wheels: dict[str, Path], name: str, package: str
) -> None:
    files = _files(wheels[name])
    assert {file.split("/")[0] for file in files} == {package, f"{name}-{VERSION}.dist-info"}
    assert not [file for file in files if "/tests/" in file]
    modules = {file for file in files if file.endswith(".py")}
    folder = next(ROOT.glob(f"*/{package}"))
    expected = {
        f"{package}/{file.relative_to(folder)}"
        for file in folder.rglob("*.py")
        if "tests" not in file.relative_to(folder).parts
    }
    assert modules == expected


def test_the_wheels_contain_their_data_files(wheels: dict[str, Path]) -> None:
    assert "stowage/py.typed" in _files(wheels["stowage"])
    files = _files(wheels["stowage_simcluster"])
    samples = {f"simcluster/demo/manifests/{each.name}" for each in ROOT.glob("examples/demo/*")}
    assert samples
    assert samples <= set(files)
    data = {
        f"simcluster/{file.relative_to(ROOT / 'simcluster/simcluster')}"
        for file in (ROOT / "simcluster/simcluster").rglob("*.json")
        if "tests" not in file.parts
    }
    assert data
    assert data <= set(files)


@pytest.fixture(scope="module")
def dependencies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all installed packages except Stowage's distributions."""
    return link_dependencies(tmp_path_factory.mktemp("dependencies"))


@pytest.mark.parametrize(
    ("installed", "offered"),
    [
        (["stowage"], {"run", "config"}),
        (["stowage", "stowage_simcluster"], {"run", "config", "cluster", "demo", "dump"}),
        (list(PROJECTS), {"run", "config", "cluster", "demo", "dump", "bench"}),
    ],
    ids=["the scheduler alone", "with the simulated cluster", "with the benchmarks"],
)
def test_commands_exist_when_their_distribution_is_installed(
    wheels: dict[str, Path],
    dependencies: Path,
    tmp_path: Path,
    installed: list[str],
    offered: set[str],
) -> None:
    for name in installed:
        zipfile.ZipFile(wheels[name]).extractall(tmp_path)
    listed = set()
    for command in ("run", "config", "cluster", "demo", "dump", "bench"):
        answer = subprocess.run(
            [sys.executable, "-S", "-m", "stowage.cli", command, "--help"],
            cwd=tmp_path,
            env={"PYTHONPATH": f"{tmp_path}:{dependencies}"},
            capture_output=True,
            text=True,
            check=False,
            timeout=WAIT_TIMEOUT_S,
        )
        if answer.returncode == 0:
            assert "Usage" in answer.stdout
            listed.add(command)
        else:
            distribution = "stowage-benchmarks" if command == "bench" else "stowage-simcluster"
            assert f"'{command}' needs the package {distribution}" in answer.stderr
    assert listed == offered
