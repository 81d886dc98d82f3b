"""Extenders review the victims of a preemption before anybody is evicted."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
from stowage.api.config.extenders import Extenders
from stowage.api.config.types import Extender
from stowage.api.events import ExtendersAnswered, PendingPodGone, VictimsReviewed
from stowage.api.instructions import (
    BindPod,
    ConsultExtenders,
    ConsultOnVictims,
    EvictPod,
    PatchPodStatus,
    PodReference,
    PreemptionAttempted,
    VictimsOnNode,
)
from stowage.engine import replay

from tests.stories.test_preemption import HIGHER, LOW, World
from tests.support.engines import default_engine, of_type

REVIEWER = Extender(url_prefix="http://reviewer", preempt_verb="preempt")
FILTER_AND_REVIEWER = Extender(
    url_prefix="http://both", filter_verb="filter", preempt_verb="preempt"
)


def _world(*extenders: Extender) -> World:
    world = World(extenders=Extenders(extenders))
    world.nodes("n0", "n1")
    for name, node, priority in (("a", "n0", 5), ("b", "n0", 5), ("c", "n1", 7), ("d", "n1", 7)):
        world.running(name, node, priority=priority)
    return world


@pytest.fixture
def world() -> Iterator[World]:
    built = _world(REVIEWER)
    yield built
    built.engine.validate()
    replay(built.journal, partial(default_engine, extenders=Extenders((REVIEWER,))))


def _asked(world: World) -> ConsultOnVictims:
    answer = world.schedule()
    assert of_type(EvictPod, answer) == []
    assert of_type(PatchPodStatus, answer) == []
    (question,) = of_type(ConsultOnVictims, answer)
    return question


def test_they_are_asked_about_all_candidates_and_what_they_leave_is_done(world: World) -> None:
    world.pending("p")
    question = _asked(world)
    assert question.pod.name == "p"
    told = {name: [pod.name for pod in each.pods] for name, each in question.candidates.items()}
    assert told == {"n0": ["b"], "n1": ["d"]}
    left = {"n1": question.candidates["n1"]}
    world.see(VictimsReviewed(question.pod.uid, question.number, left))
    answer = world.schedule()
    assert [each.victim.name for each in of_type(EvictPod, answer)] == ["d"]
    assert of_type(PatchPodStatus, answer)[0].nominated_node_name == "n1"
    assert len(of_type(PreemptionAttempted, answer)) == 1


def test_they_may_name_other_victims_on_the_node(world: World) -> None:
    world.pending("p")
    question = _asked(world)
    # The engine knows its pods by UID.
    named = VictimsOnNode((PodReference("", "", "uid-a"),))
    world.see(VictimsReviewed(question.pod.uid, question.number, {"n0": named}))
    assert [each.victim.name for each in of_type(EvictPod, world.schedule())] == ["a"]


def test_a_victim_that_is_not_on_the_node_is_an_error(world: World) -> None:
    world.pending("p")
    question = _asked(world)
    wrong = {"n1": question.candidates["n0"]}
    world.see(VictimsReviewed(question.pod.uid, question.number, wrong))
    answer = world.schedule()
    assert of_type(EvictPod, answer) == []
    (patch,) = of_type(PatchPodStatus, answer)
    assert "(UID: uid-b) on node: n1, but the pod is not found on that node" in patch.message


def test_when_they_leave_nothing_nobody_is_evicted(world: World) -> None:
    world.pending("p")
    question = _asked(world)
    world.see(VictimsReviewed(question.pod.uid, question.number))
    answer = world.schedule()
    assert of_type(EvictPod, answer) == []
    assert of_type(PatchPodStatus, answer)[0].message.endswith(
        "preemption: no candidate node for preemption"
    )


def test_two_that_were_nominated_to_one_node_do_not_wait_for_each_other_for_ever() -> None:
    # An earlier leader nominated both, and there is room for one.
    world = World(extenders=Extenders((REVIEWER,)))
    world.nodes("n0")
    world.running("a", "n0", priority=LOW)
    world.pending("p", nominated_node="n0")
    world.pending("q", nominated_node="n0")
    question = _asked(world)
    world.see(VictimsReviewed(question.pod.uid, question.number))
    answer = world.schedule() + world.schedule(after_s=60.0)
    cleared = of_type(PatchPodStatus, answer)[0]
    assert (cleared.pod.name, cleared.nominated_node_name) == ("p", "")
    (bind,) = of_type(BindPod, answer)
    assert (bind.pod.name, bind.node_name) == ("q", "n0")
    world.engine.validate()


def test_a_failure_of_theirs_is_in_the_message(world: World) -> None:
    world.pending("p")
    question = _asked(world)
    world.see(VictimsReviewed(question.pod.uid, question.number, error="no answer"))
    answer = world.schedule()
    assert of_type(PatchPodStatus, answer)[0].message.endswith("preemption: no answer")


def test_a_pod_that_fits_by_the_time_they_answer_is_bound(world: World) -> None:
    world.pending("p")
    question = _asked(world)
    world.gone("a")
    world.see(VictimsReviewed(question.pod.uid, question.number, question.candidates))
    answer = world.schedule()
    assert of_type(EvictPod, answer) == []
    assert of_type(BindPod, answer)[0].node_name == "n0"


def test_a_pod_that_is_gone_by_then_is_forgotten(world: World) -> None:
    pod = world.pending("p")
    question = _asked(world)
    world.see(PendingPodGone("default", "p", pod.metadata.uid))
    world.see(VictimsReviewed(question.pod.uid, question.number, question.candidates))
    assert world.schedule() == []


def test_what_they_said_about_the_nodes_still_holds_when_they_review() -> None:
    world = _world(FILTER_AND_REVIEWER)
    world.nodes("n2")
    world.pending("p")
    (question,) = of_type(ConsultExtenders, world.schedule())
    assert question.node_names == ("n2",)
    words = {"n2": "not that one"}
    world.see(ExtendersAnswered("uid-p", question.number, (), failed_and_unresolvable=words))
    review = _asked(world)
    assert sorted(review.candidates) == ["n0", "n1"]
    world.see(VictimsReviewed("uid-p", review.number, {"n0": review.candidates["n0"]}))
    answer = world.schedule()
    (patch,) = of_type(PatchPodStatus, answer)
    assert patch.message == ("0/3 nodes are available: 1 not that one, 2 Insufficient cpu.")
    assert patch.nominated_node_name == "n0"
    world.engine.validate()


def test_those_who_have_no_say_about_victims_are_not_asked() -> None:
    world = _world(Extender(url_prefix="http://rater", prioritize_verb="rate"))
    world.pending("p", priority=HIGHER)
    assert of_type(EvictPod, world.schedule())
    world.engine.validate()
