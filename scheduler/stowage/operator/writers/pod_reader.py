"""Reads bound pods that no watch has confirmed.

The reader reports only that a pod is gone, which is final: a UID never comes back. Only the watch
reports that a pod exists. If the reader did so too, its answer could arrive after the pod's
deletion, and the engine would keep the pod forever.
"""

from __future__ import annotations

from stowage.api.decoding.decode import decode_pod
from stowage.api.decoding.errors import InvalidObject
from stowage.api.events import AssignedPodGone, ObjectInvalid
from stowage.api.instructions import PodReference
from stowage.api.objects.pod import Pod
from stowage.operator.client.api_client import ApiClient
from stowage.operator.client.api_error import ApiError
from stowage.operator.client.backoff import Backoff, Jitter, Sleep, retry
from stowage.operator.watch.invalid_objects import invalid_object_event

FINISHED_PHASES = frozenset({"Succeeded", "Failed"})


class PodReader:
    """Reads pods, and retries until there is an answer."""

    def __init__(self, client: ApiClient, jitter: Jitter, sleep: Sleep) -> None:
        self._client = client
        self._jitter = jitter
        self._sleep = sleep

    async def read(self, pod: PodReference) -> AssignedPodGone | ObjectInvalid | None:
        """Read a pod.

        Returns:
            AssignedPodGone if the pod is gone, finished, without a node or replaced by another pod
            of its name; ObjectInvalid if it cannot be decoded; None if it is on a node.

        Raises:
            ApiError: the API server refuses to return pods.
        """
        gone = AssignedPodGone(pod.namespace, pod.name, pod.uid)
        backoff = Backoff(self._jitter, 0.2, self._client.timeouts.max_backoff_s)
        try:
            found = await retry(lambda: self._ask(pod), backoff, self._sleep)
        except ApiError as error:
            if error.is_object_not_found:
                return gone
            raise
        except InvalidObject as invalid:
            return invalid_object_event(invalid)
        is_assigned = found.spec.node_name and found.status.phase not in FINISHED_PHASES
        return None if found.metadata.uid == pod.uid and is_assigned else gone

    async def _ask(self, pod: PodReference) -> Pod:
        """GET the pod of that name, whatever its UID.

        Raises:
            ApiError: the API server refuses, or returns another object.
            InvalidObject: the pod cannot be decoded.
        """
        body = await self._client.get(f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}")
        try:
            found = decode_pod(body)
        except InvalidObject as invalid:
            if invalid.name == pod.key:
                raise
            raise ApiError(200, "NotThePod", str(invalid)) from invalid
        if found.metadata.namespaced_name != pod.key:
            raise ApiError(200, "NotThePod", found.metadata.namespaced_name)
        return found
