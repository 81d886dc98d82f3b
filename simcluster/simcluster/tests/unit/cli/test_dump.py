"""``stowage dump`` writes what it may read."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from stowage.cli.main import app


def test_nothing_is_written_if_nothing_may_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(*_arguments: object) -> tuple[list[bytes], list[str]]:
        return [], ["left out pods: 403 Forbidden", "left out nodes: 403 Forbidden"]

    monkeypatch.setattr("simcluster.cli.dump._read", refused)
    file = tmp_path / "dump.json"
    result = CliRunner().invoke(app, ["dump", str(file)])
    assert result.exit_code == 1
    assert "left out nodes: 403 Forbidden" in result.stderr
    assert "not written: nothing could be read" in result.stderr
    assert not file.exists()
