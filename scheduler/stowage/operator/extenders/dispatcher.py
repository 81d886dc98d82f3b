"""Carries out the instructions for extenders: evaluation, victim review and binding."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import structlog

from stowage.api.config.extenders import Extenders
from stowage.api.config.loading import Extender
from stowage.api.events import BindFailed, ExtendersAnswered, VictimsReviewed
from stowage.api.instructions import BindByExtender, ConsultExtenders, ConsultOnVictims
from stowage.operator.extenders.binder import ExtenderBinder
from stowage.operator.extenders.client import ExtenderClient
from stowage.operator.extenders.evaluator import ExtenderEvaluator
from stowage.operator.extenders.objects import ExtenderObjects
from stowage.operator.extenders.victim_review import VictimReviewer
from stowage.operator.inbox import Inbox
from stowage.operator.writers.binder import Binder
from stowage.operator.writers.worker_pool import WorkerPool

MAX_BINDINGS_IN_FLIGHT = 64

log = structlog.get_logger("stowage.operator.extenders")


class ExtenderDispatcher:
    """Carries out the instructions for extenders, each kind in a worker pool of its own.

    Args:
        extenders: The configured extenders.
        inbox: Receives the outcomes.
        objects: Provides pods and nodes as JSON.
        binder: Binds through the API server, and reads pods back.
        may_write: Whether this replica holds the lease.
        make_client: Makes the client of an extender.

    Raises:
        OSError: a certificate, key or CA cannot be read or used.
    """

    def __init__(
        self,
        extenders: Extenders,
        inbox: Inbox,
        objects: ExtenderObjects,
        binder: Binder,
        may_write: Callable[[], bool],
        make_client: Callable[[Extender], ExtenderClient] = ExtenderClient,
    ) -> None:
        self._inbox = inbox
        self._clients = [make_client(config) for config in extenders.configured]
        self._evaluator = ExtenderEvaluator(self._clients, objects)
        self._api_binder = binder
        self._binder = ExtenderBinder(self._clients, binder, may_write)
        self._evaluations: WorkerPool[ConsultExtenders] = WorkerPool(
            "consultations", extenders.max_consultations, self._consult
        )
        self._bindings: WorkerPool[BindByExtender] = WorkerPool(
            "extender bindings", MAX_BINDINGS_IN_FLIGHT, self._bind, self._answer_unbound
        )
        self._reviewer = VictimReviewer(self._clients, objects)
        self._reviews: WorkerPool[ConsultOnVictims] = WorkerPool(
            "victim reviews", extenders.max_consultations, self._review
        )

    @property
    def pools(self) -> Sequence[WorkerPool[Any]]:
        """The workers; none without extenders."""
        return (self._evaluations, self._bindings, self._reviews) if self._clients else ()

    @property
    def num_unfinished_bindings(self) -> int:
        """Number of pods that extenders are binding."""
        return len(self._bindings)

    def failure_counts(self) -> dict[str, int]:
        """Number of failures of each extender, by URL."""
        return {client.name: client.num_failures for client in self._clients}

    def evaluate(self, instruction: ConsultExtenders) -> None:
        """Evaluate a pod's nodes with extenders."""
        self._evaluations.add(instruction)

    def review(self, instruction: ConsultOnVictims) -> None:
        """Review the victims of a preemption with extenders."""
        self._reviews.add(instruction)

    def bind(self, instruction: BindByExtender) -> None:
        """Bind a pod through an extender."""
        self._bindings.add(instruction)

    async def close(self, grace_s: float) -> int:
        """Stop; bindings in flight have `grace_s` to end. Returns the number of cancelled ones."""
        await self._evaluations.close(0)
        await self._reviews.close(0)
        num_cancelled = await self._bindings.close(grace_s)
        await asyncio.gather(*(client.close() for client in self._clients))
        return num_cancelled

    async def _consult(self, instruction: ConsultExtenders) -> None:
        try:
            answer = await self._evaluator.evaluate(instruction)
        except Exception as fault:
            # The engine waits for an answer.
            log.exception("consultation failed", pod=instruction.pod.key)
            answer = ExtendersAnswered(
                instruction.pod.uid, instruction.number, error=f"consultation: {fault!r}"
            )
        self._inbox.put(answer)

    async def _review(self, instruction: ConsultOnVictims) -> None:
        try:
            answer = await self._reviewer.review(instruction)
        except Exception as fault:
            log.exception("review failed", pod=instruction.pod.key)
            answer = VictimsReviewed(
                instruction.pod.uid, instruction.number, error=f"review: {fault!r}"
            )
        self._inbox.put(answer)

    async def _bind(self, instruction: BindByExtender) -> None:
        outcome = await self._binder.bind(instruction)
        if isinstance(outcome, BindFailed):
            log.warning(
                "pod not bound",
                pod=instruction.pod.key,
                node=instruction.node_name,
                error=outcome.message,
            )
        self._inbox.put(outcome)

    async def _answer_unbound(self, instruction: BindByExtender, fault: Exception) -> None:
        pod, node_name = instruction.pod, instruction.node_name
        self._inbox.put(await self._api_binder.outcome_after_fault(pod, node_name, fault))
