"""Extenders review victims one after the other."""

from __future__ import annotations

import json
from typing import Any

import pytest
from structlog.testing import capture_logs

from stowage.api.config.loading import Extender
from stowage.api.instructions import ConsultOnVictims, PodReference, VictimsOnNode
from stowage.operator.extenders.client import ExtenderError
from stowage.operator.extenders.victim_review import VictimReviewer
from tests.support.fake_extender import FakeExtender, FakeObjects

PREEMPTOR = PodReference("default", "p", "u-p")
A, B, C = (PodReference("default", name, f"u-{name}") for name in "abc")
CANDIDATES = {"n1": VictimsOnNode((A, B), 1), "n2": VictimsOnNode((C,))}


def _extender(answer: object, **config: Any) -> FakeExtender:
    settings = Extender(url_prefix="http://x", preempt_verb="preempt", **config)
    return FakeExtender(settings, preempt=answer)


class Pods(FakeObjects):
    """Returns any pod that is asked for."""

    async def pod(self, reference: PodReference) -> bytes:
        return json.dumps({"metadata": {"name": reference.name, "uid": reference.uid}}).encode()


def _remaining(**nodes: list[str]) -> dict[str, Any]:
    return {
        "NodeNameToMetaVictims": {
            name: {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": len(uids) - 1}
            for name, uids in nodes.items()
        }
    }


async def _review(*extenders: FakeExtender) -> Any:
    question = ConsultOnVictims(PREEMPTOR, 7, CANDIDATES, tuple(range(len(extenders))))
    answer = await VictimReviewer(extenders, Pods()).review(question)
    assert (answer.uid, answer.number) == ("u-p", 7)
    return answer


async def test_a_victim_that_only_the_extender_names_is_known_by_its_uid() -> None:
    answer = await _review(_extender(_remaining(n1=["u-z"]), node_cache_capable=True))
    assert answer.candidates == {"n1": VictimsOnNode((PodReference("", "", "u-z"),), 0)}


async def test_an_extender_with_a_cache_is_sent_the_uids_of_victims() -> None:
    extender = _extender(_remaining(n1=["u-b"]), node_cache_capable=True)
    answer = await _review(extender)
    assert answer.candidates == {"n1": VictimsOnNode((B,), 0)}
    (asked,) = extender.asked("preempt")
    assert asked["Pod"]["metadata"]["uid"] == "u-p"
    assert asked["NodeNameToVictims"] is None
    assert asked["NodeNameToMetaVictims"]["n1"] == {
        "Pods": [{"UID": "u-a"}, {"UID": "u-b"}],
        "NumPDBViolations": 1,
    }


async def test_an_extender_without_a_cache_is_sent_whole_pods_and_the_next_gets_the_rest() -> None:
    first = _extender(_remaining(n2=["u-c"]))
    second = _extender({"nodenametometavictims": {}}, node_cache_capable=True)
    answer = await _review(first, second)
    assert (answer.candidates, answer.error) == ({}, "")
    pods = first.asked("preempt")[0]["NodeNameToVictims"]["n1"]["Pods"]
    assert [pod["metadata"]["name"] for pod in pods] == ["a", "b"]
    assert list(second.asked("preempt")[0]["NodeNameToMetaVictims"]) == ["n2"]


async def test_no_extender_is_called_once_no_candidate_is_left() -> None:
    last = _extender(_remaining(n1=["u-a"]))
    await _review(_extender({}, node_cache_capable=True), last)
    assert last.questions == []


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (ExtenderError("no answer"), "no answer"),
        ([1], 'extender "http://x" answered preempt with $: [1] (expected an ExtenderPreemption'),
        (_remaining(n1=[]), 'expected at least one victim pod on node "n1"'),
    ],
)
async def test_a_failure_ends_the_review_unless_the_extender_is_ignorable(
    answer: object, error: str
) -> None:
    with capture_logs() as lines:
        strict = await _review(_extender(answer, node_cache_capable=True))
        lenient = await _review(_extender(answer, node_cache_capable=True, ignorable=True))
    assert error in strict.error
    assert lenient.error == ""
    line = {"pod": "default/p", "error": strict.error, "log_level": "warning"}
    is_dropped = not isinstance(answer, Exception | list)
    ignored = [] if is_dropped else [{"event": "extender ignored", **line}]
    assert lines == [{"event": "victims not reviewed", **line}, *ignored]
    assert lenient.candidates == ({} if is_dropped else CANDIDATES)
