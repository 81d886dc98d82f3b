"""A cluster in memory whose scheduler is recorded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.analysis.loaded_cluster import LoadedCluster
from stowage.analysis.virtual_cluster import VirtualCluster
from stowage.api.config.loading import load_configuration, to_builtins
from stowage.api.events import NodeSeen
from stowage.cli.profiles import make_frameworks
from stowage.engine import Journal, make_engine
from stowage.engine.journal import Entry
from stowage.recording.calls import CallEncoder, End
from stowage.recording.frames import FrameEncoder
from stowage.recording.header import Header
from tests.support.builders import make_node

DEFAULTS: Any = msgspec.to_builtins(to_builtins(load_configuration()), enc_hook=str)
"""The default configuration, in the format of its file."""

START_S = 1_000_000.0
"""Seconds since 1970 at the time 0."""


class RecordedCluster(VirtualCluster):
    """A cluster with some nodes, where every call of the engine is recorded."""

    def __init__(self, nodes: Sequence[str] = (), **fields: Any) -> None:
        self.journal = Journal(1_000_000)
        frameworks = make_frameworks(load_configuration())
        engine = make_engine(frameworks, lambda _num_ties: 0, journal=self.journal)
        super().__init__(LoadedCluster(ClusterObjects(), engine, {}))
        made = [make_node(name, **fields) for name in nodes]
        for node in made:
            self.objects.add(node)
        self.show([NodeSeen(node) for node in made])
        self.run(self.now)

    def advance(self, seconds: float) -> None:
        """Let the scheduler work for some time."""
        until = self.now + seconds
        self.run(until)
        self.now = until
        self.run(until)

    def write(self, path: Path) -> Path:
        """Write the recording."""
        return write_recording(path, self.journal.entries)


def write_recording(
    path: Path,
    entries: Sequence[Entry],
    *,
    decisions: bool = True,
    gates: dict[str, bool] | None = None,
) -> Path:
    """Write calls as a process with ``--record`` does, or as an observer does."""
    header = Header("0.0.1", START_S, DEFAULTS, "", 300.0, decisions, feature_gates=gates or {})
    calls, frames = CallEncoder(), FrameEncoder()
    data = frames.header(msgspec.json.encode(header))
    data += frames.frame(calls.encode(entries)) + frames.frame(calls.encode([End("enough")]))
    path.write_bytes(data)
    return path
