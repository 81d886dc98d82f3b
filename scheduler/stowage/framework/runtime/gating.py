"""Gates: the PreEnqueue plugins of a profile, asked for a pod, for pods of a class, and again."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import cast

from stowage.api.status import Status
from stowage.framework.extension_points import PreemptionGate, PreEnqueuePlugin
from stowage.framework.implements import implements
from stowage.framework.profile.points import ExtensionPoint
from stowage.framework.profile.profile import Profile
from stowage.framework.runtime.enqueue_run import run_pre_enqueue_plugins
from stowage.state.pods.pod_info import PodInfo


class Gating:
    """Runs the PreEnqueue plugins of a profile.

    Args:
        profile: The plugins and their order.
    """

    def __init__(self, profile: Profile) -> None:
        self._instances = profile.instances
        self._plugins = cast(
            "tuple[PreEnqueuePlugin, ...]", profile.plugins[ExtensionPoint.PRE_ENQUEUE]
        )
        self._plugins_per_pod = tuple(
            each for each in self._plugins if not each.traits.pre_enqueue_per_class
        )
        self._plugins_that_hold = tuple(
            each for each in self._plugins if not implements(each, PreemptionGate)
        )
        self._has_gates_per_pod = not all(
            implements(each, PreemptionGate) for each in self._plugins_per_pod
        )
        self._is_any_preempting: Callable[[], bool] = lambda: True
        self._releasing: dict[str, Callable[[], Collection[str]]] = {}

    def run(self, pod: PodInfo) -> Status:
        """Whether the pod may enter the queue; a rejection names its plugin."""
        return run_pre_enqueue_plugins(self._plugins, pod)

    def holds(self, pod: PodInfo) -> bool:
        """Whether the pod may not enter the queue even when its victims are gone."""
        return not run_pre_enqueue_plugins(self._plugins_that_hold, pod).is_success

    def run_again(self, pod: PodInfo) -> Status:
        """`run` for a pod after another pod of its class was just accepted."""
        differs = pod.group or pod.spec.resource_claims
        return run_pre_enqueue_plugins(self._plugins if differs else self._plugins_per_pod, pod)

    def may_differ_in_class(self, pod: PodInfo) -> bool:
        """Whether PreEnqueue may now answer differently for other pods of the pod's class.

        While no preemption is under way, a preemption gate accepts every pod. Pods with resource
        claims differ in the claims that were made for them, members of pod groups in their groups.
        """
        if pod.group or pod.spec.resource_claims:
            return True
        if self._is_any_preempting():
            return bool(self._plugins_per_pod)
        return self._has_gates_per_pod

    def reports(self, plugin: str) -> bool:
        """Whether the pods that a plugin gates get a condition that says so."""
        known = self._instances.get(plugin)
        return known is not None and known.traits.reports_gated_pods

    def connect(
        self,
        is_preempting: Callable[[str], bool],
        is_any_preempting: Callable[[], bool],
        released: Callable[[], Collection[str]],
    ) -> None:
        """Connect the plugins that gate preemptors to the engine's evictions.

        Args:
            is_preempting: Whether evictions for the pod with this UID are under way.
            is_any_preempting: Whether evictions for any pod are under way.
            released: Returns the UIDs of gated pods whose evictions are done.
        """
        self._is_any_preempting = is_any_preempting
        for plugin in self._instances.values():
            if implements(plugin, PreemptionGate):
                plugin.gate_by(is_preempting)
                self._releasing[plugin.name] = released

    def released(self, plugin: str) -> Collection[str] | None:
        """The gated pods that a preemption gate accepts now; None if the plugin is no such gate."""
        released = self._releasing.get(plugin)
        return None if released is None else released()
