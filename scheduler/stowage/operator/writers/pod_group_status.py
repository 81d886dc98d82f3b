"""Writes the PodGroupScheduled condition of pod groups of ``scheduling.k8s.io``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import structlog

from stowage.api.instructions import PatchPodGroupStatus
from stowage.operator.client.api_client import LOST_ANSWER_ERRORS, ApiClient
from stowage.operator.client.api_error import ApiError
from stowage.operator.client.backoff import Backoff, is_worth_retrying, retry_log
from stowage.operator.client.outage_log import plain_message
from stowage.operator.clock import Clock
from stowage.operator.writers.worker_pool import WorkerPool

WIDTH = 8
_CONFLICT = 409
#: After 404, and 409 or 422 about another UID, the group is gone.
_GONE = (404, _CONFLICT, 422)

log = structlog.get_logger("stowage.operator.writers.pod_group_status")


class PodGroupStatusWriter:
    """Patches /status, one request per group at a time; the latest waiting patch of a group wins.

    A patch is retried until the API server answers. A refusal is logged, as in kube-scheduler; the
    condition is written again when it changes.

    Args:
        client: Client of the API server.
        may_write: Whether this replica holds the lease.
        clock: Time, sleep and jitter.

    Attributes:
        pool: The workers that write the statuses.
    """

    def __init__(self, client: ApiClient, may_write: Callable[[], bool], clock: Clock) -> None:
        self._client = client
        self._may_write = may_write
        self._clock = clock
        self._latest: dict[str, PatchPodGroupStatus] = {}
        self.pool: WorkerPool[str] = WorkerPool("pod-group-status", WIDTH, self._write)

    def patch(self, instruction: PatchPodGroupStatus) -> None:
        """Write the condition when a worker is free."""
        uid = instruction.group.uid
        waiting = self._latest.get(uid)
        if waiting is None:
            self._latest[uid] = instruction
            self.pool.add(uid)
            return
        is_transition = waiting.is_transition or instruction.is_transition
        self._latest[uid] = msgspec.structs.replace(instruction, is_transition=is_transition)

    async def close(self, grace_s: float) -> None:
        """Write no more."""
        await self.pool.close(grace_s)

    async def _write(self, uid: str) -> None:
        backoff = Backoff(self._clock.jitter, 0.2, self._client.timeouts.max_backoff_s)
        try:
            while True:
                instruction = self._latest[uid]
                error = await self._send(instruction)
                if error is not None:
                    await self._clock.sleep(backoff.next_delay(error))
                elif self._latest[uid] is instruction:
                    return
        finally:
            del self._latest[uid]

    async def _send(self, instruction: PatchPodGroupStatus) -> Exception | None:
        """Send a patch; returns the error if the patch is to be retried."""
        group = instruction.group
        if not self._may_write():
            return None
        path = (
            f"/apis/scheduling.k8s.io/v1alpha2/namespaces/{group.namespace}/podgroups/"
            f"{group.name}/status"
        )
        try:
            await self._client.patch(path, status_patch(instruction, self._clock.timestamp()))
        except (ApiError, *LOST_ANSWER_ERRORS) as error:
            if is_worth_retrying(error) or _is_write_conflict(error):
                write = retry_log(log, error)
                write(
                    "pod group status not written yet", group=group.key, error=plain_message(error)
                )
                return error
            if not isinstance(error, ApiError) or error.status not in _GONE:
                log.warning(
                    "pod group status not written", group=group.key, error=plain_message(error)
                )
        return None


def _is_write_conflict(error: Exception) -> bool:
    """Whether concurrent writers of the same group caused the conflict, not another UID."""
    return isinstance(error, ApiError) and error.status == _CONFLICT and "UID" not in str(error)


def status_patch(instruction: PatchPodGroupStatus, now: str) -> bytes:
    """The strategic merge patch, which merges conditions by type and keeps all others."""
    condition: dict[str, Any] = {
        "type": "PodGroupScheduled",
        "status": instruction.status,
        "reason": instruction.reason,
        "message": instruction.message,
    }
    if instruction.observed_generation:
        condition["observedGeneration"] = instruction.observed_generation
    if instruction.is_transition:
        condition["lastTransitionTime"] = now
    body = {"metadata": {"uid": instruction.group.uid}, "status": {"conditions": [condition]}}
    return msgspec.json.encode(body)
