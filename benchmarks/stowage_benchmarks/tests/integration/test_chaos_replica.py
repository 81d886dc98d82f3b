"""A replica of the chaos benchmark: only its wall clock jumps."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stowage_benchmarks.chaos import replica as chaos_replica
from stowage_benchmarks.chaos.replica import offset_s

_SCRIPT = """
import sys, time
from pathlib import Path
from stowage_benchmarks.chaos.replica import let_clock_jump
from stowage.operator import clock
before = time.time(), time.monotonic()
let_clock_jump(Path(sys.argv[1]))
jumped = clock.Clock()
print(time.time() - before[0], time.monotonic() - before[1], before[0])
print(jumped.unix_nanoseconds() / 1e9, jumped.timestamp(), jumped.timestamp_micro())
"""


@pytest.mark.parametrize("offset", [-86_400, 0, 3600])
def test_the_wall_clock_jumps_and_the_monotonic_clock_does_not(tmp_path: Path, offset: int) -> None:
    file = tmp_path / "clock"
    file.write_text(str(offset))
    answer = subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(file)], capture_output=True, check=True, text=True
    )
    first, second = answer.stdout.splitlines()
    jumped, passed, before = map(float, first.split())
    assert jumped == pytest.approx(offset, abs=60.0)
    assert 0 <= passed < 60.0
    seconds, *stamps = second.split()
    assert float(seconds) - before == pytest.approx(offset, abs=60.0)
    assert [stamp[-1] for stamp in stamps] == ["Z", "Z"]
    assert stamps[0][:16] <= stamps[1][:16]


def test_a_missing_or_incomplete_clock_file_means_no_offset(tmp_path: Path) -> None:
    assert offset_s(tmp_path / "none") == 0.0
    (tmp_path / "half").write_text("-")
    assert offset_s(tmp_path / "half") == 0.0


def test_other_arguments_are_passed_to_stowage() -> None:
    answer = subprocess.run(
        [sys.executable, "-m", chaos_replica.__name__, "nowhere", "run", "--help"],
        capture_output=True,
        check=True,
        text=True,
    )
    assert "--leader-elect" in answer.stdout
