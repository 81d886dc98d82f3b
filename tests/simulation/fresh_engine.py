"""A fresh engine that decides about the present cluster, with extenders that work correctly."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache

from msgspec.structs import replace

from stowage.api import Pod
from stowage.api.config.extenders import Extenders
from stowage.api.config.loading import API_VERSION, KIND, load_configuration
from stowage.api.events import Event, ExtendersAnswered, VictimsReviewed
from stowage.api.instructions import ConsultExtenders, ConsultOnVictims
from stowage.cli.profiles import make_extenders, make_frameworks
from stowage.engine import make_engine
from stowage.framework import Framework
from tests.simulation.extenders import is_interested, refused_by, spares
from tests.simulation.server import PODS, Json, ModelServer

NAME = "fresh-engine"


class FreshEngine:
    """An engine that is shown all objects and schedules all pods once.

    Args:
        server: Stores the pods that extenders look at.
        extenders: The configured extenders.
        tie: Which of equally good nodes is taken; the last one if there are fewer.
    """

    def __init__(self, server: ModelServer, extenders: Sequence[Json], tie: int = 0) -> None:
        self._server = server
        self._extenders = extenders
        frameworks, configured = _frameworks(json.dumps(list(extenders)))
        self._engine = make_engine(
            frameworks, lambda num_ties: min(tie, num_ties - 1), extenders=configured
        )

    def instructions(self, seen: Sequence[Event], num_pods: int) -> Iterator[object]:
        """The engine's instructions for these events; its requests to extenders are answered."""
        self._engine.handle(list(seen), 0.0)
        while True:
            instructions = list(self._engine.schedule(0.0, num_pods))
            yield from instructions
            answers = [answer for each in instructions for answer in self._answers(each)]
            if not answers:
                return
            self._engine.handle(answers, 0.0)

    def _answers(self, instruction: object) -> Iterator[Event]:
        if isinstance(instruction, ConsultExtenders):
            pod = stored_pod(self._server, instruction.pod.namespace, instruction.pod.name)
            names = instruction.node_names
            passed = [name for name in names if not refused_by(self._extenders, pod, name)]
            failed = dict.fromkeys(set(names) - set(passed), "refused")
            uid, number = instruction.pod.uid, instruction.number
            yield ExtendersAnswered(uid, number, passed=tuple(passed), failed=failed)
        elif isinstance(instruction, ConsultOnVictims):
            pod = stored_pod(self._server, instruction.pod.namespace, instruction.pod.name)
            guards = [
                each
                for each in self._extenders
                if "preemptVerb" in each and is_interested(each, pod)
            ]
            left = {
                name: victims
                for name, victims in instruction.candidates.items()
                if not any(spares(each, victim.uid) for each in guards for victim in victims.pods)
            }
            yield VictimsReviewed(instruction.pod.uid, instruction.number, left)


def for_fresh_engine(pod: Pod) -> Pod:
    """The same pod, for the profile of the fresh engine."""
    return replace(pod, spec=replace(pod.spec, scheduler_name=NAME))


def stored_pod(server: ModelServer, namespace: str, name: str) -> Json:
    """A pod as the server stores it."""
    return server.collection(PODS)[namespace, name]


@lru_cache(maxsize=256)
def _frameworks(extenders: str) -> tuple[list[Framework], Extenders]:
    """Frameworks and extenders, cached: they keep no state about pods."""
    configuration = load_configuration(
        {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "profiles": [{"schedulerName": NAME}],
            "extenders": json.loads(extenders),
        }
    )
    return make_frameworks(configuration), make_extenders(configuration)
