"""Writes the resource claims that the engine has allocated and reserved for a pod.

    for each claim: PATCH the finalizer, if it is missing; PATCH the status
      |-- 2xx ---------------------------------------------> next claim
      |-- 409 -----------------------> GET, up to 5 tries in all
      |-- 429, 5xx, no answer -------> wait, GET, also if it was the last try or the pod is gone:
      |      reserved for the pod ---------------------------> next claim
      |      can still be used ------------------------------> PATCH again, up to 5 answers of 5xx
      |      cannot be used any more ------------------------> failed
      |-- refused permanently (other 4xx) -------------------> failed
    for extended resources: POST the claim, then the same, then PATCH the status of the pod

The allocation and the reservation are one request, so a claim that is reserved for the pod has the
allocation. Each PATCH has UID and resource version as preconditions. A failure reverts nothing: the
engine releases what was reserved. So a PATCH that may have been applied is never reported as failed
before a GET has shown the claim: its devices would be given to another pod. An answer that is no
claim counts as no answer. A claim whose POST has no answer may exist; the engine finds it by its
owner and deletes it. An unexpected exception after the POST is reported with the created claim.

upstream: ``bindClaim`` of pkg/scheduler/framework/plugins/dynamicresources.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import structlog

from stowage.api.decoding.decode import decode_object
from stowage.api.decoding.errors import InvalidObject
from stowage.api.events import ClaimsWritten
from stowage.api.instructions import BindClaims, ClaimToBind, ExtendedClaimToBind, PodReference
from stowage.api.objects.device import ResourceClaim
from stowage.api.values import claim_writes
from stowage.api.values.claim_writes import ClaimUnusable
from stowage.operator.client.api_client import LOST_ANSWER_ERRORS, ApiClient
from stowage.operator.client.api_error import ApiError
from stowage.operator.client.backoff import Backoff
from stowage.operator.client.outage_log import plain_message
from stowage.operator.clock import Clock

CLAIMS_PATH = "/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims"
MAX_CONFLICTS = 5
"""Tries of one claim that other clients keep changing, as in kube-scheduler."""
MAX_ANSWERED_ERRORS = 5
"""5xx answers to the writes of one claim before they count as failed."""
_UNKNOWN_OUTCOME = (InvalidObject, *LOST_ANSWER_ERRORS)
"""After one of these a write may have been applied."""
_NOT_THE_LEADER = "this replica does not hold the lease any more"

log = structlog.get_logger("stowage.operator.writers.claim_writer")


class _WriteFailedError(Exception):
    """A write that is not retried; the text is the reason."""


class _Turn:
    """The pods whose writes to one claim follow one another, and the claim as last written."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.claim: ResourceClaim | None = None
        self.num_pods = 0


class ClaimWriter:
    """Writes a pod's claims one after the other; many pods may run at once.

    Args:
        client: Client of the API server.
        may_write: Whether this replica holds the lease; checked before each write.
        clock: Time, sleep and jitter.
        observe_creation: Called with ``success`` or ``failure`` after a claim was to be created.
    """

    def __init__(
        self,
        client: ApiClient,
        may_write: Callable[[], bool],
        clock: Clock,
        observe_creation: Callable[[str], None],
    ) -> None:
        self._client = client
        self._may_write = may_write
        self._clock = clock
        self._observe_creation = observe_creation
        self._running: dict[str, set[int]] = {}
        self._turns: dict[str, _Turn] = {}

    async def write(self, instruction: BindClaims) -> ClaimsWritten:
        """Make the writes until one fails or `stop` is called for the pod."""
        pod, number = instruction.pod, instruction.number
        self._running.setdefault(pod.uid, set()).add(number)
        claims: list[ResourceClaim] = []
        created: list[ResourceClaim] = []
        failure = ""
        try:
            for wanted in instruction.claims:
                claims.append(await self._bind(wanted, instruction))  # noqa: PERF401 - may fail
            if instruction.extended is not None:
                await self._bind_extended(instruction.extended, instruction, created)
        except (_WriteFailedError, ClaimUnusable) as failed:
            failure = str(failed)
        except Exception as fault:
            if not created:
                raise
            # Without the claim in the outcome its devices would be given to another pod.
            log.exception("job failed", pod=pod.key)
            failure = repr(fault)
        finally:
            self._forget(pod.uid, number)
        extended = created[-1] if created else None
        return ClaimsWritten(pod.uid, number, tuple(claims), extended, failure)

    def stop(self, pod: PodReference) -> None:
        """Make no further write for this pod; what was written is reported all the same."""
        self._running.pop(pod.uid, None)

    def _forget(self, uid: str, number: int) -> None:
        numbers = self._running.get(uid, set())
        numbers.discard(number)
        if not numbers:
            self._running.pop(uid, None)

    async def _bind(self, wanted: ClaimToBind, instruction: BindClaims) -> ResourceClaim:
        """Allocate and reserve one claim, with retries; returns it as the API server has it.

        Pods that share a claim take turns, and each begins with what the one before has written.

        Raises:
            _WriteFailedError: a write failed permanently.
            ClaimUnusable: another client changed the claim so that it cannot be used.
        """
        uid = wanted.claim.metadata.uid
        turn = self._turns.setdefault(uid, _Turn())
        turn.num_pods += 1
        try:
            async with turn.lock:
                claim = wanted.claim
                # A reservation of this pod that it shows may have been given back since.
                if turn.claim and not claim_writes.is_reserved_for(turn.claim, instruction.pod.uid):
                    claim = turn.claim
                turn.claim = await self._bind_in_turn(claim, wanted, instruction)
                return turn.claim
        finally:
            turn.num_pods -= 1
            if not turn.num_pods:
                del self._turns[uid]

    async def _bind_in_turn(
        self, claim: ResourceClaim, wanted: ClaimToBind, instruction: BindClaims
    ) -> ResourceClaim:
        pod = instruction.pod
        backoff = Backoff(self._clock.jitter, initial_s=0.01, max_s=10.0)
        conflicts = answered_errors = 0
        while True:
            if claim_writes.is_reserved_for(claim, pod.uid):
                return claim
            claim_writes.check_usable(claim, wanted)
            try:
                return await self._write_once(claim, wanted, instruction)
            except ApiError as error:
                conflicts += error.status == 409
                answered_errors += error.status >= 500
                failure: Exception = error
                is_final = not error.is_transient and error.status != 409
                if is_final or conflicts == MAX_CONFLICTS:
                    raise _WriteFailedError(_doing(claim, wanted, error)) from error
            except _UNKNOWN_OUTCOME as error:
                failure = error
            name = claim.metadata.namespaced_name
            log.info("writing again", claim=name, error=plain_message(failure))
            await self._clock.sleep(backoff.next_delay(failure))
            doing = _doing(claim, wanted, failure)
            claim = await self._read(claim)
            is_last = answered_errors == MAX_ANSWERED_ERRORS
            if is_last and not claim_writes.is_reserved_for(claim, pod.uid):
                raise _WriteFailedError(doing) from failure

    async def _write_once(
        self, claim: ResourceClaim, wanted: ClaimToBind, instruction: BindClaims
    ) -> ResourceClaim:
        if wanted.allocation is not None and not claim_writes.has_finalizer(claim):
            body = {"metadata": {"finalizers": [claim_writes.FINALIZER]}}
            claim = await self._patch(claim, "", body, instruction)
        now = self._clock.timestamp() if instruction.sets_time else None
        reserved = claim_writes.with_reservation(claim, wanted, instruction.pod, now).status
        status: dict[str, Any] = {"reservedFor": reserved.reserved_for[-1:]}
        if claim.status.allocation is None:
            status["allocation"] = reserved.allocation
        elif reserved.allocation != claim.status.allocation:
            status["allocation"] = {"allocationTimestamp": now}
        return await self._patch(claim, "/status", {"status": status}, instruction)

    async def _bind_extended(
        self,
        extended: ExtendedClaimToBind,
        instruction: BindClaims,
        created: list[ResourceClaim],
    ) -> None:
        """Create, allocate and reserve the claim for extended resources; name it in the pod."""
        pod = instruction.pod
        created.append(await self._create(extended, instruction))
        wanted = ClaimToBind(created[-1], extended.allocation)
        created.append(await self._bind(wanted, instruction))
        if not extended.mappings:
            text = "nil or empty request mappings, no update of pod"
            raise _WriteFailedError(f"{text} {pod.key} ExtendedResourceClaimStatus")
        status = claim_writes.extended_claim_status(created[-1], extended)
        body = {"metadata": {"uid": pod.uid}, "status": {"extendedResourceClaimStatus": status}}
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/status"
        backoff = Backoff(self._clock.jitter, initial_s=0.1, max_s=10.0)
        for attempt in range(MAX_ANSWERED_ERRORS):
            self._check_running(instruction)
            try:
                await self._client.patch(path, msgspec.json.encode(body))
                return
            except (ApiError, *LOST_ANSWER_ERRORS) as error:
                is_final = isinstance(error, ApiError) and not error.is_transient
                if is_final or attempt + 1 == MAX_ANSWERED_ERRORS:
                    text = f"update pod {pod.key} ExtendedResourceClaimStatus: {_text(error)}"
                    raise _WriteFailedError(text) from error
                await self._clock.sleep(backoff.next_delay(error))

    async def _create(
        self, extended: ExtendedClaimToBind, instruction: BindClaims
    ) -> ResourceClaim:
        self._check_running(instruction)
        pod = instruction.pod
        claim = claim_writes.extended_claim(pod, extended)
        metadata = {
            "generateName": claim_writes.extended_claim_prefix(pod),
            "annotations": claim.metadata.annotations,
            "ownerReferences": claim.metadata.owner_references,
        }
        kind = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
        body = msgspec.json.encode({**kind, "metadata": metadata, "spec": claim.spec})
        try:
            answer = await self._client.post(CLAIMS_PATH.format(namespace=pod.namespace), body)
            created = _decoded(answer, claim)
        except (ApiError, *_UNKNOWN_OUTCOME) as error:
            self._observe_creation("failure")
            text = f"create claim for extended resources of pod {pod.key}: {_text(error)}"
            raise _WriteFailedError(text) from error
        self._observe_creation("success")
        return created

    async def _patch(
        self,
        claim: ResourceClaim,
        subresource: str,
        body: dict[str, Any],
        instruction: BindClaims,
    ) -> ResourceClaim:
        self._check_running(instruction)
        meta = claim.metadata
        preconditions = {"uid": meta.uid, "resourceVersion": meta.resource_version}
        body = {**body, "metadata": {**preconditions, **body.get("metadata", {})}}
        path = f"{claim_path(meta.namespace, meta.name)}{subresource}"
        return _decoded(await self._client.patch(path, msgspec.json.encode(body)), claim)

    async def _read(self, claim: ResourceClaim) -> ResourceClaim:
        """The claim as it is now, also if the pod is gone or the lease lost.

        Raises:
            ClaimUnusable: it does not exist any more.
        """
        path = claim_path(claim.metadata.namespace, claim.metadata.name)
        backoff = Backoff(self._clock.jitter, initial_s=0.1, max_s=10.0)
        while True:
            try:
                return _decoded(await self._client.get(path), claim)
            except ApiError as error:
                if error.is_object_not_found:
                    name = f"claim {claim.metadata.namespaced_name}"
                    raise ClaimUnusable(f"{name} got deleted in the meantime") from error
                await self._clock.sleep(backoff.next_delay(error))
            except _UNKNOWN_OUTCOME as error:
                await self._clock.sleep(backoff.next_delay(error))

    def _check_running(self, instruction: BindClaims) -> None:
        if not self._may_write():
            raise _WriteFailedError(_NOT_THE_LEADER)
        if instruction.number not in self._running.get(instruction.pod.uid, ()):
            raise _WriteFailedError("the pod is gone")


def claim_path(namespace: str, name: str) -> str:
    """The path of a claim."""
    return f"{CLAIMS_PATH.format(namespace=namespace)}/{name}"


def _decoded(answer: bytes, claim: ResourceClaim) -> ResourceClaim:
    """A claim as the API server answered.

    Raises:
        InvalidObject: The answer is not a claim with this name, or has no UID: a login page, say.
    """
    found = decode_object(ResourceClaim, answer)
    meta, wanted = found.metadata, claim.metadata
    # A claim that is to be created has no name yet.
    if meta.uid and meta.namespace == wanted.namespace and wanted.name in ("", meta.name):
        return found
    expected = (
        f"claim {wanted.namespaced_name}" if wanted.name else f"a claim in {wanted.namespace}"
    )
    name = meta.namespaced_name
    raise InvalidObject("ResourceClaim", name, "metadata", name, expected, meta.uid)


def _doing(claim: ResourceClaim, wanted: ClaimToBind, error: Exception) -> str:
    """The failure of a write, worded as kube-scheduler does."""
    if wanted.allocation is None:
        doing = "add reservation"
    elif claim_writes.has_finalizer(claim):
        doing = "add allocation and reservation"
    else:
        doing = "add finalizer"
    return f"{doing} to claim {claim.metadata.namespaced_name}: {_text(error)}"


def _text(error: Exception) -> str:
    return (error.message if isinstance(error, ApiError) else "") or plain_message(error)
