"""Options of the scheduler process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

import msgspec

from stowage.api.config.extenders import NO_EXTENDERS, Extenders
from stowage.api.config.feature_gates import DEFAULT_FEATURE_GATES, FeatureGates
from stowage.api.events import Event
from stowage.engine import CallRecorder, Engine
from stowage.framework import DurationObserver, TraceCycle
from stowage.operator.client.connection import DEFAULT_TIMEOUTS
from stowage.operator.client.timeouts import Timeouts
from stowage.operator.configuration.live_configuration import ConfigMapOptions, LoadedConfiguration
from stowage.operator.decisions.log_files import DecisionLogOptions
from stowage.operator.lease import LeaderElectionOptions
from stowage.operator.serving.server import ServingOptions
from stowage.operator.tracing.options import TracingOptions
from stowage.recording.limits import RecordingLimits


class EngineDependencies(msgspec.Struct, frozen=True):
    """The shell's functions that an engine is made with; the engine itself does no I/O.

    Attributes:
        choose: Returns a random index below n.
        timer: Returns seconds, to measure durations.
        post: Puts an event into the inbox; plugins allow and reject waiting pods with it.
        observer: Receives durations measured inside the engine; None measures nothing.
        trace_cycle: Selects the scheduling cycles to trace; None traces none.
        wall_clock: Returns the seconds since the epoch.
        journal: Records the engine's calls; None records nothing.
    """

    choose: Callable[[int], int]
    timer: Callable[[], float]
    post: Callable[[Event], None]
    observer: DurationObserver | None = None
    trace_cycle: TraceCycle | None = None
    wall_clock: Callable[[], float] = lambda: 0.0
    journal: CallRecorder | None = None


class RecordingOptions(msgspec.Struct, frozen=True):
    """Options of a recording.

    Attributes:
        folder: The folder of the recordings.
        limits: The limits of all of them.
        max_in_unschedulable_s: A setting of the engine that its configuration does not hold.
        anonymises: Whether names are replaced by hashes.
        feature_gates: The feature gates that were set by name.
    """

    folder: Path
    limits: RecordingLimits
    max_in_unschedulable_s: float
    anonymises: bool = False
    feature_gates: Mapping[str, bool] = msgspec.field(default_factory=dict)


EngineFactory: TypeAlias = Callable[[EngineDependencies], Engine]


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of `run`.

    Attributes:
        engine_factory: Makes the engine from its configuration.
        scheduler_names: Scheduler names of all profiles.
        kubeconfig: Path; None for ``$KUBECONFIG``, ``~/.kube/config`` or in-cluster configuration.
        master: Address of the API server that replaces the kubeconfig's.
        kube_api_qps: Requests of scheduling per second; 0 or less for no limit.
        kube_api_burst: Number of requests at once after a pause.
        serving: Options of the HTTPS endpoints; None serves none.
        leader_election: Options of the leader election; None schedules without a lease.
        configuration: The configuration that the engine is made from; /configz shows it.
        config_map: The ConfigMap to follow while the process runs; None follows none.
        extenders: The configured extenders; the engine must have the same.
        feature_gates: The values of all feature gates.
        disabled_metrics: Complete names of the metrics that are not exposed.
        tracing: Options of OpenTelemetry traces; None makes none.
        recording: Where to record the engine's calls; None records nothing.
        decision_log: Options of the files with all decisions; None writes none.
        timeouts: Timeouts of requests to the API server.
        shutdown_grace_s: How long bindings in flight may take after the signal to end.
        stop: Ends the process when set; SIGTERM and SIGINT set it too.
        flags: The flags of the process with their values, for /flagz.
        owns_process: Whether the scheduler may install signal handlers and tune the garbage
            collector; False for tests and for embedding in another program.
    """

    engine_factory: EngineFactory
    scheduler_names: tuple[str, ...]
    kubeconfig: str | None = None
    master: str | None = None
    kube_api_qps: float = 0.0
    kube_api_burst: int = 100
    serving: ServingOptions | None = msgspec.field(default_factory=ServingOptions)
    leader_election: LeaderElectionOptions | None = None
    configuration: LoadedConfiguration = msgspec.field(default_factory=LoadedConfiguration)
    config_map: ConfigMapOptions | None = None
    extenders: Extenders = NO_EXTENDERS
    feature_gates: FeatureGates = DEFAULT_FEATURE_GATES
    disabled_metrics: frozenset[str] = frozenset()
    tracing: TracingOptions | None = None
    recording: RecordingOptions | None = None
    decision_log: DecisionLogOptions | None = None
    timeouts: Timeouts = DEFAULT_TIMEOUTS
    shutdown_grace_s: float = 2.0
    stop: asyncio.Event | None = None
    flags: Mapping[str, str] = msgspec.field(default_factory=dict)
    owns_process: bool = True
