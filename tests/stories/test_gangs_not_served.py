"""Pods that name a group of a kind that the API server does not serve are ordinary pods."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from stowage.api.config.feature_gates import parse_feature_gates
from stowage.api.events import BindFailed, NodeSeen, PodGroupSeen, PodGroupsServed
from stowage.api.instructions import (
    AttemptResult,
    BindPod,
    ClearNomination,
    PodGroupAttemptResult,
)
from stowage.api.objects.pod import Pod
from stowage.api.objects.pod_groups import CORE_GROUPS, COSCHEDULING_GROUPS
from tests.stories.gang_driver import GangDriver, make_group, make_member
from tests.support.builders import make_node, make_pod

FIELD = pytest.param(CORE_GROUPS, id="field")
LABEL = pytest.param(COSCHEDULING_GROUPS, id="label")
SOURCES = pytest.mark.parametrize("source", [FIELD, LABEL])


def _pod(name: str, source: str, group: str = "g", priority: int | None = None) -> Pod:
    """A pod that names a group by the field or by the label, and wants one CPU."""
    if source == CORE_GROUPS:
        return make_member(name, group, priority=priority)
    labels = {"scheduling.x-k8s.io/pod-group": group}
    return make_pod(name, cpu="1", labels=labels, priority=priority)


def _driver(cpu: str = "4") -> GangDriver:
    driver = GangDriver()
    driver.add_nodes("a", cpu=cpu)
    return driver


@SOURCES
def test_before_the_first_answer_pods_that_name_a_group_wait_and_others_do_not(source: str) -> None:
    driver = _driver()
    driver.show(_pod("member", source))
    driver.show(make_pod("bystander"))
    driver.run(3)
    assert driver.bound() == ["bystander"]
    driver.handle(PodGroupsServed(source, is_served=False))
    driver.run()
    assert driver.bound() == ["member", "bystander"]
    assert driver.take(PodGroupAttemptResult) == []
    driver.check_replay()


@SOURCES
def test_pods_that_name_a_group_are_scheduled_one_by_one_while_its_kind_is_not_served(
    source: str,
) -> None:
    driver = _driver(cpu="2")
    driver.handle(PodGroupsServed(source, is_served=False))
    for name in ("p-0", "p-1", "p-2"):
        driver.show(_pod(name, source))
    driver.run()
    assert len(driver.bound()) == 2
    assert driver.take(PodGroupAttemptResult) == []
    driver.check_replay()


@SOURCES
def test_pods_that_wait_become_members_when_the_kind_is_served(source: str) -> None:
    driver = _driver(cpu="1")
    driver.handle(PodGroupsServed(source, is_served=False))
    driver.show(make_pod("first", cpu="1"))
    driver.run()
    for name in ("p-0", "p-1"):
        driver.show(_pod(name, source))
    driver.run()
    assert driver.bound() == ["first"]
    driver.handle(PodGroupsServed(source, is_served=True))
    driver.take(AttemptResult)
    driver.handle(NodeSeen(make_node("b", cpu="1")))
    driver.run(20)
    assert driver.bound() == ["first"]
    assert driver.take(AttemptResult) == []
    driver.handle(PodGroupSeen(make_group(min_count=2), source))
    driver.groups["g"] = make_group(min_count=2)
    driver.run(20)
    assert driver.bound() == ["first"]
    driver.handle(NodeSeen(make_node("c", cpu="1")))
    driver.run(20)
    assert driver.bound() == ["first", "p-0", "p-1"]
    driver.check_replay()


@SOURCES
def test_a_pod_that_must_wait_for_its_group_now_gives_back_the_room_that_it_got(
    source: str,
) -> None:
    driver = _driver(cpu="1")
    driver.handle(PodGroupsServed(source, is_served=False))
    driver.show(make_pod("low", cpu="1", node="a", priority=1))
    driver.show(_pod("p", source, priority=100))
    driver.schedule(1)
    assert driver.evicted == ["low"]
    driver.take(ClearNomination)
    driver.handle(PodGroupsServed(source, is_served=True))
    assert [each.pod.name for each in driver.take(ClearNomination)] == ["p"]
    driver.show(make_pod("heir", cpu="1"))
    driver.run()
    assert driver.bound() == ["heir"]
    driver.check_replay()


@SOURCES
def test_a_preemptor_keeps_its_room_while_its_victim_is_being_evicted(source: str) -> None:
    """Its own gate holds it then, which is not the hold of a group."""
    driver = _driver(cpu="1")
    driver.evict = lambda _eviction: None
    driver.handle(PodGroupsServed(source, is_served=False))
    driver.show(make_pod("low", cpu="1", node="a", priority=1))
    preemptor = _pod("p", source, priority=100)
    driver.show(preemptor)
    driver.schedule(1)
    status = replace(preemptor.status, nominated_node_name="a")
    driver.show(replace(preemptor, status=status))
    assert driver.take(ClearNomination) == []
    driver.delete("low")
    driver.show(make_pod("heir", cpu="1", priority=1))
    driver.run(15)
    assert driver.bound() == ["p"]
    driver.check_replay()


@SOURCES
def test_a_pod_whose_binding_failed_meanwhile_waits_for_its_group(source: str) -> None:
    driver = GangDriver(holds_bindings=True)
    driver.add_nodes("a", cpu="4")
    driver.handle(PodGroupsServed(source, is_served=False))
    driver.show(_pod("p-0", source))
    driver.run()
    (bind,) = driver.take(BindPod)
    driver.handle(PodGroupsServed(source, is_served=True))
    driver.handle(BindFailed(bind.pod.uid, bind.node_name, "conflict"))
    driver.run(20)
    assert driver.take(BindPod) == []
    driver.handle(PodGroupsServed(source, is_served=False))
    driver.run(20)
    assert [each.pod.name for each in driver.take(BindPod)] == ["p-0"]
    driver.check_replay()


def test_the_other_source_is_not_concerned() -> None:
    driver = _driver()
    driver.handle(PodGroupsServed(COSCHEDULING_GROUPS, is_served=False))
    driver.show(_pod("by-field", CORE_GROUPS))
    driver.show(_pod("by-label", COSCHEDULING_GROUPS))
    driver.run(3)
    assert driver.bound() == ["by-label"]


def test_a_label_names_a_group_of_kubernetes_of_that_name() -> None:
    driver = _driver()
    driver.handle(PodGroupsServed(COSCHEDULING_GROUPS, is_served=False))
    driver.show_group(make_group(min_count=2))
    driver.show(_pod("p-0", COSCHEDULING_GROUPS))
    driver.run(3)
    assert driver.bound() == []
    driver.show(_pod("p-1", CORE_GROUPS))
    driver.run()
    assert driver.bound() == ["p-0", "p-1"]


def test_the_gate_lets_members_wait_as_in_kube_scheduler() -> None:
    gates = parse_feature_gates(["GenericWorkload=true,GangScheduling=true"])
    driver = GangDriver(gates=gates)
    driver.add_nodes("a", cpu="4")
    for source in (CORE_GROUPS, COSCHEDULING_GROUPS):
        driver.handle(PodGroupsServed(source, is_served=False))
        driver.show(_pod(f"of-{source}", source))
    driver.run(3)
    assert driver.bound() == [f"of-{COSCHEDULING_GROUPS}"]
