"""Options of the scheduler process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from stowage.api.config.extenders import NO_EXTENDERS, Extenders
from stowage.api.events import Event
from stowage.engine import Engine
from stowage.framework import DurationObserver
from stowage.operator.client.connection import DEFAULT_TIMEOUTS
from stowage.operator.client.timeouts import Timeouts
from stowage.operator.configuration.live_configuration import ConfigMapOptions, LoadedConfiguration
from stowage.operator.lease import LeaderElectionOptions
from stowage.operator.loop import LoopOptions
from stowage.operator.serving.server import ServingOptions


class EngineDependencies(msgspec.Struct, frozen=True):
    """The shell's functions that an engine is made with; the engine itself does no I/O.

    Attributes:
        choose: Returns a random index below n.
        timer: Returns seconds, to measure durations.
        post: Puts an event into the inbox; plugins allow and reject waiting pods with it.
        observer: Receives durations measured inside the engine; None measures nothing.
    """

    choose: Callable[[int], int]
    timer: Callable[[], float]
    post: Callable[[Event], None]
    observer: DurationObserver | None = None


EngineFactory: TypeAlias = Callable[[EngineDependencies], Engine]


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Options of `run`.

    Attributes:
        engine_factory: Makes the engine from its configuration.
        scheduler_names: Scheduler names of all profiles.
        kubeconfig: Path; None for ``$KUBECONFIG``, ``~/.kube/config`` or in-cluster configuration.
        context: Context of the kubeconfig; None for its current one.
        master: Address of the API server that replaces the kubeconfig's.
        kube_api_qps: Requests of scheduling per second; 0 or less for no limit.
        kube_api_burst: Number of requests at once after a pause.
        serving: Options of the HTTPS endpoints; None serves none.
        leader_election: Options of the leader election; None schedules without a lease.
        configuration: The configuration that the engine is made from; /configz shows it.
        config_map: The ConfigMap to follow while the process runs; None follows none.
        extenders: The configured extenders; the engine must have the same.
        pre_bind_limit_s: Time limit of one PreBind plugin for one pod.
        loop: Options of the scheduling loop.
        timeouts: Timeouts of requests to the API server.
        shutdown_grace_s: How long bindings in flight may take after the signal to end.
        stop: Ends the process when set; SIGTERM and SIGINT set it too.
        owns_process: Whether the scheduler may install signal handlers and tune the garbage
            collector; False for tests and for embedding in another program.
    """

    engine_factory: EngineFactory
    scheduler_names: tuple[str, ...]
    kubeconfig: str | None = None
    context: str | None = None
    master: str | None = None
    kube_api_qps: float = 0.0
    kube_api_burst: int = 100
    serving: ServingOptions | None = field(default_factory=ServingOptions)
    leader_election: LeaderElectionOptions | None = None
    configuration: LoadedConfiguration = field(default_factory=LoadedConfiguration)
    config_map: ConfigMapOptions | None = None
    extenders: Extenders = NO_EXTENDERS
    pre_bind_limit_s: float = 600.0
    loop: LoopOptions = field(default_factory=LoopOptions)
    timeouts: Timeouts = DEFAULT_TIMEOUTS
    shutdown_grace_s: float = 2.0
    stop: asyncio.Event | None = None
    owns_process: bool = True
