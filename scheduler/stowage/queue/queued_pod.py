"""A pod in the queue, with the history of its scheduling attempts."""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum
from typing import NamedTuple

import msgspec

from stowage.api.cluster_events import ClusterEvent
from stowage.state.pods.pod_info import PodInfo


class QueueState(Enum):
    """The state of a pod in the queue; a pod is in exactly one state at a time."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    IN_FLIGHT = "in flight"


class RejectorPlugins(NamedTuple):
    """The plugins that rejected a pod, by name, in alphabetical order.

    Attributes:
        scheduler_name: The profile of the plugins.
        unschedulable: The plugins that rejected the pod, and the plugin that gates it.
        pending: The plugins that answered Pending.
    """

    scheduler_name: str
    unschedulable: tuple[str, ...]
    pending: tuple[str, ...]


class QueuedPod(msgspec.Struct, eq=False):
    """A waiting or in-flight pod; ``framework.QueuedPodInfo`` of kube-scheduler v1.36.

    Attributes:
        info: The newest version of the pod.
        queued_at: When it entered the queue, or returned to it, in seconds.
        turn: The number of that entry, counted by the queue. Attempts of one call end at the same
            time, and an event moves pods class by class: this keeps equal pods first in, first out.
        initial_attempt_at: When it first became active; None before.
        attempts: Number of scheduling attempts.
        unschedulable_count: Number of rejected attempts; determines the backoff.
        consecutive_errors: Attempts that failed with an error since the last rejection; if there
            are any, they determine the backoff instead.
        unschedulable_plugins: The plugins that rejected the last attempt, and the plugin that
            gates the pod.
        pending_plugins: The plugins that answered Pending in the last attempt.
        gating_plugin: The plugin whose PreEnqueue rejects the pod; empty if none does.
        gating_events: The events that the gating plugin registered; no other event moves the pod.
        backoff_expires_at: Start of the one-second window in which the backoff ends; None until it
            is computed, and again after the next attempt.
        last_message: Why the last attempt failed, or why PreEnqueue rejected the pod, whichever was
            later; empty before.
        was_flushed: Whether the pod left the unschedulable pods by timeout, not by an event.
    """

    info: PodInfo
    queued_at: float
    turn: int = 0
    initial_attempt_at: float | None = None
    attempts: int = 0
    unschedulable_count: int = 0
    consecutive_errors: int = 0
    unschedulable_plugins: set[str] = msgspec.field(default_factory=set)
    pending_plugins: set[str] = msgspec.field(default_factory=set)
    gating_plugin: str = ""
    gating_events: tuple[ClusterEvent, ...] = ()
    backoff_expires_at: float | None = None
    last_message: str = ""
    was_flushed: bool = False

    @property
    def uid(self) -> str:
        """The pod's UID, its key in the queue."""
        return self.info.uid

    @property
    def scheduler_name(self) -> str:
        """The profile that schedules the pod."""
        return self.info.pod_class.scheduler_name

    @property
    def rejector_plugins(self) -> RejectorPlugins:
        """The plugins that rejected the last attempt, and the plugin that gates the pod."""
        return RejectorPlugins(
            self.scheduler_name,
            tuple(sorted(self.unschedulable_plugins)),
            tuple(sorted(self.pending_plugins)),
        )

    @property
    def is_gated(self) -> bool:
        """Whether a PreEnqueue plugin rejects the pod."""
        return bool(self.gating_plugin)

    def may_be_moved_by(self, event: ClusterEvent) -> bool:
        """Whether an event may move the pod: a gated pod needs an event of its gating plugin."""
        return not self.is_gated or any(each.matches(event) for each in self.gating_events)

    @property
    def was_rejected(self) -> bool:
        """Whether plugins rejected the last attempt; False if it failed with an error."""
        return bool(self.unschedulable_plugins or self.pending_plugins)

    def start_attempt(self) -> None:
        """Count an attempt and clear the rejections of the last one."""
        self.attempts += 1
        self.unschedulable_plugins.clear()
        self.pending_plugins.clear()
        self.ungate()

    def fail_attempt(
        self, now: float, rejected_by: Collection[str], pending: Collection[str]
    ) -> None:
        """Record a failed attempt; without any plugin it failed with an error."""
        self.unschedulable_plugins = set(rejected_by)
        self.pending_plugins = set(pending)
        if self.was_rejected:
            self.unschedulable_count += 1
            self.consecutive_errors = 0
        else:
            self.consecutive_errors += 1
        self.queued_at = now
        self.backoff_expires_at = None
        self.was_flushed = False

    def gate(self, plugin: str, events: tuple[ClusterEvent, ...]) -> None:
        """Record that `plugin`'s PreEnqueue rejected the pod, and the events it registered."""
        self.unschedulable_plugins.add(plugin)
        self.gating_plugin = plugin
        self.gating_events = events

    def ungate(self) -> None:
        """Record that all PreEnqueue plugins admit the pod."""
        self.gating_plugin = ""
        self.gating_events = ()
