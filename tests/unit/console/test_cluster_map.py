"""The map shows all nodes as columns."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from stowage.api.objects.node import Node, Taint
from stowage.api.objects.pod import Pod
from stowage.console.answers.cluster_map import MAX_GROUPS, cluster_map, node_rows
from tests.support.builders import HOSTNAME, ZONE, make_node, make_pod
from tests.support.consoles import moment_of

PRESSED = Taint(key="node.kubernetes.io/disk-pressure", effect="NoSchedule")
GPU = Taint(key="gpu", value="yes", effect="NoSchedule")


def test_nodes_are_sorted_by_name_and_grouped_by_zone() -> None:
    nodes = [make_node("b", zone="z2"), make_node("c"), make_node("a", zone="z1")]
    found = cluster_map(moment_of(*nodes))
    assert found.names == ["a", "b", "c"]
    assert found.group.values == ["z1", "z2", ""]
    assert found.group.codes == [0, 1, 2]
    assert {each.key: each.values for each in found.label_keys} == {HOSTNAME: 3, ZONE: 2}


def test_an_unknown_label_puts_all_nodes_into_one_group() -> None:
    found = cluster_map(moment_of(make_node("a"), make_node("b")), "no/such")
    assert (found.group.values, found.group.codes) == ([""], [0, 0])


def test_a_label_with_too_many_values_is_not_offered_as_a_group() -> None:
    nodes = [make_node(f"n{number}") for number in range(MAX_GROUPS + 1)]
    assert cluster_map(moment_of(*nodes)).label_keys == []


def test_taints_show_pressure() -> None:
    nodes = [make_node("a", taints=[PRESSED, GPU]), make_node("b", unschedulable=True)]
    found = cluster_map(moment_of(*nodes))
    assert [found.taint_sets[code] for code in found.taints] == [
        ["node.kubernetes.io/disk-pressure:NoSchedule", "gpu=yes:NoSchedule"],
        [],
    ]
    assert found.pressure == [1 << found.pressures.index("disk"), 0]
    assert found.unschedulable == [0, 1]


def test_a_cluster_without_nodes_has_empty_columns() -> None:
    found = cluster_map(moment_of(make_pod("p")))
    assert (found.names, found.resources, found.pressure) == ([], [], [])
    assert found.summary.pending == 1


def test_names_are_in_camel_case_on_the_wire() -> None:
    wire = msgspec.json.decode(msgspec.json.encode(cluster_map(moment_of(make_node()))))
    assert {"labelKeys", "taintSets", "unschedulable"} <= wire.keys()


AMOUNTS = st.integers(0, 5)
NODES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.booleans()), max_size=6)


@given(NODES, st.lists(st.tuples(AMOUNTS, AMOUNTS, st.integers(0, 5)), max_size=12))
def test_utilisation_equals_a_plain_count(
    nodes: list[tuple[int, int, bool]], pods: list[tuple[int, int, int]]
) -> None:
    made = [
        make_node(f"n{i}", cpu=str(cpu), allocatable={"gpu": gpus} if has_gpus else {})
        for i, (cpu, gpus, has_gpus) in enumerate(nodes)
    ]
    placed = [
        make_pod(f"p{i}", requests={"cpu": cpu, "gpu": gpus}, node=f"n{place % len(nodes)}")
        for i, (cpu, gpus, place) in enumerate(pods)
        if nodes
    ]
    found = cluster_map(moment_of(*made, *placed))
    for column in found.resources:
        expected = [_permille(node, placed, column.name) for node in made]
        assert column.permille == expected, column.name
    assert found.pods == [_num_pods(node, placed) for node in made]


def _permille(node: Node, pods: list[Pod], resource: str) -> int:
    """The plain twin: exact for the small whole amounts of this test."""
    units = {"memory": 2**30}
    text = str(node.status.allocatable.get(resource, 0))
    allocatable = int(text.removesuffix("Gi")) * (units["memory"] if "Gi" in text else 1)
    if not allocatable:
        return -1
    on_node = [pod for pod in pods if pod.spec.node_name == node.metadata.name]
    if resource == "pods":
        requested = len(on_node)
    else:
        requested = sum(
            int(str(pod.spec.containers[0].resources.requests.get(resource, 0))) for pod in on_node
        )
    return round(requested / allocatable * 1000)


def _num_pods(node: Node, pods: list[Pod]) -> int:
    return sum(pod.spec.node_name == node.metadata.name for pod in pods)


def test_rows_of_some_nodes_are_those_of_the_map() -> None:
    nodes = [make_node("a", taints=[PRESSED]), make_node("b", cpu="2"), make_node("c")]
    moment = moment_of(*nodes, make_pod("p", cpu="1", node="b"))
    whole, snapshot = cluster_map(moment), moment.snapshot
    rows = node_rows(moment, snapshot.all_rows)
    places = [whole.names.index(name) for name in rows.names]
    assert sorted(places) == [0, 1, 2]
    assert rows.pods == [whole.pods[place] for place in places]
    assert rows.pressure == [whole.pressure[place] for place in places]
    assert rows.taints == [whole.taint_sets[whole.taints[place]] for place in places]
    by_name = {each.name: each.permille for each in whole.resources}
    assert rows.permille["cpu"] == [by_name["cpu"][place] for place in places]
