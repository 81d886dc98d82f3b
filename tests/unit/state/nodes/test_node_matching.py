"""Node selectors and tolerations, evaluated for all nodes at once."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from stowage.api.objects.node import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Taint
from stowage.api.objects.pod import Affinity, NodeAffinity, Toleration
from stowage.api.values.node_affinity import compile_node_selector, required_node_affinity
from stowage.state import ClusterCache, NodeView
from stowage.state.nodes import node_matching
from stowage.state.nodes.node_matching import (
    node_terms_mask,
    required_affinity_mask,
    tolerated_taint_sets,
    untolerated_taint_counts,
)
from tests.support.builders import ZONE, make_node, make_pod

Expression = tuple[str, str, Sequence[str]]
SSD = ("disk", "In", ["ssd"])
IN_X = (ZONE, "In", ["x"])
FIRST = ("metadata.name", "In", ["n0"])


@pytest.fixture
def nodes() -> NodeView:
    cache = ClusterCache()
    for index, (zone, disk) in enumerate([("x", "ssd"), ("x", "hdd"), ("y", "ssd")]):
        cache.update_node(make_node(f"n{index}", zone=zone, labels={"disk": disk}))
    return cache.snapshot().view(slice(0, 3))


def term(labels: Sequence[Expression] = (), fields: Sequence[Expression] = ()) -> NodeSelectorTerm:
    def requirements(expressions: Sequence[Expression]) -> tuple[NodeSelectorRequirement, ...]:
        return tuple(NodeSelectorRequirement(k, op, tuple(values)) for k, op, values in expressions)

    return NodeSelectorTerm(requirements(labels), requirements(fields))


@pytest.mark.parametrize(
    ("terms", "want"),
    [
        pytest.param([term([SSD])], [True, False, True], id="one requirement"),
        pytest.param([term([SSD, IN_X])], [True, False, False], id="all of a term"),
        pytest.param(
            [term([("disk", "In", ["ssd", "hdd"]), IN_X])], [True, True, False], id="any value"
        ),
        pytest.param([term([SSD]), term([IN_X])], [True, True, True], id="one of the terms"),
        pytest.param([term(fields=[FIRST])], [True, False, False], id="name"),
        pytest.param(
            [term(fields=[("metadata.name", "NotIn", ["n0"])])], [False, True, True], id="not name"
        ),
        pytest.param([term([SSD], [FIRST]), term([])], [True, False, False], id="empty term"),
        pytest.param([term(fields=[("metadata.name", "In", ["none"])])], [False] * 3, id="no node"),
        pytest.param([term(fields=[("spec.x", "NotIn", ["a"])])], [True] * 3, id="other field"),
        pytest.param([term([("disk", "Like", ["s"])])], [False] * 3, id="faulty term"),
    ],
)
def test_a_node_matches_if_one_of_the_terms_does(
    nodes: NodeView, terms: list[NodeSelectorTerm], want: list[bool]
) -> None:
    compiled = compile_node_selector(NodeSelector(tuple(terms)))
    assert node_terms_mask(nodes, compiled).tolist() == want
    many = compile_node_selector(NodeSelector(tuple(terms * 20)))
    assert node_terms_mask(nodes, many).tolist() == want


def test_of_many_terms_with_labels_and_a_name_none_is_asked_about_each_node(
    nodes: NodeView, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(node_matching, "node_term_mask")
    compiled = compile_node_selector(NodeSelector((term([SSD, IN_X], [FIRST]),) * 16))
    assert node_terms_mask(nodes, compiled).tolist() == [True, False, False]


def test_node_selector_and_required_affinity_must_both_hold(nodes: NodeView) -> None:
    affinity = Affinity(NodeAffinity(NodeSelector((term([SSD]),))))
    pod = make_pod(node_selector={ZONE: "x"}, affinity=affinity)
    mask = required_affinity_mask(nodes, required_node_affinity(pod.spec))
    assert mask.tolist() == [True, False, False]
    free = required_affinity_mask(nodes, required_node_affinity(make_pod().spec))
    assert free.all()


def test_a_toleration_is_evaluated_once_per_distinct_set_of_taints() -> None:
    cache = ClusterCache()
    gpu, old = Taint("gpu", "yes", "NoSchedule"), Taint("old", "", "NoExecute")
    soft = Taint("busy", "", "PreferNoSchedule")
    for index, taints in enumerate([[], [gpu], [gpu, old], [gpu], [soft]]):
        cache.update_node(make_node(f"n{index}", taints=taints))
    snapshot = cache.snapshot()
    assert len(snapshot.taint_sets) == 4
    nodes = snapshot.view(slice(0, 5))
    hard = ("NoSchedule", "NoExecute")
    tolerations = (Toleration("gpu", "Exists"),)
    tolerated = tolerated_taint_sets(snapshot, tolerations, hard)[nodes.taint_set]
    assert tolerated.tolist() == [True, True, False, True, True]
    counts = untolerated_taint_counts(snapshot, (), hard)[nodes.taint_set]
    assert counts.tolist() == [0, 1, 2, 1, 0]
    soft_counts = untolerated_taint_counts(snapshot, (), ("PreferNoSchedule",))[nodes.taint_set]
    assert soft_counts.tolist() == [0, 0, 0, 0, 1]


def test_a_toleration_without_a_key_tolerates_every_taint() -> None:
    cache = ClusterCache()
    cache.update_node(make_node("n", taints=[Taint("gpu", "yes", "NoSchedule")]))
    snapshot = cache.snapshot()
    for everything in (Toleration("", "Exists"), Toleration("", "Exists", effect="NoSchedule")):
        tolerations = (Toleration("old", "Exists"), everything)
        counts = untolerated_taint_counts(snapshot, tolerations, ("NoSchedule",))
        assert counts[snapshot.view(slice(0, 1)).taint_set].tolist() == [0]
    (code,) = snapshot.view(slice(0, 1)).taint_set.tolist()
    other = (Toleration("old", "Exists"),)
    assert untolerated_taint_counts(snapshot, other, ("NoSchedule",))[code] == 1


def test_a_toleration_without_a_key_compares_the_numbers_of_all_taints() -> None:
    cache = ClusterCache()
    taints = [Taint("sla", "950", "NoSchedule"), Taint("cost", "3", "NoSchedule")]
    cache.update_node(make_node("n", taints=taints))
    snapshot = cache.snapshot()
    nodes, above = snapshot.view(slice(0, 1)), (Toleration("", "Gt", "900"),)
    for compares, num_left in ((True, 1), (False, 2)):
        counts = untolerated_taint_counts(snapshot, above, ("NoSchedule",), compares=compares)
        assert counts[nodes.taint_set].tolist() == [num_left]
