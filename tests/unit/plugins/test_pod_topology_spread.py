"""PodTopologySpread: filter, score and default constraints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from stowage.api.config.feature_gates import parse_feature_gates
from stowage.api.objects.meta import LabelSelector, OwnerReference
from stowage.api.objects.node import Node, Taint
from stowage.api.objects.pod import Pod, Toleration, TopologySpreadConstraint
from stowage.framework import CycleState
from stowage.plugins.pod_topology_spread import (
    DefaultConstraint,
    PodTopologySpread,
    PodTopologySpreadArgs,
)
from stowage.plugins.pod_topology_spread.constraints import ConstraintsOf
from stowage.plugins.pod_topology_spread.eligibility import EligibleNodes
from stowage.state.what_if.row_local import RowWhatIf
from tests.support.builders import HOSTNAME, ZONE, label_selector, make_node, make_pod
from tests.support.mirrored_cluster import (
    MirroredCluster,
    existing_nodes,
    verdicts_by_node,
    without_pod,
)
from tests.unit.plugins.single_plugin import Scores, Verdicts, scores, verdicts

SKEWED = ("node(s) didn't match pod topology spread constraints", False)
UNLABELLED = (
    "node(s) didn't match pod topology spread constraints (missing required label)",
    True,
)

WEB = label_selector({"app": "web"})
DEDICATED = Taint(key="dedicated", value="db", effect="NoSchedule")


def spread(
    key: str = ZONE, selector: LabelSelector | None = WEB, soft: bool = False, **fields: Any
) -> TopologySpreadConstraint:
    """A constraint with maxSkew 1 unless given."""
    return TopologySpreadConstraint(
        topology_key=key,
        label_selector=selector,
        when_unsatisfiable="ScheduleAnyway" if soft else "DoNotSchedule",
        **({"max_skew": 1} | fields),
    )


def web(name: str, node: str = "", **fields: Any) -> Pod:
    return make_pod(name, node=node, **({"labels": {"app": "web"}} | fields))


def incoming(*constraints: TopologySpreadConstraint, **fields: Any) -> Pod:
    return web("p", topology_spread_constraints=constraints, **fields)


def zones() -> list[Node]:
    return [
        make_node("a1", zone="a"),
        make_node("a2", zone="a"),
        make_node("b1", zone="b"),
        make_node("bare"),
    ]


def placed(*node_names: str, **fields: Any) -> list[Pod]:
    return [web(f"web-{index}", node, **fields) for index, node in enumerate(node_names)]


def refused(
    cluster: MirroredCluster, pod: Pod, args: PodTopologySpreadArgs | None = None
) -> Verdicts | None:
    return verdicts(PodTopologySpread(args), cluster, pod)


def scored(
    cluster: MirroredCluster,
    pod: Pod,
    args: PodTopologySpreadArgs | None = None,
    feasible: Sequence[str] | None = None,
) -> Scores | None:
    return scores(PodTopologySpread(args), cluster, pod, feasible)


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


SCORE_CASES: dict[str, tuple[list[Pod], Pod, Scores | None]] = {
    "a pod without soft constraints is not scored": (placed("a1"), incoming(spread()), None),
    # log(2 zones + 2) = 1.386: 2 * 1.386 = 2.77 -> 3; 1 * 1.386 -> 1; (3 + 1 - 3) * 100 // 3
    "the emptier zone scores higher, and nodes without the key score 0": (
        placed("a1", "a2", "b1"),
        incoming(spread(soft=True)),
        {"a1": (3, 33), "a2": (3, 33), "b1": (1, 100), "bare": (0, 0)},
    ),
    # 2.77 + 4 = 6.77 -> 7; 1.386 + 4 -> 5; (7 + 5 - 7) * 100 // 7
    "a larger maxSkew reduces the difference": (
        placed("a1", "a2", "b1"),
        incoming(spread(soft=True, max_skew=5)),
        {"a1": (7, 71), "a2": (7, 71), "b1": (5, 100), "bare": (0, 0)},
    ),
    "without any matching pod all rated nodes get 100": (
        [],
        incoming(spread(soft=True)),
        {"a1": (0, 100), "a2": (0, 100), "b1": (0, 100), "bare": (0, 0)},
    ),
    # log(4 nodes + 2) = 1.79 per pod on the node itself
    "by hostname each node counts its own pods": (
        placed("a1", "a1", "b1"),
        incoming(spread(HOSTNAME, soft=True)),
        {"a1": (4, 0), "a2": (0, 100), "b1": (2, 50), "bare": (0, 100)},
    ),
    "counts by hostname ignore node affinity": (
        placed("b1"),
        incoming(spread(HOSTNAME, soft=True), node_selector={ZONE: "a"}),
        {"a1": (0, 100), "a2": (0, 100), "b1": (2, 0), "bare": (0, 100)},
    ),
    "counts by zone leave out nodes that node affinity excludes": (
        placed("b1"),
        incoming(spread(ZONE, soft=True), node_selector={ZONE: "a"}),
        {"a1": (0, 100), "a2": (0, 100), "b1": (0, 100), "bare": (0, 0)},
    ),
}


@pytest.mark.parametrize("sentence", SCORE_CASES)
def test_nodes_of_domains_with_fewer_pods_score_more(sentence: str) -> None:
    pods, pod, want = SCORE_CASES[sentence]
    assert scored(MirroredCluster(zones(), pods), pod) == want


def test_the_weight_depends_on_the_number_of_domains_of_feasible_nodes() -> None:
    cluster = MirroredCluster(zones(), placed("a1", "a2", "a2"))
    # one zone among the feasible nodes: 3 * log(1 + 2) = 3.3 -> 3; with two it would be 4
    got = scored(cluster, incoming(spread(soft=True)), feasible=["a1", "a2"])
    assert got == {"a1": (3, 100), "a2": (3, 100)}


def test_no_node_is_scored_if_no_feasible_node_has_the_keys() -> None:
    cluster = MirroredCluster(zones(), placed("a1"))
    assert scored(cluster, incoming(spread(soft=True)), feasible=["bare"]) == {"bare": (0, 0)}


REPLICA_SET = OwnerReference(kind="ReplicaSet", name="web", api_version="apps/v1", controller=True)
STATEFUL_SET = OwnerReference(
    kind="StatefulSet", name="web", api_version="apps/v1", controller=True
)
REPLICATION_CONTROLLER = OwnerReference(
    kind="ReplicationController", name="web", api_version="v1", controller=True
)
JOB = OwnerReference(kind="Job", name="web", api_version="batch/v1", controller=True)
SELECTED_CASES: dict[str, tuple[str, LabelSelector | None, OwnerReference | None, bool]] = {
    "a service selects the pod": ("Service", WEB, None, True),
    "a service selects other pods": ("Service", label_selector({"app": "db"}), None, False),
    "a service without a selector selects nothing": ("Service", None, None, False),
    "the owning ReplicaSet selects": ("ReplicaSet", WEB, REPLICA_SET, True),
    "the owning StatefulSet selects": ("StatefulSet", WEB, STATEFUL_SET, True),
    "the owning ReplicationController selects": (
        "ReplicationController",
        WEB,
        REPLICATION_CONTROLLER,
        True,
    ),
    "a ReplicaSet that does not own the pod does not count": ("ReplicaSet", WEB, None, False),
    "owners of other kinds do not count": ("ReplicaSet", WEB, JOB, False),
    "an owner without a selector selects nothing": ("ReplicaSet", None, REPLICA_SET, False),
}


@pytest.mark.parametrize("sentence", SELECTED_CASES)
def test_built_in_defaults_apply_to_pods_that_workloads_select(sentence: str) -> None:
    kind, selector, owner, selected = SELECTED_CASES[sentence]
    cluster = MirroredCluster(zones(), placed("a1"))
    cluster.update_workload(kind, "default", "web", selector)
    assert (scored(cluster, web("p", owner=owner)) is not None) is selected


def test_built_in_defaults_score_nodes_without_a_zone_by_hostname() -> None:
    cluster = MirroredCluster(zones(), placed("a1"))
    cluster.update_workload("Service", "default", "web", WEB)
    # own pod: 1 * log(4 nodes + 2) = 1.79, + 2; zone: 1 * log(3 + 2) = 1.61, + 4, where having
    # no zone counts as a third zone but adds nothing: 9.4, 7.6, 6 and 2
    assert scored(cluster, web("p")) == {
        "a1": (9, 22),
        "a2": (8, 33),
        "b1": (6, 55),
        "bare": (2, 100),
    }


def test_built_in_defaults_treat_no_zone_and_an_empty_zone_alike() -> None:
    nodes = [make_node("bare"), make_node("empty", zone=""), make_node("b1", zone="b")]
    cluster = MirroredCluster(nodes, placed("bare"))
    cluster.update_workload("Service", "default", "web", WEB)
    # zones "" and "b": the pod on "bare" is in zone "": 1 * log(2 + 2) = 1.39, + 4, + 2;
    # "bare" itself has only its hostname: 1 * log(3 + 2) = 1.61, + 2
    found = scored(cluster, web("p"))
    assert found == {"bare": (4, 100), "empty": (7, 57), "b1": (6, 71)}


def test_adding_and_removing_a_service_changes_the_defaults_of_the_next_pod() -> None:
    plugin, cluster = PodTopologySpread(), MirroredCluster(zones(), placed("a1"))
    info = cluster.info(web("p"))

    def is_skipped() -> bool:
        return plugin.pre_score(CycleState(), info, existing_nodes(cluster.snapshot())).is_skip

    assert is_skipped()
    cluster.update_workload("Service", "default", "web", WEB)
    assert not is_skipped()
    cluster.remove_workload("Service", "default", "web")
    assert is_skipped()


def test_services_and_owner_select_together() -> None:
    cluster = MirroredCluster(
        zones(), [*placed("a1", "a1"), web("other", "b1", labels={"app": "web", "v": "1"})]
    )
    cluster.update_workload("Service", "default", "web", WEB)
    cluster.update_workload("ReplicaSet", "default", "web", label_selector({"v": "1"}))
    args = PodTopologySpreadArgs((DefaultConstraint(1, ZONE, "ScheduleAnyway"),), "List")
    pod = web("p", owner=REPLICA_SET, labels={"app": "web", "v": "1"})
    # only the pod in zone b has both labels: 1 * log(2 + 2) = 1.39 -> 1
    assert scored(cluster, pod, args) == {
        "a1": (0, 100),
        "a2": (0, 100),
        "b1": (1, 0),
        "bare": (0, 0),
    }


def test_a_pod_with_own_constraints_gets_no_defaults() -> None:
    cluster = MirroredCluster(zones(), placed("a1"))
    cluster.update_workload("Service", "default", "web", WEB)
    assert scored(cluster, incoming(spread())) is None


def test_listed_defaults_can_be_hard() -> None:
    cluster = MirroredCluster(zones(), placed("a1"))
    args = PodTopologySpreadArgs((DefaultConstraint(1, ZONE, "DoNotSchedule"),), "List")
    assert refused(cluster, web("p"), args) is None
    cluster.update_workload("Service", "default", "web", WEB)
    assert refused(cluster, web("p"), args) == {
        "a1": SKEWED,
        "a2": SKEWED,
        "bare": UNLABELLED,
    }
