"""Extenders review the victims of a preemption before the eviction."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stowage.api.config.extenders import Extenders
from stowage.api.config.types import Extender
from stowage.api.events import (
    DisruptionBudgetSeen,
    ExtendersAnswered,
    PendingPodGone,
    VictimsReviewed,
)
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
from stowage.api.objects.meta import ObjectMeta
from stowage.api.objects.policy import PodDisruptionBudget, PodDisruptionBudgetSpec
from tests.stories.preemption.driver import HIGHER, LOW, PreemptionDriver, names
from tests.support.builders import label_selector
from tests.support.engines import of_type

REVIEWER = Extender(url_prefix="http://reviewer", preempt_verb="preempt")
FILTER_AND_REVIEWER = Extender(
    url_prefix="http://both", filter_verb="filter", preempt_verb="preempt"
)


def _driver_with(*extenders: Extender) -> PreemptionDriver:
    driver = PreemptionDriver(extenders=Extenders(extenders))
    driver.add_nodes("n0", "n1")
    for name, node, priority in (("a", "n0", 5), ("b", "n0", 5), ("c", "n1", 7), ("d", "n1", 7)):
        driver.show_running(name, node, priority=priority)
    return driver


@pytest.fixture
def driver() -> Iterator[PreemptionDriver]:
    driver = _driver_with(REVIEWER)
    yield driver
    driver.engine.validate()
    driver.check_replay()


def _asked(driver: PreemptionDriver) -> ConsultOnVictims:
    answer = driver.schedule_next()
    assert of_type(EvictPod, answer) == []
    assert of_type(PatchPodStatus, answer) == []
    (question,) = of_type(ConsultOnVictims, answer)
    return question


def test_extenders_review_all_candidates_and_the_remaining_one_is_preempted(
    driver: PreemptionDriver,
) -> None:
    driver.show_pending("p")
    question = _asked(driver)
    assert question.pod.name == "p"
    pods = {name: [pod.name for pod in each.pods] for name, each in question.candidates.items()}
    assert pods == {"n0": ["b"], "n1": ["d"]}
    left = {"n1": question.candidates["n1"]}
    driver.handle(VictimsReviewed(question.pod.uid, question.number, left))
    answer = driver.schedule_next()
    assert names(of_type(EvictPod, answer)) == ["d"]
    assert of_type(PatchPodStatus, answer)[0].nominated_node_name == "n1"
    assert len(of_type(PreemptionAttempted, answer)) == 1


def test_extenders_may_name_other_victims_on_the_node(driver: PreemptionDriver) -> None:
    driver.show_pending("p")
    question = _asked(driver)
    # The engine finds the pod by its UID.
    named = VictimsOnNode((PodReference("", "", "uid-a"),))
    driver.handle(VictimsReviewed(question.pod.uid, question.number, {"n0": named}))
    assert names(of_type(EvictPod, driver.schedule_next())) == ["a"]


@pytest.mark.parametrize(
    ("on_n0", "on_n1", "num_violations", "chosen"),
    [
        ((5,), (7,), 0, "n0"),
        ((5,), (1,), 1, "n0"),
        ((7, 1), (5, 5), 0, "n1"),
        ((5, 1), (5, 5), 0, "n0"),
        ((5,), (5, 1), 0, "n0"),
        ((5,), (5,), 0, "n1"),
    ],
    ids=[
        "a less important one",
        "none that a budget protects",
        "the most important one decides",
        "the less important ones together",
        "fewer",
        "the one that started later",
    ],
)
def test_of_the_victims_that_extenders_leave_those_of_the_lowest_cost_are_evicted(
    on_n0: tuple[int, ...], on_n1: tuple[int, ...], num_violations: int, chosen: str
) -> None:
    driver = PreemptionDriver(extenders=Extenders((REVIEWER,)))
    driver.add_nodes("n0", "n1")
    left = {}
    for node, priorities, violations in (("n0", on_n0, 0), ("n1", on_n1, num_violations)):
        for number, priority in enumerate(priorities):
            cpu = f"{2000 // len(priorities)}m"
            driver.show_running(f"{node}-{number}", node, cpu=cpu, priority=priority)
        pods = [PodReference("", "", f"uid-{node}-{each}") for each in range(len(priorities))]
        left[node] = VictimsOnNode(tuple(pods), violations)
    driver.show_pending("p")
    question = _asked(driver)
    driver.handle(VictimsReviewed(question.pod.uid, question.number, left))
    evicted = names(of_type(EvictPod, driver.schedule_next()))
    assert {name.partition("-")[0] for name in evicted} == {chosen}


def test_a_victim_that_is_not_on_the_node_is_an_error(driver: PreemptionDriver) -> None:
    driver.show_pending("p")
    question = _asked(driver)
    wrong = {"n1": question.candidates["n0"]}
    driver.handle(VictimsReviewed(question.pod.uid, question.number, wrong))
    answer = driver.schedule_next()
    assert of_type(EvictPod, answer) == []
    (patch,) = of_type(PatchPodStatus, answer)
    assert "(UID: uid-b) on node: n1, but the pod is not found on that node" in patch.message


def test_no_pod_is_evicted_if_extenders_leave_no_candidate(driver: PreemptionDriver) -> None:
    driver.show_pending("p")
    question = _asked(driver)
    driver.handle(VictimsReviewed(question.pod.uid, question.number))
    answer = driver.schedule_next()
    assert of_type(EvictPod, answer) == []
    assert of_type(PatchPodStatus, answer)[0].message.endswith(
        "preemption: no candidate node for preemption"
    )


def test_victims_that_extenders_choose_may_not_violate_a_respected_budget() -> None:
    arguments = {"name": "DefaultPreemption", "args": {"disruptionBudgets": "Respect"}}
    profile = {"schedulerName": "default-scheduler", "pluginConfig": [arguments]}
    driver = PreemptionDriver(extenders=Extenders((REVIEWER,)), profile=profile)
    driver.add_nodes("n0")
    driver.show_running("a", "n0", labels={"app": "db"})
    driver.show_running("b", "n0")
    budget = PodDisruptionBudget(
        ObjectMeta(name="db", namespace="default"),
        PodDisruptionBudgetSpec(label_selector({"app": "db"})),
    )
    driver.handle(DisruptionBudgetSeen(budget))
    driver.show_pending("p")
    question = _asked(driver)
    assert [pod.name for pod in question.candidates["n0"].pods] == ["b"]
    protected = VictimsOnNode((PodReference("", "", "uid-a"),))
    driver.handle(VictimsReviewed(question.pod.uid, question.number, {"n0": protected}))
    answer = driver.schedule_next()
    assert of_type(EvictPod, answer) == []
    (patch,) = of_type(PatchPodStatus, answer)
    assert patch.message.endswith("preemption: Preemption would violate a PodDisruptionBudget")


def test_two_pods_nominated_to_one_node_do_not_wait_for_each_other() -> None:
    # An earlier leader nominated both pods, but the node fits only one.
    driver = PreemptionDriver(extenders=Extenders((REVIEWER,)))
    driver.add_nodes("n0")
    driver.show_running("a", "n0", priority=LOW)
    driver.show_pending("p", nominated_node="n0")
    driver.show_pending("q", nominated_node="n0")
    question = _asked(driver)
    driver.handle(VictimsReviewed(question.pod.uid, question.number))
    answer = driver.schedule_next() + driver.schedule_next(after_s=60.0)
    cleared = of_type(PatchPodStatus, answer)[0]
    assert (cleared.pod.name, cleared.nominated_node_name) == ("p", "")
    (bind,) = of_type(BindPod, answer)
    assert (bind.pod.name, bind.node_name) == ("q", "n0")


def test_the_error_of_a_failed_review_is_in_the_message(driver: PreemptionDriver) -> None:
    driver.show_pending("p")
    question = _asked(driver)
    driver.handle(VictimsReviewed(question.pod.uid, question.number, error="no answer"))
    answer = driver.schedule_next()
    assert of_type(PatchPodStatus, answer)[0].message.endswith("preemption: no answer")


def test_a_pod_that_fits_when_the_review_arrives_is_bound(driver: PreemptionDriver) -> None:
    driver.show_pending("p")
    question = _asked(driver)
    driver.remove("a")
    driver.handle(VictimsReviewed(question.pod.uid, question.number, question.candidates))
    answer = driver.schedule_next()
    assert of_type(EvictPod, answer) == []
    assert of_type(BindPod, answer)[0].node_name == "n0"


def test_a_pod_deleted_before_the_review_arrives_is_forgotten(driver: PreemptionDriver) -> None:
    pod = driver.show_pending("p")
    question = _asked(driver)
    driver.handle(PendingPodGone("default", "p", pod.metadata.uid))
    driver.handle(VictimsReviewed(question.pod.uid, question.number, question.candidates))
    assert driver.schedule_next() == []


def test_filter_answers_of_extenders_are_kept_for_the_review() -> None:
    driver = _driver_with(FILTER_AND_REVIEWER)
    driver.add_nodes("n2")
    driver.show_pending("p")
    (question,) = of_type(ConsultExtenders, driver.schedule_next())
    assert question.node_names == ("n2",)
    words = {"n2": "not that one"}
    driver.handle(ExtendersAnswered("uid-p", question.number, (), failed_and_unresolvable=words))
    review = _asked(driver)
    assert sorted(review.candidates) == ["n0", "n1"]
    driver.handle(VictimsReviewed("uid-p", review.number, {"n0": review.candidates["n0"]}))
    answer = driver.schedule_next()
    (patch,) = of_type(PatchPodStatus, answer)
    assert patch.message == ("0/3 nodes are available: 1 not that one, 2 Insufficient cpu.")
    assert patch.nominated_node_name == "n0"


def test_an_extender_without_preempt_verb_reviews_no_victims() -> None:
    driver = _driver_with(Extender(url_prefix="http://rater", prioritize_verb="rate"))
    driver.show_pending("p", priority=HIGHER)
    assert of_type(EvictPod, driver.schedule_next())
