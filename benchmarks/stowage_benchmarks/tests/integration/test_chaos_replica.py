"""A replica under chaos: its clock on the wall jumps, and nothing else of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stowage_benchmarks.chaos import replica as chaos_replica
from stowage_benchmarks.chaos.replica import offset_s

_SAYS = """
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
def test_only_the_clock_on_the_wall_jumps(tmp_path: Path, offset: int) -> None:
    file = tmp_path / "clock"
    file.write_text(str(offset))
    answer = subprocess.run(
        [sys.executable, "-c", _SAYS, str(file)], capture_output=True, check=True, text=True
    )
    first, second = answer.stdout.splitlines()
    jumped, passed, before = map(float, first.split())
    assert jumped == pytest.approx(offset, abs=60.0)
    assert 0 <= passed < 60.0
    seconds, *stamps = second.split()
    assert float(seconds) - before == pytest.approx(offset, abs=60.0)
    assert [stamp[-1] for stamp in stamps] == ["Z", "Z"]
    assert stamps[0][:16] <= stamps[1][:16]


def test_a_clock_file_that_is_missing_or_half_written_says_nothing(tmp_path: Path) -> None:
    assert offset_s(tmp_path / "none") == 0.0
    (tmp_path / "half").write_text("-")
    assert offset_s(tmp_path / "half") == 0.0


def test_the_rest_of_the_command_line_is_stowages() -> None:
    answer = subprocess.run(
        [sys.executable, "-m", chaos_replica.__name__, "nowhere", "run", "--help"],
        capture_output=True,
        check=True,
        text=True,
    )
    assert "--leader-elect" in answer.stdout
