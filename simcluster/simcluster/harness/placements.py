"""Placements of pods as a watch on the API server sees them: when and where they are bound."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from stowage.api.decoding.decode import WatchError, decode_list, decode_watch_event
from stowage.api.objects.meta import Condition
from stowage.api.objects.pod import Pod
from stowage.operator.client.api_client import ApiClient

_SILENCE_LIMIT_S = 300.0
_PODS_PATH = "/api/v1/pods"


class WatchEndedError(Exception):
    """The API server ended the watch, so later changes are unknown."""


@dataclass(slots=True)
class Placement:
    """The latest state of one pod, and the times (monotonic seconds) of its first events.

    Attributes:
        bound_at: None while it has no node.
        node_names: Every node it was ever seen on; more than one is an error.
    """

    pod: Pod
    created_at: float
    bound_at: float | None = None
    node_names: list[str] = field(default_factory=list)

    def see(self, pod: Pod, now: float) -> None:
        """Replace the state of the pod."""
        self.pod = pod
        node_name = pod.spec.node_name
        if not node_name:
            return
        if self.bound_at is None:
            self.bound_at = now
        if node_name not in self.node_names:
            self.node_names.append(node_name)

    @property
    def scheduled_condition(self) -> Condition | None:
        """The PodScheduled condition, the one `kubectl describe pod` shows."""
        for condition in self.pod.status.conditions:
            if condition.type == "PodScheduled":
                return condition
        return None

    @property
    def is_unschedulable(self) -> bool:
        """Whether the scheduler has reported that no node fits the pod."""
        condition = self.scheduled_condition
        return condition is not None and condition.status == "False"


class PlacementWatch:
    """Follows the pods of a cluster from now on.

    Args:
        client: Of the API server.
        is_followed: Which pods, by name; all by default.

    Attributes:
        placements: By pod UID; pods that existed when the watch began are not among them.
        num_bound: How many of them have had a node.
    """

    def __init__(
        self, client: ApiClient, is_followed: Callable[[str], bool] = lambda _name: True
    ) -> None:
        self._is_followed = is_followed
        self.placements: dict[str, Placement] = {}
        self.num_bound = 0
        self._client = client
        self._resource_version = ""
        self._seen = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> PlacementWatch:
        page = decode_list(Pod, await self._client.get(_PODS_PATH, {"limit": "1"}))
        self._resource_version = page.metadata.resource_version
        self._task = asyncio.create_task(self._follow())
        return self

    async def __aexit__(self, *_exception: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def wait_until(
        self, reached: Callable[[], bool], deadline: float, check: Callable[[], None]
    ) -> bool:
        """Wait for a state of the placements; False if ``deadline`` came first.

        Args:
            reached: Called after each event, and ten times a second.
            deadline: In monotonic seconds.
            check: Called as often; raises an error to end the wait.

        Raises:
            WatchEndedError: the watch broke off.
        """
        while not reached():
            if time.monotonic() >= deadline:
                return False
            check()
            if self._task is not None and self._task.done():
                self._task.result()
            self._seen.clear()
            try:
                await asyncio.wait_for(self._seen.wait(), 0.1)
            except TimeoutError:
                continue
        return True

    async def _follow(self) -> None:
        pending = b""
        params = {"watch": "1", "resourceVersion": self._resource_version}
        async for chunk in self._client.stream(_PODS_PATH, params, _SILENCE_LIMIT_S):
            now = time.monotonic()
            *lines, pending = (pending + chunk).split(b"\n")
            for line in lines:
                self._see(line, now)
            self._seen.set()
        raise WatchEndedError("the API server closed the watch on pods")

    def _see(self, line: bytes, now: float) -> None:
        event = decode_watch_event(Pod, line)
        if isinstance(event, WatchError):
            raise WatchEndedError(f"{event.reason}: {event.message}")
        if event.type not in ("ADDED", "MODIFIED"):
            return
        if not self._is_followed(event.object.metadata.name):
            return
        uid = event.object.metadata.uid
        placement = self.placements.get(uid)
        if placement is None:
            placement = self.placements[uid] = Placement(event.object, now)
        was_bound = placement.bound_at is not None
        placement.see(event.object, now)
        self.num_bound += placement.bound_at is not None and not was_bound
