"""A Permit plugin that has pods wait, and lets them go, refuses them or forgets them."""

from __future__ import annotations

import asyncio

from stowage.api.status import SUCCESS, WAIT, Status
from stowage.framework import CycleState, Handle, PluginTraits
from stowage.state.pods.pod_info import PodInfo

WAIT_S = 2.0
LIMIT_S = 4.0


class SlowPermit:
    """Has pods with the label ``permit`` wait the first time they come, and lets them by later.

    Whom it refuses or forgets it has tried again, as a plugin for gangs of pods does.
    """

    name = "SlowPermit"
    traits = PluginTraits()

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._seen: set[str] = set()

    def permit(self, _state: CycleState, pod: PodInfo, _node_name: str) -> tuple[Status, float]:
        """Wait for a while, once."""
        wish = pod.labels.get("permit")
        if wish is None or pod.uid in self._seen:
            return SUCCESS, 0.0
        self._seen.add(pod.uid)
        loop = asyncio.get_running_loop()
        if wish == "allow":
            loop.call_later(WAIT_S, self._handle.allow, pod.uid, self.name)
        elif wish == "reject":
            loop.call_later(WAIT_S, self._handle.reject, pod.uid, self.name, "not yet")
        loop.call_later(LIMIT_S + 1.0, self._handle.activate, [pod.uid])
        return WAIT, LIMIT_S
