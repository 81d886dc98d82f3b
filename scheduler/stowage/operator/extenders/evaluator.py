"""Evaluates the feasible nodes of a pod with the extenders: filter, then prioritize.

    nodes --> filter --> filter --> ... --> survivors --+--> prioritize --+--> answer
                                                        +--> prioritize --+

The filters run one after the other, each on the nodes that the previous one passed. The prioritize
calls run concurrently on the remaining nodes. An extender that fails to filter ends the evaluation,
unless it is ignorable; one that fails to prioritize adds no scores.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec
import structlog

from stowage.api.events import ExtendersAnswered
from stowage.api.instructions import ConsultExtenders, PodReference
from stowage.operator.extenders.client import ExtenderClient, ExtenderError
from stowage.operator.extenders.failure_log import FailureLog
from stowage.operator.extenders.objects import ExtenderObjects
from stowage.operator.extenders.protocol import (
    FilterAnswer,
    InvalidAnswer,
    decode_filter_answer,
    decode_scores,
    node_names_request,
    nodes_request,
)

log = structlog.get_logger("stowage.operator.extenders")


class _Evaluation(msgspec.Struct):
    """The combined answers of the extenders that were called so far."""

    pod: bytes
    names: list[str]
    failed: dict[str, str] = msgspec.field(default_factory=dict)
    unresolvable: dict[str, str] = msgspec.field(default_factory=dict)

    def add(self, answer: FilterAnswer, passed: list[str]) -> None:
        """Add an answer; for each node, the latest reason counts."""
        for name, reason in answer.failed.items():
            self.failed[name] = reason
            self.unresolvable.pop(name, None)
        self.unresolvable.update(answer.failed_and_unresolvable)
        self.names = passed


class ExtenderEvaluator:
    """Evaluates pods; many evaluations may run at once.

    Args:
        extenders: All extenders, in the order of the configuration.
        objects: Provides pods and nodes as JSON.
    """

    def __init__(self, extenders: Sequence[ExtenderClient], objects: ExtenderObjects) -> None:
        self._extenders = extenders
        self._objects = objects
        self._failure_log = FailureLog()

    async def evaluate(self, question: ConsultExtenders) -> ExtendersAnswered:
        """Call the extenders; the event contains the error, if any."""
        uid, number = question.pod.uid, question.number
        extenders = [self._extenders[index] for index in question.extenders]
        try:
            evaluation = _Evaluation(
                await self._objects.pod(question.pod), list(question.node_names)
            )
            for extender in extenders:
                if extender.config.filter_verb and evaluation.names:
                    await self._filter_or_ignore(extender, evaluation, question.pod)
            scores = await self._scores(extenders, evaluation, question.pod)
        except ExtenderError as error:
            self._failure_log.warning("consultation failed", pod=question.pod.key, error=str(error))
            return ExtendersAnswered(uid, number, error=str(error))
        return ExtendersAnswered(
            uid,
            number,
            passed=tuple(evaluation.names),
            failed=evaluation.failed,
            failed_and_unresolvable=evaluation.unresolvable,
            scores=scores,
        )

    async def _filter_or_ignore(
        self, extender: ExtenderClient, evaluation: _Evaluation, pod: PodReference
    ) -> None:
        try:
            await self._filter(extender, evaluation)
        except ExtenderError as error:
            if not extender.config.ignorable:
                raise
            extender.failure_log.warning("extender ignored", pod=pod.key, error=str(error))

    async def _filter(self, extender: ExtenderClient, evaluation: _Evaluation) -> None:
        body = await extender.send(
            extender.config.filter_verb, self._request_body(extender, evaluation)
        )
        try:
            answer = decode_filter_answer(body)
        except InvalidAnswer as invalid:
            raise invalid_answer_error(extender, extender.config.filter_verb, invalid) from invalid
        if answer.error:
            raise extender.failure(answer.error)
        known = set(evaluation.names)
        passed = _passed(extender, answer, known)
        _warn_of_unknown(extender, (*answer.failed, *answer.failed_and_unresolvable), known)
        evaluation.add(_only_known(answer, known), passed)

    async def _scores(
        self, extenders: Iterable[ExtenderClient], evaluation: _Evaluation, pod: PodReference
    ) -> dict[str, int]:
        """Node -> sum of the weighted scores; a single node is not scored."""
        scoring = [extender for extender in extenders if extender.config.prioritize_verb]
        if len(evaluation.names) < 2 or not scoring:
            return {}
        total: Counter[str] = Counter()
        answers = await asyncio.gather(
            *(self._prioritize(each, evaluation, pod) for each in scoring)
        )
        for scores in answers:
            for name, score in scores:
                total[name] += score
        return dict(total)

    async def _prioritize(
        self, extender: ExtenderClient, evaluation: _Evaluation, pod: PodReference
    ) -> list[tuple[str, int]]:
        verb = extender.config.prioritize_verb
        try:
            body = await extender.send(verb, self._request_body(extender, evaluation))
            try:
                scores = decode_scores(body, extender.config.weight)
            except InvalidAnswer as invalid:
                raise invalid_answer_error(extender, verb, invalid) from invalid
        except ExtenderError as error:
            # As in kube-scheduler, the other extenders' scores count.
            extender.failure_log.warning("extender gave no scores", pod=pod.key, error=str(error))
            return []
        known = set(evaluation.names)
        _warn_of_unknown(extender, [name for name, _ in scores], known)
        return [(name, score) for name, score in scores if name in known]

    def _request_body(self, extender: ExtenderClient, evaluation: _Evaluation) -> bytes:
        if extender.config.node_cache_capable:
            return node_names_request(evaluation.pod, evaluation.names)
        nodes = self._objects.existing_nodes(evaluation.names)
        return nodes_request(evaluation.pod, list(nodes.values()))


def _passed(extender: ExtenderClient, answer: FilterAnswer, known: set[str]) -> list[str]:
    """The nodes that an answer passes; an answer without a list passes none, as upstream.

    Raises:
        ExtenderError: the answer lists a node that was not in the request.
    """
    listed = answer.nodes
    if extender.config.node_cache_capable and answer.node_names is not None:
        listed = answer.node_names
    passed = list(dict.fromkeys(listed or ()))
    for name in passed:
        if name not in known:
            raise extender.failure(
                f'extender "{extender.name}" claims a filtered node "{name}" '
                "which is not found in the input node list"
            )
    return passed


def _only_known(answer: FilterAnswer, known: set[str]) -> FilterAnswer:
    """The answer without reasons for nodes that were not in the request."""
    return FilterAnswer(
        failed={name: why for name, why in answer.failed.items() if name in known},
        failed_and_unresolvable={
            name: why for name, why in answer.failed_and_unresolvable.items() if name in known
        },
    )


def _warn_of_unknown(extender: ExtenderClient, names: Iterable[str], known: set[str]) -> None:
    unknown = sorted(set(names) - known)
    if unknown:
        log.warning(
            "extender speaks of nodes it was not asked about",
            extender=extender.name,
            nodes=unknown[:5],
            number=len(unknown),
        )


def invalid_answer_error(
    extender: ExtenderClient, verb: str, invalid: InvalidAnswer
) -> ExtenderError:
    """Count a failure and return the error to raise for an invalid answer."""
    return extender.failure(f'extender "{extender.name}" answered {verb} with {invalid}')
