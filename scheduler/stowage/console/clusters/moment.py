"""A cluster at one time, with what answers need besides it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from stowage.analysis.loaded_cluster import LoadedCluster
from stowage.console.decisions.history import DecisionHistory
from stowage.framework import Framework
from stowage.state.snapshot import Snapshot


class Moment(msgspec.Struct, frozen=True):
    """A cluster at one time.

    Attributes:
        loaded: The cluster as an engine sees it. An answer leaves it as it is, or is computed in a
            child process.
        frameworks: The configured profiles.
        history: The decisions up to this time.
        version: Counts the changes of the cluster.
        unix_s: The time, in seconds since 1970.
        as_of: "the cluster as of" this time, or in files, as text; empty for the cluster as it is
            now.
        refused: UID of a pod -> the message of its last recorded attempt, if it was refused.
    """

    loaded: LoadedCluster
    frameworks: Sequence[Framework]
    history: DecisionHistory
    version: int
    unix_s: float
    as_of: str = ""
    refused: Mapping[str, str] = {}

    @property
    def snapshot(self) -> Snapshot:
        """What a scheduling cycle would see."""
        return self.loaded.engine.state.cache.snapshot()
