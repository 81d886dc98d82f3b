"""Workload-aware preemption: groups evict for all members at once, and are evicted as a whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stowage.api.config.feature_gates import parse_feature_gates
from stowage.api.events import EvictionFinished
from stowage.api.instructions import (
    POD_GROUP,
    EmitEvent,
    EvictPod,
    PatchPodStatus,
    PodReference,
    ReportProblem,
)
from stowage.api.status import SUCCESS, Code, Status, unschedulable
from stowage.framework import FilterVerdict, Rejection
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView
from tests.stories.gang_driver import GangDriver, make_group, make_member
from tests.support.builders import HOSTNAME, make_pod
from tests.support.disruption_budgets import DB, RESPECTFUL, db_budget
from tests.support.plugins.scripted_plugin import ScriptedPlugin

GROUPS = parse_feature_gates(["GenericWorkload=true,GangScheduling=true"])
ON = parse_feature_gates(["GenericWorkload=true,GangScheduling=true,WorkloadAwarePreemption=true"])
#: Whether the group evicts as a whole, or each of its members for itself.
WHOLE_OR_SINGLE = pytest.mark.parametrize("gates", [ON, GROUPS], ids=["whole", "single"])

NAME = {"schedulerName": "default-scheduler"}


def _driver(cpu: str, **options: Any) -> GangDriver:
    driver = GangDriver(gates=ON, **options)
    driver.add_nodes("a", cpu=cpu)
    return driver


def _low(driver: GangDriver, *names: str, priority: int = 1, **fields: Any) -> None:
    """Show running pods of one CPU, each started later than those before it."""
    for name in names:
        started = f"2026-01-01T00:{len(driver.pods):02d}:00Z"
        fields = {"cpu": "1", "node": "a", "started": started, **fields}
        driver.show(make_pod(name, priority=priority, **fields))


def _gang(driver: GangDriver, num: int, min_count: int | None = None, **fields: Any) -> None:
    driver.show_group(make_group(min_count=min_count, priority=100))
    driver.create_members(*(f"p-{number}" for number in range(num)), priority=100, **fields)


def test_room_for_the_whole_gang_is_made_at_once() -> None:
    driver = _driver("3")
    _low(driver, "low-0", "low-1", "low-2")
    _gang(driver, 3, 3)
    driver.schedule(1)
    evictions = driver.take(EvictPod)
    assert {each.victim.name for each in evictions} == {"low-0", "low-1", "low-2"}
    assert {(each.preemptor.name, each.preemptor_kind) for each in evictions} == {("g", POD_GROUP)}
    notes = [each for each in driver.take(EmitEvent) if each.reason == "Preempted"]
    assert {each.pod.name for each in notes} == {"low-0", "low-1", "low-2"}
    assert {each.related_kind for each in notes} == {POD_GROUP}
    assert {each.note for each in notes} == {"Preempted by podgroup uid-g on node cluster"}
    assert {each.related for each in notes} == {PodReference("default", "g", "uid-g")}
    driver.run(15)
    assert driver.bound() == ["p-0", "p-1", "p-2"]
    driver.check_replay()


def test_only_what_is_needed_is_evicted_and_the_most_important_pods_are_spared() -> None:
    driver = _driver("4")
    _low(driver, "late", "later")
    _low(driver, "high-0", "high-1", priority=5)
    _gang(driver, 2, 2)
    driver.run(15)
    assert sorted(driver.evicted) == ["late", "later"]
    assert driver.bound("p-0", "p-1") == ["p-0", "p-1"]


def test_of_equal_pods_the_later_started_is_evicted() -> None:
    driver = _driver("2")
    _low(driver, "old", "young")
    _gang(driver, 1, 1)
    driver.run(15)
    assert driver.evicted == ["young"]


def test_a_pod_whose_budget_allows_no_disruption_is_spared_first() -> None:
    driver = _driver("2")
    _low(driver, "old")
    _low(driver, "young", labels=DB)
    driver.handle(db_budget(0))
    _gang(driver, 1, 1)
    driver.run(15)
    assert driver.evicted == ["old"]


def test_a_budget_without_an_alternative_is_violated_unless_it_is_to_be_respected() -> None:
    for profile, evicted in ((NAME, ["low"]), (RESPECTFUL, [])):
        driver = _driver("1", profile=profile)
        _low(driver, "low", labels=DB)
        driver.handle(db_budget(0))
        _gang(driver, 1, 1)
        driver.run(15)
        assert driver.evicted == evicted


def test_a_group_that_respects_a_budget_says_so_and_preempts_once_the_budget_allows_it() -> None:
    driver = _driver("2", profile=RESPECTFUL)
    _low(driver, "low-0", "low-1", labels=DB)
    driver.handle(db_budget(1))
    _gang(driver, 2, 2)
    driver.run(60)
    assert driver.evicted == []
    reason = "Preemption would violate a PodDisruptionBudget"
    assert driver.condition()[2] == f"pod group is unschedulable, {reason}"
    driver.handle(db_budget(2))
    driver.run(30)
    assert sorted(driver.evicted) == ["low-0", "low-1"]
    assert driver.bound() == ["p-0", "p-1"]
    driver.check_replay()


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.booleans(), min_size=1, max_size=5), st.integers(0, 3), st.integers(1, 4), st.data()
)
def test_a_group_evicts_no_more_protected_pods_than_a_respected_budget_allows(
    protected: list[bool], allowed: int, num_members: int, data: st.DataObject
) -> None:
    driver = _driver("5", profile=RESPECTFUL)
    for row, is_protected in enumerate(protected):
        labels = DB if is_protected else {}
        priority = data.draw(st.integers(1, 3))
        _low(driver, f"low-{row}", labels=labels, priority=priority)
    driver.handle(db_budget(allowed))
    _gang(driver, num_members, num_members)
    driver.run(30)
    rows = [int(name.removeprefix("low-")) for name in driver.evicted]
    assert sum(protected[row] for row in rows) <= allowed
    num_free = 5 - len(protected)
    spared = max(sum(protected) - allowed, 0)
    fits = num_members <= num_free + len(protected) - spared
    assert bool(driver.bound("p-0")) == fits


@pytest.mark.parametrize("point", ["multiPoint", "postFilter"])
def test_a_profile_without_default_preemption_evicts_for_no_group(point: str) -> None:
    disabled = {point: {"disabled": [{"name": "DefaultPreemption"}]}}
    driver = _driver("1", profile={**NAME, "plugins": disabled})
    _low(driver, "low-0")
    _gang(driver, 1, 1)
    driver.run(15)
    assert driver.evicted == []
    reason = "default preemption plugin is not registered, workload aware preemption is disabled"
    assert driver.condition()[2] == f"pod group is unschedulable, {reason}"


@pytest.mark.parametrize(("mode", "num_evicted"), [("PodGroup", 3), ("Pod", 1)])
def test_the_disruption_mode_decides_whether_a_group_is_evicted_as_a_whole(
    mode: str, num_evicted: int
) -> None:
    driver = _driver("3")
    driver.show_group(make_group("victims", min_count=1, disruption_mode=mode, priority=1))
    for number in range(3):
        driver.show(make_member(f"v-{number}", "victims", node="a", priority=1))
    _gang(driver, 1, 1)
    driver.run(15)
    assert len(driver.evicted) == num_evicted
    assert driver.bound("p-0") == ["p-0"]


def test_of_two_groups_of_equal_priority_the_bigger_one_is_spared() -> None:
    driver = _driver("3")
    for name, num in (("small", 1), ("big", 2)):
        driver.show_group(make_group(name, 1, disruption_mode="PodGroup", priority=1))
        for number in range(num):
            driver.show(make_member(f"{name}-{number}", name, node="a", priority=1))
    _gang(driver, 1, 1)
    driver.run(15)
    assert driver.evicted == ["small-0"]


def test_of_two_groups_of_equal_size_the_one_with_the_oldest_pod_is_spared() -> None:
    driver = _driver("4")
    for name, minutes in (("young", (2, 3)), ("old", (4, 1))):
        driver.show_group(make_group(name, 1, disruption_mode="PodGroup", priority=1))
        for minute in minutes:
            started = f"2026-01-01T00:0{minute}:00Z"
            driver.show(make_member(f"{name}-{minute}", name, node="a", started=started))
    _gang(driver, 1, 1)
    driver.run(15)
    assert driver.evicted == ["young-2", "young-3"]


def test_nothing_is_evicted_for_a_gang_that_does_not_fit_even_then() -> None:
    driver = _driver("2")
    _low(driver, "low-0", "low-1")
    _gang(driver, 3, 3)
    driver.run(15)
    assert driver.evicted == []
    text = "pod group is unschedulable, pod group is unschedulable"
    assert driver.condition() == ("False", "Unschedulable", text)


def test_without_pods_of_lower_priority_the_condition_says_so() -> None:
    driver = _driver("2")
    _low(driver, "low-0", "low-1", priority=100)
    _gang(driver, 2, 2)
    driver.run(5)
    reason = "No preemption victims found for incoming preemptor"
    assert driver.condition()[2] == f"pod group is unschedulable, {reason}"
    barred = "preemption: not eligible due to workload aware preemption enabled"
    messages = [each.message for each in driver.take(PatchPodStatus) if each.reason]
    assert any(each.endswith(barred) for each in messages)


def test_one_member_that_never_preempts_stops_its_group() -> None:
    driver = _driver("2")
    _low(driver, "low-0", "low-1")
    driver.show_group(make_group(min_count=2, priority=100))
    driver.create_members("p-0", priority=100)
    driver.create_members("p-1", priority=100, preemption_policy="Never")
    driver.run(15)
    assert driver.evicted == []
    assert "preemptionPolicy=Never" in driver.condition()[2]


def test_groups_with_a_topology_key_do_not_preempt() -> None:
    driver = GangDriver(gates=ON)
    driver.add_nodes("a", cpu="1", labels={"rack": "r"})
    _low(driver, "low-0")
    driver.show_group(make_group(min_count=1, topology="rack", priority=100))
    driver.create_members("p-0", priority=100)
    driver.run(5)
    assert driver.evicted == []
    assert "is not supported for pod groups with scheduling constraints" in driver.condition()[2]


def test_a_basic_group_makes_room_member_by_member_until_all_are_in() -> None:
    driver = _driver("3")
    _low(driver, "low-0", "low-1", "low-2")
    _gang(driver, 3)
    driver.run(30)
    assert driver.bound() == ["p-0", "p-1", "p-2"]


def test_post_filter_runs_once_for_each_member_and_not_while_victims_are_sought() -> None:
    """A PostFilter plugin may write to the cluster, and here it would see one without victims."""
    asked: list[str] = []

    def post_filter(_state: object, pod: PodInfo, *_: object) -> tuple[Status, str]:
        asked.append(pod.name)
        return unschedulable("asked"), ""

    plugin = ScriptedPlugin("Asked", {"post_filter": post_filter})
    driver = _driver("4", plugins=[plugin])
    _low(driver, "low-0", "low-1", "low-2", "low-3")
    _gang(driver, 3, 3)
    driver.schedule(1)
    assert len(driver.evicted) == 3
    assert sorted(asked) == ["p-0", "p-1", "p-2"]


def test_a_basic_group_makes_room_for_all_without_waiting_for_its_backoff() -> None:
    driver = _driver("3")
    _low(driver, "low-0", "low-1", "low-2")
    _gang(driver, 3)
    for _ in range(4):
        driver.run()
    assert driver.bound() == ["p-0", "p-1", "p-2"]


def test_replacements_of_the_victims_do_not_take_the_room_of_the_group() -> None:
    """As a ReplicaSet makes them, while its pods are terminating one after the other."""
    driver = _driver("2")
    _low(driver, "low-0", "low-1")

    def evict(evict: EvictPod) -> None:
        driver.start_to_leave(evict)
        driver.show(make_pod(f"new-{evict.victim.name}", cpu="1", priority=1))

    driver.evict = evict
    _gang(driver, 2, 2)
    driver.run(30)
    for name in ("low-0", "low-1"):
        driver.delete(name)
        driver.run(3)
    assert driver.bound() == ["p-0", "p-1"]
    assert sorted(driver.evicted) == ["low-0", "low-1"]
    driver.check_replay()


@WHOLE_OR_SINGLE
def test_a_group_is_tried_at_once_when_no_victim_had_a_binding(gates: Any) -> None:
    def permit(_state: object, pod: PodInfo, _node_name: str) -> tuple[Status, float]:
        return (Status(Code.WAIT), 600.0) if pod.name.startswith("low") else (SUCCESS, 0.0)

    driver = GangDriver(gates=gates, plugins=[ScriptedPlugin("Holds", {"permit": permit})])
    driver.add_nodes("a", cpu="2")
    driver.show(make_pod("low-0", cpu="1", priority=1))
    driver.show(make_pod("low-1", cpu="1", priority=1))
    driver.run()
    _gang(driver, 2, 2)
    driver.run()
    assert (driver.bound(), driver.evicted) == (["p-0", "p-1"], [])
    driver.check_replay()


@WHOLE_OR_SINGLE
def test_a_group_of_higher_priority_takes_the_room_and_the_other_makes_room_elsewhere(
    gates: Any,
) -> None:
    driver = GangDriver(gates=gates)
    driver.add_nodes("a", cpu="2")
    driver.evict = driver.start_to_leave
    _low(driver, "low-0", "low-1")
    driver.show_group(make_group("mid", min_count=1, priority=50))
    driver.create_members("mid-0", group="mid", cpu="2", priority=50)
    driver.run()
    driver.delete("low-0")
    driver.add_nodes("b", cpu="2")
    _low(driver, "low-2", "low-3", node="b")
    _gang(driver, 1, 1)
    driver.run(1)
    assert driver.node_of("p-0") == "a"
    driver.delete("low-1")
    driver.run()
    driver.delete("low-2")
    driver.delete("low-3")
    driver.run()
    assert driver.node_of("mid-0") == "b"
    assert sorted(driver.evicted) == ["low-0", "low-1", "low-2", "low-3"]
    driver.check_replay()


@WHOLE_OR_SINGLE
def test_a_group_of_lower_priority_takes_no_room_that_others_wait_for(gates: Any) -> None:
    driver = GangDriver(gates=gates)
    driver.add_nodes("a", cpu="4")
    driver.evict = driver.start_to_leave
    _low(driver, "low-0", "low-1", "low-2", "low-3")
    _gang(driver, 1, 1, cpu="2")
    driver.run()
    driver.show_group(make_group("mid", min_count=2, priority=50))
    driver.create_members("mid-0", "mid-1", group="mid", cpu="1", priority=50)
    driver.run(2)
    assert sorted(driver.evicted) == ["low-0", "low-1", "low-2", "low-3"]
    for name in driver.evicted:
        driver.delete(name)
    driver.run()
    assert driver.bound() == ["p-0", "mid-0", "mid-1"]
    driver.check_replay()


def test_what_plugins_reserve_for_a_member_counts_for_the_next_while_victims_are_sought() -> None:
    reserved: set[str] = set()

    def one_seat(_state: object, pod: PodInfo, nodes: NodeView) -> FilterVerdict:
        full = np.full(len(nodes), bool(reserved) and pod.group == "g")
        return FilterVerdict((Rejection("the seat is taken", full),))

    def reserve(_state: object, pod: PodInfo, _node_name: str) -> Status:
        reserved.add(pod.name)
        return SUCCESS

    def unreserve(_state: object, pod: PodInfo, _node_name: str) -> None:
        reserved.discard(pod.name)

    does = {"filter": one_seat, "reserve": reserve, "unreserve": unreserve}
    driver = _driver("2", plugins=[ScriptedPlugin("OneSeat", does)])
    _low(driver, "low-0", "low-1")
    _gang(driver, 2, 2)
    driver.run(30)
    assert (driver.evicted, reserved) == ([], set())
    driver.show_group(make_group("h", min_count=1, priority=100))
    driver.create_members("h-0", group="h", priority=100)
    driver.run(30)
    assert len(driver.evicted) == 1


def test_members_are_nominated_to_the_nodes_that_they_get_room_on() -> None:
    driver = GangDriver(gates=ON)
    driver.add_nodes("a", "b", cpu="1")
    _low(driver, "low-a")
    driver.evict = driver.start_to_leave
    _gang(driver, 2, 2)
    driver.schedule(1)
    nominated = {each.pod.name: each.nominated_node_name for each in driver.take(PatchPodStatus)}
    assert set(nominated.values()) == {"a", "b"}
    driver.delete("low-a")
    driver.run()
    assert {name: driver.node_of(name) for name in ("p-0", "p-1")} == nominated


def test_ordinary_pods_preempt_as_ever() -> None:
    driver = _driver("1")
    _low(driver, "low-0")
    driver.show(make_pod("p", cpu="1", priority=100))
    driver.run(12)
    assert driver.bound() == ["p"]


def test_a_failed_eviction_is_reported_and_the_group_tries_again() -> None:
    driver = _driver("1")
    _low(driver, "low-0")
    driver.show_group(make_group(min_count=1, priority=100))
    refused: list[EvictPod] = []
    driver.evict = refused.append
    driver.create_members("p-0", priority=100)
    driver.run()
    (eviction,) = refused
    driver.handle(EvictionFinished("uid-g", eviction.victim, error="forbidden"))
    (problem,) = driver.take(ReportProblem)
    assert problem.subject == "Pod default/low-0"
    assert problem.text == "not evicted for pod group default/g: forbidden"
    driver.run(3)
    assert len(refused) == 2


def test_victims_are_sought_with_the_first_of_equally_good_nodes() -> None:
    """Both nodes are equally good for ``p-0``; only on the first one it leaves room for ``p-1``."""
    driver = GangDriver(gates=ON)
    driver.add_nodes("a", "b", cpu="2")
    _low(driver, "low-a", cpu="2")
    _low(driver, "low-b", cpu="2", node="b")
    driver.show_group(make_group(min_count=2, priority=100))
    selector = {HOSTNAME: "b"}
    driver.create_members("p-1", priority=100, cpu="2", node_selector=selector)
    driver.create_members("p-0", priority=100)  # it completes the gang and is tried first
    driver.run(15)
    assert sorted(driver.evicted) == ["low-a", "low-b"]
    assert {name: driver.node_of(name) for name in driver.bound("p-0", "p-1")} == {
        "p-0": "a",
        "p-1": "b",
    }


def test_a_gang_is_tried_on_the_first_of_equally_good_nodes() -> None:
    """What is evicted does not depend on chance; elsewhere, p-0 would take the place of p-1."""
    driver = GangDriver(gates=ON, choose=lambda num_ties: num_ties - 1)
    driver.add_nodes("a", "b", cpu="1")
    _low(driver, "low-a")
    _low(driver, "low-b", node="b")
    driver.show_group(make_group(min_count=2, priority=100))
    driver.create_members("p-0", priority=100)
    driver.create_members("p-1", priority=100, node_selector={HOSTNAME: "b"})
    driver.schedule(1)
    assert sorted(driver.evicted) == ["low-a", "low-b"]


def test_a_pod_like_the_members_of_a_group_that_cannot_preempt_preempts_for_itself() -> None:
    driver = _driver("1")
    _low(driver, "low")
    _gang(driver, 2, 2)
    driver.show(make_pod("alone", cpu="1", priority=100))
    driver.schedule(10)
    (eviction,) = driver.take(EvictPod)
    assert (eviction.preemptor.name, eviction.victim.name) == ("alone", "low")
