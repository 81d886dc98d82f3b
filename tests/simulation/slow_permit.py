"""A Permit plugin that lets pods wait, then allows, rejects or forgets them."""

from __future__ import annotations

import asyncio

from stowage.api.status import SUCCESS, WAIT, Status
from stowage.framework import CycleState, Handle, PluginTraits
from stowage.state.pods.pod_info import PodInfo

WAIT_S = 2.0
LIMIT_S = 4.0


class SlowPermit:
    """Lets pods with the label ``permit`` wait the first time, and allows them the next time.

    Pods that it rejects or forgets are retried, as a gang scheduling plugin does.
    """

    name = "SlowPermit"
    traits = PluginTraits()

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._seen: set[str] = set()

    def permit(self, _state: CycleState, pod: PodInfo, _node_name: str) -> tuple[Status, float]:
        """Return Wait the first time, then Success."""
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
