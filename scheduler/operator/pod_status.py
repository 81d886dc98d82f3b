"""Writes the PodScheduled condition and the nominated node of pods that found no place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import structlog
from cachetools import LRUCache

from scheduler.api.instructions import PatchPodStatus
from scheduler.operator.api_client import LOST_ANSWER_ERRORS, ApiClient
from scheduler.operator.api_error import ApiError
from scheduler.operator.backoff import Backoff, Jitter, Sleep, retry
from scheduler.operator.lane import Lane

MAX_REMEMBERED_PODS = 20_000
MAX_ATTEMPTS = 8
WIDTH = 8

log = structlog.get_logger("scheduler.operator.pod_status")


class PodStatusWriter:
    """Patches /status, one request a pod at a time; of several waiting for a pod the last wins.

    A patch that says what the last one said is not sent. As in kube-scheduler,
    lastTransitionTime stays as it was while the condition stays False.
    """

    def __init__(
        self,
        client: ApiClient,
        may_write: Callable[[], bool],
        timestamp: Callable[[], str],
        jitter: Jitter,
        sleep: Sleep,
    ) -> None:
        self._client = client
        self._may_write = may_write
        self._timestamp = timestamp
        self._jitter = jitter
        self._sleep = sleep
        self._latest: dict[str, PatchPodStatus] = {}
        self._written: LRUCache[str, PatchPodStatus] = LRUCache(MAX_REMEMBERED_PODS)
        self._in_flight: set[str] = set()
        self._lane: Lane[str] = Lane("pod-status", WIDTH, self._write)

    def patch(self, instruction: PatchPodStatus) -> None:
        """Have the status written soon."""
        uid = instruction.pod.uid
        is_waiting = uid in self._latest or uid in self._in_flight
        waiting = self._latest.get(uid)
        self._latest[uid] = _merged(waiting, instruction)
        if not is_waiting:
            self._lane.add(uid)

    def forget(self, uid: str) -> None:
        """Drop what waits for a pod that was bound or is gone."""
        self._latest.pop(uid, None)
        self._written.pop(uid, None)

    async def close(self, grace_s: float) -> None:
        """Write no more."""
        await self._lane.close(grace_s)

    async def _write(self, uid: str) -> None:
        self._in_flight.add(uid)
        try:
            while (instruction := self._latest.pop(uid, None)) is not None:
                if instruction != self._written.get(uid) and self._may_write():
                    await self._send(instruction)
        finally:
            self._in_flight.discard(uid)

    async def _send(self, instruction: PatchPodStatus) -> None:
        pod = instruction.pod
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/status"
        is_known_false = pod.uid in self._written
        body = status_patch(instruction, None if is_known_false else self._timestamp())
        backoff = Backoff(self._jitter, initial_s=0.2)
        try:
            await retry(lambda: self._client.patch(path, body), backoff, self._sleep, MAX_ATTEMPTS)
        except ApiError as error:
            # 404, and 409 or 422 for another uid: the pod this is about is gone.
            if error.status not in (404, 409, 422):
                log.warning("pod status not written", pod=pod.key, error=str(error))
        except LOST_ANSWER_ERRORS as error:
            log.warning("pod status not written", pod=pod.key, error=repr(error))
        else:
            self._written[pod.uid] = instruction


def status_patch(instruction: PatchPodStatus, transition_time: str | None) -> bytes:
    """The strategic merge patch; conditions merge by type, so others stay untouched.

    `transition_time` None keeps the condition's lastTransitionTime.
    """
    condition: dict[str, Any] = {
        "type": "PodScheduled",
        "status": "False",
        "reason": instruction.reason,
        "message": instruction.message,
    }
    if transition_time is not None:
        condition["lastTransitionTime"] = transition_time
    status: dict[str, Any] = {"conditions": [condition]}
    if instruction.nominated_node_name is not None:
        # A strategic merge patch deletes a field by null.
        status["nominatedNodeName"] = instruction.nominated_node_name or None
    return msgspec.json.encode({"metadata": {"uid": instruction.pod.uid}, "status": status})


def _merged(waiting: PatchPodStatus | None, latest: PatchPodStatus) -> PatchPodStatus:
    """The later one, keeping an earlier nomination it does not touch."""
    if waiting is None or latest.nominated_node_name is not None:
        return latest
    return msgspec.structs.replace(latest, nominated_node_name=waiting.nominated_node_name)
