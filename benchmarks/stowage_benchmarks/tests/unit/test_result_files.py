"""A file for results that cannot be written is refused before the run."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from stowage.cli.main import app


@pytest.mark.parametrize(
    ("command", "flag", "name"),
    [
        ("chaos", "--report", "folder.svg"),
        ("chaos", "--report", "no such folder/report.json"),
        ("chaos", "--logs", "file"),
        ("e2e", "--plot", "folder.svg"),
        ("e2e", "--plot", "no such folder/plot.svg"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused(
    command: str, flag: str, name: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder.svg").mkdir()
    result = CliRunner().invoke(app, ["bench", command, flag, str(tmp_path / name)])
    assert result.exit_code == 2
    assert f"Invalid value for '{flag}': " in result.stderr


def test_a_plot_in_an_unknown_format_is_refused(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["bench", "e2e", "--plot", str(tmp_path / "results.txt")])
    assert result.exit_code == 2
    assert "(expected a name that ends in .svg, .png, .pdf)" in " ".join(result.stderr.split())
