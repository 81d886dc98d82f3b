"""DefaultBinder: binds by a Binding posted to the API server."""

from __future__ import annotations

from stowage.api.instructions import BindPod
from stowage.framework import CycleState, NoArgs, PluginTraits
from stowage.state.pods.pod_info import PodInfo


class DefaultBinder:
    """Takes every pod."""

    name = "DefaultBinder"
    traits = PluginTraits()

    def __init__(self, args: NoArgs) -> None:
        del args

    def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> BindPod | None:
        """The instruction to post the Binding."""
        del state
        return BindPod(pod.reference, node_name)
