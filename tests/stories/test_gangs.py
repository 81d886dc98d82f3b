"""Gangs: quorum, all or nothing, surplus, late members, deletion, conditions and retries."""

from __future__ import annotations

from typing import Any

import pytest

from stowage.api.config.extenders import Extenders
from stowage.api.config.feature_gates import parse_feature_gates
from stowage.api.config.types import Extender
from stowage.api.events import BindFailed, ExtendersAnswered, NodeSeen
from stowage.api.instructions import (
    AttemptResult,
    BindPod,
    ConsultExtenders,
    EmitEvent,
    PatchPodGroupStatus,
    PatchPodStatus,
    PodGroupAttemptResult,
)
from stowage.api.objects.node import Taint
from stowage.api.objects.pod import Affinity, PodAffinity
from stowage.engine import Engine
from stowage.framework import (
    ACCEPT_ALL,
    FilterVerdict,
    PluginTraits,
    PreFilterResult,
    Reads,
    Timings,
)
from stowage.state import PodInfo
from tests.stories.gang_driver import GangDriver, make_group, make_member
from tests.support.builders import HOSTNAME, affinity_term, label_selector, make_node, make_pod
from tests.support.durations import Unobserved
from tests.support.engines import configurable_engine

FITTED = (
    "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled, "
    "one or more plugins asked to wait and no plugin rejected pod"
)


def _messages(driver: GangDriver) -> dict[str, str]:
    """Pod -> the message of its last condition."""
    return {each.pod.name: each.message for each in driver.take(PatchPodStatus) if each.reason}


def test_a_gang_is_bound_as_a_whole_and_marked_as_scheduled() -> None:
    driver = GangDriver()
    driver.add_nodes("a", "b", cpu="2")
    driver.show_group(make_group(min_count=3))
    driver.create_members("p-0", "p-1", "p-2")
    driver.schedule(1)
    assert driver.bound() == ["p-0", "p-1", "p-2"]
    assert driver.condition() == ("True", "Scheduled", "")
    (result,) = driver.take(PodGroupAttemptResult)
    assert (result.result, result.num_pods, result.num_fitting) == ("scheduled", 3, 3)
    assert [each.result for each in driver.take(AttemptResult)] == ["scheduled"] * 3
    driver.check_replay()


def test_members_wait_for_their_group_and_for_their_companions_without_any_sign() -> None:
    driver = GangDriver()
    driver.add_nodes("a", cpu="4")
    driver.create_members("p-0", "p-1")
    driver.show_group(make_group(min_count=3))
    driver.show(make_member("other", "h"))
    driver.show(make_pod("ordinary"))
    driver.run(30)
    assert driver.bound() == ["ordinary"]
    assert driver.condition() == ("", "", "")
    assert [each.pod.name for each in driver.take(AttemptResult)] == ["ordinary"]
    driver.create_members("p-2")
    driver.run()
    assert driver.bound() == ["p-0", "p-1", "ordinary", "p-2"]


def test_a_gang_that_does_not_fit_leaves_nothing_behind_and_tells_why() -> None:
    driver = GangDriver()
    driver.add_nodes("a", cpu="2")
    driver.show_group(make_group(min_count=3))
    driver.create_members("p-0", "p-1", "p-2")
    driver.schedule()
    assert driver.engine.cache_counts()["assumed_pods"] == 0
    assert driver.condition() == ("False", "Unschedulable", "pod group is unschedulable")
    own = (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: "
        "0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )
    assert sorted(_messages(driver).values()) == [own, FITTED, FITTED]
    rejected = {plugin: n for (_, plugin), n in driver.engine.unschedulable_counts().items()}
    assert rejected == {"NodeResourcesFit": 3, "GangScheduling": 3}
    assert driver.take(BindPod) == []
    driver.show(make_pod("small", cpu="2"))
    driver.schedule()
    assert driver.bound() == ["small"]


def test_an_unplaceable_member_beyond_the_minimum_does_not_hold_the_others() -> None:
    driver = GangDriver()
    driver.add_nodes("a", cpu="4")
    driver.show_group(make_group(min_count=2))
    driver.show(make_member("q", node_selector={"role": "none"}))
    driver.create_members("p-0", "p-1")
    driver.run()
    assert driver.bound() == ["p-0", "p-1"]
    assert "didn't match Pod's node affinity/selector" in _messages(driver)["q"]
    assert driver.condition() == ("True", "Scheduled", "")
    driver.run(60)
    assert driver.condition() == ("True", "Scheduled", "")
    assert len(driver.take(PatchPodGroupStatus)) == 1


def test_pre_filter_runs_once_for_equal_members_in_a_row() -> None:
    class CountsPreFilter:
        name = "CountsPreFilter"
        traits = PluginTraits(filter_reads=Reads.NODE)

        def pre_filter(self, state: object, pod: PodInfo, snapshot: object) -> PreFilterResult:
            del state, snapshot
            asked.append(pod.name)
            return PreFilterResult()

        def filter(self, state: object, pod: object, nodes: object) -> FilterVerdict:
            del state, pod, nodes
            return ACCEPT_ALL

    asked: list[str] = []
    driver = GangDriver(plugins=[CountsPreFilter()])
    driver.add_nodes("a", "b", cpu="8")
    driver.show_group(make_group(min_count=5))
    driver.create_members("p-0", "p-1", "p-2", priority=9)
    driver.create_members("q-0", "q-1", cpu="2")
    driver.schedule(1)
    assert driver.bound() == ["p-0", "p-1", "p-2", "q-0", "q-1"]
    assert asked == ["p-0", "q-0"]


def test_members_are_tried_by_priority_and_then_by_age() -> None:
    driver = GangDriver()
    driver.add_nodes("a", cpu="2")
    driver.show_group(make_group(min_count=2))
    driver.create_members("low", priority=1)
    driver.create_members("high-0", "high-1", priority=10)
    driver.run()
    assert driver.bound() == ["high-0", "high-1"]


def test_an_idle_scheduler_does_not_retry_a_gang_until_something_changes() -> None:
    driver = GangDriver()
    driver.add_nodes("a", cpu="1")
    driver.show_group(make_group(min_count=2))
    driver.create_members("p-0", "p-1")
    driver.run(120)
    assert len(driver.take(PodGroupAttemptResult)) == 1
    driver.add_nodes("b", cpu="1")
    driver.run(3)
    assert driver.bound() == ["p-0", "p-1"]
    assert driver.condition() == ("True", "Scheduled", "")


@pytest.mark.parametrize("helps", ["untaint", "label", "delete"])
def test_a_gang_goes_in_after_the_change_that_makes_room(helps: str) -> None:
    driver = GangDriver()
    driver.add_nodes("a", cpu="1", labels={"role": "x"})
    taints = [Taint("key", "value", "NoSchedule")] if helps == "untaint" else []
    labels = {} if helps == "label" else {"role": "x"}
    driver.add_nodes("b", cpu="1", labels=labels, taints=taints)
    if helps == "delete":
        driver.show(make_pod("old", cpu="1", node="b"))
    driver.show_group(make_group(min_count=2))
    driver.create_members("p-0", "p-1", node_selector={"role": "x"})
    driver.run(1)
    assert driver.bound("p-0", "p-1") == []
    if helps == "delete":
        driver.delete("old")
    else:
        driver.add_nodes("b", cpu="1", labels={"role": "x"})
    driver.run(12)
    assert driver.bound("p-0", "p-1") == ["p-0", "p-1"]


def test_a_failed_gang_is_tried_again_no_sooner_than_its_backoff_ends() -> None:
    driver = GangDriver()
    driver.add_nodes("a", cpu="1")
    driver.show_group(make_group(min_count=4))
    driver.create_members("p-0", "p-1", "p-2", "p-3")
    for number in range(100):
        driver.handle(NodeSeen(make_node(f"n{number}", cpu="100m")))
        driver.run(0.1)
    # The backoffs are 1, 2, 4 and 8 seconds; ten seconds leave room for four attempts.
    assert len(driver.take(PodGroupAttemptResult)) <= 4


def test_two_gangs_that_fit_alone_but_not_together_are_never_half_placed() -> None:
    driver = GangDriver()
    driver.add_nodes("a", "b", cpu="2")
    for name in ("g", "h"):
        driver.show_group(make_group(name, min_count=3))
    for number in range(3):
        for name in ("g", "h"):
            driver.create_members(f"{name}-{number}", group=name)
    driver.run(10)
    assert driver.bound() == ["g-0", "g-1", "g-2"]
    assert driver.condition("h")[1] == "Unschedulable"
    for number in range(3):
        driver.delete(f"g-{number}")
    driver.run(12)
    assert driver.bound() == ["h-0", "h-1", "h-2"]


def test_the_anti_affinity_of_an_earlier_member_keeps_a_later_one_off_its_node() -> None:
    driver = GangDriver()
    driver.add_nodes("a", cpu="4")
    driver.show_group(make_group(min_count=2))
    term = affinity_term(HOSTNAME, label_selector({"app": "x"}))
    alone = Affinity(pod_anti_affinity=PodAffinity((term,)))
    driver.create_members("first", priority=1, affinity=alone)
    driver.create_members("second", labels={"app": "x"})
    driver.run()
    assert driver.bound() == []
    driver.add_nodes("b", cpu="4")
    driver.run(3)
    assert {driver.node_of("first"), driver.node_of("second")} == {"a", "b"}


def test_a_late_member_of_a_bound_gang_goes_in_alone() -> None:
    driver = GangDriver()
    driver.add_nodes("a", cpu="3")
    driver.show_group(make_group(min_count=2))
    driver.create_members("p-0", "p-1")
    driver.run()
    driver.create_members("p-2", "p-3")
    driver.run()
    assert driver.bound() == ["p-0", "p-1", "p-2"]


def test_a_late_member_takes_a_pending_gang_along_without_waiting_for_its_backoff() -> None:
    driver = GangDriver()
    driver.add_nodes("a", cpu="2")
    driver.show_group(make_group(min_count=2))
    driver.create_members("big-0", "p-0", cpu="2")
    driver.run()
    driver.create_members("p-1", cpu="0")
    driver.run()
    assert "p-1" in driver.bound()
    assert len(driver.bound()) == 2


def test_replacements_below_the_minimum_wait_for_each_other() -> None:
    driver = GangDriver()
    driver.add_nodes("a", cpu="4")
    driver.show_group(make_group(min_count=3))
    driver.create_members("p-0", "p-1", "p-2")
    driver.run()
    driver.delete("p-0")
    driver.delete("p-1")
    driver.create_members("q-0")
    driver.run(10)
    assert driver.bound() == ["p-2"]
    driver.create_members("q-1")
    driver.run(2)
    assert driver.bound() == ["p-2", "q-0", "q-1"]


def test_a_deleted_member_no_longer_counts_for_the_quorum() -> None:
    driver = GangDriver()
    driver.add_nodes("a", cpu="4")
    driver.show_group(make_group(min_count=3))
    driver.create_members("p-0", "p-1")
    driver.delete("p-0")
    driver.create_members("q")
    driver.run(5)
    assert driver.bound() == []
    driver.create_members("r")
    driver.run()
    assert driver.bound() == ["p-1", "q", "r"]


def test_a_group_made_anew_with_a_lower_minimum_releases_its_members() -> None:
    driver = GangDriver()
    driver.add_nodes("a", cpu="4")
    driver.show_group(make_group(min_count=5))
    driver.create_members("p-0", "p-1", "p-2")
    driver.delete_group()
    driver.run(5)
    assert driver.bound() == []
    driver.show_group(make_group(min_count=3))
    driver.run()
    assert driver.bound() == ["p-0", "p-1", "p-2"]


def test_bound_members_of_a_deleted_group_count_when_it_is_made_anew() -> None:
    driver = GangDriver()
    driver.add_nodes("a", cpu="4")
    driver.show_group(make_group(min_count=2))
    driver.create_members("p-0", "p-1")
    driver.run()
    driver.delete_group()
    driver.create_members("p-2")
    driver.run(3)
    assert driver.bound() == ["p-0", "p-1"]
    driver.show_group(make_group(min_count=3))
    driver.run(2)
    assert driver.bound() == ["p-0", "p-1", "p-2"]


def test_a_gated_member_counts_for_the_quorum_and_follows_later() -> None:
    driver = GangDriver()
    driver.add_nodes("a", cpu="4")
    driver.show_group(make_group(min_count=2))
    driver.show(make_member("gated", gates=["hold"]))
    driver.create_members("p-0", "p-1")
    driver.run()
    assert driver.bound() == ["p-0", "p-1"]
    driver.show(make_member("gated"))
    driver.run(2)
    assert driver.bound("gated") == ["gated"]


def test_a_basic_group_needs_its_object_and_no_quorum() -> None:
    driver = GangDriver()
    driver.add_nodes("a", cpu="2")
    driver.create_members("p-0", "p-1", "p-2")
    driver.run(5)
    assert driver.bound() == []
    driver.show_group(make_group())
    driver.run(2)
    assert driver.bound() == ["p-0", "p-1"]
    assert driver.condition() == ("True", "Scheduled", "")


def test_a_member_that_is_being_deleted_drops_out_of_the_attempt() -> None:
    driver = GangDriver()
    driver.add_nodes("a", cpu="4")
    driver.show_group(make_group(min_count=2))
    driver.show(make_member("leaving", terminating=True))
    driver.create_members("p-0")
    driver.run()
    assert driver.bound() == []
    notes = [each.note for each in driver.take(EmitEvent)]
    assert "skip schedule deleting pod: default/leaving" in notes


def test_a_binding_that_fails_is_tried_again_alone() -> None:
    driver = GangDriver(holds_bindings=True)
    driver.add_nodes("a", cpu="4")
    driver.show_group(make_group(min_count=2))
    driver.create_members("p-0", "p-1")
    driver.schedule()
    first, second = driver.take(BindPod)
    driver.holds_bindings = False
    driver.carry_out([first])
    driver.handle(BindFailed(second.pod.uid, "a", "conflict"))
    driver.run(3)
    assert driver.bound() == ["p-0", "p-1"]


def test_a_new_leader_finishes_a_gang_of_which_some_members_are_bound() -> None:
    driver = GangDriver()
    driver.add_nodes("a", cpu="3")
    driver.show(make_member("p-0", node="a"))
    driver.show_group(make_group(min_count=3))
    driver.create_members("p-1", "p-2")
    driver.run()
    assert driver.bound() == ["p-0", "p-1", "p-2"]


def _scheduled_one_by_one() -> GangDriver:
    """A driver with an extender that filters: its round trips keep members apart."""
    extender = Extender(url_prefix="http://picky", filter_verb="filter")
    driver = GangDriver(extenders=Extenders((extender,), 16))
    driver.add_nodes("a", cpu="2")
    driver.show_group(make_group(min_count=2))
    driver.create_members("p-0", "p-1")
    driver.schedule(1)
    return driver


def _answer(driver: GangDriver) -> None:
    """Let the extender accept all nodes it was asked about."""
    for asked in driver.take(ConsultExtenders):
        driver.handle(ExtendersAnswered(asked.pod.uid, asked.number, asked.node_names))
        driver.schedule(1)


def test_members_that_need_extenders_wait_for_each_other_at_permit() -> None:
    driver = _scheduled_one_by_one()
    _answer(driver)
    assert [each.pod.name for each in driver.engine.waiting_pods()] == ["p-0"]
    assert driver.bound() == []
    driver.schedule(1)
    _answer(driver)
    assert driver.bound() == ["p-0", "p-1"]


def test_the_wait_of_a_member_for_its_companions_is_measured() -> None:
    class PermitWaits(Unobserved):
        def observe_permit_wait(self, *durations: Any) -> None:
            observed.append(durations)

    observed: list[tuple[Any, ...]] = []
    driver = _scheduled_one_by_one()
    driver.engine.take_durations(Timings(lambda: 0.0, PermitWaits()))
    _answer(driver)
    driver.advance(7.0)
    driver.schedule(1)
    _answer(driver)
    assert driver.bound() == ["p-0", "p-1"]
    assert observed == [("Success", 7.0)]


def test_a_member_whose_companions_do_not_come_gives_its_place_back_after_five_minutes() -> None:
    driver = _scheduled_one_by_one()
    _answer(driver)
    driver.delete("p-1")
    driver.advance(299.0)
    assert driver.engine.cache_counts()["assumed_pods"] == 1
    driver.advance(1.0)
    assert driver.engine.cache_counts()["assumed_pods"] == 0
    text = "rejected due to timeout after waiting 5m0s at plugin GangScheduling"
    assert text in _messages(driver)["p-0"]


def test_without_gang_scheduling_whatever_fits_is_bound_even_without_the_group() -> None:
    driver = GangDriver(gates=parse_feature_gates(["GangScheduling=false"]))
    driver.add_nodes("a", cpu="2")
    driver.create_members("p-0", "p-1", "p-2")
    driver.schedule(1)
    assert len(driver.bound()) == 2


def test_with_the_gate_set_to_false_members_are_ordinary_pods() -> None:
    driver = GangDriver(gates=parse_feature_gates(["GenericWorkload=false"]))
    driver.add_nodes("a", cpu="2")
    driver.show_group(make_group(min_count=3))
    driver.create_members("p-0", "p-1", "p-2")
    driver.schedule(1)
    assert driver.bound() == ["p-0"]
    driver.schedule(2)
    assert driver.bound() == ["p-0", "p-1"]
    assert driver.condition() == ("", "", "")


def test_members_with_different_scheduler_names_all_fail() -> None:
    driver = GangDriver(make=_two_profiles)
    driver.add_nodes("a", cpu="4")
    driver.show_group(make_group(min_count=2))
    driver.create_members("p-0")
    driver.create_members("p-1", scheduler_name="other")
    driver.schedule(1)
    assert driver.bound() == []
    text = "all pods in a single pod group should have the same .spec.schedulerName set, got: "
    messages = list(_messages(driver).values())
    assert len(messages) == 2
    assert all(each.startswith(text) for each in messages)
    results = driver.take(AttemptResult)
    assert {each.pod.name: (each.result, each.attempts) for each in results} == {
        "p-0": ("error", 1),
        "p-1": ("error", 1),
    }
    assert {each.message for each in results} == set(messages)
    assert driver.condition() == ("", "", "")


def _two_profiles(**options: Any) -> Engine:
    """An engine with the default profile and one named ``other``."""
    names = ("default-scheduler", "other")
    return configurable_engine(*({"schedulerName": name} for name in names), **options)


def test_the_binding_of_each_member_names_the_decision_about_it() -> None:
    driver = GangDriver()
    driver.add_nodes("a", cpu="2")
    driver.show_group(make_group(min_count=2))
    driver.create_members("p-0", "p-1")
    driver.schedule(1)
    decided = {each.pod.name: each.decision for each in driver.take(AttemptResult)}
    events = [each for each in driver.take(EmitEvent) if each.reason == "Scheduled"]
    assert {each.pod.name: each.decision for each in events} == decided
    assert sorted(decided) == ["p-0", "p-1"]
    assert len(set(decided.values())) == 2
