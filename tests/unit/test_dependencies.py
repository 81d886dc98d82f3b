"""Dependencies are few, and each has a reason and a bounded version range."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PYPROJECT = Path("pyproject.toml").read_text(encoding="utf-8")
PROJECT = tomllib.loads(PYPROJECT)["project"]
RUN_TIME: list[str] = PROJECT["dependencies"]
ALL = [
    *RUN_TIME,
    *(each for extra in PROJECT["optional-dependencies"].values() for each in extra),
]
OTHERS = [each for each in ALL if not each.startswith("stowage")]
VERSION = Path("scheduler/stowage/VERSION").read_text(encoding="utf-8").strip()
MOST_AT_RUN_TIME = 14
#: Modules that are a part of what another distribution offers.
PARTS = {"distributed": ["dask"], "multidict": ["aiohttp"], "yarl": ["aiohttp"]}
CODE = ("scheduler", "simcluster", "benchmarks", "tests")


def test_run_time_dependencies_are_few() -> None:
    assert len(RUN_TIME) <= MOST_AT_RUN_TIME


@pytest.mark.parametrize("dependency", OTHERS)
def test_each_dependency_has_a_reason(dependency: str) -> None:
    assert re.search(rf'"{re.escape(dependency)}", *# \S+', PYPROJECT)


@pytest.mark.parametrize("dependency", RUN_TIME)
def test_each_run_time_dependency_is_bounded_and_installed_within_its_range(
    dependency: str,
) -> None:
    requirement = Requirement(dependency)
    assert {each.operator for each in requirement.specifier} == {">=", "<"}
    assert version(requirement.name) in requirement.specifier


@pytest.mark.parametrize(
    ("folder", "project"),
    [("scheduler", "."), ("simcluster", "simcluster"), ("benchmarks", "benchmarks")],
)
def test_a_distribution_declares_exactly_what_it_imports(folder: str, project: str) -> None:
    declared = tomllib.loads(Path(project, "pyproject.toml").read_text(encoding="utf-8"))["project"]
    run_time = _names(declared["dependencies"])
    extras = declared.get("optional-dependencies", {}).values()
    known = run_time.union({declared["name"]}, *map(_names, extras))
    imported = _imported_distributions(Path(folder))
    assert [module for module, places in imported.items() if not places & known] == []
    assert run_time - set().union(*imported.values()) == set()


def _names(requirements: list[str]) -> set[str]:
    return {canonicalize_name(Requirement(each).name) for each in requirements}


def _imported_distributions(folder: Path) -> dict[str, set[str]]:
    """The distributions from which an imported module may be, by module."""
    modules = {
        name.partition(".")[0]
        for file in folder.rglob("*.py")
        if "tests" not in file.parts
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        for name in _imported_modules(node)
    }
    known = {**packages_distributions(), **PARTS}
    return {
        name: {canonicalize_name(each) for each in known[name]}
        for name in sorted(modules - sys.stdlib_module_names)
    }


def _imported_modules(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [each.name for each in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module else []


@pytest.mark.parametrize(
    "project", [".", "simcluster", "benchmarks", "examples/plugins", "examples/gpushare"]
)
def test_a_distribution_names_this_version_of_the_others(project: str) -> None:
    # Another project has the name stowage on PyPI: a range could be taken from there.
    declared = tomllib.loads(Path(project, "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = declared.get("optional-dependencies", {}).values()
    named = [*declared["dependencies"], *(each for extra in extras for each in extra)]
    ours = [Requirement(each) for each in named if each.startswith("stowage")]
    assert ours
    assert {str(each.specifier) for each in ours} == {f"=={VERSION}"}


def test_nothing_tells_to_install_the_project_of_this_name_on_pypi() -> None:
    """Neither a page nor a message: on PyPI, stowage is a manager of dotfiles."""
    told = re.compile(r"\b(pip|pipx|uv) +(pip +)?install +(-\S+ +)*['\"]?stowage\b(?![/_])")
    places = [
        *Path().glob("*.md"),
        *(file for folder in ("docs", "examples") for file in Path(folder).rglob("*.md")),
        *(file for folder in CODE for file in Path(folder).rglob("*.py")),
    ]
    assert len(places) > 1000
    found = [str(each) for each in places if told.search(each.read_text(encoding="utf-8"))]
    assert found == []
