"""Starts a recording."""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata

import structlog

from stowage.operator.clock import Clock
from stowage.operator.configuration.live_configuration import LoadedConfiguration
from stowage.operator.run_options import RecordingOptions
from stowage.recording.anonymiser import Anonymiser
from stowage.recording.header import Header, recorded_configuration
from stowage.recording.recorder import Recorder

log = structlog.get_logger("stowage.operator.recording")


def start_recording(
    options: RecordingOptions,
    configuration: LoadedConfiguration,
    clock: Clock,
    ended: Callable[[str], None] | None = None,
    *,
    decisions: bool = True,
) -> Recorder:
    """Make the recorder of an engine that has not been called yet, or of an observer.

    Args:
        options: Where to record, and the limits.
        configuration: The configuration of the engine, or the one to replay with.
        clock: The clock of the calls.
        ended: See `Recorder`; None logs the start, and the reason of the end.
        decisions: Whether there is an engine.

    Raises:
        OSError: The file cannot be made.
    """
    now = clock.monotonic()
    header = Header(
        metadata.version("stowage"),
        clock.unix_nanoseconds() / 1e9 - now,
        recorded_configuration(configuration.engine_part),
        configuration.hash,
        options.max_in_unschedulable_s,
        decisions,
        dict(options.feature_gates),
    )
    anonymiser = Anonymiser() if options.anonymises else None
    recorder = Recorder(options.folder, header, now, options.limits, ended or _log_end, anonymiser)
    if ended is None:
        log.info("recording", file=str(recorder.path))
    return recorder


def _log_end(reason: str) -> None:
    log.warning("the recording ended", reason=reason)
