"""Posts Bindings, and never guesses what became of one.

    POST --- 2xx ---------------------------------------------> BindSucceeded
      |----- refused for good (4xx) --------------------------> BindFailed
      |----- 429, or the server could not be reached ----> wait, POST again
      |----- 409, 5xx, or no answer ----> GET the pod:
                 on our node, our uid ------------------------> BindSucceeded
                 gone, another uid, on another node ----------> BindFailed
                 no node, and the POST was refused (409) -----> BindFailed
                 no node otherwise ------------> wait, GET again, POST again

A Binding carries the pod's UID as a precondition and binds an unbound pod only, so posting it
again does no harm. kube-scheduler (v1.36) takes a lost answer for a failure and forgets the pod,
after which the node can be filled twice.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto

import aiohttp
import msgspec
import structlog

from stowage.api.events import BindFailed, BindSucceeded
from stowage.api.instructions import BindPod, PodReference
from stowage.operator.client.api_client import LOST_ANSWER_ERRORS, ApiClient
from stowage.operator.client.api_error import ApiError
from stowage.operator.client.backoff import Backoff, Jitter, Sleep

MAX_ANSWERED_ERRORS = 5
"""Answers to one Binding that leave open what became of it, each followed by a pod still unbound,
before it counts as failed."""

LATE_S = 0.5
"""A request whose connection broke may still arrive; one posted too soon would be a second one."""

log = structlog.get_logger("stowage.operator.writers.binder")


class _ObjectMeta(msgspec.Struct, frozen=True):
    name: str
    namespace: str
    uid: str


class _PodSpec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""


class _BoundPod(msgspec.Struct, frozen=True):
    """A pod as far as its whereabouts go."""

    metadata: _ObjectMeta
    spec: _PodSpec


_POD_DECODER = msgspec.json.Decoder(_BoundPod)
_encode = msgspec.json.encode


class BindingState(Enum):
    """What reading a pod back told: bound where it was meant to be, lost to us, or unbound."""

    BOUND = auto()
    LOST = auto()
    UNBOUND = auto()


class Binder:
    """Binds pods one request at a time; many may run at once.

    Args:
        client: Client of the API server.
        may_write: Whether this replica still holds the lease; asked before each POST.
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

    async def bind(self, instruction: BindPod) -> BindSucceeded | BindFailed:
        """POST the Binding and return only once its fate is known."""
        if not self._may_write():
            return _failed(instruction, "this replica does not hold the lease any more")
        try:
            await self._post(instruction)
        except (ApiError, *LOST_ANSWER_ERRORS) as error:
            return await self._settle(instruction, error)
        return BindSucceeded(instruction.pod.uid, instruction.node_name)

    async def _settle(self, instruction: BindPod, error: Exception) -> BindSucceeded | BindFailed:
        """Find out what became of a POST that ended with `error`; post again if unbound."""
        backoff = Backoff(self._jitter, initial_s=0.1, max_s=10.0)
        was_sent, answered_errors = False, 0
        while True:
            if _never_reached(error):
                fate = BindingState.UNBOUND
            else:
                was_sent = was_sent or not isinstance(error, ApiError) or error.may_have_been_done
                fate = await self._read_back(instruction, error, was_sent)
            if fate is BindingState.BOUND:
                return BindSucceeded(instruction.pod.uid, instruction.node_name)
            if isinstance(error, ApiError) and error.may_have_been_done:
                answered_errors += 1
            if fate is BindingState.LOST or _is_final(error, answered_errors):
                return _failed(instruction, str(error))
            log.info("binding again", pod=instruction.pod.key, error=repr(error))
            await self._sleep(max(backoff.next_delay(error), _time_to_arrive_s(error)))
            outcome = await self._post_again(instruction, was_sent)
            if not isinstance(outcome, Exception):
                return outcome
            error = outcome

    async def outcome_after_fault(
        self, pod: PodReference, node_name: str, fault: Exception
    ) -> BindSucceeded | BindFailed:
        """Find out what became of a binding that ended in the middle, by a fault of our own."""
        await self._sleep(LATE_S)
        fate = await self.read_binding_state(pod, node_name)
        if fate is BindingState.BOUND:
            return BindSucceeded(pod.uid, node_name)
        return BindFailed(pod.uid, node_name, f"binding: {fault!r}")

    async def _post_again(
        self, instruction: BindPod, was_sent: bool
    ) -> BindSucceeded | BindFailed | Exception:
        """Post once more, unless an earlier POST has arrived meanwhile; or the next error."""
        if was_sent:
            fate = await self.read_binding_state(instruction.pod, instruction.node_name)
            if fate is BindingState.BOUND:
                return BindSucceeded(instruction.pod.uid, instruction.node_name)
            if fate is BindingState.LOST:
                return _failed(instruction, "the pod is gone, or on another node")
        if not self._may_write():
            return _failed(instruction, "this replica does not hold the lease any more")
        try:
            await self._post(instruction)
        except (ApiError, *LOST_ANSWER_ERRORS) as error:
            return error
        return BindSucceeded(instruction.pod.uid, instruction.node_name)

    async def _post(self, instruction: BindPod) -> None:
        pod = instruction.pod
        await self._client.post(
            f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/binding",
            binding_body(pod, instruction.node_name),
        )

    async def _read_back(
        self, instruction: BindPod, error: Exception, was_sent: bool
    ) -> BindingState:
        """Ask where the pod is, unless a refusal says enough."""
        if isinstance(error, ApiError) and error.status != 409 and not was_sent:
            return BindingState.UNBOUND
        return await self.read_binding_state(instruction.pod, instruction.node_name)

    async def read_binding_state(self, pod: PodReference, node_name: str) -> BindingState:
        """Read a pod until there is an answer, and say whether it is on that node.

        A refusal to show it is no answer, nor is a 404 about the path: rights and paths come and
        go while a server starts. Neither is another object.
        """
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
        backoff = Backoff(self._jitter, initial_s=0.1, max_s=10.0)
        while True:
            try:
                return _fate(await self._client.get(path), pod, node_name)
            except (ApiError, *LOST_ANSWER_ERRORS, msgspec.DecodeError) as error:
                if isinstance(error, ApiError) and error.is_object_not_found:
                    return BindingState.LOST
                log.info("reading back again", pod=pod.key, error=repr(error))
                await self._sleep(backoff.next_delay(error))


def _fate(body: bytes, pod: PodReference, node_name: str) -> BindingState:
    """Where the pod just read is.

    Raises:
        msgspec.DecodeError: this is not the pod.
    """
    found = _POD_DECODER.decode(body)
    if (found.metadata.namespace, found.metadata.name) != (pod.namespace, pod.name):
        raise msgspec.ValidationError(f"{found.metadata.namespace}/{found.metadata.name}")
    if found.metadata.uid != pod.uid:
        return BindingState.LOST
    if found.spec.node_name == node_name:
        return BindingState.BOUND
    return BindingState.LOST if found.spec.node_name else BindingState.UNBOUND


def binding_body(pod: PodReference, node_name: str) -> bytes:
    """A v1 Binding of `pod` to `node_name`, preconditioned on the pod's UID."""
    return _encode(
        {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node_name},
        }
    )


def _never_reached(error: Exception) -> bool:
    """Whether the request cannot have reached the server, or was turned away at the door."""
    if isinstance(error, ApiError):
        return error.status == 429
    return isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)


def _time_to_arrive_s(error: Exception) -> float:
    is_answered = isinstance(error, ApiError) or _never_reached(error)
    return 0.0 if is_answered else LATE_S


def _is_final(error: Exception, answered_errors: int) -> bool:
    """Whether an unbound pod is to be given back rather than posted again."""
    if not isinstance(error, ApiError) or error.status == 429:
        return False
    return not error.may_have_been_done or answered_errors >= MAX_ANSWERED_ERRORS


def _failed(instruction: BindPod, message: str) -> BindFailed:
    return BindFailed(instruction.pod.uid, instruction.node_name, message)
