"""Modules that nobody uses are not executed, and those that somebody uses are as ever."""

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler.operator.imported_when_used import imported_when_used


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    folder = tmp_path / "heavy_package"
    folder.mkdir()
    (folder / "__init__.py").write_text("from . import part\n")
    (folder / "part.py").write_text("import sys\nsys.heavy_part_runs = True\nANSWER = 42\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "heavy_part_runs", False, raising=False)
    yield folder.name
    for name in [name for name in sys.modules if name.startswith(folder.name)]:
        del sys.modules[name]


def test_a_module_runs_with_the_first_use(package: str) -> None:
    with imported_when_used([f"{package}.part"]):
        heavy = importlib.import_module(package)
    assert not getattr(sys, "heavy_part_runs")  # noqa: B009 - no attribute of sys, says mypy
    assert heavy.part.ANSWER == 42
    assert getattr(sys, "heavy_part_runs")  # noqa: B009


def test_a_module_that_is_not_named_runs_at_once(package: str) -> None:
    with imported_when_used([f"{package}.other"]):
        importlib.import_module(package)
    assert getattr(sys, "heavy_part_runs")  # noqa: B009


def test_a_named_module_that_does_not_exist_is_missing_as_ever(package: str) -> None:
    with imported_when_used([f"{package}.other"]), pytest.raises(ModuleNotFoundError):
        importlib.import_module(f"{package}.other")


def test_imports_after_the_block_are_as_ever(package: str) -> None:
    with imported_when_used([f"{package}.part"]):
        pass
    importlib.import_module(package)
    assert getattr(sys, "heavy_part_runs")  # noqa: B009


def test_the_scheduler_leaves_alone_what_it_does_not_use_of_its_libraries() -> None:
    code = (
        "import sys; from scheduler.cli import composition; "
        "print([name for name in ('requests', 'oauthlib', 'urllib3', 'websocket', 'cryptography') "
        "if name in sys.modules]); "
        "import kubernetes; print(kubernetes.config.load_kube_config.__name__)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )
    assert answer.stdout.splitlines() == ["[]", "load_kube_config"]
