"""Extenders: the engine's requests to them, and how their answers affect pods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pytest

from stowage.api.config.extenders import Extenders
from stowage.api.config.types import Extender, ExtenderManagedResource
from stowage.api.events import (
    AssignedPodSeen,
    BindFailed,
    Event,
    ExtendersAnswered,
    NodeGone,
    NodeSeen,
    ObjectInvalid,
    PendingPodGone,
    PendingPodSeen,
)
from stowage.api.instructions import (
    AttemptResult,
    BindByExtender,
    BindPod,
    ConsultExtenders,
    EmitEvent,
    Instruction,
    PatchPodStatus,
)
from stowage.api.objects.node import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from stowage.api.objects.pod import Affinity, NodeAffinity
from tests.support.builders import make_node, make_pod
from tests.support.engines import default_engine, of_type
from tests.support.models.engine_driver import EngineDriver

FILTER = Extender(url_prefix="http://picky", filter_verb="filter")
RATER = Extender(url_prefix="http://rater", prioritize_verb="rate", weight=1)
GPUS = (ExtenderManagedResource("example.com/gpu"),)
GPU_FILTER = Extender(url_prefix="http://gpus", filter_verb="filter", managed_resources=GPUS)


class ExtenderDriver(EngineDriver):
    """An engine with extenders, and scripted answers to its requests."""

    def __init__(self, *extenders: Extender, max_consultations: int = 16) -> None:
        configured = Extenders(extenders, max_consultations)
        super().__init__(partial(default_engine, extenders=configured))

    def questions(self) -> list[ConsultExtenders]:
        """Let the engine schedule, and return its requests to the extenders."""
        return of_type(ConsultExtenders, self.schedule())

    def question(self) -> ConsultExtenders:
        (question,) = self.questions()
        return question

    def answer(self, question: ConsultExtenders, **fields: Any) -> list[Instruction]:
        """Let the extenders answer, by default that all nodes pass, and the engine schedule."""
        passed = tuple(fields.pop("passed", question.node_names))
        answer = ExtendersAnswered(question.pod.uid, question.number, passed, **fields)
        return [*self.handle(answer), *self.schedule()]


def bound_to(instructions: Sequence[Any]) -> str:
    (bind,) = of_type(BindPod, instructions)
    return bind.node_name


@pytest.fixture
def driver() -> Iterator[ExtenderDriver]:
    """One extender that filters, and two nodes."""
    driver = ExtenderDriver(FILTER)
    driver.add_nodes("m", "n")
    yield driver
    driver.check_replay()


def test_an_extender_gets_the_nodes_that_the_plugins_passed(driver: ExtenderDriver) -> None:
    driver.add_nodes("small", cpu="1")
    driver.create_pods("p", cpu="2")
    question = driver.question()
    assert (question.pod.name, question.node_names, question.extenders) == ("p", ("m", "n"), (0,))


def test_a_pod_is_bound_to_a_node_that_the_extender_passed(driver: ExtenderDriver) -> None:
    driver.create_pods("p")
    question = driver.question()
    assert bound_to(driver.answer(question, passed=["n"], failed={"m": "too loud"})) == "n"


def test_the_diagnosis_has_the_reasons_of_the_extender(
    driver: ExtenderDriver,
) -> None:
    driver.create_pods("p")
    answer = driver.answer(
        driver.question(),
        passed=(),
        failed={"m": "too loud", "n": "too loud"},
        failed_and_unresolvable={"n": "no antenna"},
    )
    (patch,) = of_type(PatchPodStatus, answer)
    assert patch.reason == "Unschedulable"
    assert patch.message.startswith("0/2 nodes are available: 1 no antenna, 1 too loud.")
    (attempt,) = of_type(AttemptResult, answer)
    assert attempt.unschedulable_plugins == ("Extender",)


def test_a_node_that_the_extender_omits_without_a_reason_is_not_counted(
    driver: ExtenderDriver,
) -> None:
    driver.add_nodes("small", cpu="1")
    driver.create_pods("p", cpu="2")
    answer = driver.answer(driver.question(), passed=(), failed={"m": "too loud"})
    (patch,) = of_type(PatchPodStatus, answer)
    assert patch.message.startswith("0/3 nodes are available: 1 Insufficient cpu, 1 too loud.")


def test_an_omitted_node_counts_under_the_reason_of_pre_filter_if_there_is_one(
    driver: ExtenderDriver,
) -> None:
    driver.add_nodes("o")
    only_m = NodeSelectorRequirement(key="metadata.name", operator="In", values=("m",))
    terms = (NodeSelectorTerm(match_fields=(only_m,)),)
    required = NodeSelector(node_selector_terms=terms)
    affinity = NodeAffinity(required_during_scheduling_ignored_during_execution=required)
    driver.create_pods("p", affinity=Affinity(node_affinity=affinity))
    (patch,) = of_type(PatchPodStatus, driver.answer(driver.question(), passed=()))
    assert patch.message.startswith(
        "0/3 nodes are available: 3 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )


def test_any_event_requeues_a_pod_that_an_extender_rejected(driver: ExtenderDriver) -> None:
    driver.create_pods("p")
    driver.answer(driver.question(), passed=())
    assert driver.engine.pending_counts()["unschedulable"] == 1
    driver.handle(NodeGone("m"))
    driver.advance(11.0)
    assert driver.question().node_names == ("n",)


def test_scores_of_an_extender_decide_between_equal_nodes() -> None:
    driver = ExtenderDriver(RATER)
    driver.add_nodes("m", "n", "o")
    driver.create_pods("p")
    assert bound_to(driver.answer(driver.question(), scores={"n": 10, "m": 1})) == "n"


def test_scores_of_an_extender_are_added_to_those_of_the_plugins() -> None:
    driver = ExtenderDriver(RATER)
    driver.add_nodes("m", cpu="8")
    driver.add_nodes("n", cpu="4")
    driver.create_pods("p", "q", cpu="2")
    first, second = driver.questions()
    assert bound_to(driver.answer(first, scores={})) == "m"
    assert bound_to(driver.answer(second, scores={"n": 1000})) == "n"


def test_a_single_feasible_node_is_not_prioritized_by_extenders() -> None:
    driver = ExtenderDriver(RATER)
    driver.add_nodes("n")
    driver.create_pods("p")
    assert bound_to(driver.schedule()) == "n"


def test_a_failing_extender_is_an_error_and_the_pod_backs_off(
    driver: ExtenderDriver,
) -> None:
    driver.create_pods("p")
    answer = driver.answer(driver.question(), passed=(), error='extender "http://picky": no answer')
    (patch,) = of_type(PatchPodStatus, answer)
    assert (patch.reason, patch.message) == (
        "SchedulerError",
        'extender "http://picky": no answer',
    )
    assert of_type(AttemptResult, answer)[0].result == "error"
    assert driver.engine.pending_counts()["backoff"] == 1
    driver.advance(3.0)
    assert bound_to(driver.answer(driver.question())) in ("m", "n")


def test_other_pods_are_scheduled_while_one_waits_for_an_extender() -> None:
    driver = ExtenderDriver(GPU_FILTER)
    driver.add_nodes("n", allocatable={"example.com/gpu": "4"})
    driver.create_pods("slow", requests={"example.com/gpu": 1})
    question = driver.question()
    driver.create_pods("plain")
    (bind,) = of_type(BindPod, driver.schedule())
    assert bind.pod.name == "plain"
    assert bound_to(driver.answer(question)) == "n"


def test_an_extender_with_managed_resources_is_called_only_for_pods_that_request_them() -> None:
    driver = ExtenderDriver(GPU_FILTER)
    driver.add_nodes("n")
    driver.create_pods("p")
    assert bound_to(driver.schedule()) == "n"


@pytest.mark.parametrize(
    "event",
    [
        PendingPodGone("default", "p", "uid-p"),
        ObjectInvalid("Pod", "default", "p", "uid-p", "spec", "x", "an object"),
    ],
    ids=["deleted", "invalid"],
)
def test_the_answer_for_a_pod_that_was_deleted_or_is_invalid_is_dropped(
    driver: ExtenderDriver, event: Event
) -> None:
    driver.create_pods("p")
    question = driver.question()
    driver.handle(event)
    assert driver.answer(question) == []
    assert sum(driver.engine.pending_counts().values()) == 0


def test_a_pod_bound_by_another_scheduler_during_consultation_stays_on_its_node(
    driver: ExtenderDriver,
) -> None:
    driver.create_pods("p")
    question = driver.question()
    driver.handle(AssignedPodSeen(make_pod("p", node="m")))
    assert driver.answer(question) == []
    assert driver.engine.cache_counts()["pods"] == 1


def test_an_answer_to_an_earlier_request_is_dropped(
    driver: ExtenderDriver,
) -> None:
    driver.create_pods("p")
    old = driver.question()
    driver.handle(PendingPodGone("default", "p", "uid-p"))
    driver.create_pods("p", cpu="1")
    new = driver.question()
    assert driver.answer(old) == []
    assert bound_to(driver.answer(new, passed=["n"])) == "n"


def test_a_pod_updated_during_consultation_is_scheduled_in_its_latest_version(
    driver: ExtenderDriver,
) -> None:
    driver.create_pods("p")
    question = driver.question()
    driver.handle(PendingPodSeen(make_pod("p", terminating=True, resource_version="2")))
    (event,) = of_type(EmitEvent, driver.answer(question))
    assert event.note == "skip schedule deleting pod: default/p"


def test_a_node_filled_during_consultation_is_not_overcommitted() -> None:
    driver = ExtenderDriver(FILTER)
    driver.add_nodes("n", cpu="1")
    driver.create_pods("p", "q", cpu="800m")
    first, second = driver.questions()
    assert bound_to(driver.answer(first)) == "n"
    (patch,) = of_type(PatchPodStatus, driver.answer(second))
    assert patch.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_extenders_are_called_again_if_only_new_nodes_fit_after_their_answer(
    driver: ExtenderDriver,
) -> None:
    driver.create_pods("p")
    question = driver.question()
    driver.handle(NodeGone("m"), NodeGone("n"), NodeSeen(make_node("o")))
    (again,) = of_type(ConsultExtenders, driver.answer(question))
    assert again.node_names == ("o",)
    assert bound_to(driver.answer(again)) == "o"


def test_extenders_get_the_nominated_node_first_and_then_all_nodes(driver: ExtenderDriver) -> None:
    driver.create_pods("p", nominated_node="n")
    question = driver.question()
    assert question.node_names == ("n",)
    (again,) = of_type(ConsultExtenders, driver.answer(question, passed=(), failed={"n": "no"}))
    assert set(again.node_names) == {"m", "n"}
    assert bound_to(driver.answer(again, passed=["m"])) == "m"


def test_consultations_are_limited_and_the_pod_of_highest_priority_is_next() -> None:
    driver = ExtenderDriver(FILTER, max_consultations=1)
    driver.add_nodes("n")
    driver.create_pods("first")
    question = driver.question()
    driver.create_pods("low", priority=0)
    driver.create_pods("high", priority=5)
    assert driver.schedule() == []
    assert not driver.engine.has_ready_pods()
    driver.handle(ExtendersAnswered(question.pod.uid, question.number, ("n",)))
    assert driver.engine.has_ready_pods()
    (asked,) = driver.questions()
    assert asked.pod.name == "high"


def test_a_pod_deleted_while_it_waits_for_a_consultation_is_skipped() -> None:
    driver = ExtenderDriver(FILTER, max_consultations=1)
    driver.add_nodes("n")
    driver.create_pods("first", "gone", "next")
    question = driver.question()
    driver.handle(PendingPodGone("default", "gone", "uid-gone"))
    (asked,) = of_type(ConsultExtenders, driver.answer(question))
    assert asked.pod.name == "next"


def test_ignorable_extenders_are_called_last() -> None:
    ignorable = Extender(url_prefix="http://hint", filter_verb="filter", ignorable=True)
    driver = ExtenderDriver(ignorable, RATER, FILTER)
    driver.add_nodes("n")
    driver.create_pods("p")
    assert driver.question().extenders == (1, 2, 0)


def test_an_extender_binds_instead_of_the_bind_plugins() -> None:
    driver = ExtenderDriver(Extender(url_prefix="http://binder", bind_verb="bind"))
    driver.add_nodes("n")
    driver.create_pods("p")
    (bind,) = of_type(BindByExtender, driver.schedule())
    assert (bind.pod.name, bind.node_name, bind.extender, bind.fallback) == ("p", "n", 0, None)
    answer = driver.handle(BindFailed("uid-p", "n", "quota exceeded", by_extender=True))
    (patch,) = of_type(PatchPodStatus, answer)
    assert (patch.reason, patch.message) == ("SchedulerError", "quota exceeded")


def test_a_binding_by_an_ignorable_extender_has_a_fallback_binding() -> None:
    driver = ExtenderDriver(Extender(url_prefix="http://binder", bind_verb="bind", ignorable=True))
    driver.add_nodes("n")
    driver.create_pods("p")
    (bind,) = of_type(BindByExtender, driver.schedule())
    assert bind.fallback == BindPod(bind.pod, "n")


def test_consultations_can_be_replayed(driver: ExtenderDriver) -> None:
    driver.create_pods("p", "q", "r")
    first, second, third = driver.questions()
    driver.answer(second, passed=["m", "n"])
    driver.answer(first, passed=(), failed={"m": "no"})
    driver.handle(PendingPodGone("default", "r", "uid-r"))
    driver.answer(third)
    driver.check_replay()


def test_the_dump_names_the_pods_with_extenders_and_those_that_wait_for_their_turn() -> None:
    driver = ExtenderDriver(FILTER, max_consultations=1)
    driver.add_nodes("n")
    driver.create_pods("p", "q")
    driver.question()
    want = {"default/p": "with extenders", "default/q": "waiting"}
    assert driver.engine.dump()["consultations"] == want
