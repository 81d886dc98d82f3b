"""Capacity: how many more pods fit; counting from columns equals placing them one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from stowage.analysis.capacity import CapacityAnswer, capacity
from stowage.api.objects.meta import ApiStruct
from stowage.api.objects.node import (
    Node,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Taint,
)
from stowage.api.objects.pod import Affinity, NodeAffinity, Pod, TopologySpreadConstraint
from tests.support.builders import HOSTNAME, ZONE, label_selector, make_node, make_pod
from tests.support.clusters import loaded_cluster
from tests.support.device_builders import make_claim as make_device_claim
from tests.support.device_builders import make_class as make_device_class
from tests.support.device_builders import make_slice, pod_with_claims, request
from tests.support.volume_builders import claim_volume

DEDICATED = Taint(key="dedicated", effect="NoSchedule")


def ask(pod: Pod, *objects: ApiStruct, limit: int = 10_000, counts: bool = True) -> CapacityAnswer:
    cluster = loaded_cluster(*objects)
    return capacity(cluster, pod, limit=limit, group_by=ZONE, counts=counts)


def test_the_room_of_each_node_is_counted_and_its_limit_named() -> None:
    answer = ask(
        make_pod("p", cpu="1", memory="1Gi"),
        make_node("cpu", cpu="3", zone="a"),
        make_node("slots", cpu="64", pods=2, zone="a"),
        make_node("tainted", taints=[DEDICATED], zone="b"),
        make_pod("old", cpu="1", node="cpu"),
    )
    assert (answer.fits, answer.is_limited, answer.is_counted) == (4, False, True)
    assert answer.per_node == {"cpu": 2, "slots": 2}
    assert answer.histogram == {0: 1, 2: 2}
    first, second = answer.groups
    assert (first.value, first.nodes, first.fits) == ("a", 2, 4)
    assert first.limited_by == {"Insufficient cpu": 1, "Too many pods": 1}
    assert second.limited_by == {"node(s) had untolerated taint(s)": 1}
    assert answer.message == (
        "0/3 nodes are available: 1 Insufficient cpu, 1 Too many pods, "
        "1 node(s) had untolerated taint(s)."
    )


def test_pods_that_depend_on_each_other_are_placed_one_by_one() -> None:
    spread = TopologySpreadConstraint(
        max_skew=1,
        topology_key=HOSTNAME,
        when_unsatisfiable="DoNotSchedule",
        label_selector=label_selector({"app": "web"}),
    )
    pod = make_pod("p", cpu="1", labels={"app": "web"}, topology_spread_constraints=(spread,))
    answer = ask(pod, make_node("one", cpu="1"), make_node("many", cpu="8"))
    assert (answer.fits, answer.is_counted) == (3, False)
    assert answer.per_node == {"one": 1, "many": 2}


def test_host_ports_allow_one_pod_on_each_node() -> None:
    answer = ask(make_pod("p", host_ports=[80]), make_node("a"), make_node("b"))
    assert answer.per_node == {"a": 1, "b": 1}


@pytest.mark.parametrize(
    ("pod", "message"),
    [
        (make_pod("p", gates=["wait"]), "waiting for scheduling gates: [wait]"),
        (
            make_pod("p", volumes=[claim_volume("none")]),
            '0/1 nodes are available: persistentvolumeclaim "none" not found.',
        ),
    ],
)
def test_no_node_limits_a_pod_that_is_rejected_as_a_whole(pod: Pod, message: str) -> None:
    answer = ask(pod, make_node("n"))
    assert (answer.fits, answer.message) == (0, message)
    assert [each.limited_by for each in answer.groups] == [{}]


def test_the_message_counts_the_nodes_that_pre_filter_leaves_out() -> None:
    named = NodeSelectorRequirement("metadata.name", "In", ("a",))
    selector = NodeSelector((NodeSelectorTerm(match_fields=(named,)),))
    pod = make_pod("p", cpu="1", affinity=Affinity(NodeAffinity(selector)))
    nodes = [make_node(name, cpu="2") for name in "abcd"]
    counted, simulated = ask(pod, *nodes), ask(pod, *nodes, counts=False)
    assert (counted.is_counted, counted.fits) == (True, 2)
    assert counted.message == simulated.message
    assert "3 node(s) didn't satisfy plugin(s) [NodeAffinity]" in counted.message


def test_no_node_limits_a_pod_for_which_a_plugin_fails() -> None:
    objects = (make_device_class(expression="device.attributes['a'].b"), make_slice("n", ["d"]))
    claim = make_device_claim("c", request())
    answer = ask(pod_with_claims("p", "c"), make_node("n"), make_node("m"), *objects, claim)
    assert answer.message.endswith("class gpu: selector #0: CEL runtime error: no such key: b")
    assert [each.limited_by for each in answer.groups] == [{}]


def test_no_pod_is_preempted() -> None:
    low = make_pod("low", cpu="4", node="n", priority=-5)
    answer = ask(make_pod("p", cpu="1", priority=9), make_node("n", cpu="4"), low)
    assert answer.fits == 0
    assert answer.message == "0/1 nodes are available: 1 Insufficient cpu."


def test_the_count_ends_at_the_limit() -> None:
    for counts in (True, False):
        answer = ask(make_pod("p", cpu="1"), make_node("n", cpu="8"), limit=5, counts=counts)
        assert (answer.fits, answer.is_limited, answer.message) == (5, True, "")


NODES = st.lists(
    st.builds(
        lambda cpu, pods, taints, zone: (cpu, pods, tuple(taints), zone),
        st.integers(1, 9),
        st.integers(1, 5),
        st.lists(st.just(DEDICATED), max_size=1),
        st.sampled_from(["a", "b", None]),
    ),
    min_size=1,
    max_size=5,
)


def _nodes(drawn: list[tuple[int, int, tuple[Taint, ...], str | None]]) -> list[Node]:
    return [
        make_node(f"n{index}", cpu=str(cpu), pods=pods, taints=taints, zone=zone, memory="8Gi")
        for index, (cpu, pods, taints, zone) in enumerate(drawn)
    ]


@given(NODES, st.integers(1, 30), st.integers(0, 40), st.lists(st.integers(0, 4), max_size=4))
def test_counting_equals_placing_one_by_one(
    drawn: list[tuple[int, int, tuple[Taint, ...], str | None]],
    cpu: int,
    memory: int,
    old: list[int],
) -> None:
    nodes = _nodes(drawn)
    placed = [
        make_pod(f"old{number}", cpu="700m", node=f"n{at}")
        for number, at in enumerate(old)
        if at < len(nodes)
    ]
    pod = make_pod("p", cpu=f"{cpu}00m", memory=f"{memory}00Mi")
    counted = ask(pod, *nodes, *placed)
    simulated = ask(pod, *nodes, *placed, counts=False)
    assert (counted.is_counted, simulated.is_counted) == (True, False)
    assert replace(counted, is_counted=False) == simulated
