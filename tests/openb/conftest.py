"""The plugins of examples/gpushare, as an installed package."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.openb.installed import PACKAGE


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package as pip installs it: modules, and the entry points in its metadata."""
    declared = tomllib.loads((PACKAGE / "pyproject.toml").read_text("utf-8"))["project"]
    metadata = tmp_path / "site" / "stowage_gpushare-0.1.0.dist-info"
    metadata.mkdir(parents=True)
    metadata.joinpath("METADATA").write_text("Name: stowage-gpushare\nVersion: 0.1.0\n", "utf-8")
    offered = declared["entry-points"]["stowage.plugins"]
    points = "\n".join(f"{name} = {target}" for name, target in offered.items())
    metadata.joinpath("entry_points.txt").write_text(f"[stowage.plugins]\n{points}\n", "utf-8")
    monkeypatch.syspath_prepend(str(metadata.parent))
    monkeypatch.syspath_prepend(str(PACKAGE))
