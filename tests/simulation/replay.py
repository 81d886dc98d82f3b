"""Replays the recorded lives of a simulated process, from files that another process wrote."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from stowage.engine import CallRecorder, Engine, Journal, Replay
from stowage.operator.configuration.live_configuration import LoadedConfiguration
from stowage.operator.run_options import EngineDependencies
from stowage.recording.calls import CallEncoder, End
from stowage.recording.frames import FrameEncoder
from stowage.recording.header import Header, recorded_configuration
from stowage.recording.reader import Recording
from tests.simulation.configurations import Composition

_CALLS_PER_FRAME = 50


def write_recording(path: Path, loaded: LoadedConfiguration, journal: CallRecorder | None) -> int:
    """Write a journal as a process with ``--record`` does; returns the number of calls."""
    assert isinstance(journal, Journal)
    assert journal.is_complete
    configuration = recorded_configuration(loaded.engine_part)
    header = Header("0", 0.0, configuration, loaded.hash, max_in_unschedulable_s=300.0)
    calls, frames = CallEncoder(), FrameEncoder()
    entries = journal.entries
    with path.open("wb") as file:
        file.write(frames.header(msgspec.json.encode(header)))
        for start in range(0, len(entries), _CALLS_PER_FRAME):
            part = entries[start : start + _CALLS_PER_FRAME]
            file.write(frames.frame(calls.encode(part)))
        file.write(frames.frame(calls.encode([End("")])))
    return len(entries)


async def replay_recording(
    path: Path, is_settled: Callable[[float], bool] = lambda _last_call_at: True
) -> int:
    """Replay a recording of a simulated process; returns the number of calls.

    Plugins may start timers, so there is an event loop, which runs nothing meanwhile.

    Args:
        path: The file.
        is_settled: Whether the state after the last call must be valid; called with its time.

    Raises:
        ReplayDiverged: An instruction differs.
        InvariantViolation: The state after the last call is not valid.
    """
    with Recording(path) as recording:
        composition = Composition(json.dumps(recording.header.configuration))
        assert composition.loaded.hash == recording.header.configuration_hash

        def make_engine(choose: Callable[[int], int], wall_clock: Callable[[], float]) -> Engine:
            return composition.make_engine(
                EngineDependencies(choose, lambda: 0.0, lambda _event: None, wall_clock=wall_clock)
            )

        replay = Replay(make_engine)
        now = 0.0
        for entry in recording.calls():
            replay.repeat(entry)
            now = entry.now
        if is_settled(now):
            replay.engine.validate()
        return replay.num_calls


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        sys.stdout.write(f"{asyncio.run(replay_recording(Path(argument)))}\n")
