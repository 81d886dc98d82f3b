"""Writes the PodScheduled condition and the nominated node of pods that cannot be scheduled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import structlog
from cachetools import LRUCache
from msgspec.structs import replace

from stowage.api.instructions import ClearNomination, PatchPodStatus
from stowage.operator.client.api_client import LOST_ANSWER_ERRORS, ApiClient
from stowage.operator.client.api_error import ApiError
from stowage.operator.client.backoff import Backoff, is_worth_retrying, retry_log
from stowage.operator.client.outage_log import plain_message
from stowage.operator.clock import Clock
from stowage.operator.writers.worker_pool import WorkerPool

MAX_REMEMBERED_PODS = 20_000
WIDTH = 8

log = structlog.get_logger("stowage.operator.writers.pod_status")


class PodStatusWriter:
    """Patches /status, one request per pod at a time; the latest waiting patch of a pod wins.

    As in kube-scheduler, lastTransitionTime does not change while the condition stays False. A
    patch is retried until the API server answers, because the engine sends each patch once.
    """

    def __init__(
        self,
        client: ApiClient,
        may_write: Callable[[], bool],
        clock: Clock,
    ) -> None:
        self._client = client
        self._may_write = may_write
        self._clock = clock
        self._latest: dict[str, PatchPodStatus] = {}
        # Pods whose condition this writer has set to False since their last transition.
        self._false: LRUCache[str, None] = LRUCache(MAX_REMEMBERED_PODS)
        self._queued: set[str] = set()
        self._in_flight: dict[str, asyncio.Future[None]] = {}
        self.pool: WorkerPool[str] = WorkerPool("pod-status", WIDTH, self._write)

    def patch(self, instruction: PatchPodStatus) -> None:
        """Write the status when a worker is free."""
        uid = instruction.pod.uid
        waiting = self._latest.get(uid)
        if waiting is None and instruction.is_transition:
            self._false.pop(uid, None)
        self._latest[uid] = _merged(waiting, instruction)
        if uid not in self._queued:
            self._queued.add(uid)
            self.pool.add(uid)

    def clear_nomination(self, instruction: ClearNomination) -> None:
        """Remove the nominated node when a worker is free, and keep the condition."""
        self.patch(PatchPodStatus(instruction.pod, "", "", nominated_node_name=""))

    def forget(self, uid: str) -> None:
        """Drop the waiting patch of a pod that is bound or gone."""
        self._latest.pop(uid, None)
        self._false.pop(uid, None)

    async def cancel_and_wait(self, uid: str) -> None:
        """Drop the waiting patch of a pod that is about to be bound, and wait for one in flight.

        Otherwise the patch could arrive after the binding and mark a bound pod unschedulable.
        """
        self.forget(uid)
        in_flight = self._in_flight.get(uid)
        if in_flight is not None:
            await asyncio.wait([in_flight])

    async def close(self, grace_s: float) -> None:
        """Write no more."""
        await self.pool.close(grace_s)

    async def _write(self, uid: str) -> None:
        backoff = Backoff(self._clock.jitter, 0.2, self._client.timeouts.max_backoff_s)
        try:
            while (instruction := self._latest.get(uid)) is not None:
                error = await self._send(instruction)
                if error is not None:
                    await self._clock.sleep(backoff.next_delay(error))
                elif self._latest.get(uid) is instruction:
                    del self._latest[uid]
        finally:
            self._queued.discard(uid)

    async def _send(self, instruction: PatchPodStatus) -> Exception | None:
        """Send a patch; returns the error if the patch is to be retried."""
        pod = instruction.pod
        if not self._may_write():
            return None
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/status"
        is_transition = instruction.is_transition and pod.uid not in self._false
        body = status_patch(instruction, self._clock.timestamp() if is_transition else None)
        in_flight = self._in_flight[pod.uid] = asyncio.get_running_loop().create_future()
        try:
            await self._client.patch(path, body)
        except (ApiError, *LOST_ANSWER_ERRORS) as error:
            return self._retryable_error(instruction, error)
        finally:
            del self._in_flight[pod.uid]
            in_flight.set_result(None)
        if self._latest.get(pod.uid) is not None and instruction.reason:
            self._false[pod.uid] = None
        return None

    @staticmethod
    def _retryable_error(instruction: PatchPodStatus, error: Exception) -> Exception | None:
        """Log the error; returns it if the patch is to be retried."""
        if is_worth_retrying(error) or _is_write_conflict(error):
            write = retry_log(log, error)
            write(
                "pod status not written yet",
                pod=instruction.pod.key,
                error=plain_message(error),
            )
            return error
        # After 404, and 409 or 422 about another UID, the pod is gone.
        if not isinstance(error, ApiError) or error.status not in (404, 409, 422):
            log.warning("pod status not written", pod=instruction.pod.key, error=str(error))
        return None


def _is_write_conflict(error: Exception) -> bool:
    """Whether concurrent writers of the same pod caused the conflict, not another UID."""
    return isinstance(error, ApiError) and error.status == 409 and "UID" not in str(error)


def status_patch(instruction: PatchPodStatus, transition_time: str | None) -> bytes:
    """The strategic merge patch, which merges conditions by type and keeps all others.

    Args:
        instruction: What to write; without a reason the condition stays as it is.
        transition_time: The new lastTransitionTime; None keeps the old one.
    """
    status: dict[str, Any] = {}
    if instruction.reason:
        condition: dict[str, Any] = {
            "type": "PodScheduled",
            "status": "False",
            "reason": instruction.reason,
            "message": instruction.message,
        }
        if instruction.observed_generation:
            condition["observedGeneration"] = instruction.observed_generation
        if transition_time is not None:
            condition["lastTransitionTime"] = transition_time
        status["conditions"] = [condition]
    if instruction.nominated_node_name is not None:
        # A strategic merge patch deletes a field by null.
        status["nominatedNodeName"] = instruction.nominated_node_name or None
    return msgspec.json.encode({"metadata": {"uid": instruction.pod.uid}, "status": status})


def _merged(waiting: PatchPodStatus | None, latest: PatchPodStatus) -> PatchPodStatus:
    """The later patch, with those fields of the earlier patch that the later does not set."""
    if waiting is None:
        return latest
    nomination = latest.nominated_node_name
    if nomination is None:
        nomination = waiting.nominated_node_name
    condition = latest if latest.reason else waiting
    is_transition = waiting.is_transition or latest.is_transition
    return replace(condition, nominated_node_name=nomination, is_transition=is_transition)
