"""Writes the volumes and claims that the engine has chosen for a pod.

    PATCH --- 2xx --------------------------------------------> written
      |------ refused permanently (4xx) ----------------------> failed
      |------ 429 ---------------------------------------> wait, PATCH again
      |------ 5xx, no answer, or 409 after one of them --> GET the object:
                  has the written fields ---------------------> written
                  unchanged -----------------------------> wait, PATCH again
                  gone, or changed otherwise -----------------> failed

Each write has the object's resource version as a precondition. A failure does not revert earlier
writes: a volume with a claimRef and a claim with a selected node stay so when the pod is retried.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import structlog

from stowage.api.decoding.decode import decode_object
from stowage.api.events import VolumesWritten
from stowage.api.instructions import BindVolumes, BindVolumeToClaim, PodReference, SetSelectedNode
from stowage.api.objects.meta import ApiStruct, ObjectMeta
from stowage.api.objects.volume import PersistentVolume, PersistentVolumeClaim
from stowage.api.values.volume_claims import BOUND_BY_CONTROLLER, SELECTED_NODE
from stowage.operator.client.api_client import LOST_ANSWER_ERRORS, ApiClient
from stowage.operator.client.api_error import ApiError
from stowage.operator.client.backoff import Backoff, retry_log
from stowage.operator.client.outage_log import plain_message
from stowage.operator.clock import Clock
from stowage.operator.writers.pod_runs import PodRuns

MAX_ANSWERED_ERRORS = 5
"""5xx answers to one write, each with the object unchanged, before the write counts as failed."""
_NOT_THE_LEADER = "this replica does not hold the lease any more"
_STOPPED = "the pod is gone or was preempted"

log = structlog.get_logger("stowage.operator.writers.volume_writer")


class _WriteFailedError(Exception):
    """A write that is not retried; the text is the reason."""


class _MetadataOnly(ApiStruct, frozen=True):
    """An object, reduced to its metadata."""

    metadata: ObjectMeta = ObjectMeta()


class _Write(msgspec.Struct, frozen=True):
    """One PATCH.

    Attributes:
        path: Path of the object.
        name: Name of the object, for messages.
        resource_version: Required version of the object.
        body: The patch.
        is_done: Whether an object, as read back, has the written fields.
    """

    path: str
    name: str
    resource_version: str
    body: dict[str, Any]
    is_done: Callable[[bytes], bool]


class VolumeWriter:
    """Writes a pod's volumes, then its claims, one after the other; many pods may run at once.

    Args:
        client: Client of the API server.
        may_write: Whether this replica holds the lease; checked before each write.
        clock: Time, sleep and jitter.
    """

    def __init__(self, client: ApiClient, may_write: Callable[[], bool], clock: Clock) -> None:
        self._client = client
        self._may_write = may_write
        self._clock = clock
        self._runs = PodRuns()

    async def write(self, instruction: BindVolumes) -> VolumesWritten | None:
        """Make the writes until one fails; returns None if `stop` was called for the pod."""
        uid = instruction.pod.uid
        volumes: dict[str, str] = {}
        claims: dict[str, str] = {}
        failure = ""
        async with self._runs.begin(uid) as stopped:
            try:
                for volume in instruction.volumes:
                    volumes[volume.name] = await self._settle(_claim_ref_write(volume), stopped)
                for claim in instruction.claims:
                    write = _selected_node_write(claim, instruction.node_name)
                    claims[f"{claim.namespace}/{claim.name}"] = await self._settle(write, stopped)
            except _WriteFailedError as failed:
                failure = str(failed)
        if stopped.is_set():
            return None
        return VolumesWritten(uid, instruction.number, volumes, claims, failure)

    def stop(self, pod: PodReference) -> None:
        """Make no further write for this pod."""
        self._runs.stop(pod.uid)

    async def _settle(self, write: _Write, stopped: asyncio.Event) -> str:
        """Make one write, with retries; returns the new resource version.

        Raises:
            _WriteFailedError: the write failed permanently, or was stopped.
        """
        backoff = Backoff(self._clock.jitter, initial_s=0.1, max_s=10.0)
        was_sent, answered_errors = False, 0
        while True:
            if not self._may_write():
                raise _WriteFailedError(_NOT_THE_LEADER)
            if stopped.is_set():
                raise _WriteFailedError(_STOPPED)
            try:
                answer = await self._client.patch(write.path, msgspec.json.encode(write.body))
                return decode_object(_MetadataOnly, answer).metadata.resource_version
            except ApiError as error:
                answered_errors += error.status >= 500
                was_sent |= error.status >= 500
                if not was_sent and error.status != 429:
                    raise _WriteFailedError(error.message or str(error)) from error
                failure: Exception = error
            except LOST_ANSWER_ERRORS as error:
                was_sent, failure = True, error
            if was_sent:
                version = await self._read_back(write, failure, stopped)
                if version:
                    return version
            if answered_errors >= MAX_ANSWERED_ERRORS:
                raise _WriteFailedError(str(failure))
            log_retry = retry_log(log, failure)
            log_retry("writing again", object=write.name, error=plain_message(failure))
            await self._clock.sleep(backoff.next_delay(failure))

    async def _read_back(self, write: _Write, failure: Exception, stopped: asyncio.Event) -> str:
        """Read the object; returns its version if it has the written fields, "" if unchanged.

        Raises:
            _WriteFailedError: the object is gone, or has changed otherwise; or it was stopped.
        """
        backoff = Backoff(self._clock.jitter, initial_s=0.1, max_s=10.0)
        while True:
            if stopped.is_set():
                raise _WriteFailedError(_STOPPED)
            try:
                found = await self._client.get(write.path)
            except ApiError as error:
                if error.is_object_not_found:
                    raise _WriteFailedError(error.message or str(error)) from error
                await self._clock.sleep(backoff.next_delay(error))
            except LOST_ANSWER_ERRORS as error:
                await self._clock.sleep(backoff.next_delay(error))
            else:
                break
        version = decode_object(_MetadataOnly, found).metadata.resource_version
        if write.is_done(found):
            return version
        if version != write.resource_version:
            raise _WriteFailedError(
                f"{write.name} was changed by another client: {plain_message(failure)}"
            ) from failure
        return ""


def _claim_ref_write(volume: BindVolumeToClaim) -> _Write:
    metadata: dict[str, Any] = {"uid": volume.uid, "resourceVersion": volume.resource_version}
    if volume.sets_bound_by_controller:
        metadata["annotations"] = {BOUND_BY_CONTROLLER: "yes"}
    body = {"metadata": metadata, "spec": {"claimRef": volume.claim_ref}}

    def is_done(found: bytes) -> bool:
        read = decode_object(PersistentVolume, found)
        reference = read.spec.claim_ref
        if read.metadata.uid != volume.uid or reference is None:
            return False
        return reference.uid == volume.claim_ref.uid

    path = f"/api/v1/persistentvolumes/{volume.name}"
    return _Write(path, f"volume {volume.name}", volume.resource_version, body, is_done)


def _selected_node_write(claim: SetSelectedNode, node_name: str) -> _Write:
    metadata = {
        "uid": claim.uid,
        "resourceVersion": claim.resource_version,
        "annotations": {SELECTED_NODE: node_name},
    }

    def is_done(found: bytes) -> bool:
        meta = decode_object(PersistentVolumeClaim, found).metadata
        return meta.uid == claim.uid and meta.annotations.get(SELECTED_NODE) == node_name

    path = f"/api/v1/namespaces/{claim.namespace}/persistentvolumeclaims/{claim.name}"
    name = f"claim {claim.namespace}/{claim.name}"
    return _Write(path, name, claim.resource_version, {"metadata": metadata}, is_done)
