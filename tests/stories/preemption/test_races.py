"""Several preemptors on one node, and victims that are not bound yet."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stowage.api.events import BindFailed, EvictionFinished, PendingPodGone, PreBindFinished
from stowage.api.instructions import (
    BindPod,
    ClearNomination,
    EvictPod,
    Instruction,
    PatchPodStatus,
    RunPreBind,
)
from stowage.api.status import SUCCESS, WAIT, Code
from tests.stories.preemption.driver import HIGH, HIGHER, LOW, PreemptionDriver, names
from tests.support.engines import of_type
from tests.support.plugins.scripted_plugin import ScriptedPlugin


class Races(PreemptionDriver):
    """A driver whose API server deletes victims at once, when the test lets it."""

    def add_full_node(self, name: str, num_pods: int = 4) -> None:
        """Add a node with four CPUs, and pods with one CPU each."""
        self.add_nodes(name, cpu="4")
        for number in range(num_pods):
            self.show_running(f"{name}-{number}", name)

    def evict(self, answer: list[Instruction]) -> list[str]:
        """Delete the victims, one after the other; returns those that were not gone already."""
        evictions, deleted = of_type(EvictPod, answer), []
        while evictions:
            eviction = evictions.pop(0)
            name = eviction.victim.name
            was_there = name in self.pods
            if was_there:
                deleted.append(name)
                self.remove(name)
                del self.pods[name]
            finished = EvictionFinished(
                eviction.preemptor.uid, eviction.victim, was_deleted=was_there
            )
            evictions += of_type(EvictPod, self.handle(finished))
        return deleted

    def bound(self) -> list[tuple[str, str]]:
        """The pods that the next attempt binds after all backoffs, with their nodes."""
        answer = self.schedule_next(after_s=20.0)
        return [(each.pod.name, each.node_name) for each in of_type(BindPod, answer)]


@pytest.fixture
def driver() -> Iterator[Races]:
    driver = Races()
    yield driver
    driver.check_replay()


@pytest.mark.parametrize("first", ["high", "higher"])
def test_of_two_preemptors_with_the_same_victims_the_more_important_one_is_bound(
    first: str, driver: Races
) -> None:
    driver.add_full_node("n")
    driver.show_pending("high", cpu="4")
    answers = {"high": driver.schedule_next()}
    driver.show_nomination("high", "n")
    driver.show_pending("higher", cpu="4", priority=HIGHER)
    answers["higher"] = driver.schedule_next()
    assert [each.pod.name for each in of_type(ClearNomination, answers["higher"])] == ["high"]
    assert len(driver.evict(answers.pop(first))) == 4
    (later,) = answers.values()
    assert driver.evict(later) == []
    assert driver.bound() == [("higher", "n")]
    assert driver.bound() == []
    assert driver.queue_of("high") == "unschedulable"


def test_a_less_important_preemptor_makes_room_beside_the_more_important_one(
    driver: Races,
) -> None:
    driver.add_full_node("n")
    driver.show_pending("higher", cpu="2", priority=HIGHER)
    higher = driver.schedule_next()
    driver.show_pending("high", cpu="2")
    high = driver.schedule_next()
    assert len(driver.evict(high)) == 4
    assert driver.evict(higher) == []
    assert [*driver.bound(), *driver.bound()] == [("higher", "n"), ("high", "n")]


def test_a_preemptor_that_lost_its_place_evicts_pods_of_another_node(driver: Races) -> None:
    """Its last victim is being bound; a more important pod takes the room of the first ones."""
    driver.add_full_node("n", num_pods=3)
    driver.show_pending("binds", cpu="1", priority=LOW)
    assert driver.bound() == [("binds", "n")]
    driver.show_pending("p", cpu="4")
    first = driver.schedule_next()
    assert len(of_type(EvictPod, first)) == 3
    driver.show_pending("binds", cpu="1", priority=LOW)
    for eviction in of_type(EvictPod, first):
        driver.finish_eviction(eviction)
        driver.remove(eviction.victim.name)
    (last,) = (each for each in driver.take(EvictPod) if each.victim.name == "binds")
    driver.add_full_node("m")
    driver.show_pending("higher", cpu="2", priority=HIGHER)
    assert driver.bound() == [("higher", "n")]
    driver.finish_eviction(last)
    driver.handle(
        BindFailed("uid-binds", "n", "gone"), PendingPodGone("default", "binds", "uid-binds")
    )
    answer = driver.schedule_next(after_s=20.0)
    (patch,) = of_type(PatchPodStatus, answer)
    assert (patch.pod.name, patch.nominated_node_name) == ("p", "m")
    assert len(driver.evict(answer)) == 4
    assert driver.bound() == [("p", "m")]


def test_the_last_victim_is_spared_when_another_one_could_not_be_evicted(driver: Races) -> None:
    driver.add_full_node("n", num_pods=3)
    driver.show_pending("p", cpu="4")
    refused, other = of_type(EvictPod, driver.schedule_next())
    assert of_type(EvictPod, driver.finish_eviction(refused, error="internal error")) == []
    assert of_type(EvictPod, driver.finish_eviction(other)) == []
    driver.remove(other.victim.name)
    assert driver.queue_of("p") == "active"
    assert names(of_type(EvictPod, driver.schedule_next())) == [refused.victim.name]


@pytest.mark.parametrize("change", ["activated", "updated"])
def test_a_preemptor_stays_gated_until_its_victims_are_evicted(change: str, driver: Races) -> None:
    driver.add_full_node("n")
    driver.show_pending("p", cpu="4")
    answer = driver.schedule_next()
    if change == "updated":
        driver.show_pending("p", cpu="4", labels={"a": "b"})
    else:
        driver.engine.state.queue.activate(["uid-p"], driver.now)
    assert driver.queue_of("p") == "unschedulable"
    assert driver.schedule_next() == []
    driver.evict(answer)
    assert driver.bound() == [("p", "n")]


def test_the_outcome_of_an_ended_pre_bind_does_not_count_for_the_next_attempt() -> None:
    answers = {"pre_bind_pre_flight": SUCCESS}
    driver = Races(plugins=[ScriptedPlugin("Holds", answers, only="victim")])
    driver.add_nodes("big", cpu="2")
    driver.show_pending("victim", cpu="1", priority=LOW)
    driver.schedule_next()
    (ended,) = driver.take(RunPreBind)
    driver.add_nodes("small", cpu="1")
    driver.show_pending("p", cpu="1500m", priority=HIGH)
    driver.schedule_next()
    assert driver.bound() == [("p", "big")]
    driver.schedule_next(after_s=20.0)
    (run,) = driver.take(RunPreBind)
    assert (ended.node_name, run.node_name) == ("big", "small")
    assert driver.handle(PreBindFinished("uid-victim", ended.number, Code.SUCCESS)) == []
    answer = driver.handle(PreBindFinished("uid-victim", run.number, Code.SUCCESS))
    assert [bind.node_name for bind in of_type(BindPod, answer)] == ["small"]


@pytest.mark.parametrize("phase", ["permit", "pre_bind"])
def test_a_victim_that_is_not_bound_yet_goes_to_a_node_that_the_preemptor_does_not_fit(
    phase: str,
) -> None:
    answers = {
        "permit": (WAIT if phase == "permit" else SUCCESS, 600.0),
        "pre_bind_pre_flight": SUCCESS,
    }
    driver = Races(plugins=[ScriptedPlugin("Holds", answers, only="victim")])
    driver.add_nodes("big", cpu="2")
    driver.show_pending("victim", cpu="1", priority=LOW)
    assert driver.bound() == []
    driver.add_nodes("small", cpu="1")
    driver.show_pending("p", cpu="1500m", priority=HIGH)
    assert of_type(EvictPod, driver.schedule_next()) == []
    if phase == "pre_bind":
        driver.handle(PreBindFinished("uid-victim", 1, Code.ERROR, ("stopped",), "Holds"))
    assert driver.bound() == [("p", "big")]
    driver.take(RunPreBind)
    driver.schedule_next(after_s=20.0)
    waiting = [each.node_name for each in driver.engine.waiting_pods()]
    assert waiting + [each.node_name for each in driver.take(RunPreBind)] == ["small"]


@pytest.mark.parametrize(
    ("cpu", "nominated"),
    [("4", "m"), ("5", "")],
    ids=["another node has fewer victims", "the pod fits nowhere"],
)
def test_a_nomination_by_others_lasts_until_the_attempt(
    cpu: str, nominated: str, driver: Races
) -> None:
    driver.add_full_node("n", num_pods=2)
    driver.add_nodes("m", cpu="4")
    driver.show_running("m-0", "m", cpu="3")
    driver.show_pending("p", cpu=cpu, nominated_node="n")
    (patch,) = of_type(PatchPodStatus, driver.schedule_next())
    assert (patch.pod.name, patch.nominated_node_name) == ("p", nominated)
    driver.show_pending("small", cpu="2", priority=LOW)
    assert driver.bound() == [("small", "n")]
