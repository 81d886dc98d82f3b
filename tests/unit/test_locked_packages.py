"""The files of requirements/ fix every package that the image installs, by version and hash."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

RUN = Path("requirements/run.txt")
BUILD = Path("requirements/build.txt")
TRACING = Path("requirements/tracing.txt")
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]


def _entries(file: Path) -> list[tuple[Requirement, list[str]]]:
    """Each requirement of the file with its hashes."""
    text = re.sub(r"(?m)^ *#.*\n", "", file.read_text(encoding="utf-8")).replace("\\\n", "")
    split = [line.split(" --hash=") for line in text.splitlines()]
    return [(Requirement(words[0]), [word.strip() for word in words[1:]]) for words in split]


def _environment(python: str) -> dict[str, str]:
    versions = {"python_version": python, "python_full_version": f"{python}.0"}
    return {key: str(value) for key, value in default_environment().items()} | versions


def _locked(file: Path, python: str) -> dict[str, str]:
    """Package -> version, as an installer reads the file with this version of Python."""
    environment = _environment(python)
    applying = [
        requirement
        for requirement, _ in _entries(file)
        if requirement.marker is None or requirement.marker.evaluate(environment)
    ]
    versions: dict[str, str] = {
        canonicalize_name(each.name): str(each.specifier).removeprefix("==") for each in applying
    }
    assert len(versions) == len(applying)
    return versions


def _declared(project: str) -> dict[str, list[str]]:
    text = (Path(project) / "pyproject.toml").read_text(encoding="utf-8")
    tables = tomllib.loads(text)
    run = [each for each in tables["project"]["dependencies"] if not each.startswith("stowage")]
    extras = tables["project"].get("optional-dependencies", {})
    return {
        "run": run,
        "tracing": [*run, *extras.get("tracing", ())],
        **tables.get("dependency-groups", {}),
    }


def _unsatisfied(requirements: Iterable[str], locked: dict[str, str]) -> list[str]:
    parsed = [Requirement(each) for each in requirements]
    return [
        str(each)
        for each in parsed
        if locked.get(canonicalize_name(each.name), "") not in each.specifier
    ]


@pytest.mark.parametrize("file", [RUN, TRACING, BUILD], ids=lambda file: file.stem)
def test_every_package_has_one_version_and_hashes(file: Path) -> None:
    entries = _entries(file)
    assert entries
    for requirement, hashes in entries:
        assert [each.operator for each in requirement.specifier] == ["=="], requirement
        assert hashes, requirement
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", each) for each in hashes), requirement


@pytest.mark.parametrize("file", [RUN, TRACING, BUILD], ids=lambda file: file.stem)
def test_no_index_is_named(file: Path) -> None:
    assert not re.search(r"://|--(extra-)?index-url|--find-links", file.read_text(encoding="utf-8"))


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("project", [".", "simcluster"])
def test_the_locked_versions_satisfy_the_declared_ranges(project: str, python: str) -> None:
    assert _unsatisfied(_declared(project)["run"], _locked(RUN, python)) == []


@pytest.mark.parametrize("file", [RUN, TRACING], ids=lambda file: file.stem)
def test_macos_on_intel_gets_the_last_cryptography_that_has_a_wheel_for_it(file: Path) -> None:
    intel = default_environment() | {"sys_platform": "darwin", "platform_machine": "x86_64"}
    found = [
        requirement.specifier
        for requirement, _ in _entries(file)
        if requirement.name == "cryptography"
        and requirement.marker is not None
        and requirement.marker.evaluate({key: str(value) for key, value in intel.items()})
    ]
    assert [each.contains("48.0.1") for each in found] == [True]


@pytest.mark.parametrize("python", PYTHONS)
def test_the_packages_with_tracing_are_those_without_and_opentelemetry(python: str) -> None:
    run, tracing = _locked(RUN, python), _locked(TRACING, python)
    assert _unsatisfied(_declared(".")["tracing"], tracing) == []
    assert run.items() < tracing.items()


@pytest.mark.parametrize("python", PYTHONS)
def test_the_locked_build_tools_satisfy_the_declared_ranges(python: str) -> None:
    assert _unsatisfied(_declared(".")["build"], _locked(BUILD, python)) == []


@pytest.mark.parametrize(("file", "group"), [(RUN, "run"), (TRACING, "tracing"), (BUILD, "build")])
def test_everything_that_a_package_requires_is_locked_and_nothing_else(
    file: Path, group: str
) -> None:
    asked: set[tuple[str, frozenset[str]]] = set()
    waiting = [Requirement(each) for each in _declared(".")[group]]
    while waiting:
        requirement = waiting.pop()
        key = (canonicalize_name(requirement.name), frozenset(requirement.extras))
        if key not in asked:
            asked.add(key)
            waiting += _requirements(requirement)
    python = ".".join(default_environment()["python_full_version"].split(".")[:2])
    assert set(_locked(file, python)) == {name for name, _ in asked}


def _requirements(requirement: Requirement) -> list[Requirement]:
    """What an installed package requires, with the extras that are asked for."""
    environments = [{"extra": extra} for extra in ("", *requirement.extras)]
    needed = [Requirement(each) for each in requires(requirement.name) or ()]
    return [
        each
        for each in needed
        if each.marker is None or any(each.marker.evaluate(dict(env)) for env in environments)
    ]


@pytest.mark.parametrize("python", PYTHONS)
def test_packages_in_both_files_have_the_same_version(python: str) -> None:
    run, build = _locked(RUN, python), _locked(BUILD, python)
    assert {name: run[name] for name in run.keys() & build} == {
        name: build[name] for name in run.keys() & build
    }
