"""PreEnqueue: runs the plugins that may gate a pod, and records the result in the pod."""

from __future__ import annotations

from collections.abc import Callable, Collection

from stowage.api.cluster_events import ClusterEvent
from stowage.api.status import Code, Status, error
from stowage.queue.event_registrations import EventRegistrations, PluginKey
from stowage.queue.queued_pod import QueuedPod
from stowage.queue.rejections import RejectionCounts
from stowage.queue.rules import QueueRules
from stowage.queue.unschedulable_pods import UnschedulableGroup
from stowage.state.pods.pod_info import PodInfo

_SUCCESS = Code.SUCCESS
# Stands for the plugin that gates a pod if PreEnqueue failed without naming one.
_PRE_ENQUEUE = "PreEnqueue"


class GatedGroups:
    """Answers for one event which groups of gated pods it may move; remembers per plugin.

    Args:
        event: The event.
        released: The UIDs of pods that a plugin would admit; None if it must be asked per pod.
    """

    def __init__(
        self, event: ClusterEvent, released: Callable[[PluginKey], Collection[str] | None]
    ) -> None:
        self._event = event
        self._ask_released = released
        self._is_registered: dict[PluginKey, bool] = {}
        self._released: dict[PluginKey, Collection[str] | None] = {}

    def may_move(self, group: UnschedulableGroup) -> bool:
        """Whether the plugin that gates the group registered the event."""
        key = group.listed_under[0]
        registered = self._is_registered.get(key)
        if registered is None:
            registered = self._is_registered[key] = group.one.may_be_moved_by(self._event)
        return registered

    def are_all_held(self, group: UnschedulableGroup) -> bool:
        """Whether the plugin is known to still reject every pod of the group."""
        key = group.listed_under[0]
        if key not in self._released:
            self._released[key] = self._ask_released(key)
        released = self._released[key]
        return released is not None and group.pods.keys().isdisjoint(released)


class PreEnqueueRunner:
    """Runs PreEnqueue and gates the pods it rejects (``runPreEnqueuePlugins`` of v1.36).

    Attributes:
        gated: UID -> message of the pods that a plugin gates whose rejections are reported.
    """

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
        self._reports = rules.reports
        self.gated: dict[str, str] = {}
        self._registrations = registrations
        self._problems = problems

    def admits(self, queued: QueuedPod) -> bool:
        """Run PreEnqueue for a pod; False if a plugin rejects it, and the pod is gated then."""
        return self._record(queued, self._run(self._pre_enqueue, queued))

    def postpone(self, queued: QueuedPod) -> None:
        """Take a pod as not gated until PreEnqueue runs for it again."""
        self.gated.pop(queued.uid, None)
        queued.ungate()

    def admits_also(self, queued: QueuedPod) -> bool:
        """`admits` for a pod of a class of which another pod was just admitted."""
        if self.admits_whole_class(queued):
            return True
        return self._record(queued, self._run(self._pre_enqueue_again, queued))

    def admits_whole_class(self, queued: QueuedPod) -> bool:
        """Whether `admits_also` holds for every pod that is gated no more than this one."""
        return not queued.gating_plugin and not self._gates_per_pod(queued.info)

    def not_held(self, group: UnschedulableGroup) -> list[QueuedPod]:
        """The pods of a group, without those that the gating plugin is known to still reject."""
        pods = group.pods
        released = self._released(group.listed_under[0]) if group.is_gated else None
        if released is None:
            return list(pods.values())
        return [pods[uid] for uid in released if uid in pods]

    def gated_groups(self, event: ClusterEvent) -> GatedGroups:
        """Answers which groups of gated pods an event may move."""
        return GatedGroups(event, self._released)

    def _record(self, queued: QueuedPod, status: Status) -> bool:
        self.gated.pop(queued.uid, None)
        if status.code is _SUCCESS:
            if queued.gating_plugin:
                queued.ungate()
            return True
        plugin = status.plugin or _PRE_ENQUEUE
        queued.last_message = status.message
        self._rejections.add_gate(queued, plugin)
        queued.gate(plugin, self._registrations.events_of((queued.scheduler_name, plugin)))
        if status.code is Code.ERROR:
            self._problems.append(
                f"pod {queued.info.key}: PreEnqueue of plugin {plugin} failed: {status.message}; "
                f"expected Success or a rejection, the pod is gated"
            )
        elif self._reports((queued.scheduler_name, plugin)):
            self.gated[queued.uid] = status.message
        return False

    def _run(self, pre_enqueue: Callable[[PodInfo], Status], queued: QueuedPod) -> Status:
        try:
            return pre_enqueue(queued.info)
        except Exception as problem:
            # A failing plugin must not remove the pod from the queue: the failure gates the pod.
            return error(repr(problem))
