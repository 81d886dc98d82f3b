"""The command line that is printed works where it is printed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from simcluster.cli.kubectl import kubectl_command


def test_kubectl_on_the_path_is_called_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _install(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert kubectl_command() == "kubectl"


def test_kubectl_beside_python_is_called_by_path_when_none_is_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = _install(tmp_path)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert kubectl_command() == str(beside)


def _install(folder: Path) -> Path:
    command = folder / "kubectl"
    command.touch(mode=0o755)
    return command
