"""Pods that wait for extenders: a limited number is asked about, the others wait their turn."""

from __future__ import annotations

import pytest

from stowage.api.events import ExtendersAnswered
from stowage.engine.state.consultations import Consultation, Consultations
from stowage.queue import QueuedPod
from stowage.state.pods.pod_info import PodClasses, make_pod_info
from tests.support.builders import make_pod

CLASSES = PodClasses()


def _queued(name: str) -> QueuedPod:
    return QueuedPod(make_pod_info(make_pod(name), CLASSES), 0.0)


def _ask(consultations: Consultations, name: str) -> Consultation:
    queued = _queued(name)
    return consultations.ask(queued, queued.info, 0.0, ("n",))


def _answer(consultations: Consultations, asked: Consultation) -> None:
    consultations.answer(ExtendersAnswered(asked.queued.uid, asked.number, ("n",)))


def _taken(consultations: Consultations) -> str | None:
    ready = consultations.take_ready()
    return None if ready is None else ready.info.name


@pytest.fixture
def consultations() -> Consultations:
    """One pod is asked about, two wait for capacity."""
    consultations = Consultations(1)
    _ask(consultations, "asked")
    for place, name in ((2.0, "second"), (1.0, "first")):
        queued = _queued(name)
        consultations.wait(queued, queued.info, 0.0, (place,))
    return consultations


def test_waiting_pods_are_ready_in_the_order_of_the_queue_when_there_is_capacity(
    consultations: Consultations,
) -> None:
    assert not consultations.has_ready
    asked = consultations.get("uid-asked")
    assert asked is not None
    _answer(consultations, asked)
    assert [_taken(consultations) for _ in range(4)] == ["asked", "first", "second", None]
    assert len(consultations) == 0
    assert list(consultations.inconsistencies()) == []


def test_a_removed_pod_gives_its_capacity_to_the_next_and_is_not_ready(
    consultations: Consultations,
) -> None:
    assert consultations.remove("uid-first")
    assert not consultations.remove("uid-first")
    assert not consultations.has_ready
    assert consultations.remove("uid-asked")
    assert [_taken(consultations) for _ in range(2)] == ["second", None]
    assert list(consultations.inconsistencies()) == []


def test_an_answer_to_an_earlier_question_is_dropped(consultations: Consultations) -> None:
    asked = consultations.get("uid-asked")
    assert asked is not None
    consultations.remove("uid-asked")
    again = _ask(consultations, "asked")
    _answer(consultations, asked)
    assert not consultations.has_ready
    _answer(consultations, again)
    _answer(consultations, again)
    assert _taken(consultations) == "asked"
    assert list(consultations.inconsistencies()) == []
