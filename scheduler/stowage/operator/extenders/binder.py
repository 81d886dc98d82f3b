"""Lets extenders bind pods and finds out the outcome of each binding.

POST --- 200 without error -------------------------> BindSucceeded
|----- extender not reached --------------------+
|----- error, no answer or an invalid answer    |
--> GET the pod:                       |
on our node, our uid --------------|-> BindSucceeded
gone, or on another node ----------|-> BindFailed
no node ---------------------------+-> ignorable: POST a Binding ourselves
+-> otherwise: BindFailed
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stowage.api.events import BindFailed, BindSucceeded
from stowage.api.instructions import BindByExtender
from stowage.operator.extenders.client import ExtenderClient, ExtenderError
from stowage.operator.extenders.evaluator import invalid_answer_error
from stowage.operator.extenders.protocol import InvalidAnswer, binding_request, decode_binding_error
from stowage.operator.writers.binder import Binder, BindingState


class ExtenderBinder:
    """Binds pods through extenders; many bindings may run at once.

    Args:
        extenders: All extenders, in the order of the configuration.
        binder: Binds the pods that an ignorable extender did not bind, and reads pods back.
        may_write: Whether this replica holds the lease; checked before each request and again
            immediately before it is sent.
    """

    def __init__(
        self, extenders: Sequence[ExtenderClient], binder: Binder, may_write: Callable[[], bool]
    ) -> None:
        self._extenders = extenders
        self._binder = binder
        self._may_write = may_write

    async def bind(self, instruction: BindByExtender) -> BindSucceeded | BindFailed:
        """Send the binding to the extender; returns when the outcome is known."""
        pod, node_name = instruction.pod, instruction.node_name
        if not self._may_write():
            text = "this replica does not hold the lease any more"
            return BindFailed(pod.uid, node_name, text, by_extender=True)
        try:
            await self._ask(instruction)
        except ExtenderError as error:
            return await self._settle(instruction, error)
        return BindSucceeded(pod.uid, node_name)

    async def _ask(self, instruction: BindByExtender) -> None:
        extender = self._extenders[instruction.extender]
        verb = extender.config.bind_verb
        request = binding_request(instruction.pod, instruction.node_name)
        body = await extender.send(verb, request, self._may_write)
        try:
            error = decode_binding_error(body)
        except InvalidAnswer as invalid:
            raise invalid_answer_error(extender, verb, invalid) from invalid
        if error:
            raise extender.failure(error)

    async def _settle(
        self, instruction: BindByExtender, error: ExtenderError
    ) -> BindSucceeded | BindFailed:
        pod, node_name = instruction.pod, instruction.node_name
        state = BindingState.UNBOUND
        if error.may_have_acted:
            state = await self._binder.read_binding_state(pod, node_name)
        if state is BindingState.BOUND:
            return BindSucceeded(pod.uid, node_name)
        if state is BindingState.UNBOUND and instruction.fallback is not None:
            extender = self._extenders[instruction.extender]
            extender.failure_log.warning("extender ignored", pod=pod.key, error=str(error))
            return await self._binder.bind(instruction.fallback)
        return BindFailed(pod.uid, node_name, str(error), by_extender=True)
