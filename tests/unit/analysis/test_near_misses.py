"""Near misses are true: after the change they name, the pod fits on the nodes they name."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from stowage.analysis.explain_pod import explain_pod
from stowage.analysis.explanation import NearMiss
from stowage.api.objects.node import (
    Node,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Taint,
)
from stowage.api.objects.pod import Affinity, NodeAffinity, Pod, Toleration
from stowage.api.values.quantity import quantity_milli_value
from tests.support.builders import make_node, make_pod
from tests.support.clusters import loaded_cluster

DB = Taint(key="db", value="yes", effect="NoSchedule")
GPU = Taint(key="gpu", effect="NoExecute")


def near_misses(nodes: Sequence[Node], *pods: Pod) -> tuple[NearMiss, ...]:
    return explain_pod(
        loaded_cluster(*nodes, *pods), pods[-1].metadata.namespaced_name
    ).decision.near_misses


def test_the_nearest_miss_comes_first() -> None:
    nodes = [make_node("n1", cpu="1500m"), make_node("n2", cpu="1"), make_node("n3", taints=[DB])]
    assert [each.text for each in near_misses(nodes, make_pod("p", cpu="2"))] == [
        "fits on node n1 if it asked for 500m less cpu",
        "fits on 2 nodes if it asked for 1 less cpu",
        "fits on node n3 if it tolerated db=yes:NoSchedule",
    ]


def test_two_taints_are_farther_than_one() -> None:
    nodes = [make_node("both", taints=[DB, GPU]), make_node("one", taints=[GPU])]
    assert [each.text for each in near_misses(nodes, make_pod("p"))] == [
        "fits on node one if it tolerated gpu:NoExecute",
        "fits on node both if it tolerated db=yes:NoSchedule and gpu:NoExecute",
    ]


def test_a_node_that_two_plugins_reject_is_not_near() -> None:
    assert near_misses([make_node("n", cpu="1", taints=[DB])], make_pod("p", cpu="2")) == ()


def test_a_node_that_lacks_two_resources_is_not_near() -> None:
    nodes = [make_node("n", cpu="1", memory="1Gi")]
    assert near_misses(nodes, make_pod("p", cpu="2", memory="2Gi")) == ()


def test_a_node_without_a_free_pod_slot_says_so() -> None:
    nodes = [make_node("n", pods=1)]
    (miss,) = near_misses(nodes, make_pod("old", node="n"), make_pod("p"))
    assert miss.text == "fits on node n if one pod less ran there (Too many pods)"


def test_a_cordoned_node_says_so() -> None:
    (miss,) = near_misses([make_node("n", unschedulable=True)], make_pod("p"))
    assert miss.text == "fits on node n if the cordon were lifted"


def test_a_cordoned_node_with_the_taint_of_the_node_controller_says_so() -> None:
    cordon = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
    stays = Taint(key="node.kubernetes.io/unschedulable", effect="NoExecute")
    nodes = [
        make_node("n", unschedulable=True, taints=[cordon]),
        make_node("also-tainted", unschedulable=True, taints=[cordon, DB]),
        make_node("also-evicting", unschedulable=True, taints=[cordon, stays]),
        make_node("also-small", unschedulable=True, taints=[cordon], cpu="1"),
    ]
    (miss,) = near_misses(nodes, make_pod("p", cpu="2"))
    assert miss.text == "fits on node n if the cordon were lifted"


def test_other_plugins_are_named_with_their_reason() -> None:
    busy = make_pod("busy", node="n", host_ports=[80])
    (miss,) = near_misses([make_node("n")], busy, make_pod("p", host_ports=[80]))
    assert miss.text == (
        "fits on node n if NodePorts did not reject them: "
        "node(s) didn't have free ports for the requested pod ports"
    )


def test_a_selector_that_nodes_do_not_match_is_named_with_what_they_have() -> None:
    nodes = [make_node(name, labels={"disktype": "ssd", "rack": name}) for name in "abcde"]
    wrong_value, wrong_key = {"disktype": "sdd"}, {"disktpye": "ssd"}
    for selector, text in (
        (wrong_value, "disktype=sdd (they have disktype=ssd)"),
        (wrong_key, "disktpye=ssd (they have no disktpye, but disktype=ssd)"),
        ({"gpu": "a100"}, "gpu=a100 (they have no gpu)"),
        ({"rack": "z"}, "rack=z (they have rack=a, b, c, ...)"),
        ({"gpu": "1", "disktype": "x"}, "disktype=x and gpu=1 (they have disktype=ssd, no gpu)"),
    ):
        (miss,) = near_misses(nodes, make_pod("p", node_selector=selector))
        assert miss.text == f"fits on 5 nodes if it did not ask for {text}"
        assert (miss.plugin, miss.distance) == ("NodeAffinity", len(selector))


def test_a_label_that_only_some_of_the_nodes_have_is_not_said_of_all() -> None:
    nodes = [make_node("ssd", labels={"disktype": "ssd"}), make_node("bare")]
    for selector, text in (
        ({"disktype": "sdd"}, "disktype=sdd (they have disktype=ssd or none)"),
        ({"disktpye": "ssd"}, "disktpye=ssd (they have no disktpye, but disktype=ssd or none)"),
    ):
        (miss,) = near_misses(nodes, make_pod("p", node_selector=selector))
        assert miss.text == f"fits on 2 nodes if it did not ask for {text}"


def test_one_required_term_is_named_as_a_selector_and_several_are_not() -> None:
    cold = NodeSelectorTerm((NodeSelectorRequirement("temperature", "In", ("cold", "cool")),))
    node = make_node("n", labels={"temperature": "hot"})
    (miss,) = near_misses([node], make_pod("p", affinity=_required(cold)))
    asked = "temperature in (cold,cool) (it has temperature=hot)"
    assert miss.text == f"fits on node n if it did not ask for {asked}"
    gone = NodeSelectorTerm((NodeSelectorRequirement("gone", "Exists"),))
    (miss,) = near_misses([node], make_pod("p", affinity=_required(cold, gone)))
    assert miss.text == (
        "fits on node n if NodeAffinity did not reject them: "
        "node(s) didn't match Pod's node affinity/selector"
    )


def _required(*terms: NodeSelectorTerm) -> Affinity:
    return Affinity(NodeAffinity(NodeSelector(terms)))


def test_a_pod_that_fits_has_no_near_misses() -> None:
    assert near_misses([make_node("n"), make_node("m", cpu="1")], make_pod("p", cpu="2")) == ()


NODES = st.lists(
    st.builds(
        lambda cpu, memory, taints: (cpu, memory, tuple(taints)),
        st.integers(1, 6),
        st.integers(1, 6),
        st.lists(st.sampled_from([DB, GPU]), unique=True, max_size=2),
    ),
    min_size=1,
    max_size=6,
)


@given(NODES, st.integers(1, 8), st.integers(1, 8))
def test_the_pod_fits_after_the_change(
    drawn: list[tuple[int, int, tuple[Taint, ...]]], cpu: int, memory: int
) -> None:
    nodes = [
        make_node(f"n{index}", cpu=str(each[0]), memory=f"{each[1]}Gi", taints=each[2])
        for index, each in enumerate(drawn)
    ]
    pod = make_pod("p", cpu=str(cpu), memory=f"{memory}Gi")
    for miss in near_misses(nodes, pod):
        changed = explain_pod(loaded_cluster(*nodes, _changed(pod, miss)), "default/p").decision
        fits = {each.node for each in changed.nodes if each.rejected_by is None}
        assert set(miss.nodes) <= fits


def _changed(pod: Pod, miss: NearMiss) -> Pod:
    """The pod after the change that the near miss names."""
    spec = pod.spec
    if miss.plugin == "TaintToleration":
        keys = [part.split("=")[0].split(":")[0] for part in miss.change[13:].split(" and ")]
        wanted = tuple(Toleration(key=key, operator="Exists") for key in keys)
        return msgspec.structs.replace(pod, spec=msgspec.structs.replace(spec, tolerations=wanted))
    *_, amount, _less, resource = miss.change.split()
    requests = dict(spec.containers[0].resources.requests)
    left = quantity_milli_value(requests[resource]) - quantity_milli_value(amount)
    cpu, memory = (
        f"{left}m" if resource == name else str(requests[name]) for name in ("cpu", "memory")
    )
    return make_pod("p", cpu=cpu, memory=memory)
