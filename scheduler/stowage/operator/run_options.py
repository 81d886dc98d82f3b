"""What a running scheduler is told at its start."""

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
from stowage.operator.leader_election import LeaderElectionOptions
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
    """Everything `run` wants to know.

    Attributes:
        engine_factory: Makes the engine from configuration.
        scheduler_names: Of all profiles.
        kubeconfig: Path; None for ``$KUBECONFIG``, ``~/.kube/config`` or in-cluster.
        context: Of the kubeconfig; None for its current one.
        master: Address of the API server, in place of the kubeconfig's.
        kube_api_qps: How many requests a second scheduling may make; 0 or less for no limit.
        kube_api_burst: How many of them may be made at once after a pause.
        serving: None serves nothing.
        leader_election: None schedules without a lease.
        configuration: What the engine is made from; /configz shows it.
        config_map: Where other configurations come from while we run; None for nowhere.
        extenders: Who has a say besides the plugins; the engine's own have to be the same.
        pre_bind_limit_s: How long one PreBind plugin may take for one pod.
        loop: How the loop shares its time.
        timeouts: How long the API server is waited for.
        shutdown_grace_s: How long bindings in flight may take after the signal to end.
        stop: Ends the process when set; SIGTERM and SIGINT set it too.
        owns_process: False leaves the signals and the garbage collector alone, for tests and for a
            guest in another program.
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
