"""Takes resource claims back: removes consumers, clears allocations, deletes claims.

Only deletions are reported; of the rest, the watch shows the outcome. A request is repeated after
no answer, 429 or 5xx. A claim that was changed or deleted meanwhile is left alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import msgspec
import structlog

from stowage.api.decoding.decode import decode_object
from stowage.api.decoding.errors import InvalidObject
from stowage.api.events import ClaimDeletionFinished
from stowage.api.instructions import (
    ClaimReference,
    DeallocateClaim,
    DeleteClaim,
    PodReference,
    ReleaseClaims,
)
from stowage.api.objects.meta import ApiStruct, ObjectMeta
from stowage.api.values.claim_writes import FINALIZER
from stowage.operator.client.api_client import LOST_ANSWER_ERRORS, ApiClient
from stowage.operator.client.api_error import ApiError
from stowage.operator.client.backoff import Backoff, retry
from stowage.operator.client.outage_log import plain_message
from stowage.operator.clock import Clock
from stowage.operator.writers.claim_writer import claim_path

MAX_ATTEMPTS = 6
#: The claim is gone, was changed since, or another claim has the name.
_OVERTAKEN = (404, 409, 422)

Release: TypeAlias = ReleaseClaims | DeallocateClaim | DeleteClaim

log = structlog.get_logger("stowage.operator.writers.claim_releaser")


class _ClaimOrStatus(ApiStruct, frozen=True):
    """The answer to a deletion."""

    metadata: ObjectMeta = ObjectMeta()


class ClaimReleaser:
    """Takes claims back; many instructions may run at once.

    Args:
        client: Client of the API server; it writes nothing without the lease.
        clock: Time, sleep and jitter.
    """

    def __init__(self, client: ApiClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._announced: dict[str, list[asyncio.Event]] = {}

    def announce(self, instruction: Release) -> None:
        """Note that an instruction is about to be carried out."""
        self._announced.setdefault(instruction.pod.uid, []).append(asyncio.Event())

    async def wait_for_releases(self, pod: PodReference) -> None:
        """Wait until all announced instructions of a pod are carried out."""
        for event in list(self._announced.get(pod.uid, ())):
            await event.wait()

    def _end(self, instruction: Release) -> None:
        announced = self._announced.get(instruction.pod.uid)
        if announced:
            announced.pop(0).set()
            if not announced:
                del self._announced[instruction.pod.uid]

    async def release(self, instruction: Release) -> ClaimDeletionFinished | None:
        """Carry out an instruction; a failure is logged. The outcome, if it is a deletion."""
        try:
            error = await self._carry_out(instruction)
        finally:
            self._end(instruction)
        if isinstance(instruction, DeleteClaim):
            return ClaimDeletionFinished(instruction.claim, error)
        return None

    async def _carry_out(self, instruction: Release) -> str:
        """Carry out an instruction; returns why it is not done, or an empty text."""
        try:
            if isinstance(instruction, ReleaseClaims):
                for claim in instruction.claims:
                    await self._remove_consumer(claim, instruction.pod)
            elif isinstance(instruction, DeallocateClaim):
                await self._deallocate(instruction.claim)
            else:
                return await self._delete(instruction.claim)
        except (ApiError, InvalidObject, *LOST_ANSWER_ERRORS) as error:
            pod, what = instruction.pod.key, type(instruction).__name__
            text = plain_message(error)
            log.warning("claim not released", pod=pod, instruction=what, error=text)
            return text
        return ""

    async def _remove_consumer(self, claim: ClaimReference, pod: PodReference) -> None:
        removed = {"$patch": "delete", "uid": pod.uid}
        body = {"metadata": {"uid": claim.uid}, "status": {"reservedFor": [removed]}}
        await self._patch(claim, "/status", body)

    async def _deallocate(self, claim: ClaimReference) -> None:
        preconditions = {"uid": claim.uid, "resourceVersion": claim.resource_version}
        cleared = dict.fromkeys(("allocation", "reservedFor", "devices"))
        await self._patch(claim, "/status", {"metadata": preconditions, "status": cleared})

    async def _delete(self, claim: ClaimReference) -> str:
        """Delete a claim; returns why it still exists, or an empty text."""
        removed = {"$deleteFromPrimitiveList/finalizers": [FINALIZER]}
        await self._patch(claim, "", {"metadata": {"uid": claim.uid, **removed}})
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": claim.uid},
        }
        path = claim_path(claim.namespace, claim.name)
        answer = await self._send(lambda: self._client.delete(path, msgspec.json.encode(options)))
        # A claim with a finalizer is only marked: the answer is the claim as it still exists.
        left = () if answer is None else decode_object(_ClaimOrStatus, answer).metadata.finalizers
        return f"the claim has the finalizers {', '.join(left)}" if left else ""

    async def _patch(self, claim: ClaimReference, subresource: str, body: dict[str, Any]) -> None:
        path = f"{claim_path(claim.namespace, claim.name)}{subresource}"
        await self._send(lambda: self._client.patch(path, msgspec.json.encode(body)))

    async def _send(self, request: Callable[[], Awaitable[bytes]]) -> bytes | None:
        """The answer; None if the claim is gone or was changed."""
        backoff = Backoff(self._clock.jitter, 0.1, self._client.timeouts.max_backoff_s)
        try:
            return await retry(request, backoff, self._clock.sleep, MAX_ATTEMPTS)
        except ApiError as error:
            if error.status not in _OVERTAKEN:
                raise
            return None
