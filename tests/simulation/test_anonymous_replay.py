"""An anonymous recording of a simulated life with faults replays equal, up to the renaming."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import msgspec
import pytest

from stowage.engine import Engine, Journal, Replay
from stowage.operator.configuration.live_configuration import LoadedConfiguration
from stowage.operator.run_options import EngineDependencies
from stowage.recording.anonymiser import Anonymiser
from stowage.recording.calls import CallEncoder, CheckpointPart, End, decode_calls
from stowage.recording.header import Header, recorded_configuration
from tests.simulation.configurations import Composition
from tests.simulation.replica import Recordings
from tests.simulation.run import simulate


@pytest.mark.parametrize(("seed", "salt"), [(1, b""), (7, b""), (8, b"1")])
def test_every_process_of_a_life_with_faults_replays_equal_without_its_names(
    seed: int, salt: bytes
) -> None:
    """Not each key does: in preemption the order of names decides at last, and a key changes it.

    Plugins may start timers, so there is an event loop, which runs nothing meanwhile.
    """
    recordings: Recordings = []
    assert not simulate(seed, recordings=recordings).violations
    num_calls = 0
    for number, (loaded, journal) in enumerate(recordings):
        assert isinstance(journal, Journal)
        num_calls += asyncio.run(_replay(loaded, journal, bytes([seed, number]) + salt))
    assert num_calls > 100


async def _replay(loaded: LoadedConfiguration, journal: Journal, key: bytes) -> int:
    anonymiser = Anonymiser(key)
    configuration = recorded_configuration(loaded.engine_part)
    header = anonymiser.header(Header("0", 0.0, configuration, loaded.hash, 300.0))
    data = CallEncoder(anonymiser).encode(journal.entries)
    assert b"node-" not in data
    composition = Composition(json.dumps(header.configuration))
    composition.loaded = msgspec.structs.replace(composition.loaded, hash=header.configuration_hash)

    def make_engine(choose: Callable[[int], int], wall_clock: Callable[[], float]) -> Engine:
        return composition.make_engine(
            EngineDependencies(choose, lambda: 0.0, lambda _event: None, wall_clock=wall_clock)
        )

    replay = Replay(make_engine)
    for entry in decode_calls(data):
        assert not isinstance(entry, End | CheckpointPart)
        replay.repeat(entry)
    return replay.num_calls
