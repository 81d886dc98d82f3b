"""PodTopologySpread: which nodes a pod may go to, and how its constraints are kept."""

from __future__ import annotations

import numpy as np
import pytest

from stowage.api.config.feature_gates import parse_feature_gates
from stowage.api.objects.node import Node, Taint
from stowage.api.objects.pod import Pod, Toleration
from stowage.framework import CycleState
from stowage.plugins.pod_topology_spread import PodTopologySpread, PodTopologySpreadArgs
from stowage.plugins.pod_topology_spread.constraints import ConstraintsOf
from stowage.plugins.pod_topology_spread.eligibility import EligibleNodes
from stowage.state.what_if.row_local import RowWhatIf
from tests.support.builders import HOSTNAME, ZONE, label_selector, make_node
from tests.support.mirrored_cluster import (
    MirroredCluster,
    existing_nodes,
    verdicts_by_node,
    without_pod,
)
from tests.unit.plugins.single_plugin import Verdicts, verdicts
from tests.unit.plugins.spread_pods import (
    SKEWED,
    UNLABELLED,
    incoming,
    placed,
    refused,
    spread,
    web,
    zones,
)

DEDICATED = Taint(key="dedicated", value="db", effect="NoSchedule")

EXTRA_ZONE = [*zones(), make_node("c1", zone="c", taints=[DEDICATED])]
FILTER_CASES: dict[str, tuple[list[Node], list[Pod], Pod, Verdicts | None]] = {
    "a pod without hard constraints skips Filter": (
        zones(),
        placed("a1"),
        incoming(spread(soft=True)),
        None,
    ),
    "a zone that exceeds another by maxSkew does not fit": (
        zones(),
        placed("a1"),
        incoming(spread()),
        {"a1": SKEWED, "a2": SKEWED, "bare": UNLABELLED},
    ),
    "each of several labels must be there": (
        [
            make_node("both", zone="a", labels={"rack": "1"}),
            make_node("no-rack", zone="a"),
            make_node("no-zone", labels={"rack": "1"}),
        ],
        [],
        incoming(spread(), spread("rack")),
        {"no-rack": UNLABELLED, "no-zone": UNLABELLED},
    ),
    "the first constraint that a node does not meet says why": (
        [
            make_node("a1", zone="a", labels={"rack": "1"}),
            make_node("a2", zone="a"),
            make_node("b1", zone="b", labels={"rack": "1"}),
        ],
        placed("a1"),
        incoming(spread(), spread("rack")),
        {"a1": SKEWED, "a2": SKEWED},
    ),
    "with a larger maxSkew the zone fits": (
        zones(),
        placed("a1"),
        incoming(spread(max_skew=2)),
        {"bare": UNLABELLED},
    ),
    "a pod that its own selector does not match adds nothing": (
        zones(),
        placed("a1"),
        incoming(spread(), labels={"app": "other"}),
        {"bare": UNLABELLED},
    ),
    "pods being deleted do not count": (
        zones(),
        placed("a1", terminating=True),
        incoming(spread()),
        {"bare": UNLABELLED},
    ),
    "pods of other namespaces do not count": (
        zones(),
        placed("a1", namespace="other"),
        incoming(spread()),
        {"bare": UNLABELLED},
    ),
    "an empty selector counts no pods but the incoming one": (
        zones(),
        placed("a1", "a1"),
        incoming(spread(selector=label_selector())),
        {"bare": UNLABELLED},
    ),
    "an absent selector counts nothing": (
        zones(),
        placed("a1", "a1"),
        incoming(spread(selector=None)),
        {"bare": UNLABELLED},
    ),
    "with fewer domains than minDomains the lowest count is taken to be zero": (
        zones(),
        placed("a1", "b1"),
        incoming(spread(min_domains=3)),
        {"a1": SKEWED, "a2": SKEWED, "b1": SKEWED, "bare": UNLABELLED},
    ),
    "nodes that node affinity excludes do not form domains": (
        zones(),
        placed("a1"),
        incoming(spread(), node_selector={ZONE: "a"}),
        {"bare": UNLABELLED},
    ),
    "with nodeAffinityPolicy Ignore excluded nodes form domains": (
        zones(),
        placed("a1"),
        incoming(spread(node_affinity_policy="Ignore"), node_selector={ZONE: "a"}),
        {"a1": SKEWED, "a2": SKEWED, "bare": UNLABELLED},
    ),
    "tainted nodes form domains": (
        EXTRA_ZONE,
        placed("a1", "b1"),
        incoming(spread()),
        {"a1": SKEWED, "a2": SKEWED, "b1": SKEWED, "bare": UNLABELLED},
    ),
    "with nodeTaintsPolicy Honor tainted nodes do not form domains": (
        EXTRA_ZONE,
        placed("a1", "b1"),
        incoming(spread(node_taints_policy="Honor")),
        {"bare": UNLABELLED},
    ),
    "with nodeTaintsPolicy Honor nodes with tolerated taints form domains": (
        EXTRA_ZONE,
        placed("a1", "b1"),
        incoming(
            spread(node_taints_policy="Honor"),
            tolerations=[Toleration(key="dedicated", operator="Exists")],
        ),
        {"a1": SKEWED, "a2": SKEWED, "b1": SKEWED, "bare": UNLABELLED},
    ),
    "the first constraint that fails gives the reason": (
        zones(),
        placed("bare"),
        incoming(spread(HOSTNAME), spread(ZONE)),
        {"bare": UNLABELLED},
    ),
    "a node without all topology keys counts for no constraint": (
        zones(),
        placed("a1", "a2", "b1"),
        incoming(spread(HOSTNAME), spread(ZONE, max_skew=5)),
        {"bare": UNLABELLED},
    ),
    "labels named by matchLabelKeys narrow the selector": (
        zones(),
        placed("a1", labels={"app": "web", "version": "1"}),
        incoming(
            spread(match_label_keys=("version", "absent")), labels={"app": "web", "version": "2"}
        ),
        {"bare": UNLABELLED},
    ),
}


@pytest.mark.parametrize("sentence", FILTER_CASES)
def test_filter_refuses_nodes_with_a_reason(sentence: str) -> None:
    nodes, pods, pod, want = FILTER_CASES[sentence]
    assert refused(MirroredCluster(nodes, pods), pod) == want


@pytest.mark.parametrize(("is_on", "want"), [(True, {}), (False, {"a1": SKEWED, "a2": SKEWED})])
def test_label_keys_matter_with_the_gate_only(is_on: bool, want: Verdicts) -> None:
    setting = str(is_on).lower()
    gates = parse_feature_gates(
        [
            f"MatchLabelKeysInPodTopologySpread={setting}",
            f"MatchLabelKeysInPodTopologySpreadSelectorMerge={setting}",
        ]
    )
    nodes = [node for node in zones() if node.metadata.name != "bare"]
    cluster = MirroredCluster(nodes, placed("a1", labels={"app": "web", "version": "1"}))
    constraint = spread(match_label_keys=("version",))
    pod = incoming(constraint, labels={"app": "web", "version": "2"})
    assert verdicts(PodTopologySpread(gates=gates), cluster, pod) == want


@pytest.mark.parametrize("is_on", [True, False])
def test_numeric_tolerations_count_for_taint_policies_with_the_gate_only(is_on: bool) -> None:
    gates = parse_feature_gates([f"TaintTolerationComparisonOperators={str(is_on).lower()}"])
    taints = [Taint("sla", "950", "NoSchedule")]
    nodes = [make_node("a", labels={ZONE: "a"}), make_node("b", labels={ZONE: "b"}, taints=taints)]
    cluster = MirroredCluster(nodes, [web("w", "a")])
    pod = incoming(spread(node_taints_policy="Honor"), tolerations=[Toleration("sla", "Gt", "900")])
    found = verdicts(PodTopologySpread(gates=gates), cluster, pod)
    assert found == ({"a": SKEWED} if is_on else {})


def test_added_and_removed_nodes_change_the_domains() -> None:
    plugin, cluster = PodTopologySpread(), MirroredCluster(zones(), placed("a1", "b1"))
    info = cluster.info(incoming(spread()))

    def verdicts() -> Verdicts:
        state, nodes = CycleState(), existing_nodes(cluster.snapshot())
        plugin.pre_filter(state, info, nodes.snapshot)
        return verdicts_by_node(plugin.filter(state, info, nodes), nodes)

    assert verdicts() == {"bare": UNLABELLED}
    cluster.update_node(make_node("c1", zone="c"))
    assert verdicts() == {"a1": SKEWED, "a2": SKEWED, "b1": SKEWED, "bare": UNLABELLED}
    cluster.update_node(make_node("bare", zone="b"))
    assert verdicts() == {"a1": SKEWED, "a2": SKEWED, "b1": SKEWED, "bare": SKEWED}
    cluster.remove_node("c1")
    assert verdicts() == {}


def test_a_what_if_snapshot_is_filtered_by_its_own_pods() -> None:
    plugin, cluster = PodTopologySpread(), MirroredCluster(zones(), placed("a1"))
    state, info, snapshot = CycleState(), cluster.info(incoming(spread())), cluster.snapshot()
    plugin.pre_filter(state, info, snapshot)
    freed = existing_nodes(without_pod(snapshot, "uid-web-0"))
    assert verdicts_by_node(plugin.filter(state, info, freed), freed) == {"bare": UNLABELLED}


def test_a_node_that_could_lose_pods_is_still_refused_for_a_missing_label() -> None:
    plugin, cluster = PodTopologySpread(), MirroredCluster(zones(), placed("a1"))
    state, info, snapshot = CycleState(), cluster.info(incoming(spread())), cluster.snapshot()
    plugin.pre_filter(state, info, snapshot)
    rows = existing_nodes(snapshot).rows
    nodes = RowWhatIf(snapshot, rows).view(np.arange(len(rows)))
    assert verdicts_by_node(plugin.filter(state, info, nodes), nodes) == {
        "a1": SKEWED,
        "a2": SKEWED,
        "bare": UNLABELLED,
    }


def test_the_constraints_of_a_class_are_compiled_once() -> None:
    constraints = ConstraintsOf(PodTopologySpreadArgs())
    pod = MirroredCluster(zones()).info(incoming(spread()))
    first = constraints.own(pod, "DoNotSchedule")
    assert constraints.own(pod, "DoNotSchedule") is first


def test_eligible_nodes_are_found_once_while_no_node_changes() -> None:
    cluster, eligible = MirroredCluster(zones()), EligibleNodes()
    pod = cluster.info(incoming(spread()))
    constraints = ConstraintsOf(PodTopologySpreadArgs()).own(pod, "DoNotSchedule")
    first = eligible.of(pod, constraints, cluster.snapshot(), all_keys=True)
    assert eligible.of(pod, constraints, cluster.snapshot(), all_keys=True) is first


def test_a_node_that_is_not_eligible_frees_nothing_in_its_domain() -> None:
    nodes = [
        make_node("a1", zone="a", labels={"disk": "ssd"}),
        make_node("a2", zone="a", labels={"disk": "hdd"}),
        make_node("b1", zone="b", labels={"disk": "ssd"}),
    ]
    plugin, cluster = PodTopologySpread(), MirroredCluster(nodes, placed("a1", "a2"))
    pod = incoming(spread(), node_selector={"disk": "ssd"})
    state, info, snapshot = CycleState(), cluster.info(pod), cluster.snapshot()
    plugin.pre_filter(state, info, snapshot)
    what_if = RowWhatIf(snapshot, existing_nodes(snapshot).rows)
    what_if.remove(~what_if.removed)
    freed = what_if.view(np.arange(len(what_if)))
    assert verdicts_by_node(plugin.filter(state, info, freed), freed) == {"a2": SKEWED}
