"""A pod with what the queue remembers about its earlier attempts."""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum
from typing import NamedTuple

import msgspec

from stowage.api.events import ClusterEvent
from stowage.state.pods.pod_info import PodInfo


class QueueState(Enum):
    """Where a pod is; at any time it is in exactly one place."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    IN_FLIGHT = "in flight"


class RejectorPlugins(NamedTuple):
    """Who keeps a pod from being scheduled, by name and in order.

    Attributes:
        scheduler_name: The profile whose plugins they are.
        unschedulable: Plugins that rejected the pod, and one that gates it.
        pending: Plugins that answered Pending.
    """

    scheduler_name: str
    unschedulable: tuple[str, ...]
    pending: tuple[str, ...]


class QueuedPod(msgspec.Struct, eq=False):
    """One waiting or in-flight pod; ``framework.QueuedPodInfo`` of kube-scheduler v1.36.

    Attributes:
        info: The pod, as last seen.
        queued_at: When it entered the queue or came back to it, in seconds.
        initial_attempt_at: When it first became ready to be scheduled; None before that.
        attempts: How often it was popped.
        unschedulable_count: How often it was rejected; sets the length of its backoff.
        consecutive_errors: Errors since the last rejection; set the backoff instead, if any.
        unschedulable_plugins: Who rejected it in the last attempt, and who gates it.
        pending_plugins: Who answered Pending in the last attempt.
        gating_plugin: Whose PreEnqueue keeps it out; empty when nobody's does.
        gating_events: What that plugin wants to hear of; other events leave the pod alone.
        backoff_expires_at: Start of the one-second window in which the backoff ends; None until
            asked for, and again after the next attempt.
    """

    info: PodInfo
    queued_at: float
    initial_attempt_at: float | None = None
    attempts: int = 0
    unschedulable_count: int = 0
    consecutive_errors: int = 0
    unschedulable_plugins: set[str] = msgspec.field(default_factory=set)
    pending_plugins: set[str] = msgspec.field(default_factory=set)
    gating_plugin: str = ""
    gating_events: tuple[ClusterEvent, ...] = ()
    backoff_expires_at: float | None = None

    @property
    def uid(self) -> str:
        """The pod's uid, which is what the queue knows it by."""
        return self.info.uid

    @property
    def scheduler_name(self) -> str:
        """The profile that is to schedule the pod."""
        return self.info.pod_class.scheduler_name

    @property
    def rejector_plugins(self) -> RejectorPlugins:
        """Who rejected the pod in the last attempt, and who gates it."""
        return RejectorPlugins(
            self.scheduler_name,
            tuple(sorted(self.unschedulable_plugins)),
            tuple(sorted(self.pending_plugins)),
        )

    @property
    def is_gated(self) -> bool:
        """Whether a PreEnqueue plugin keeps the pod out of the active and backoff queues."""
        return bool(self.gating_plugin)

    def may_be_moved_by(self, event: ClusterEvent) -> bool:
        """Whether an event concerns it: a gated pod only what its gating plugin waits for."""
        return not self.is_gated or any(wanted.matches(event) for wanted in self.gating_events)

    @property
    def was_rejected(self) -> bool:
        """Whether plugins rejected the pod, as opposed to an error that befell it."""
        return bool(self.unschedulable_plugins or self.pending_plugins)

    def start_attempt(self) -> None:
        """Count an attempt and forget what the last one was rejected for."""
        self.attempts += 1
        self.unschedulable_plugins.clear()
        self.pending_plugins.clear()
        self.open_gate()

    def fail_attempt(
        self, now: float, rejected_by: Collection[str], pending: Collection[str]
    ) -> None:
        """Note how an attempt failed; no plugin at all means an error."""
        self.unschedulable_plugins = set(rejected_by)
        self.pending_plugins = set(pending)
        if self.was_rejected:
            self.unschedulable_count += 1
            self.consecutive_errors = 0
        else:
            self.consecutive_errors += 1
        self.queued_at = now
        self.backoff_expires_at = None

    def close_gate(self, plugin: str, events: tuple[ClusterEvent, ...]) -> None:
        """Note that `plugin`'s PreEnqueue refused the pod, and which events it waits for."""
        self.unschedulable_plugins.add(plugin)
        self.gating_plugin = plugin
        self.gating_events = events

    def open_gate(self) -> None:
        """Note that all PreEnqueue plugins let the pod in."""
        self.gating_plugin = ""
        self.gating_events = ()
