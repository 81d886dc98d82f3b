"""Extenders have a say: what the engine asks of them, and what it makes of their answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from stowage.api.config.extenders import Extenders
from stowage.api.config.types import Extender, ExtenderManagedResource
from stowage.api.events import (
    AssignedPodSeen,
    BindFailed,
    ExtendersAnswered,
    NodeGone,
    NodeSeen,
    PendingPodGone,
    PendingPodSeen,
)
from stowage.api.instructions import (
    AttemptResult,
    BindByExtender,
    BindPod,
    ConsultExtenders,
    EmitEvent,
    PatchPodStatus,
)
from stowage.api.objects.node import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from stowage.api.objects.pod import Affinity, NodeAffinity
from stowage.engine import Engine, Journal, replay

from tests.support.builders import make_node, make_pod
from tests.support.engines import default_engine, of_type

FILTER = Extender(url_prefix="http://picky", filter_verb="filter")
RATER = Extender(url_prefix="http://rater", prioritize_verb="rate", weight=1)
GPUS = (ExtenderManagedResource("example.com/gpu"),)
GPU_FILTER = Extender(url_prefix="http://gpus", filter_verb="filter", managed_resources=GPUS)


class World:
    """An engine with extenders, and answers to what it asks of them."""

    def __init__(self, *extenders: Extender, max_consultations: int = 16) -> None:
        self.extenders = Extenders(extenders, max_consultations)
        self.journal = Journal()
        self.engine = default_engine(journal=self.journal, extenders=self.extenders)
        self.now = 0.0

    def see(self, *events: Any) -> list[Any]:
        return list(self.engine.handle(events, self.now))

    def nodes(self, *names: str, **fields: Any) -> None:
        self.see(*(NodeSeen(make_node(name, **fields)) for name in names))

    def pods(self, *names: str, **fields: Any) -> None:
        self.see(*(PendingPodSeen(make_pod(name, **fields)) for name in names))

    def schedule(self, budget: int = 10) -> list[Any]:
        instructions = self.engine.schedule(self.now, budget)
        self.engine.validate()
        return list(instructions)

    def questions(self) -> list[ConsultExtenders]:
        return of_type(ConsultExtenders, self.schedule())

    def question(self) -> ConsultExtenders:
        (question,) = self.questions()
        return question

    def answer(self, question: ConsultExtenders, **fields: Any) -> list[Any]:
        """Let extenders answer, by default that all nodes pass, and go on."""
        passed = tuple(fields.pop("passed", question.node_names))
        answer = ExtendersAnswered(question.pod.uid, question.number, passed, **fields)
        return [*self.see(answer), *self.schedule()]

    def later(self, seconds: float) -> None:
        self.now += seconds
        self.see()


def bound_to(instructions: Sequence[Any]) -> str:
    (bind,) = of_type(BindPod, instructions)
    return bind.node_name


@pytest.fixture
def world() -> Iterator[World]:
    """A world with one extender that filters and two nodes."""
    world = World(FILTER)
    world.nodes("m", "n")
    yield world
    world.engine.validate()


def test_an_extender_is_asked_about_the_nodes_that_the_plugins_left(world: World) -> None:
    world.nodes("small", cpu="1")
    world.pods("p", cpu="2")
    question = world.question()
    assert (question.pod.name, question.node_names, question.extenders) == ("p", ("m", "n"), (0,))


def test_a_pod_goes_where_the_extender_lets_it(world: World) -> None:
    world.pods("p")
    question = world.question()
    assert bound_to(world.answer(question, passed=["n"], failed={"m": "too loud"})) == "n"


def test_nodes_the_extender_rejects_are_in_the_diagnosis_with_its_words(world: World) -> None:
    world.pods("p")
    answer = world.answer(
        world.question(),
        passed=(),
        failed={"m": "too loud", "n": "too loud"},
        failed_and_unresolvable={"n": "no antenna"},
    )
    (patch,) = of_type(PatchPodStatus, answer)
    assert patch.reason == "Unschedulable"
    assert patch.message.startswith("0/2 nodes are available: 1 no antenna, 1 too loud.")
    (attempt,) = of_type(AttemptResult, answer)
    assert attempt.unschedulable_plugins == ("Extender",)


def test_a_node_left_out_without_a_word_is_not_counted_under_any_reason(world: World) -> None:
    world.nodes("small", cpu="1")
    world.pods("p", cpu="2")
    answer = world.answer(world.question(), passed=(), failed={"m": "too loud"})
    (patch,) = of_type(PatchPodStatus, answer)
    assert patch.message.startswith("0/3 nodes are available: 1 Insufficient cpu, 1 too loud.")


def test_such_a_node_counts_with_those_that_pre_filter_ruled_out(world: World) -> None:
    world.nodes("o")
    only_m = NodeSelectorRequirement(key="metadata.name", operator="In", values=("m",))
    terms = (NodeSelectorTerm(match_fields=(only_m,)),)
    required = NodeSelector(node_selector_terms=terms)
    affinity = NodeAffinity(required_during_scheduling_ignored_during_execution=required)
    world.pods("p", affinity=Affinity(node_affinity=affinity))
    (patch,) = of_type(PatchPodStatus, world.answer(world.question(), passed=()))
    assert patch.message.startswith(
        "0/3 nodes are available: 3 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )


def test_a_pod_the_extender_rejected_is_tried_again_after_any_event(world: World) -> None:
    world.pods("p")
    world.answer(world.question(), passed=())
    assert world.engine.pending_counts()["unschedulable"] == 1
    world.see(NodeGone("m"))
    world.later(11.0)
    assert world.question().node_names == ("n",)


def test_the_extenders_scores_decide_between_nodes_that_are_else_equal() -> None:
    world = World(RATER)
    world.nodes("m", "n", "o")
    world.pods("p")
    assert bound_to(world.answer(world.question(), scores={"n": 10, "m": 1})) == "n"


def test_the_extenders_scores_are_added_to_those_of_the_plugins() -> None:
    world = World(RATER)
    world.nodes("m", cpu="8")
    world.nodes("n", cpu="4")
    world.pods("p", "q", cpu="2")
    first, second = world.questions()
    assert bound_to(world.answer(first, scores={})) == "m"
    assert bound_to(world.answer(second, scores={"n": 1000})) == "n"


def test_nobody_is_asked_to_rate_the_only_node() -> None:
    world = World(RATER)
    world.nodes("n")
    world.pods("p")
    assert bound_to(world.schedule()) == "n"


def test_an_extender_that_fails_gives_the_pod_an_error_and_a_backoff(world: World) -> None:
    world.pods("p")
    answer = world.answer(world.question(), passed=(), error='extender "http://picky": no answer')
    (patch,) = of_type(PatchPodStatus, answer)
    assert (patch.reason, patch.message) == (
        "SchedulerError",
        'extender "http://picky": no answer',
    )
    assert of_type(AttemptResult, answer)[0].result == "error"
    assert world.engine.pending_counts()["backoff"] == 1
    world.later(3.0)
    assert bound_to(world.answer(world.question())) in ("m", "n")


def test_others_go_on_while_one_waits_for_its_extender() -> None:
    world = World(GPU_FILTER)
    world.nodes("n", allocatable={"example.com/gpu": "4"})
    world.pods("slow", requests={"example.com/gpu": 1})
    question = world.question()
    world.pods("plain")
    (bind,) = of_type(BindPod, world.schedule())
    assert bind.pod.name == "plain"
    assert bound_to(world.answer(question)) == "n"


def test_an_extender_of_a_resource_is_asked_only_about_pods_that_name_it() -> None:
    world = World(GPU_FILTER)
    world.nodes("n")
    world.pods("p")
    assert bound_to(world.schedule()) == "n"


def test_a_pod_deleted_meanwhile_is_forgotten_and_its_answer_dropped(world: World) -> None:
    world.pods("p")
    question = world.question()
    world.see(PendingPodGone("default", "p", "uid-p"))
    world.engine.validate()
    assert world.answer(question) == []
    assert sum(world.engine.pending_counts().values()) == 0


def test_a_pod_bound_by_somebody_else_meanwhile_is_left_where_it_is(world: World) -> None:
    world.pods("p")
    question = world.question()
    world.see(AssignedPodSeen(make_pod("p", node="m")))
    assert world.answer(question) == []
    assert world.engine.cache_counts()["pods"] == 1


def test_an_answer_to_an_earlier_question_is_not_taken_for_one_to_the_present(
    world: World,
) -> None:
    world.pods("p")
    old = world.question()
    world.see(PendingPodGone("default", "p", "uid-p"))
    world.pods("p", cpu="1")
    new = world.question()
    assert world.answer(old) == []
    assert bound_to(world.answer(new, passed=["n"])) == "n"


def test_a_pod_updated_meanwhile_is_scheduled_as_it_is_now(world: World) -> None:
    world.pods("p")
    question = world.question()
    world.see(PendingPodSeen(make_pod("p", terminating=True, resource_version="2")))
    (event,) = of_type(EmitEvent, world.answer(question))
    assert event.note == "skip schedule deleting pod: default/p"


def test_a_node_taken_meanwhile_is_not_overcommitted() -> None:
    world = World(FILTER)
    world.nodes("n", cpu="1")
    world.pods("p", "q", cpu="800m")
    first, second = world.questions()
    assert bound_to(world.answer(first)) == "n"
    (patch,) = of_type(PatchPodStatus, world.answer(second))
    assert patch.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_extenders_are_asked_again_if_all_they_let_pass_is_taken_and_a_new_node_came(
    world: World,
) -> None:
    world.pods("p")
    question = world.question()
    world.see(NodeGone("m"), NodeGone("n"), NodeSeen(make_node("o")))
    (again,) = of_type(ConsultExtenders, world.answer(question))
    assert again.node_names == ("o",)
    assert bound_to(world.answer(again)) == "o"


def test_a_nominated_node_is_asked_about_alone_and_then_all_others(world: World) -> None:
    world.pods("p", nominated_node="n")
    question = world.question()
    assert question.node_names == ("n",)
    (again,) = of_type(ConsultExtenders, world.answer(question, passed=(), failed={"n": "no"}))
    assert set(again.node_names) == {"m", "n"}
    assert bound_to(world.answer(again, passed=["m"])) == "m"


def test_no_more_pods_are_with_extenders_than_allowed_and_the_most_urgent_goes_next() -> None:
    world = World(FILTER, max_consultations=1)
    world.nodes("n")
    world.pods("first")
    question = world.question()
    world.pods("low", priority=0)
    world.pods("high", priority=5)
    assert world.schedule() == []
    assert not world.engine.has_ready_pods()
    world.see(ExtendersAnswered(question.pod.uid, question.number, ("n",)))
    assert world.engine.has_ready_pods()
    (asked,) = world.questions()
    assert asked.pod.name == "high"


def test_a_pod_deleted_while_it_waits_for_its_turn_is_passed_over() -> None:
    world = World(FILTER, max_consultations=1)
    world.nodes("n")
    world.pods("first", "gone", "next")
    question = world.question()
    world.see(PendingPodGone("default", "gone", "uid-gone"))
    (asked,) = of_type(ConsultExtenders, world.answer(question))
    assert asked.pod.name == "next"


def test_ignorable_extenders_come_last() -> None:
    ignorable = Extender(url_prefix="http://hint", filter_verb="filter", ignorable=True)
    world = World(ignorable, RATER, FILTER)
    world.nodes("n")
    world.pods("p")
    assert world.question().extenders == (1, 2, 0)


def test_an_extender_binds_instead_of_the_bind_plugins() -> None:
    world = World(Extender(url_prefix="http://binder", bind_verb="bind"))
    world.nodes("n")
    world.pods("p")
    (bind,) = of_type(BindByExtender, world.schedule())
    assert (bind.pod.name, bind.node_name, bind.extender, bind.fallback) == ("p", "n", 0, None)
    answer = world.see(BindFailed("uid-p", "n", "quota exceeded", by_extender=True))
    (patch,) = of_type(PatchPodStatus, answer)
    assert (patch.reason, patch.message) == ("SchedulerError", "quota exceeded")


def test_an_ignorable_binder_comes_with_what_to_do_if_it_fails() -> None:
    world = World(Extender(url_prefix="http://binder", bind_verb="bind", ignorable=True))
    world.nodes("n")
    world.pods("p")
    (bind,) = of_type(BindByExtender, world.schedule())
    assert bind.fallback == BindPod(bind.pod, "n")


def test_consultations_can_be_replayed(world: World) -> None:
    world.pods("p", "q", "r")
    first, second, third = world.questions()
    world.answer(second, passed=["m", "n"])
    world.answer(first, passed=(), failed={"m": "no"})
    world.see(PendingPodGone("default", "r", "uid-r"))
    world.answer(third)
    replayed: list[Engine] = []

    def rebuild(choose: Any) -> Engine:
        replayed.append(default_engine(choose, extenders=world.extenders))
        return replayed[-1]

    replay(world.journal, rebuild)
    assert replayed[0].dump() == world.engine.dump()
