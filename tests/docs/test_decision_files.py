"""The commands of the page about decisions read the files of a decision log."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stowage.api.decisions import BestNodes
from stowage.operator.decisions.log import DecisionLog
from stowage.operator.decisions.log_files import DecisionLogOptions
from stowage.operator.decisions.records import DecisionIds
from tests.support.decisions import attempt, recorded, refused

PAGE = Path("docs/reference/decisions.md")
COMMANDS = re.findall(r"```sh\n(.*?)\n```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
FIT = BestNodes(
    ("n1", "n2"), (50, 20), (("NodeResourcesFit", 1),), ("NodeResourcesFit",), bytes((50, 20)), {}
)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A directory with two files of decisions."""
    log = DecisionLog(DecisionLogOptions(directory=tmp_path, max_file_age_s=5.0), DecisionIds("p"))
    for number in range(3):
        log.add(recorded(attempt(1 + number, best=FIT)))
    log.start()
    log.close(30.0)
    second = DecisionLog(DecisionLogOptions(directory=tmp_path), DecisionIds("p"))
    second.add(recorded(refused(4), 60.0))
    second.start()
    second.close(30.0)
    assert len(list(tmp_path.iterdir())) == 2
    return tmp_path


def _output(command: str, folder: Path) -> str:
    command = command.replace("python -", f"{sys.executable} -")
    done = subprocess.run(
        ["bash", "-ec", command], cwd=folder, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_jq_counts_the_results(files: Path) -> None:
    if shutil.which("jq") is None:
        pytest.skip("needs jq")
    lines = _output(COMMANDS[0], files).splitlines()
    assert [line.split() for line in lines] == [["3", "scheduled"], ["1", "unschedulable"]]


def test_pandas_counts_by_node(files: Path) -> None:
    if importlib.util.find_spec("pandas") is None:
        pytest.skip("needs pandas")
    assert ["n1", "scheduled", "3"] in [
        line.split() for line in _output(COMMANDS[1], files).splitlines()
    ]


def test_duckdb_reads_the_scores(files: Path) -> None:
    if shutil.which("duckdb") is None:
        pytest.skip("needs duckdb")
    output = _output(COMMANDS[2], files)
    assert re.search(r"n1 +│ +50\.0", output)
