"""Posts Bindings and finds out the outcome of each.

    POST --- 2xx ---------------------------------------------> BindSucceeded
      |----- refused permanently (4xx) -----------------------> BindFailed
      |----- 429, or the server could not be reached ----> wait, POST again
      |----- 409, 5xx, or no answer ----> GET the pod:
                 on our node, our uid ------------------------> BindSucceeded
                 gone, another uid, on another node ----------> BindFailed
                 no node, and the POST was refused (409) -----> BindFailed
                 no node otherwise ------------> wait, GET again, POST again

After `MAX_ANSWERED_ERRORS` answers such as 5xx, each with the pod still unbound, it is BindFailed.

A Binding carries the pod's UID as a precondition and binds an unbound pod only, so posting it
again does no harm. kube-scheduler (v1.36) treats a lost answer as a failure and forgets the pod,
after which it may overcommit the node.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from enum import Enum, auto
from typing import Any

import aiohttp
import msgspec
import structlog

from stowage.api.events import BindFailed, BindSucceeded
from stowage.api.instructions import BindPod, PodReference
from stowage.operator.client.api_client import LOST_ANSWER_ERRORS, ApiClient
from stowage.operator.client.api_error import ApiError
from stowage.operator.client.backoff import Backoff, retry_log
from stowage.operator.client.outage_log import plain_message
from stowage.operator.clock import Clock

MAX_ANSWERED_ERRORS = 5
"""A Binding fails after this many inconclusive answers, each with the pod still unbound."""

LATE_S = 0.5
"""A request whose connection broke may still reach the server within this time."""

log = structlog.get_logger("stowage.operator.writers.binder")


class _ObjectMeta(msgspec.Struct, frozen=True):
    name: str
    namespace: str
    uid: str


class _PodSpec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""


class _BoundPod(msgspec.Struct, frozen=True):
    """A pod, reduced to its identity and node."""

    metadata: _ObjectMeta
    spec: _PodSpec


_POD_DECODER = msgspec.json.Decoder(_BoundPod)
_encode = msgspec.json.encode


class BindingState(Enum):
    """State of a binding, as read back from the API server.

    LOST means that the pod is gone or on another node.
    """

    BOUND = auto()
    LOST = auto()
    UNBOUND = auto()


class Binder:
    """Binds pods; many bindings may run at once.

    Args:
        client: Client of the API server.
        may_write: Whether this replica holds the lease; checked before each POST.
        clock: Time, sleep and jitter.
    """

    def __init__(self, client: ApiClient, may_write: Callable[[], bool], clock: Clock) -> None:
        self._client = client
        self._may_write = may_write
        self._clock = clock

    async def bind(self, instruction: BindPod) -> BindSucceeded | BindFailed:
        """POST the Binding; returns when its outcome is known."""
        if not self._may_write():
            return _failed(instruction, "this replica does not hold the lease any more")
        try:
            await self._post(instruction)
        except (ApiError, *LOST_ANSWER_ERRORS) as error:
            return await self._settle(instruction, error)
        return BindSucceeded(instruction.pod.uid, instruction.node_name)

    async def _settle(self, instruction: BindPod, error: Exception) -> BindSucceeded | BindFailed:
        """Find out the outcome of a POST that ended with `error`; post again if still unbound."""
        backoff = Backoff(self._clock.jitter, initial_s=0.1, max_s=10.0)
        was_sent, answered_errors = False, 0
        while True:
            if _never_reached_server(error):
                state = BindingState.UNBOUND
            else:
                was_sent = was_sent or not isinstance(error, ApiError) or error.may_have_been_done
                state = await self._read_back(instruction, error, was_sent)
            if state is BindingState.BOUND:
                return BindSucceeded(instruction.pod.uid, instruction.node_name)
            if isinstance(error, ApiError) and error.may_have_been_done:
                answered_errors += 1
            if state is BindingState.LOST or _is_final(error, answered_errors):
                return _failed(instruction, str(error))
            write = retry_log(log, error)
            write("binding again", pod=instruction.pod.key, error=plain_message(error))
            await self._clock.sleep(max(backoff.next_delay(error), _arrival_delay_s(error)))
            outcome = await self._post_again(instruction, was_sent)
            if not isinstance(outcome, Exception):
                return outcome
            error = outcome

    async def outcome_after_fault(
        self, pod: PodReference, node_name: str, fault: Exception
    ) -> BindSucceeded | BindFailed:
        """Find out the outcome of a binding that an unexpected exception has interrupted."""
        await self._clock.sleep(LATE_S)
        state = await self.read_binding_state(pod, node_name)
        if state is BindingState.BOUND:
            return BindSucceeded(pod.uid, node_name)
        return BindFailed(pod.uid, node_name, f"binding: {fault!r}")

    async def _post_again(
        self, instruction: BindPod, was_sent: bool
    ) -> BindSucceeded | BindFailed | Exception:
        """Post again unless an earlier POST has taken effect; returns the outcome or the error."""
        if was_sent:
            state = await self.read_binding_state(instruction.pod, instruction.node_name)
            if state is BindingState.BOUND:
                return BindSucceeded(instruction.pod.uid, instruction.node_name)
            if state is BindingState.LOST:
                return _failed(instruction, "the pod is gone, or on another node")
        if not self._may_write():
            return _failed(instruction, "this replica does not hold the lease any more")
        try:
            await self._post(instruction)
        except (ApiError, *LOST_ANSWER_ERRORS) as error:
            return error
        return BindSucceeded(instruction.pod.uid, instruction.node_name)

    def _post(self, instruction: BindPod) -> Coroutine[Any, Any, bytes]:
        pod = instruction.pod
        return self._client.post(
            f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/binding",
            binding_body(pod, instruction.node_name, instruction.annotations),
        )

    async def _read_back(
        self, instruction: BindPod, error: Exception, was_sent: bool
    ) -> BindingState:
        """Read the pod, unless the refusal proves that it was not bound."""
        if isinstance(error, ApiError) and error.status != 409 and not was_sent:
            return BindingState.UNBOUND
        return await self.read_binding_state(instruction.pod, instruction.node_name)

    async def read_binding_state(self, pod: PodReference, node_name: str) -> BindingState:
        """Read a pod until there is an answer, and compare its node with `node_name`.

        A refusal is not an answer, nor is a 404 about the path: while an API server starts,
        rights and paths may be missing. Another object is not an answer either.
        """
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
        backoff = Backoff(self._clock.jitter, initial_s=0.1, max_s=10.0)
        while True:
            try:
                return _binding_state(await self._client.get(path), pod, node_name)
            except (ApiError, *LOST_ANSWER_ERRORS, msgspec.DecodeError) as error:
                if isinstance(error, ApiError) and error.is_object_not_found:
                    return BindingState.LOST
                write = retry_log(log, error)
                write("reading back again", pod=pod.key, error=plain_message(error))
                await self._clock.sleep(backoff.next_delay(error))


def _binding_state(body: bytes, pod: PodReference, node_name: str) -> BindingState:
    """The state of a binding, from the pod as read back.

    Raises:
        msgspec.DecodeError: the body is not this pod.
    """
    found = _POD_DECODER.decode(body)
    if (found.metadata.namespace, found.metadata.name) != (pod.namespace, pod.name):
        raise msgspec.ValidationError(f"{found.metadata.namespace}/{found.metadata.name}")
    if found.metadata.uid != pod.uid:
        return BindingState.LOST
    if found.spec.node_name == node_name:
        return BindingState.BOUND
    return BindingState.LOST if found.spec.node_name else BindingState.UNBOUND


def binding_body(
    pod: PodReference, node_name: str, annotations: Mapping[str, str] | None = None
) -> bytes:
    """A v1 Binding of `pod` to `node_name`, preconditioned on the pod's UID.

    Args:
        pod: The pod.
        node_name: The node.
        annotations: Those that the API server adds to the pod.
    """
    metadata: dict[str, object] = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
    if annotations:
        metadata["annotations"] = annotations
    return _encode(
        {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": metadata,
            "target": {"apiVersion": "v1", "kind": "Node", "name": node_name},
        }
    )


def _never_reached_server(error: Exception) -> bool:
    """Whether the request did not reach the server, or was rejected by its rate limit."""
    if isinstance(error, ApiError):
        return error.status == 429
    return isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)


def _arrival_delay_s(error: Exception) -> float:
    is_answered = isinstance(error, ApiError) or _never_reached_server(error)
    return 0.0 if is_answered else LATE_S


def _is_final(error: Exception, answered_errors: int) -> bool:
    """Whether the binding of an unbound pod has failed and is not posted again."""
    if not isinstance(error, ApiError) or error.status == 429:
        return False
    return not error.may_have_been_done or answered_errors >= MAX_ANSWERED_ERRORS


def _failed(instruction: BindPod, message: str) -> BindFailed:
    return BindFailed(instruction.pod.uid, instruction.node_name, message)
