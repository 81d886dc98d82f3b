"""PreEnqueue: whether a pod may be scheduled at all."""

from __future__ import annotations

from collections.abc import Callable, Collection

from stowage.api.events import ClusterEvent
from stowage.api.status import Code, Status, error
from stowage.queue.event_registrations import EventRegistrations, PluginKey
from stowage.queue.queued_pod import QueuedPod
from stowage.queue.rejections import RejectionCounts
from stowage.queue.rules import QueueRules
from stowage.queue.unschedulable_pods import UnschedulableGroup
from stowage.state.pods.pod_info import PodInfo

# Who gates a pod when PreEnqueue broke or named nobody, so that no plugin is known to blame.
_PRE_ENQUEUE = "PreEnqueue"


class GatesAtEvent:
    """Which gated groups an event may move at all, found out once for all pods of a gate.

    Args:
        event: What happened.
        released: Whom the plugin of a key would let in; None if it does not know beforehand.
    """

    def __init__(
        self, event: ClusterEvent, released: Callable[[PluginKey], Collection[str] | None]
    ) -> None:
        self._event = event
        self._ask_released = released
        self._is_awaited: dict[PluginKey, bool] = {}
        self._released: dict[PluginKey, Collection[str] | None] = {}

    def concern(self, group: UnschedulableGroup) -> bool:
        """Whether the group's gating plugin waits for such an event."""
        key = group.listed_under[0]
        awaited = self._is_awaited.get(key)
        if awaited is None:
            awaited = self._is_awaited[key] = group.one.may_be_moved_by(self._event)
        return awaited

    def hold(self, group: UnschedulableGroup) -> bool:
        """Whether the gate is known to be closed still to every pod of the group."""
        key = group.listed_under[0]
        if key not in self._released:
            self._released[key] = self._ask_released(key)
        released = self._released[key]
        return released is not None and group.pods.keys().isdisjoint(released)


class Gate:
    """Runs PreEnqueue and notes in the pod whose gate is closed (``runPreEnqueuePlugins``)."""

    def __init__(
        self,
        rules: QueueRules,
        registrations: EventRegistrations,
        problems: list[str],
        rejections: RejectionCounts,
    ) -> None:
        self._rejections = rejections
        self._pre_enqueue = rules.pre_enqueue
        self._pre_enqueue_again = rules.pre_enqueue_again or rules.pre_enqueue
        self._gates_per_pod = rules.gates_per_pod
        self._released = rules.released
        self._registrations = registrations
        self._problems = problems

    def admits(self, queued: QueuedPod) -> bool:
        """Whether all PreEnqueue plugins let the pod in; it is gated if not."""
        return self._note(queued, self._ask(self._pre_enqueue, queued))

    def admits_too(self, queued: QueuedPod) -> bool:
        """The same for a pod of whose class another one was let in just now."""
        if self.admits_all_alike(queued):
            return True
        return self._note(queued, self._ask(self._pre_enqueue_again, queued))

    def not_held(self, group: UnschedulableGroup) -> list[QueuedPod]:
        """The pods of a group but for those whose gate is known to be closed still."""
        pods = group.pods
        released = self._released(group.listed_under[0]) if group.is_gated else None
        if released is None:
            return list(pods.values())
        return [pods[uid] for uid in released if uid in pods]

    def at_event(self, event: ClusterEvent) -> GatesAtEvent:
        """What the gates are to pods that an event may help."""
        return GatesAtEvent(event, self._released)

    def admits_all_alike(self, queued: QueuedPod) -> bool:
        """Whether `admits_too` is True of every pod that is gated no more than this one."""
        return not queued.gating_plugin and not self._gates_per_pod(queued.info)

    def _note(self, queued: QueuedPod, status: Status) -> bool:
        if status.is_success:
            if queued.gating_plugin:
                queued.open_gate()
            return True
        plugin = status.plugin or _PRE_ENQUEUE
        self._rejections.note_gate(queued, plugin)
        queued.close_gate(plugin, self._registrations.events_of((queued.scheduler_name, plugin)))
        if status.code is Code.ERROR:
            self._problems.append(
                f"pod {queued.info.key}: PreEnqueue of plugin {plugin} failed: {status.message}; "
                f"expected Success or a rejection, the pod is gated"
            )
        return False

    def _ask(self, pre_enqueue: Callable[[PodInfo], Status], queued: QueuedPod) -> Status:
        try:
            return pre_enqueue(queued.info)
        except Exception as problem:
            # Reported like a status: a broken plugin must not take the pod from the queue.
            return error(repr(problem))
