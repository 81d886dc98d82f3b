"""Reviews the victims of a preemption with the extenders, one after the other.

Each extender gets the candidates that the previous one returned; it may remove nodes or name other
victims. An extender that fails ends the review, unless it is ignorable. The review ends early when
no candidate is left.

upstream: ``callExtenders`` of pkg/scheduler/framework/preemption (v1.36).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from stowage.api.events import VictimsReviewed
from stowage.api.instructions import ConsultOnVictims, PodReference, VictimsOnNode
from stowage.operator.extenders.client import ExtenderClient, ExtenderError
from stowage.operator.extenders.evaluator import invalid_answer_error
from stowage.operator.extenders.failure_log import FailureLog
from stowage.operator.extenders.objects import ExtenderObjects
from stowage.operator.extenders.protocol import (
    InvalidAnswer,
    decode_victims,
    meta_victims_request,
    victims_request,
)

Candidates = Mapping[str, VictimsOnNode]


class VictimReviewer:
    """Reviews victims; many reviews may run at once.

    Args:
        extenders: All extenders, in the order of the configuration.
        objects: Provides pods as JSON.
    """

    def __init__(self, extenders: Sequence[ExtenderClient], objects: ExtenderObjects) -> None:
        self._extenders = extenders
        self._objects = objects
        self._failure_log = FailureLog()

    async def review(self, question: ConsultOnVictims) -> VictimsReviewed:
        """Call the extenders; the event contains the error, if any."""
        uid, number = question.pod.uid, question.number
        candidates: Candidates = question.candidates
        # An extender names victims by UID; the next extender may need the complete pods.
        known = {pod.uid: pod for each in candidates.values() for pod in each.pods}
        try:
            pod = await self._objects.pod(question.pod)
            for index in question.extenders:
                extender = self._extenders[index]
                try:
                    candidates = await self._ask(extender, pod, candidates, known)
                except ExtenderError as error:
                    if not extender.config.ignorable:
                        raise
                    extender.failure_log.warning(
                        "extender ignored", pod=question.pod.key, error=str(error)
                    )
                if not candidates:
                    break
        except ExtenderError as error:
            self._failure_log.warning(
                "victims not reviewed", pod=question.pod.key, error=str(error)
            )
            return VictimsReviewed(uid, number, error=str(error))
        return VictimsReviewed(uid, number, dict(candidates))

    async def _ask(
        self,
        extender: ExtenderClient,
        pod: bytes,
        candidates: Candidates,
        known: Mapping[str, PodReference],
    ) -> Candidates:
        """The candidates that one extender returns.

        Raises:
            ExtenderError: the extender gives no answer or an invalid one.
        """
        if extender.config.node_cache_capable:
            body = meta_victims_request(pod, candidates)
        else:
            body = victims_request(pod, candidates, await self._victims(candidates))
        verb = extender.config.preempt_verb
        answer = await extender.send(verb, body)
        try:
            by_node = decode_victims(answer)
        except InvalidAnswer as invalid:
            raise invalid_answer_error(extender, verb, invalid) from invalid
        left = {}
        for name, (uids, num_violations) in by_node.items():
            if uids:
                # The engine knows a pod that only the extender has named.
                pods = tuple(known.get(uid) or PodReference("", "", uid) for uid in uids)
                left[name] = VictimsOnNode(pods, num_violations)
            elif not extender.config.ignorable:
                raise extender.failure(f'expected at least one victim pod on node "{name}"')
        return left

    async def _victims(self, candidates: Candidates) -> dict[str, bytes]:
        pods = {pod.uid: pod for each in candidates.values() for pod in each.pods}
        bodies = await asyncio.gather(*(self._objects.pod(pod) for pod in pods.values()))
        return dict(zip(pods, bodies, strict=True))
