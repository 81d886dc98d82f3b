"""Packages whose own code does not run until it is needed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from stowage.cli.lean_libraries import empty_modules, empty_packages, without_blas_threads

NAME = "heavy_package_of_a_test"


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package with a submodule; its own code sets ``VALUE``."""
    folder = tmp_path / NAME
    folder.mkdir()
    (folder / "__init__.py").write_text("from .part import SMALL\nVALUE = SMALL + 1\n")
    (folder / "part.py").write_text("SMALL = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in [name for name in sys.modules if name.startswith(NAME)]:
        del sys.modules[name]


def test_a_submodule_is_imported_without_the_code_of_its_package() -> None:
    with empty_packages(NAME) as packages:
        assert import_module(f"{NAME}.part").SMALL == 1
        exec(f"from {NAME} import part", {})
        assert "VALUE" not in vars(packages[NAME])


def test_the_code_of_a_package_runs_when_something_of_it_is_needed() -> None:
    with empty_packages(NAME) as packages:
        assert packages[NAME].VALUE == 2
        with pytest.raises(AttributeError, match="nothing"):
            _ = packages[NAME].nothing


def test_an_import_after_the_block_runs_the_code_of_the_package() -> None:
    with empty_packages(NAME):
        import_module(f"{NAME}.part")
    assert import_module(NAME).VALUE == 2


def test_a_module_is_empty_for_those_who_import_it_in_the_block() -> None:
    with empty_modules(f"{NAME}.part"):
        assert "SMALL" not in vars(import_module(f"{NAME}.part"))
    assert import_module(f"{NAME}.part").SMALL == 1


def test_the_code_of_an_empty_module_runs_when_something_of_it_is_needed() -> None:
    """A later version of the library may have in it what it needs."""
    scope: dict[str, int] = {}
    with empty_modules(f"{NAME}.part"):
        exec(f"from {NAME}.part import SMALL", {}, scope)
        with pytest.raises(ImportError, match="nothing"):
            exec(f"from {NAME}.part import nothing", {})
    assert scope["SMALL"] == 1
    assert sys.modules[f"{NAME}.part"].SMALL == 1


def test_a_module_that_was_imported_before_stays() -> None:
    import_module(f"{NAME}.part")
    with empty_modules(f"{NAME}.part"):
        assert import_module(f"{NAME}.part").SMALL == 1
    assert f"{NAME}.part" in sys.modules


def test_the_number_of_blas_threads_is_set_for_the_import_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    with without_blas_threads():
        assert os.environ["OPENBLAS_NUM_THREADS"] == "1"
    assert "OPENBLAS_NUM_THREADS" not in os.environ


def test_a_number_of_blas_threads_in_the_environment_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "4")
    with without_blas_threads():
        assert os.environ["OPENBLAS_NUM_THREADS"] == "4"
    assert os.environ["OPENBLAS_NUM_THREADS"] == "4"
