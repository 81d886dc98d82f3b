from __future__ import annotations

import numpy as np
import pytest

from stowage.api.config.loading import KubeSchedulerProfile
from stowage.api.status import Code
from stowage.framework import (
    CycleState,
    FilterVerdict,
    Framework,
    PluginFailed,
    PluginTraits,
    PreFilterOutcome,
    PreFilterResult,
    Reads,
    build_profile,
    diagnose_filter,
)
from stowage.framework.runtime.nominated_pods import NominatedPods
from stowage.framework.runtime.row_filter import RowFilter
from stowage.framework.verdict import Int64Array
from stowage.plugins import in_tree_registry
from stowage.queue.nominator import Nominator
from stowage.state import NodeView, PodInfo, Snapshot
from stowage.state.what_if.row_local import RowWhatIf
from stowage.state.what_if.snapshot import WhatIfSnapshot
from tests.support.builders import make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster
from tests.support.plugins.small_plugins import FixedPreFilter, Raises, Refuses, framework_of

NODES = ("n0", "n1", "n2", "n3")


@pytest.fixture
def cluster() -> MirroredCluster:
    return MirroredCluster([make_node(name) for name in NODES])


@pytest.fixture
def pod(cluster: MirroredCluster) -> PodInfo:
    return cluster.info(make_pod("p"))


def _names(cluster: MirroredCluster, rows: Int64Array) -> list[str]:
    return [cluster.snapshot().node_names[row] for row in rows.tolist()]


def test_a_node_is_feasible_if_no_plugin_rejects_it(cluster: MirroredCluster, pod: PodInfo) -> None:
    framework = framework_of(
        Refuses("A", {"n1"}), Refuses("B", {"n2"}, traits=PluginTraits(filter_reads=Reads.NODE))
    )
    result = framework.run_filter(CycleState(), pod, cluster.snapshot())
    assert _names(cluster, result.rows) == ["n0", "n3"]
    assert result.num_evaluated == 4


def test_a_node_has_the_status_of_the_first_plugin_that_rejects_it(
    cluster: MirroredCluster, pod: PodInfo
) -> None:
    framework = framework_of(
        Refuses("A", {"n1"}, "by A"), Refuses("B", {"n1", "n2"}, "by B", unresolvable=True)
    )
    snapshot = cluster.snapshot()
    result = framework.run_filter(CycleState(), pod, snapshot)
    statuses = {name: result.status(snapshot.row_of(name) or 0) for name in NODES}
    assert statuses["n0"].is_success
    assert (statuses["n1"].plugin, statuses["n1"].reasons) == ("A", ("by A",))
    assert statuses["n1"].code is Code.UNSCHEDULABLE
    assert statuses["n2"].plugin == "B"
    assert statuses["n2"].code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def test_the_diagnosis_counts_each_node_for_its_first_rejection(
    cluster: MirroredCluster, pod: PodInfo
) -> None:
    framework = framework_of(
        Refuses("A", {"n0", "n1"}, "by A"),
        Refuses("B", {"n1", "n2", "n3"}, "by B", unresolvable=True),
        Refuses("C", set(NODES), "by C"),
    )
    snapshot = cluster.snapshot()
    result = framework.run_filter(CycleState(), pod, snapshot)
    diagnosis = diagnose_filter(PreFilterOutcome(), result, snapshot.num_nodes)
    assert diagnosis.reason_counts == {"by A": 2, "by B": 2}
    assert diagnosis.unschedulable_plugins == {"A", "B"}
    assert _names(cluster, np.flatnonzero(diagnosis.resolvable(snapshot))) == ["n0", "n1"]


def test_filter_runs_only_for_the_nodes_named_by_pre_filter(
    cluster: MirroredCluster, pod: PodInfo
) -> None:
    plugin = Refuses("A", {"n1"}, "by A")
    framework = framework_of(plugin)
    snapshot = cluster.snapshot()
    names = frozenset({"n1", "gone"})
    result = framework.run_filter(CycleState(), pod, snapshot, names)
    assert plugin.asked == [1]
    outcome = PreFilterOutcome(node_names=names, plugins=frozenset({"Pin"}))
    diagnosis = diagnose_filter(outcome, result, snapshot.num_nodes)
    assert diagnosis.reason_counts == {
        "by A": 1,
        "node(s) didn't satisfy plugin(s) [Pin]": 3,
    }
    assert diagnosis.unschedulable_plugins == {"A", "Pin"}
    assert diagnosis.status(snapshot.row_of("n0") or 0).code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def test_for_a_second_pod_of_the_class_only_changed_nodes_are_evaluated(pod: PodInfo) -> None:
    cluster = MirroredCluster([make_node(f"n{index}") for index in range(60)])
    reads_nodes = Refuses("Node", {"n3"}, traits=PluginTraits(filter_reads=Reads.NODE))
    reads_usage = Refuses("Usage", {"n4"}, traits=PluginTraits(filter_reads=Reads.USAGE))
    framework = framework_of(reads_nodes, reads_usage)
    first, second = (cluster.info(make_pod(name)) for name in ("p", "q"))
    framework.run_filter(CycleState(), first, cluster.snapshot())
    cluster.bind(make_pod("other", cpu="1"), "n7")
    framework.run_filter(CycleState(), second, cluster.snapshot())
    rows = cluster.snapshot().num_rows
    assert reads_nodes.asked == [rows]
    assert reads_usage.asked == [rows, 1]
    cluster.update_node(make_node("n8", labels={"new": "label"}))
    result = framework.run_filter(CycleState(), first, cluster.snapshot())
    assert reads_nodes.asked == [rows, 1]
    assert reads_usage.asked == [rows, 1, 1]
    assert len(result.rows) == 58


@pytest.mark.parametrize("reads_only_demand", [True, False])
def test_pods_with_other_labels_share_answers_that_depend_only_on_the_demand(
    *, reads_only_demand: bool
) -> None:
    cluster = MirroredCluster([make_node(f"n{index}") for index in range(60)])
    traits = PluginTraits(filter_reads=Reads.NODE, reads_only_node_demand=reads_only_demand)
    plugin = Refuses("A", {"n1"}, traits=traits)
    framework = framework_of(plugin)
    for app in ("a", "b"):
        pod = cluster.info(make_pod("p", labels={"app": app}))
        assert len(framework.run_filter(CycleState(), pod, cluster.snapshot()).rows) == 59
    assert len(plugin.asked) == (1 if reads_only_demand else 2)


def test_two_plugins_that_reject_nodes_for_one_reason_count_together(
    cluster: MirroredCluster, pod: PodInfo
) -> None:
    framework = framework_of(Refuses("A", {"n0"}, "full"), Refuses("B", {"n1", "n2"}, "full"))
    result = framework.run_filter(CycleState(), pod, cluster.snapshot())
    diagnosis = diagnose_filter(PreFilterOutcome(), result, cluster.snapshot().num_nodes)
    assert diagnosis.reason_counts == {"full": 3}


def test_a_what_if_snapshot_neither_reads_nor_fills_the_cache(
    cluster: MirroredCluster, pod: PodInfo
) -> None:
    plugin = Refuses("Usage", {"n1"}, traits=PluginTraits(filter_reads=Reads.USAGE))
    framework = framework_of(plugin)
    framework.run_filter(CycleState(), pod, cluster.snapshot())
    added = [cluster.info(make_pod("q", cpu="1"))]
    what_if = WhatIfSnapshot(cluster.snapshot(), [], added, row=0)
    framework.run_filter(CycleState(), pod, what_if)
    framework.run_filter(CycleState(), pod, cluster.snapshot())
    assert plugin.asked == [what_if.num_rows] * 2


def test_answers_are_not_shared_between_clusters(cluster: MirroredCluster, pod: PodInfo) -> None:
    framework = framework_of(Refuses("A", {"n1"}, traits=PluginTraits(filter_reads=Reads.NODE)))
    framework.run_filter(CycleState(), pod, cluster.snapshot())
    other = MirroredCluster([make_node("n1")])
    result = framework.run_filter(CycleState(), other.info(make_pod("p")), other.snapshot())
    assert result.rows.tolist() == []


def test_a_skipped_plugin_does_not_run(cluster: MirroredCluster, pod: PodInfo) -> None:
    plugin = Refuses("A", set(NODES))
    state = CycleState()
    state.skip_filter.add("A")
    assert len(framework_of(plugin).run_filter(state, pod, cluster.snapshot()).rows) == 4
    assert plugin.asked == []


@pytest.mark.parametrize("reads", list(Reads))
def test_the_error_of_a_plugin_has_its_name_and_message(
    cluster: MirroredCluster, pod: PodInfo, reads: Reads
) -> None:
    framework = framework_of(Raises(traits=PluginTraits(filter_reads=reads)))
    with pytest.raises(PluginFailed) as caught:
        framework.run_filter(CycleState(), pod, cluster.snapshot())
    status = caught.value.status
    assert (status.code, status.plugin) == (Code.ERROR, "Raises")
    assert status.message == 'running "Raises" filter plugin: the disk is on fire'


def test_a_node_must_fit_with_and_without_the_pods_nominated_to_it() -> None:
    cluster = MirroredCluster([make_node("n0", cpu="2"), make_node("n1", cpu="2")])
    framework = _default_framework()
    pod = cluster.info(make_pod("p", cpu="1500m", priority=5))
    nominated = Nominator()
    nominated.nominate(cluster.info(make_pod("higher", cpu="1", priority=9)), "n0")
    nominated.nominate(cluster.info(make_pod("lower", cpu="1", priority=1)), "n1")
    state, snapshot = CycleState(), cluster.snapshot()
    framework.run_pre_filter(state, pod, snapshot)
    result = framework.run_filter(state, pod, snapshot, nominated=nominated)
    assert _names(cluster, result.rows) == ["n1"]
    status = result.status(snapshot.row_of("n0") or 0)
    assert (status.plugin, status.reasons) == ("NodeResourcesFit", ("Insufficient cpu",))


def test_a_pods_own_nomination_is_not_counted() -> None:
    cluster = MirroredCluster([make_node("n0", cpu="2")])
    framework = _default_framework()
    pod = cluster.info(make_pod("p", cpu="1500m"))
    state, snapshot = CycleState(), cluster.snapshot()
    framework.run_pre_filter(state, pod, snapshot)
    nominated = Nominator()
    nominated.nominate(pod, "n0")
    nominated.nominate(cluster.info(make_pod("other", cpu="1", priority=9)), "gone")
    result = framework.run_filter(state, pod, snapshot, nominated=nominated)
    assert _names(cluster, result.rows) == ["n0"]


def _default_framework() -> Framework:
    return Framework(build_profile(KubeSchedulerProfile(), in_tree_registry()))


def test_a_node_without_nominated_pods_keeps_its_own_status() -> None:
    cluster = MirroredCluster([make_node("n0", cpu="4"), make_node("n1", cpu="1")])
    framework = _default_framework()
    pod = cluster.info(make_pod("p", cpu="1500m"))
    nominated = Nominator()
    nominated.nominate(cluster.info(make_pod("other", cpu="1", priority=9)), "n0")
    state, snapshot = CycleState(), cluster.snapshot()
    framework.run_pre_filter(state, pod, snapshot)
    result = framework.run_filter(state, pod, snapshot, nominated=nominated)
    assert _names(cluster, result.rows) == ["n0"]
    behind = snapshot.row_of("n1")
    assert behind is not None
    assert result.status(behind).reasons == ("Insufficient cpu",)


def test_each_filter_plugin_counts_the_nodes_it_was_asked_about(
    cluster: MirroredCluster, pod: PodInfo
) -> None:
    framework, snapshot = (
        framework_of(Refuses("A", {"n1"}), Refuses("B", {"n2"})),
        cluster.snapshot(),
    )
    framework.run_filter(CycleState(), pod, snapshot)
    state = CycleState()
    state.skip_filter.add("B")
    framework.run_filter(state, pod, snapshot, frozenset({"n1", "n3"}))
    assert framework.evaluations.totals() == {("A", "Filter"): 4 + 2, ("B", "Filter"): 4}


@pytest.mark.parametrize(("counts_all", "asked"), [(False, ["n1"]), (True, ["n0", "n1"])])
def test_a_plugin_is_asked_one_by_one_only_about_nodes_that_none_rejected_unless_all_count(
    cluster: MirroredCluster, pod: PodInfo, *, counts_all: bool, asked: list[str]
) -> None:
    seen: list[str] = []

    class Slow(Refuses):
        def filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> FilterVerdict:
            seen.extend(nodes.names)
            return super().filter(state, pod, nodes)

    quick = Refuses("Quick", {"n0"}, "by Quick", traits=PluginTraits(filters_what_ifs=True))
    plugins = [quick, Slow("Slow", {"n0", "n1"}, "by Slow")]
    snapshot = cluster.snapshot()
    rows = np.array([snapshot.row_of("n0"), snapshot.row_of("n1")], dtype=np.int64)
    what_if = RowWhatIf(snapshot, rows, pod.pod_class.host_ports)
    filters = RowFilter(plugins, CycleState(), pod, counts_all=counts_all)
    verdicts = filters.judge(what_if, np.arange(2))
    assert seen == asked
    assert verdicts.feasible().tolist() == [False, False]
    reasons, _ = verdicts.count_reasons(np.ones(2, dtype=np.bool_))
    assert reasons == {"by Quick": 1, "by Slow": 2 if counts_all else 1}


def test_a_plugin_that_is_asked_one_by_one_prepares_for_the_pod_and_each_node(
    cluster: MirroredCluster, pod: PodInfo
) -> None:
    class Prepares(Refuses):
        def pre_filter(
            self, state: CycleState, pod: PodInfo, snapshot: Snapshot
        ) -> PreFilterResult:
            state.write((pod.name, len(snapshot.pods_on("n0")), len(snapshot.pods_on("n1"))))
            return PreFilterResult()

        def filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> FilterVerdict:
            prepared.append((*nodes.names, *state.read(tuple)))
            return super().filter(state, pod, nodes)

    prepared: list[tuple[object, ...]] = []
    for name in ("n0", "n1"):
        cluster.bind(make_pod(f"on-{name}"), name)
    snapshot = cluster.snapshot()
    rows = np.array([snapshot.row_of("n0"), snapshot.row_of("n1")], dtype=np.int64)
    what_if = RowWhatIf(snapshot, rows, pod.pod_class.host_ports)
    what_if.remove(~what_if.removed)
    verdicts = RowFilter([Prepares("A", {"n1"})], CycleState(), pod).judge(what_if, np.arange(2))
    assert prepared == [("n0", "p", 0, 1), ("n1", "p", 1, 0)]
    assert verdicts.feasible().tolist() == [True, False]


@pytest.mark.parametrize("ran_pre_filter", [False, True])
def test_a_pod_that_gets_the_rejection_of_another_is_counted_as_if_it_was_evaluated(
    *, ran_pre_filter: bool
) -> None:
    framework = framework_of(FixedPreFilter("A"), Refuses("B", ()), Refuses("C", ()))
    framework.count_refusal(frozenset({"C"}), 7, ran_pre_filter=ran_pre_filter)
    pre_filtered = {} if ran_pre_filter else {("A", "PreFilter"): 1}
    assert framework.evaluations.totals() == {**pre_filtered, ("B", "Filter"): 7}


def test_a_pod_is_filtered_beside_any_number_of_nominated_pods() -> None:
    cluster = MirroredCluster([make_node(f"n{index}") for index in range(3)])
    snapshot, pod = cluster.snapshot(), cluster.info(make_pod("p", priority=5))
    nominated, kept = Nominator(), NominatedPods()
    for number in range(200):
        other = cluster.info(make_pod(f"other-{number}", cpu="1m", priority=number % 10))
        nominated.nominate(other, f"n{number % 3}")
        expected = [0] * snapshot.num_rows
        for index in range(number + 1):
            row = snapshot.row_of(f"n{index % 3}")
            if index % 10 >= pod.priority and row is not None:
                expected[row] += 1
        beside = kept.beside(pod, nominated, snapshot)
        assert beside.sum(lambda _class, _terminating: 1, snapshot.num_rows).tolist() == expected
    assert list(kept.problems(nominated, snapshot)) == []


def test_a_diagnosis_counts_nodes_that_are_full_with_and_without_nominated_pods() -> None:
    cluster = MirroredCluster(
        [make_node("n0", cpu="2"), make_node("n1", cpu="1"), make_node("n2", cpu="1")]
    )
    framework = _default_framework()
    pod = cluster.info(make_pod("p", cpu="1500m"))
    nominated = Nominator()
    nominated.nominate(cluster.info(make_pod("other", cpu="1", priority=9)), "n0")
    state, snapshot = CycleState(), cluster.snapshot()
    framework.run_pre_filter(state, pod, snapshot)
    result = framework.run_filter(state, pod, snapshot, nominated=nominated)
    diagnosis = diagnose_filter(PreFilterOutcome(), result, snapshot.num_nodes)
    assert diagnosis.reason_counts == {"Insufficient cpu": 3}
    assert diagnosis.unschedulable_plugins == {"NodeResourcesFit"}


def test_the_feasible_rows_of_a_class_are_listed_once_while_nothing_changes(
    cluster: MirroredCluster, pod: PodInfo
) -> None:
    framework = framework_of(
        Refuses("A", {"n1"}, traits=PluginTraits(filter_reads=Reads.NODE)),
        Refuses("B", {"n2"}, traits=PluginTraits(filter_reads=Reads.USAGE)),
    )
    first = framework.run_filter(CycleState(), pod, cluster.snapshot())
    assert _names(cluster, first.rows) == ["n0", "n3"]
    again = framework.run_filter(CycleState(), pod, cluster.snapshot())
    assert again.rows is first.rows
