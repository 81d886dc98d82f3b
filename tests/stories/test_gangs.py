"""Gangs: all or nothing, in which order members are tried, and when a gang is tried again."""

from __future__ import annotations

from typing import Any

import pytest

from stowage.api.config.feature_gates import parse_feature_gates
from stowage.api.events import NodeSeen
from stowage.api.instructions import (
    AttemptResult,
    BindPod,
    EmitEvent,
    PatchPodGroupStatus,
    PodGroupAttemptResult,
)
from stowage.api.objects.node import Taint
from stowage.api.objects.pod import Affinity, PodAffinity
from stowage.engine import Engine
from stowage.framework import ACCEPT_ALL, FilterVerdict, PluginTraits, PreFilterResult, Reads
from stowage.state import PodInfo
from tests.stories.gang_driver import GangDriver, make_group, make_member
from tests.support.builders import HOSTNAME, affinity_term, label_selector, make_node, make_pod
from tests.support.engines import configurable_engine

FITTED = (
    "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled, "
    "one or more plugins asked to wait and no plugin rejected pod"
)


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
    assert sorted(driver.take_messages().values()) == [own, FITTED, FITTED]
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
    assert "didn't match Pod's node affinity/selector" in driver.take_messages()["q"]
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
    messages = list(driver.take_messages().values())
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
