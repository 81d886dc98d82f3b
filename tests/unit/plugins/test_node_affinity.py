from __future__ import annotations

import pytest

from stowage.api.objects.node import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from stowage.api.objects.pod import Affinity, Pod, PreferredSchedulingTerm
from stowage.api.objects.pod import NodeAffinity as Rules
from stowage.api.status import Code, unresolvable
from stowage.framework import CycleState
from stowage.plugins.node_affinity import (
    REASON_ENFORCED,
    REASON_POD,
    NodeAffinity,
    NodeAffinityArgs,
    named_nodes,
)
from tests.support.builders import make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster, existing_nodes
from tests.unit.plugins.single_plugin import pre_filter, refused


def _in(key: str, *values: str) -> NodeSelectorRequirement:
    return NodeSelectorRequirement(key, "In", values)


def _labels(*expressions: NodeSelectorRequirement) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=expressions)


def _names(*requirements: NodeSelectorRequirement) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_fields=requirements)


def _rules(*required: NodeSelectorTerm, preferred: dict[str, int] | None = None) -> Rules:
    return Rules(
        required_during_scheduling_ignored_during_execution=(
            NodeSelector(required) if required else None
        ),
        preferred_during_scheduling_ignored_during_execution=None
        if preferred is None
        else tuple(
            PreferredSchedulingTerm(weight, _labels(_in("disk", disk)))
            for disk, weight in preferred.items()
        ),
    )


def _pod(*required: NodeSelectorTerm, preferred: dict[str, int] | None = None) -> Pod:
    return make_pod("p", affinity=Affinity(node_affinity=_rules(*required, preferred=preferred)))


@pytest.fixture
def cluster() -> MirroredCluster:
    return MirroredCluster(
        [
            make_node("n0", labels={"disk": "ssd", "zone": "a"}),
            make_node("n1", labels={"disk": "hdd", "zone": "a"}),
            make_node("n2", labels={"zone": "b"}),
        ]
    )


def _plugin(added: Rules | None = None) -> NodeAffinity:
    return NodeAffinity(NodeAffinityArgs(added_affinity=added))


def _scores(plugin: NodeAffinity, cluster: MirroredCluster, pod: Pod) -> list[int] | None:
    state, nodes = CycleState(), existing_nodes(cluster.snapshot())
    info = cluster.info(pod)
    if plugin.pre_score(state, info, nodes).is_skip:
        return None
    raw = plugin.score(state, info, nodes)
    scores: list[int] = plugin.normalize_score(state, info, nodes, raw).tolist()
    return scores


def test_a_pod_without_node_affinity_is_skipped(cluster: MirroredCluster) -> None:
    assert pre_filter(_plugin(), cluster, make_pod("p")).status.is_skip
    assert _scores(_plugin(), cluster, make_pod("p")) is None


def test_empty_node_affinity_is_not_skipped(cluster: MirroredCluster) -> None:
    """PreFilter and PreScore of v1.36 skip only for nil, not for an empty value."""
    assert pre_filter(_plugin(), cluster, make_pod("p", node_selector={})).status.is_success
    nothing = Rules(preferred_during_scheduling_ignored_during_execution=())
    pod = make_pod("p", affinity=Affinity(node_affinity=nothing))
    assert pre_filter(_plugin(), cluster, pod).status.is_skip
    assert _scores(_plugin(), cluster, pod) == [0, 0, 0]
    blank = PreferredSchedulingTerm(5, _labels())
    added = _plugin(Rules(preferred_during_scheduling_ignored_during_execution=(blank,)))
    assert _scores(added, cluster, make_pod("p")) == [0, 0, 0]


def test_a_node_selector_must_match(cluster: MirroredCluster) -> None:
    found = refused(_plugin(), cluster, make_pod("p", node_selector={"disk": "ssd", "zone": "a"}))
    assert sorted(found) == ["n1", "n2"]
    assert found["n1"].code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert found["n1"].reasons == ("node(s) didn't match Pod's node affinity/selector",)


def test_one_of_the_terms_must_match_in_all_its_expressions(cluster: MirroredCluster) -> None:
    pod = _pod(_labels(_in("disk", "ssd"), _in("zone", "a")), _labels(_in("zone", "b")))
    assert sorted(refused(_plugin(), cluster, pod)) == ["n1"]


def test_an_empty_or_invalid_term_matches_no_node(cluster: MirroredCluster) -> None:
    faulty = _labels(NodeSelectorRequirement("disk", "Matches", ("ssd",)))
    assert sorted(refused(_plugin(), cluster, _pod(_labels(), faulty))) == ["n0", "n1", "n2"]


def test_nodes_named_by_every_term_narrow_the_search(cluster: MirroredCluster) -> None:
    pod = _pod(_names(_in("metadata.name", "n0")), _names(_in("metadata.name", "n2")))
    assert pre_filter(_plugin(), cluster, pod).node_names == frozenset({"n0", "n2"})
    mixed = _pod(_names(_in("metadata.name", "n0")), _labels(_in("zone", "b")))
    assert pre_filter(_plugin(), cluster, mixed).node_names is None


def test_contradictory_node_names_leave_no_node(cluster: MirroredCluster) -> None:
    term = _names(_in("metadata.name", "n0"), _in("metadata.name", "n1"))
    assert pre_filter(_plugin(), cluster, _pod(term)).status == unresolvable(
        "pod affinity terms conflict"
    )
    assert named_nodes((term,)) == frozenset()


def test_added_affinity_is_evaluated_first_and_has_its_own_reason(cluster: MirroredCluster) -> None:
    plugin = _plugin(_rules(_labels(_in("zone", "a"))))
    found = refused(plugin, cluster, make_pod("p", node_selector={"disk": "ssd"}))
    assert {name: status.reasons for name, status in found.items()} == {
        "n1": ("node(s) didn't match Pod's node affinity/selector",),
        "n2": ("node(s) didn't match scheduler-enforced node affinity",),
    }


def test_weights_of_preferred_terms_add_up_and_the_best_node_scores_100(
    cluster: MirroredCluster,
) -> None:
    pod = _pod(preferred={"ssd": 30, "hdd": 10})
    assert _scores(_plugin(), cluster, pod) == [100, 33, 0]
    added = _plugin(_rules(preferred={"hdd": 40}))
    assert _scores(added, cluster, pod) == [60, 100, 0]
    assert _scores(added, cluster, make_pod("q")) == [0, 100, 0]


def test_weights_of_terms_that_compare_numbers_add_up() -> None:
    sizes = {"n0": "4", "n1": "8", "n2": "16", "n3": "large"}
    nodes = [make_node(name, labels={"size": size}) for name, size in sizes.items()]
    cluster = MirroredCluster([*nodes, make_node("n4")])
    preferred = [("Lt", "16", 10), ("Lt", "8", 20), ("Gt", "4", 5), ("Gt", "8", 65)]
    terms = tuple(
        PreferredSchedulingTerm(
            weight, _labels(NodeSelectorRequirement("size", operator, (bound,)))
        )
        for operator, bound, weight in preferred
    )
    rules = Rules(preferred_during_scheduling_ignored_during_execution=terms)
    info = cluster.info(make_pod("p", affinity=Affinity(node_affinity=rules)))
    state, of_all = CycleState(), existing_nodes(cluster.snapshot())
    _plugin().pre_score(state, info, of_all)
    # n0: below 16 and 8; n1: below 16, above 4; n2: above 4 and 8; the others have no number.
    assert _plugin().score(state, info, of_all).tolist() == [30, 15, 70, 0, 0]


def test_an_invalid_preferred_term_is_an_error(cluster: MirroredCluster) -> None:
    wrong = PreferredSchedulingTerm(1, _labels(NodeSelectorRequirement("disk", "Like", ("s",))))
    rules = Rules(preferred_during_scheduling_ignored_during_execution=(wrong,))
    info = cluster.info(make_pod("p", affinity=Affinity(node_affinity=rules)))
    status = _plugin().pre_score(CycleState(), info, existing_nodes(cluster.snapshot()))
    assert status.code is Code.ERROR
    assert 'Unsupported value: "Like"' in status.message


REFUSED_OPERATOR = (
    'matchExpressions[0].operator: Unsupported value: "Like": supported values: "In", "NotIn", '
)


def test_invalid_added_affinity_is_an_error_of_the_profile() -> None:
    wrong = _labels(NodeSelectorRequirement("disk", "Like", ("s",)))
    (error,) = NodeAffinityArgs(added_affinity=_rules(wrong)).validate()
    assert error.path == "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    assert REFUSED_OPERATOR in str(error)


def test_an_invalid_preference_of_the_added_affinity_is_an_error_of_the_profile() -> None:
    wrong = _labels(NodeSelectorRequirement("disk", "Like", ("s",)))
    preferred = (PreferredSchedulingTerm(1, wrong),)
    rules = Rules(preferred_during_scheduling_ignored_during_execution=preferred)
    (error,) = NodeAffinityArgs(added_affinity=rules).validate()
    assert error.path == "addedAffinity.preferredDuringSchedulingIgnoredDuringExecution"
    assert REFUSED_OPERATOR in str(error)


def test_the_pods_own_affinity_is_unresolvable_where_the_added_one_matches(
    cluster: MirroredCluster,
) -> None:
    plugin = _plugin(_rules(_labels(_in("zone", "a"))))
    pod = _pod(_labels(_in("disk", "ssd")))
    found = refused(plugin, cluster, pod)
    assert {name: (each.code, each.message) for name, each in found.items()} == {
        "n1": (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, REASON_POD),
        "n2": (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, REASON_ENFORCED),
    }
