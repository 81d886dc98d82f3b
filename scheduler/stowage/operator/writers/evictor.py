"""Evicts the victims of a preemption: adds the DisruptionTarget condition, then deletes the pod.

    PATCH status --- 404 ----------------------------------------------> gone already
        |---- refused permanently, except 409 and 422 -----------------> not evicted
        |---- 2xx, or another pod has the name (409, 422) --> DELETE with the pod's UID
    DELETE --------- 2xx ----------------------------------------------> evicted
        |---- 404, or another pod has the name (409) ------------------> gone already
        |---- refused permanently -------------------------------------> not evicted

Without an answer, and after 429 or 5xx, the evictor repeats the request up to `MAX_ATTEMPTS` times.
After that the victim counts as not evicted, and the engine tries the preemptor again. The pod's own
grace period applies.

upstream: ``PreemptPod`` of pkg/scheduler/framework/preemption/executor.go, which tries once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from stowage.api.events import EvictionFinished
from stowage.api.instructions import EvictPod, PodReference
from stowage.operator.client.api_client import LOST_ANSWER_ERRORS, ApiClient
from stowage.operator.client.api_error import ApiError
from stowage.operator.client.backoff import Backoff, retry
from stowage.operator.client.outage_log import plain_message
from stowage.operator.clock import Clock

MAX_ATTEMPTS = 6
REFUSED_PAUSE_S = 1.0
"""Pause before a refusal is reported: the engine retries at once, so that without the pause a
missing right would cause a hundred requests and log lines per second."""
_ANOTHER_POD = (409, 422)


class Evictor:
    """Evicts pods; many evictions may run at once.

    Args:
        client: Client of the API server; it writes nothing without the lease.
        clock: Time, sleep and jitter.
    """

    def __init__(self, client: ApiClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    async def evict(self, instruction: EvictPod) -> EvictionFinished:
        """Add the condition and delete the pod; the outcome contains the error, if any."""
        victim, preemptor_uid = instruction.victim, instruction.preemptor.uid
        path = f"/api/v1/namespaces/{victim.namespace}/pods/{victim.name}"
        try:
            await self._add_condition(path, instruction)
            await self._send(lambda: self._client.delete(path, delete_options(victim)))
        except ApiError as error:
            if error.is_object_not_found or error.status == 409:
                return EvictionFinished(preemptor_uid, victim)
            await self._clock.sleep(REFUSED_PAUSE_S)
            return EvictionFinished(preemptor_uid, victim, error=str(error))
        except LOST_ANSWER_ERRORS as error:
            return EvictionFinished(preemptor_uid, victim, error=plain_message(error))
        return EvictionFinished(preemptor_uid, victim, was_deleted=True)

    async def _add_condition(self, path: str, instruction: EvictPod) -> None:
        body = disruption_patch(instruction, self._clock.timestamp())
        try:
            await self._send(lambda: self._client.patch(f"{path}/status", body))
        except ApiError as error:
            if error.status not in _ANOTHER_POD:
                raise

    async def _send(self, request: Callable[[], Awaitable[bytes]]) -> None:
        backoff = Backoff(self._clock.jitter, 0.1, self._client.timeouts.max_backoff_s)
        await retry(request, backoff, self._clock.sleep, MAX_ATTEMPTS)


def disruption_patch(instruction: EvictPod, transition_time: str) -> bytes:
    """The strategic merge patch that adds the victim's DisruptionTarget condition."""
    name, kind = instruction.scheduler_name, instruction.preemptor_kind.lower()
    condition: dict[str, object] = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": f"{name}: preempting to accommodate a higher priority {kind}",
        "lastTransitionTime": transition_time,
    }
    if instruction.observed_generation:
        condition["observedGeneration"] = instruction.observed_generation
    return msgspec.json.encode(
        {"metadata": {"uid": instruction.victim.uid}, "status": {"conditions": [condition]}}
    )


def delete_options(pod: PodReference) -> bytes:
    """DeleteOptions with the pod's UID as precondition."""
    return msgspec.json.encode(
        {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": pod.uid}}
    )
