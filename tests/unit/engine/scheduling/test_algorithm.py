from __future__ import annotations

from stowage.api.status import SUCCESS, Code, Status, error, unresolvable, unschedulable
from stowage.engine.scheduling import (
    Failed,
    Scheduled,
    SchedulingOutcome,
    SchedulingRequest,
    TieBreaker,
    Unschedulable,
    schedule_pod,
)
from stowage.framework import CycleState, PluginTraits, PreFilterResult
from stowage.framework.extension_points import Plugin
from stowage.state import NodeView, PodInfo
from tests.support.builders import make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster
from tests.support.plugins.small_plugins import (
    FixedPostFilter,
    FixedPreFilter,
    Raises,
    Rates,
    Refuses,
    framework_of,
)

NODES = ("n0", "n1", "n2")


class PreScores:
    """A PreScore with a fixed answer that notes the nodes it is shown."""

    traits = PluginTraits()

    def __init__(self, status: Status = SUCCESS) -> None:
        self.name = "PreScores"
        self.status = status
        self.shown: list[list[str]] = []

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Status:
        self.shown.append(nodes.names)
        return self.status


def _schedule(
    *plugins: Plugin, nodes: tuple[str, ...] = NODES, nominated: str = ""
) -> SchedulingOutcome:
    cluster = MirroredCluster([make_node(name) for name in nodes])
    pod = cluster.info(make_pod("p", nominated_node=nominated))
    ties = TieBreaker(lambda num_candidates: num_candidates - 1)
    return schedule_pod(
        SchedulingRequest(framework_of(*plugins), cluster.snapshot(), pod, CycleState(), ties)
    )


def test_the_best_of_the_feasible_nodes_is_chosen() -> None:
    result = _schedule(Refuses("A", {"n0"}), Rates("B", {"n0": 100, "n1": 10, "n2": 20}))
    assert isinstance(result, Scheduled)
    assert result.node_name == "n2"
    assert (result.evaluated_nodes, result.feasible_nodes) == (3, 2)
    assert result.scores is not None
    assert result.scores.total.tolist() == [10, 20]


def test_the_caller_breaks_ties() -> None:
    result = _schedule(Rates("B", {"n0": 10, "n2": 10}))
    assert isinstance(result, Scheduled)
    assert result.node_name == "n2"


def test_a_single_feasible_node_is_taken_without_scoring() -> None:
    rates, shown = Rates("B", {}), PreScores()
    result = _schedule(Refuses("A", {"n0", "n2"}), shown, rates)
    assert isinstance(result, Scheduled)
    assert (result.node_name, result.scores, rates.asked, shown.shown) == ("n1", None, [], [])


def test_pre_score_sees_the_feasible_nodes() -> None:
    shown = PreScores()
    _schedule(Refuses("A", {"n0"}), shown, Rates("B", {}))
    assert shown.shown == [["n1", "n2"]]


def test_an_empty_cluster_has_its_own_message() -> None:
    result = _schedule(Refuses("A", ()), nodes=())
    assert isinstance(result, Unschedulable)
    assert result.message == "no nodes available to schedule pods"
    assert result.unschedulable_plugins == frozenset()
    assert result.evaluated_nodes == result.searched_nodes == 0


def test_an_unschedulable_pod_gets_reasons_and_the_result_of_post_filter() -> None:
    result = _schedule(
        Refuses("A", {"n0", "n1"}, "too small"),
        Refuses("B", set(NODES), "too far"),
        FixedPostFilter("C", SUCCESS, "n1"),
    )
    assert isinstance(result, Unschedulable)
    assert result.message == "0/3 nodes are available: 1 too far, 2 too small."
    assert result.unschedulable_plugins == {"A", "B"}
    assert (result.nominated_node_name, result.evaluated_nodes) == ("n1", 3)


def test_a_nominated_node_that_pre_filter_excluded_has_its_own_reason() -> None:
    """``evaluateNominatedNode`` writes to the diagnosis that the search then continues."""
    narrows = FixedPreFilter("A", PreFilterResult(node_names=frozenset({"n0"})))
    result = _schedule(narrows, Refuses("B", {"n0", "n2"}, "too far"), nominated="n2")
    assert isinstance(result, Unschedulable)
    assert result.message == (
        "0/3 nodes are available: 1 node(s) didn't satisfy plugin(s) [A B], 2 too far."
    )
    assert result.unschedulable_plugins == {"A", "B"}


def test_a_nominated_node_that_pre_filter_passed_counts_once() -> None:
    narrows = FixedPreFilter("A", PreFilterResult(node_names=frozenset({"n0"})))
    result = _schedule(narrows, Refuses("B", {"n0"}, "too far"), nominated="n0")
    assert isinstance(result, Unschedulable)
    assert result.message == (
        "0/3 nodes are available: 1 too far, 2 node(s) didn't satisfy plugin(s) [A B]."
    )


def test_a_pod_that_pre_filter_rejects_is_not_filtered() -> None:
    filters = Refuses("B", ())
    result = _schedule(
        FixedPreFilter("A", PreFilterResult(unresolvable("never"))),
        filters,
        FixedPostFilter("C", unschedulable("no room"), ""),
    )
    assert isinstance(result, Unschedulable)
    assert result.message == "0/3 nodes are available: never. no room"
    assert result.unschedulable_plugins == {"A"}
    assert result.nominated_node_name == ""
    assert filters.asked == []


def test_plugins_with_a_pending_status_are_listed_separately() -> None:
    pending = PreFilterResult(Status(Code.PENDING, ("soon",)))
    result = _schedule(FixedPreFilter("A", pending))
    assert isinstance(result, Unschedulable)
    assert result.pending_plugins == {"A"}


def test_a_failing_plugin_fails_only_this_pod() -> None:
    cluster = MirroredCluster([make_node(name) for name in NODES])
    framework = framework_of(Raises(), Rates("B", {}))
    for name in ("p", "q"):
        pod = cluster.info(make_pod(name))
        ties = TieBreaker(lambda _: 0)
        result = schedule_pod(
            SchedulingRequest(framework, cluster.snapshot(), pod, CycleState(), ties)
        )
        assert isinstance(result, Failed)
        assert result.status.plugin == "Raises"
        assert "the disk is on fire" in result.status.message


def test_errors_of_pre_filter_and_pre_score_fail_the_pod() -> None:
    for plugin, want in (
        (FixedPreFilter("A", PreFilterResult(error("lost"))), 'running PreFilter plugin "A": lost'),
        (PreScores(error("lost")), 'running PreScore plugin "PreScores": lost'),
    ):
        result = _schedule(plugin, Rates("B", {}))
        assert isinstance(result, Failed)
        assert result.status.message == want


def test_an_error_of_post_filter_leaves_the_pod_unschedulable() -> None:
    result = _schedule(
        Refuses("A", set(NODES), "no"), FixedPostFilter("B", error("not found"), "n0")
    )
    assert isinstance(result, Unschedulable)
    assert result.message == "0/3 nodes are available: 3 no. not found"
    assert result.nominated_node_name is None
