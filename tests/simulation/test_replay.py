"""A recording of a simulated life with faults replays bit for bit in another process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.replay import write_recording
from tests.simulation.replica import Recordings
from tests.simulation.run import simulate


@pytest.mark.parametrize("seed", [1, 8, 27])
def test_every_process_of_a_life_with_faults_replays_equal(seed: int, tmp_path: Path) -> None:
    recordings: Recordings = []
    assert not simulate(seed, recordings=recordings).violations
    paths = [tmp_path / str(number) for number in range(len(recordings))]
    num_calls = [
        write_recording(path, loaded, journal)
        for path, (loaded, journal) in zip(paths, recordings, strict=True)
    ]
    # Another seed of the hashes: the order of sets of texts differs.
    done = subprocess.run(
        [sys.executable, "-m", "tests.simulation.replay", *map(str, paths)],
        env={**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert list(map(int, done.stdout.split())) == num_calls
    assert sum(num_calls) > 100
