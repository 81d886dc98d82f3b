"""Writes what was decided about a pod's claims, and never guesses what became of a write.

    PATCH --- 2xx --------------------------------------------> written
      |------ refused for good (4xx) -------------------------> given up
      |------ 429 ---------------------------------------> wait, PATCH again
      |------ 5xx, no answer, or 409 after one of them --> GET the object:
                  says what it was to say --------------------> written
                  unchanged -----------------------------> wait, PATCH again
                  gone, or says something else ---------------> given up

Each write holds only for the version of the object that was looked at. Nothing is taken back: a
volume that was given away and a claim that was sent to a node stay so, and the pod is tried again.
"""

from __future__ import annotations

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
from stowage.operator.client.backoff import Backoff, Jitter, Sleep

MAX_ANSWERED_ERRORS = 5
"""5xx answers to one write, each followed by an unchanged object, before it is given up."""
_NOT_THE_LEADER = "this replica does not hold the lease any more"

log = structlog.get_logger("stowage.operator.writers.volume_writer")


class _GivenUpError(Exception):
    """A write that will not be made; the text says why."""


class _HeaderOnly(ApiStruct, frozen=True):
    """An object as far as its version goes."""

    metadata: ObjectMeta = ObjectMeta()


class _Write(msgspec.Struct, frozen=True):
    """One PATCH.

    Attributes:
        path: Of the object.
        name: Of the object, for messages.
        resource_version: The version it holds for.
        body: What it says.
        is_done: Whether the object, as read back, says it.
    """

    path: str
    name: str
    resource_version: str
    body: dict[str, Any]
    is_done: Callable[[bytes], bool]


class VolumeWriter:
    """Writes volumes, then claims, one after the other for a pod; many pods may be at it at once.

    Args:
        client: Client of the API server.
        may_write: Whether this replica still holds the lease; asked before each write.
        jitter: Returns random numbers in 0..1.
        sleep: Sleeps for a number of seconds.
    """

    def __init__(
        self, client: ApiClient, may_write: Callable[[], bool], jitter: Jitter, sleep: Sleep
    ) -> None:
        self._client = client
        self._may_write = may_write
        self._jitter = jitter
        self._sleep = sleep
        self._running: set[str] = set()

    async def write(self, instruction: BindVolumes) -> VolumesWritten | None:
        """Make all writes, or up to the first that fails; None if the pod went meanwhile."""
        uid = instruction.pod.uid
        self._running.add(uid)
        volumes: dict[str, str] = {}
        claims: dict[str, str] = {}
        problem = ""
        try:
            for volume in instruction.volumes:
                volumes[volume.name] = await self._settle(uid, _giving(volume))
            for claim in instruction.claims:
                write = _selecting(claim, instruction.node_name)
                claims[f"{claim.namespace}/{claim.name}"] = await self._settle(uid, write)
        except _GivenUpError as given_up:
            problem = str(given_up)
        if uid not in self._running:
            return None
        self._running.discard(uid)
        return VolumesWritten(uid, volumes, claims, problem)

    def stop(self, pod: PodReference) -> None:
        """Begin no further write for this pod."""
        self._running.discard(pod.uid)

    async def _settle(self, uid: str, write: _Write) -> str:
        """The resource version of the object once it says what it was to say."""
        backoff = Backoff(self._jitter, initial_s=0.1, max_s=10.0)
        was_sent, answered_errors = False, 0
        while True:
            if not self._may_write():
                raise _GivenUpError(_NOT_THE_LEADER)
            if uid not in self._running:
                raise _GivenUpError("the pod is gone")
            try:
                answer = await self._client.patch(write.path, msgspec.json.encode(write.body))
                return decode_object(_HeaderOnly, answer).metadata.resource_version
            except ApiError as error:
                answered_errors += error.status >= 500
                was_sent |= error.status >= 500
                if not was_sent and error.status != 429:
                    raise _GivenUpError(error.message or str(error)) from error
                failure: Exception = error
            except LOST_ANSWER_ERRORS as error:
                was_sent, failure = True, error
            if was_sent:
                version = await self._read_back(write, failure)
                if version:
                    return version
            if answered_errors >= MAX_ANSWERED_ERRORS:
                raise _GivenUpError(str(failure))
            log.info("writing again", object=write.name, error=repr(failure))
            await self._sleep(backoff.next_delay(failure))

    async def _read_back(self, write: _Write, failure: Exception) -> str:
        """The version of the object if it was written, nothing if it may yet be."""
        backoff = Backoff(self._jitter, initial_s=0.1, max_s=10.0)
        while True:
            try:
                found = await self._client.get(write.path)
            except ApiError as error:
                if error.is_object_not_found:
                    raise _GivenUpError(error.message or str(error)) from error
                await self._sleep(backoff.next_delay(error))
            except LOST_ANSWER_ERRORS as error:
                await self._sleep(backoff.next_delay(error))
            else:
                break
        version = decode_object(_HeaderOnly, found).metadata.resource_version
        if write.is_done(found):
            return version
        if version != write.resource_version:
            raise _GivenUpError(f"{write.name} has changed meanwhile: {failure!r}") from failure
        return ""


def _giving(volume: BindVolumeToClaim) -> _Write:
    metadata: dict[str, Any] = {"uid": volume.uid, "resourceVersion": volume.resource_version}
    if volume.sets_bound_by_controller:
        metadata["annotations"] = {BOUND_BY_CONTROLLER: "yes"}
    body = {"metadata": metadata, "spec": {"claimRef": volume.claim_ref}}

    def is_done(found: bytes) -> bool:
        read = decode_object(PersistentVolume, found)
        reference = read.spec.claim_ref
        same = read.metadata.uid == volume.uid and reference is not None
        return same and reference is not None and reference.uid == volume.claim_ref.uid

    path = f"/api/v1/persistentvolumes/{volume.name}"
    return _Write(path, f"volume {volume.name}", volume.resource_version, body, is_done)


def _selecting(claim: SetSelectedNode, node_name: str) -> _Write:
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
