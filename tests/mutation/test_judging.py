"""Mutants are judged in forked processes by the tests that cover them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec

from tests.mutation.results import Outcome, Result

TIMEOUT_S = 300.0

CODE = """
def steps(number):
    found = 0
    while number:
        number -= 1
        found += 1
    return found


def unused(first):
    return first == 1


class Crew:
    @property
    def size(self):
        return 3 if self else 4
"""

TESTS = """
from stowage.state.crew import Crew, steps, unused

RAN = []


def test_steps_are_counted():
    RAN.append(steps(3))
    assert RAN == [3]


def test_needs_another_test_before_it():
    assert len(RAN) == 1
    assert unused(RAN[0]) is False


def test_size_is_a_number():
    assert isinstance(Crew().size, int)
"""

RUN = """
import sys
from pathlib import Path
import pytest
from tests.mutation import judging, mutants
from tests.mutation.coverage_map import CoverageMap, CoverageRecorder
from tests.mutation.judging import Judge
from tests.mutation.results import Results
from tests.mutation.suites import SameExamples

KEPT = ("steps:swap_op:0", "steps:swap_op:1", "Crew.size:number:0", "unused:number:0")
judging._CPU_LIMIT_S = 0.5
file = Path("scheduler/stowage/state/crew.py")
flags = ["-q", "-pno:cacheprovider", "-c/dev/null", "--rootdir=.", "--import-mode=importlib"]
if sys.argv[1] == "record":
    plugin = CoverageRecorder(Path("coverage.jsonl"))
else:
    plugin = Judge(
        [each for each in mutants.mutants_of(file) if each.key.endswith(KEPT)],
        CoverageMap.read(Path("coverage.jsonl")),
        Results(Path("results.jsonl")),
        workers=2,
        budget_s=10.0,
    )
sys.exit(pytest.main([*flags, "-s", "test_crew.py"], plugins=[SameExamples(), plugin]))
"""


def _run(folder: Path, what: str) -> None:
    environment = {**os.environ, "PYTHONPATH": f"scheduler{os.pathsep}{Path.cwd()}"}
    environment["PYTHONPATH"] += os.pathsep + os.environ.get("PYTHONPATH", "")
    command = [sys.executable, "-c", RUN, what]
    subprocess.run(command, cwd=folder, env=environment, check=True, timeout=TIMEOUT_S)


def test_mutants_are_killed_by_wrong_answers_and_by_loops_without_end(tmp_path: Path) -> None:
    file = tmp_path / "scheduler" / "stowage" / "state" / "crew.py"
    file.parent.mkdir(parents=True)
    file.write_text(CODE, encoding="utf-8")
    for package in (file.parent, file.parent.parent):
        (package / "__init__.py").touch()
    (tmp_path / "test_crew.py").write_text(TESTS, encoding="utf-8")
    _run(tmp_path, "record")
    _run(tmp_path, "judge")
    lines = (tmp_path / "results.jsonl").read_bytes().splitlines()
    results = [msgspec.json.decode(line, type=Result) for line in lines]
    killer = "test_crew.py::test_steps_are_counted"
    assert {each.key.split(":", 1)[1]: (each.outcome, each.killer) for each in results} == {
        "steps:swap_op:0": (Outcome.TIMEOUT, killer),
        "steps:swap_op:1": (Outcome.KILLED, killer),
        "Crew.size:number:0": (Outcome.SURVIVED, None),
        # A test that fails without the mutant as well judges nothing.
        "unused:number:0": (Outcome.NOT_COVERED, None),
    }
    assert len(results) == 4
