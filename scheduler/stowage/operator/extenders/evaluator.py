"""A consultation: all extenders that have a say about a pod, asked from first to last.

    nodes --> filter --> filter --> ... --> survivors --+--> prioritize --+--> answer
                                                        +--> prioritize --+

Filters run one after the other, each seeing what the former left; ratings run side by side over
the survivors. An extender that fails ends the consultation, unless it may be ignored; one that
fails to rate is left out.
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


class _Opinion(msgspec.Struct):
    """What the extenders asked so far make of a pod."""

    pod: bytes
    names: list[str]
    failed: dict[str, str] = msgspec.field(default_factory=dict)
    unresolvable: dict[str, str] = msgspec.field(default_factory=dict)

    def take(self, answer: FilterAnswer, passed: list[str]) -> None:
        """Add an answer; the latest word on a node counts."""
        for name, reason in answer.failed.items():
            self.failed[name] = reason
            self.unresolvable.pop(name, None)
        self.unresolvable.update(answer.failed_and_unresolvable)
        self.names = passed


class ExtenderEvaluator:
    """Holds consultations; many may run at once.

    Args:
        extenders: All configured ones, by their index in the configuration.
        objects: Where pods and nodes come from.
    """

    def __init__(self, extenders: Sequence[ExtenderClient], objects: ExtenderObjects) -> None:
        self._extenders = extenders
        self._objects = objects

    async def evaluate(self, question: ConsultExtenders) -> ExtendersAnswered:
        """Ask everybody; whatever goes wrong is in the answer."""
        uid, number = question.pod.uid, question.number
        extenders = [self._extenders[index] for index in question.extenders]
        try:
            opinion = _Opinion(await self._objects.pod(question.pod), list(question.node_names))
            for extender in extenders:
                if extender.config.filter_verb and opinion.names:
                    await self._filter_or_ignore(extender, opinion, question.pod)
            scores = await self._scores(extenders, opinion, question.pod)
        except ExtenderError as error:
            log.warning("consultation failed", pod=question.pod.key, error=str(error))
            return ExtendersAnswered(uid, number, error=str(error))
        return ExtendersAnswered(
            uid,
            number,
            passed=tuple(opinion.names),
            failed=opinion.failed,
            failed_and_unresolvable=opinion.unresolvable,
            scores=scores,
        )

    async def _filter_or_ignore(
        self, extender: ExtenderClient, opinion: _Opinion, pod: PodReference
    ) -> None:
        try:
            await self._filter(extender, opinion)
        except ExtenderError as error:
            if not extender.config.ignorable:
                raise
            log.warning("extender ignored", pod=pod.key, extender=extender.name, error=str(error))

    async def _filter(self, extender: ExtenderClient, opinion: _Opinion) -> None:
        body = await extender.send(extender.config.filter_verb, self._question(extender, opinion))
        try:
            answer = decode_filter_answer(body)
        except InvalidAnswer as invalid:
            raise invalid_answer_error(extender, extender.config.filter_verb, invalid) from invalid
        if answer.error:
            raise extender.failure(answer.error)
        known = set(opinion.names)
        passed = _passed(extender, answer, known)
        _warn_of_unknown(extender, (*answer.failed, *answer.failed_and_unresolvable), known)
        opinion.take(_about(answer, known), passed)

    async def _scores(
        self, extenders: Iterable[ExtenderClient], opinion: _Opinion, pod: PodReference
    ) -> dict[str, int]:
        """Node -> weighted scores added up; a single node is not scored."""
        raters = [extender for extender in extenders if extender.config.prioritize_verb]
        if len(opinion.names) < 2 or not raters:
            return {}
        total: Counter[str] = Counter()
        ratings = await asyncio.gather(*(self._rate(each, opinion, pod) for each in raters))
        for rating in ratings:
            for name, score in rating:
                total[name] += score
        return dict(total)

    async def _rate(
        self, extender: ExtenderClient, opinion: _Opinion, pod: PodReference
    ) -> list[tuple[str, int]]:
        verb = extender.config.prioritize_verb
        try:
            body = await extender.send(verb, self._question(extender, opinion))
            try:
                rating = decode_scores(body, extender.config.weight)
            except InvalidAnswer as invalid:
                raise invalid_answer_error(extender, verb, invalid) from invalid
        except ExtenderError as error:
            # As upstream: the others decide.
            log.warning(
                "extender gave no scores", pod=pod.key, extender=extender.name, error=str(error)
            )
            return []
        known = set(opinion.names)
        _warn_of_unknown(extender, [name for name, _ in rating], known)
        return [(name, score) for name, score in rating if name in known]

    def _question(self, extender: ExtenderClient, opinion: _Opinion) -> bytes:
        if extender.config.node_cache_capable:
            return node_names_request(opinion.pod, opinion.names)
        nodes = self._objects.existing_nodes(opinion.names)
        return nodes_request(opinion.pod, list(nodes.values()))


def _passed(extender: ExtenderClient, answer: FilterAnswer, known: set[str]) -> list[str]:
    """The nodes an answer lets pass; without any list that is none, as upstream has it.

    Raises:
        ExtenderError: It lists a node it was not asked about.
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


def _about(answer: FilterAnswer, known: set[str]) -> FilterAnswer:
    """The answer without reasons for nodes nobody asked about."""
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
    """The error to raise for an answer that makes no sense."""
    return extender.failure(f'extender "{extender.name}" answered {verb} with {invalid}')
