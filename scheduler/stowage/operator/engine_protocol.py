"""What the shell needs of the engine, and what it gives it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from typing import Any, Protocol, TypeAlias

import msgspec

from stowage.api.events import Event
from stowage.api.instructions import Instruction
from stowage.api.status import Status
from stowage.framework import DurationObserver
from stowage.state.pods.pod_info import PodInfo


class Engine(Protocol):
    """The pure core as the shell sees it; times are `clock.monotonic` seconds."""

    def handle(self, events: Iterable[Event], now: float) -> list[Instruction]:
        """Take in what happened; without events, only what is due by `now`."""
        ...

    def schedule(self, now: float, budget: int) -> list[Instruction]:
        """Try at most `budget` pods."""
        ...

    def pre_bind(self, uid: str, plugin: str) -> Coroutine[Any, Any, Status] | None:
        """The work of a PreBind plugin, to be awaited; None if the pod is gone."""
        ...

    def next_deadline(self) -> float | None:
        """When `handle` wants to be called even though nothing happened."""
        ...

    def has_ready_pods(self) -> bool:
        """Whether `schedule` would find a pod to try."""
        ...

    def pending_counts(self) -> Mapping[str, int]:
        """Waiting pods by queue: active, backoff, unschedulable, gated."""
        ...

    def incoming_counts(self) -> Mapping[tuple[str, str], int]:
        """Pods ever added, by queue and event."""
        ...

    def unschedulable_counts(self) -> Mapping[tuple[str, str], int]:
        """Rejected pods by (scheduler name, plugin)."""
        ...

    def evaluation_counts(self) -> Mapping[tuple[str, str, str], int]:
        """How often plugins were asked, by (plugin, extension point, scheduler name)."""
        ...

    def in_flight_event_counts(self) -> Mapping[str, int]:
        """Events kept for pods in flight, by label."""
        ...

    def volume_error_counts(self) -> Mapping[str, int]:
        """How often volumes were the reason of an error, by stage."""
        ...

    def plugin_failure_counts(self) -> Mapping[str, int]:
        """How often an attempt ended with a failure of a plugin, by plugin."""
        ...

    def pods(self) -> Iterator[PodInfo]:
        """Every pod, placed, assumed or waiting."""
        ...

    def node_names(self) -> list[str]:
        """Of the nodes that exist."""
        ...

    def dump(self) -> dict[str, Any]:
        """Everything it knows, as plain data."""
        ...

    def cache_counts(self) -> Mapping[str, int]:
        """Cached nodes, pods and assumed_pods."""
        ...


class EngineParts(msgspec.Struct, frozen=True):
    """What an engine may not make itself.

    Attributes:
        choose: A random index below n.
        timer: Seconds, for measuring durations.
        now: The shell's clock when it started.
        post: Puts an event before the engine; plugins allow and reject waiting pods with it.
        observer: Told of durations inside the engine; None wants none.
    """

    choose: Callable[[int], int]
    timer: Callable[[], float]
    now: float
    post: Callable[[Event], None]
    observer: DurationObserver | None = None


EngineFactory: TypeAlias = Callable[[EngineParts], Engine]
