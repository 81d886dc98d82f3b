"""Registered events and queueing hints of in-tree plugins, as in v1.36."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from stowage.api.cluster_events import ActionType, EventResource, QueueingHint
from stowage.api.decoding.errors import SelectorError
from stowage.api.objects.node import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Taint
from stowage.api.objects.pod import (
    Affinity,
    Container,
    ContainerPort,
    ContainerRestartRule,
    Toleration,
)
from stowage.api.objects.pod import NodeAffinity as NodeAffinityRules
from stowage.framework import NoArgs
from stowage.framework.extension_points import EnqueueExtensions
from stowage.plugins.dynamic_resources import DynamicResources, DynamicResourcesArgs
from stowage.plugins.node_affinity import NodeAffinity, NodeAffinityArgs
from stowage.plugins.node_declared_features import NodeDeclaredFeatures
from stowage.plugins.node_name import NodeName
from stowage.plugins.node_ports import NodePorts
from stowage.plugins.node_resources import NodeResourcesFit, NodeResourcesFitArgs
from stowage.plugins.node_unschedulable import NodeUnschedulable
from stowage.plugins.scheduling_gates import SchedulingGates
from stowage.plugins.taint_toleration import TaintToleration
from stowage.state.pods.pod_info import PodInfo
from tests.support.builders import make_node
from tests.unit.plugins.hints import A, R, ask, info

Registered: TypeAlias = dict[EventResource, ActionType]

FIT = NodeResourcesFit(NodeResourcesFitArgs())
AFFINITY = NodeAffinity(NodeAffinityArgs())
DEDICATED = Taint("dedicated", "db", "NoSchedule")
CORDON = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")


@pytest.mark.parametrize(
    ("plugin", "events"),
    [
        (SchedulingGates(NoArgs()), {R.POD: A.UPDATE_POD_SCHEDULING_GATES_ELIMINATED}),
        (NodeName(NoArgs()), {R.NODE: A.ADD}),
        (
            NodeUnschedulable(NoArgs()),
            {R.NODE: A.ADD | A.UPDATE_NODE_TAINT, R.POD: A.UPDATE_POD_TOLERATION},
        ),
        (
            TaintToleration(NoArgs()),
            {R.NODE: A.ADD | A.UPDATE_NODE_TAINT, R.POD: A.UPDATE_POD_TOLERATION},
        ),
        (AFFINITY, {R.NODE: A.ADD | A.UPDATE_NODE_LABEL}),
        (NodePorts(NoArgs()), {R.POD: A.DELETE, R.NODE: A.ADD}),
        (
            FIT,
            {
                R.POD: A.DELETE | A.UPDATE_POD_SCALE_DOWN,
                R.NODE: A.ADD | A.UPDATE_NODE_ALLOCATABLE,
                R.DEVICE_CLASS: A.ADD | A.UPDATE,
            },
        ),
        (
            NodeDeclaredFeatures(NoArgs()),
            {R.NODE: A.ADD | A.UPDATE_NODE_DECLARED_FEATURE, R.POD: A.UPDATE},
        ),
        (
            DynamicResources(DynamicResourcesArgs()),
            {
                R.NODE: A.ADD | A.UPDATE_NODE_LABEL | A.UPDATE_NODE_ALLOCATABLE,
                R.RESOURCE_CLAIM: A.ADD | A.UPDATE,
                R.POD: A.UPDATE_POD_GENERATED_RESOURCE_CLAIM,
                R.DEVICE_CLASS: A.ADD | A.UPDATE,
                R.RESOURCE_SLICE: A.ADD | A.UPDATE,
            },
        ),
    ],
    ids=lambda each: each.name if hasattr(each, "name") else "",
)
def test_each_plugin_registers_for_the_events_upstream_names(
    plugin: EnqueueExtensions, events: Registered
) -> None:
    registered = [each.event for each in plugin.events_to_register()]
    assert {event.resource: event.action for event in registered} == events
    assert len(registered) == len(events)


# SchedulingGates


def test_a_pod_is_requeued_only_by_removal_of_its_own_last_gate() -> None:
    plugin, action = SchedulingGates(NoArgs()), A.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
    gated, free = info("p", gates=["g"]), info("p")
    assert ask(plugin, action, gated, gated, free) is QueueingHint.QUEUE
    assert ask(plugin, action, info("q", gates=["g"]), gated, free) is QueueingHint.SKIP


# NodeName


def test_any_added_node_requeues_a_pod_with_a_node_name() -> None:
    assert ask(NodeName(NoArgs()), A.ADD, info(), None, make_node()) is QueueingHint.QUEUE


# NodePorts


def port(number: int, protocol: str = "TCP", ip: str = "") -> ContainerPort:
    return ContainerPort(host_port=number, protocol=protocol, host_ip=ip)


@pytest.mark.parametrize(
    ("deleted", "helps"),
    [
        ({"node": "n", "host_ports": [8080]}, True),
        ({"nominated_node": "n", "host_ports": [8080]}, True),
        ({"host_ports": [8080]}, False),
        ({"node": "n"}, False),
        ({"node": "n", "host_ports": [8081]}, False),
        ({"node": "n", "host_ports": [port(8080, "UDP")]}, False),
        ({"node": "n", "host_ports": [port(8080, ip="10.0.0.1")]}, True),
    ],
    ids=[
        "it had the port",
        "it was nominated with the port",
        "it was on no node",
        "it had no port",
        "it had another port",
        "it had the port of another protocol",
        "it had the port on one address",
    ],
)
def test_a_pod_with_host_ports_is_requeued_by_deletion_of_a_pod_with_its_port(
    deleted: dict[str, Any], helps: bool
) -> None:
    pod = info("p", host_ports=[8080])
    answer = ask(NodePorts(NoArgs()), A.DELETE, pod, info("other", **deleted))
    assert answer is QueueingHint.when(helps)


def test_ports_of_different_addresses_do_not_collide() -> None:
    pod = info("p", host_ports=[port(8080, ip="10.0.0.1")])
    other = info("other", node="n", host_ports=[port(8080, ip="10.0.0.2")])
    assert ask(NodePorts(NoArgs()), A.DELETE, pod, other) is QueueingHint.SKIP


def test_an_added_node_requeues_a_pod_with_host_ports() -> None:
    pod = info("p", host_ports=[8080])
    assert ask(NodePorts(NoArgs()), A.ADD, pod, None, make_node()) is QueueingHint.QUEUE


# NodeUnschedulable


@pytest.mark.parametrize(
    ("before", "after", "helps"),
    [
        (None, False, True),
        (None, True, False),
        (True, False, True),
        (True, True, False),
        (False, True, False),
        (False, False, False),
    ],
    ids=[
        "a node was added",
        "a cordoned node was added",
        "a node was uncordoned",
        "another change of a cordoned node",
        "a node was cordoned",
        "another change of a node",
    ],
)
def test_node_unschedulable_queues_for_added_and_uncordoned_nodes(
    before: bool | None, after: bool, helps: bool
) -> None:
    old = None if before is None else make_node(unschedulable=before)
    action = A.ADD if old is None else A.UPDATE_NODE_TAINT
    answer = ask(NodeUnschedulable(NoArgs()), action, info(), old, make_node(unschedulable=after))
    assert answer is QueueingHint.when(helps)


@pytest.mark.parametrize(
    ("name", "toleration", "helps"),
    [
        ("p", Toleration(CORDON.key, "Exists"), True),
        ("p", Toleration("unrelated", "Exists"), False),
        ("other", Toleration(CORDON.key, "Exists"), False),
    ],
    ids=["its own", "its own, of another taint", "another pod's"],
)
def test_node_unschedulable_queues_for_a_toleration_added_to_the_pod_itself(
    name: str, toleration: Toleration, helps: bool
) -> None:
    change = info(name), info(name, tolerations=[toleration])
    answer = ask(NodeUnschedulable(NoArgs()), A.UPDATE_POD_TOLERATION, info("p"), *change)
    assert answer is QueueingHint.when(helps)


# TaintToleration


@pytest.mark.parametrize(
    ("before", "after", "helps"),
    [
        (None, (), True),
        (None, (DEDICATED,), False),
        ((DEDICATED,), (), True),
        ((DEDICATED,), (CORDON,), False),
        ((), (DEDICATED,), False),
        ((), (Taint("soft", "", "PreferNoSchedule"),), False),
    ],
    ids=[
        "a node without taints was added",
        "a tainted node was added",
        "the taint was removed",
        "another taint replaced it",
        "a taint was added",
        "a PreferNoSchedule taint was added",
    ],
)
def test_taint_toleration_queues_for_nodes_that_the_pod_tolerates(
    before: tuple[Taint, ...] | None, after: tuple[Taint, ...], helps: bool
) -> None:
    old = None if before is None else make_node(taints=before)
    action = A.ADD if old is None else A.UPDATE_NODE_TAINT
    answer = ask(TaintToleration(NoArgs()), action, info(), old, make_node(taints=after))
    assert answer is QueueingHint.when(helps)


def test_taint_toleration_queues_for_an_added_node_with_a_tolerated_taint() -> None:
    pod = info(tolerations=[Toleration("dedicated", "Equal", "db")])
    answer = ask(TaintToleration(NoArgs()), A.ADD, pod, None, make_node(taints=[DEDICATED]))
    assert answer is QueueingHint.QUEUE


@pytest.mark.parametrize(("name", "helps"), [("p", True), ("other", False)])
def test_taint_toleration_queues_for_any_toleration_added_to_the_pod_itself(
    name: str, helps: bool
) -> None:
    change = info(name), info(name, tolerations=[Toleration("x", "Exists")])
    answer = ask(TaintToleration(NoArgs()), A.UPDATE_POD_TOLERATION, info("p"), *change)
    assert answer is QueueingHint.when(helps)


# NodeAffinity


def required(*terms: NodeSelectorTerm) -> Affinity:
    rules = NodeAffinityRules(
        required_during_scheduling_ignored_during_execution=NodeSelector(terms)
    )
    return Affinity(node_affinity=rules)


def expression(key: str, operator: str, *values: str) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key, operator, values),))


WANTS_SSD: list[Callable[[], PodInfo]] = [
    lambda: info(node_selector={"disk": "ssd"}),
    lambda: info(affinity=required(expression("disk", "In", "ssd"))),
]


@pytest.mark.parametrize("pod", WANTS_SSD, ids=["by selector", "by affinity"])
@pytest.mark.parametrize(
    ("before", "after", "helps"),
    [
        (None, "ssd", True),
        (None, "hdd", False),
        ("hdd", "ssd", True),
        ("ssd", "hdd", False),
        ("ssd", "ssd", False),
    ],
    ids=[
        "a node that matches was added",
        "a node that does not match was added",
        "a node came to match",
        "a node no longer matches",
        "a node matched before",
    ],
)
def test_node_affinity_queues_for_nodes_that_come_to_match(
    pod: Callable[[], PodInfo], before: str | None, after: str, helps: bool
) -> None:
    old = None if before is None else make_node(labels={"disk": before})
    action = A.ADD if old is None else A.UPDATE_NODE_LABEL
    answer = ask(AFFINITY, action, pod(), old, make_node(labels={"disk": after}))
    assert answer is QueueingHint.when(helps)


def test_node_affinity_queues_only_for_nodes_that_match_the_added_affinity() -> None:
    ssd = required(expression("disk", "In", "ssd")).node_affinity
    plugin = NodeAffinity(NodeAffinityArgs(added_affinity=ssd))
    for disk, helps in (("ssd", True), ("hdd", False)):
        answer = ask(plugin, A.ADD, info(), None, make_node(labels={"disk": disk}))
        assert answer is QueueingHint.when(helps)


def test_an_invalid_term_raises_so_that_the_pod_is_requeued() -> None:
    pod = info(affinity=required(expression("disk", "Gt", "big")))
    with pytest.raises(SelectorError):
        ask(AFFINITY, A.ADD, pod, None, make_node())


# NodeDeclaredFeatures


def restarting(name: str = "p", action: str = "RestartAllContainers") -> PodInfo:
    rule = ContainerRestartRule(action=action)
    return info(name, containers=(Container(name="c", restart_policy_rules=(rule,)),))


@pytest.mark.parametrize(
    ("before", "after", "helps"),
    [(None, [], True), (["A"], ["A"], False), (["A"], ["A", "B"], True), (["A"], [], True)],
    ids=["a node was added", "the same features", "another feature", "a feature less"],
)
def test_node_declared_features_queues_for_nodes_that_declare_other_features(
    before: list[str] | None, after: list[str], helps: bool
) -> None:
    old = None if before is None else make_node(declared_features=before)
    action = A.ADD if old is None else A.UPDATE_NODE_DECLARED_FEATURE
    answer = ask(
        NodeDeclaredFeatures(NoArgs()),
        action,
        restarting(),
        old,
        make_node(declared_features=after),
    )
    assert answer is QueueingHint.when(helps)


@pytest.mark.parametrize(
    ("name", "after", "helps"),
    [("p", "Restart", True), ("p", "RestartAllContainers", False), ("other", "Restart", False)],
    ids=["it needs less", "it needs the same", "another pod needs less"],
)
def test_node_declared_features_queues_when_the_pod_itself_needs_other_features(
    name: str, after: str, helps: bool
) -> None:
    change = restarting(name), restarting(name, after)
    answer = ask(NodeDeclaredFeatures(NoArgs()), A.UPDATE_POD_OTHER, restarting(), *change)
    assert answer is QueueingHint.when(helps)
