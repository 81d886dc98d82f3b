"""Records an experiment as ``stowage run --record`` records a scheduler (``--record``)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from stowage.analysis.simulation.result import ExperimentResult
from stowage.analysis.simulation.run import simulate
from stowage.api.config.feature_gates import parse_feature_gates
from stowage.api.config.loading import to_builtins
from stowage.cli.simulate.policies import (
    MAX_IN_UNSCHEDULABLE_S,
    ConfiguredPolicy,
    with_profiles_for,
)
from stowage.engine.journal import Entry
from stowage.experiments.workload_experiment import WorkloadExperiment
from stowage.recording.header import Header, recorded_configuration
from stowage.recording.limits import RecordingLimits
from stowage.recording.segment_writer import SegmentWriter

_CALLS_OF_A_FRAME = 100
_UNLIMITED = RecordingLimits(2**62, math.inf)


class RecordedExperiment(WorkloadExperiment, frozen=True, kw_only=True):
    """An experiment whose calls are written to a folder.

    Attributes:
        folder: A folder that exists.
        header: The header of the recording.
    """

    folder: Path
    header: Header

    def run(self) -> ExperimentResult:
        """See `Experiment`.

        Raises:
            OSError: The file cannot be written.
        """
        with _RecordingFile(self.folder, self.header) as journal:
            return simulate(self.workload, self.policy, self.seed, journal)


def recorded_experiment(
    experiment: WorkloadExperiment, policy: ConfiguredPolicy, folder: Path, unix_s: float
) -> RecordedExperiment:
    """An experiment with its recording.

    Args:
        experiment: The experiment.
        policy: Its policy.
        folder: A folder that exists.
        unix_s: The time of its beginning in the recording, in seconds since 1970.
    """
    timeline = experiment.workload.timeline(experiment.seed)
    header = Header(
        metadata.version("stowage"),
        unix_s,
        _configuration(policy, timeline.scheduler_names),
        "",
        MAX_IN_UNSCHEDULABLE_S,
        feature_gates=dict(parse_feature_gates(policy.feature_gates).written),
    )
    return RecordedExperiment(
        experiment.workload, policy, experiment.seed, folder=folder, header=header
    )


def _configuration(policy: ConfiguredPolicy, scheduler_names: Iterable[str]) -> dict[str, Any]:
    """The configuration, with a profile for each scheduler name that it does not have."""
    content: dict[str, Any] = msgspec.to_builtins(to_builtins(policy.configuration), enc_hook=str)
    profiles = with_profiles_for(scheduler_names, content["profiles"])
    return recorded_configuration({**content, "profiles": profiles})


class _RecordingFile:
    """Receives the calls of an engine; the end is written if nothing was raised."""

    def __init__(self, folder: Path, header: Header) -> None:
        self._segments = SegmentWriter(folder, header, 0.0, _UNLIMITED, None)
        self._waiting: list[Entry] = []

    def __enter__(self) -> _RecordingFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._write()
            self._segments.end("the simulation ended" if error is None else repr(error))
        finally:
            self._segments.close()

    def record(self, entry: Entry) -> None:
        """See `CallRecorder`."""
        self._waiting.append(entry)
        if len(self._waiting) >= _CALLS_OF_A_FRAME:
            self._write()

    def _write(self) -> None:
        if self._waiting:
            self._segments.write(self._waiting)
            self._waiting = []
