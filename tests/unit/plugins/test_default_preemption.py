"""DefaultPreemption: the search for candidates, the gate, and plugins without what-ifs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from msgspec import convert

from stowage.api.config.loading import KubeSchedulerProfile
from stowage.api.interruptible import finish
from stowage.api.objects.meta import ObjectMeta
from stowage.api.objects.policy import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
)
from stowage.api.status import Status, unschedulable
from stowage.engine.scheduling import SchedulingRequest, TieBreaker, Unschedulable, schedule_pod
from stowage.framework import (
    ACCEPT_ALL,
    CycleState,
    DryRun,
    FilterVerdict,
    Framework,
    PluginFactory,
    PreFilterResult,
    Rejection,
    ReviewedVictims,
    VictimReview,
    build_profile,
    plugin_factory,
)
from stowage.framework.profile.profile import decode_args
from stowage.plugins import in_tree_registry
from stowage.plugins.default_preemption import DefaultPreemptionArgs
from stowage.plugins.default_preemption.budgets import rows_beyond_budgets
from stowage.plugins.default_preemption.candidates import find_candidates
from stowage.plugins.default_preemption.plugin import WAITING, DefaultPreemption
from stowage.plugins.default_preemption.victims import NO_VICTIMS
from stowage.queue.nominator import Nominator
from stowage.state import ClusterCache, NodeView, PodInfo, Snapshot, make_pod_info
from stowage.state.what_if.row_local import RowWhatIf
from tests.support.builders import label_selector, make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster, existing_nodes


@pytest.mark.parametrize(
    ("percentage", "absolute", "nodes", "wanted"),
    [(10, 100, 5000, 500), (10, 100, 500, 100), (10, 100, 50, 50), (100, 0, 7, 7), (0, 3, 7, 3)],
)
def test_the_number_of_candidates_is_a_percentage_with_a_minimum(
    percentage: int, absolute: int, nodes: int, wanted: int
) -> None:
    assert DefaultPreemptionArgs(percentage, absolute).num_candidates(nodes) == wanted


def test_the_treatment_of_disruption_budgets_is_one_of_two_words() -> None:
    _, errors = decode_args(DefaultPreemptionArgs, {"disruptionBudgets": "respect"}, "args")
    assert [str(error) for error in errors] == [
        'args.disruptionBudgets: "respect" (expected BestEffort or Respect)'
    ]


def _framework(*factories: PluginFactory, **args: int) -> Framework:
    plugins = {"multiPoint": {"enabled": [{"name": factory.name} for factory in factories]}}
    arguments = {"name": "DefaultPreemption", "args": args}
    profile = convert({"plugins": plugins, "pluginConfig": [arguments]}, KubeSchedulerProfile)
    registry = in_tree_registry().merged_with(*factories)
    return Framework(build_profile(profile, registry))


def _full_cluster(num_nodes: int, priority: Callable[[int], int] = lambda _: 0) -> MirroredCluster:
    return MirroredCluster(
        [make_node(f"n{index}", cpu="1") for index in range(num_nodes)],
        [
            make_pod(f"p{index}", cpu="1", node=f"n{index}", priority=priority(index))
            for index in range(num_nodes)
        ],
    )


def _preempt(
    framework: Framework, cluster: MirroredCluster, choose: Callable[[int], int] = lambda _: 0
) -> Unschedulable:
    pod = cluster.info(make_pod("preemptor", cpu="1", priority=100))
    result = schedule_pod(
        SchedulingRequest(framework, cluster.snapshot(), pod, CycleState(), TieBreaker(choose))
    )
    assert isinstance(result, Unschedulable)
    return result


def _candidates(result: Unschedulable) -> set[str]:
    assert result.preemption is not None
    return set(result.preemption.find_candidates())


def test_the_search_starts_at_a_random_offset_and_ends_with_enough_candidates() -> None:
    framework = _framework(minCandidateNodesPercentage=0, minCandidateNodesAbsolute=70)
    cluster = _full_cluster(200)
    first = {f"n{index}" for index in range(70)}
    rows = [cluster.snapshot().row_of(f"n{index}") for index in range(200)]
    assert rows == sorted(rows, key=int)  # type: ignore[arg-type]
    assert _candidates(_preempt(framework, cluster)) == first
    offsets = iter((150,))
    found = _candidates(_preempt(framework, cluster, lambda _: next(offsets, 0)))
    assert found == {f"n{(150 + index) % 200}" for index in range(70)}


def test_the_search_ends_within_a_pass_that_finds_more_candidates_than_wanted() -> None:
    framework = _framework(minCandidateNodesPercentage=0, minCandidateNodesAbsolute=3)
    assert _candidates(_preempt(framework, _full_cluster(10))) == {"n0", "n1", "n2"}


def test_after_a_review_the_candidates_are_those_that_the_extenders_left() -> None:
    framework, cluster = _framework(), _full_cluster(3)
    left = {name: ReviewedVictims((f"uid-p{name[1]}",), 0) for name in ("n1", "n2")}
    request = SchedulingRequest(
        framework,
        cluster.snapshot(),
        cluster.info(make_pod("preemptor", cpu="1", priority=100)),
        CycleState(),
        TieBreaker(lambda _: 0),
        reviews_victims=True,
        victim_review=VictimReview(left),
    )
    result = schedule_pod(request)
    assert isinstance(result, Unschedulable)
    assert _candidates(result) == {"n1", "n2"}


def test_the_search_continues_past_nodes_that_do_not_fit() -> None:
    framework = _framework(minCandidateNodesPercentage=0, minCandidateNodesAbsolute=3)
    cluster = _full_cluster(300, lambda index: 0 if index in (70, 200, 299) else 1000)
    assert _candidates(_preempt(framework, cluster)) == {"n70", "n200", "n299"}


def test_a_search_for_a_few_more_candidates_asks_about_64_nodes_at_once() -> None:
    framework, state = _framework(), CycleState()
    cluster = _full_cluster(300, lambda index: 0 if index < 60 else 1000)
    pod, snapshot = cluster.info(make_pod("preemptor", cpu="1", priority=100)), cluster.snapshot()
    framework.run_pre_filter(state, pod, snapshot)
    framework.prepare_post_filter(state, pod, Nominator(), TieBreaker(lambda _: 0), None)
    rows = existing_nodes(snapshot).rows
    search = finish(find_candidates(state.read(DryRun), snapshot, rows, 64))
    assert search.num_found == 60
    asked = [len(each.trial.what_if) for each in search.looked_at]
    assert asked == [64, 64, 64, 64, 44]


@pytest.mark.parametrize(("priority", "num_looked_at"), [(7, 0), (8, 3)])
def test_no_node_is_tried_if_no_pod_anywhere_has_a_lower_priority(
    priority: int, num_looked_at: int
) -> None:
    framework, state, cluster = _framework(), CycleState(), _full_cluster(3, lambda _: 7)
    cluster.update_node(make_node("empty"))
    snapshot = cluster.snapshot()
    pod = cluster.info(make_pod("preemptor", cpu="9", priority=priority))
    framework.run_pre_filter(state, pod, snapshot)
    framework.prepare_post_filter(state, pod, Nominator(), TieBreaker(lambda _: 0), None)
    rows = existing_nodes(snapshot).rows
    search = finish(find_candidates(state.read(DryRun), snapshot, rows, 4))
    looked_at = [int(each.judgement.fits.size) for each in search.looked_at]
    assert sum(looked_at) == num_looked_at
    counts, plugins = search.count_reasons()
    assert counts[NO_VICTIMS] == 4 - num_looked_at
    assert plugins == ({"NodeResourcesFit"} if num_looked_at else set())


def test_a_preemptor_is_gated_while_its_victims_are_being_evicted() -> None:
    plugin, preempting = DefaultPreemption(DefaultPreemptionArgs()), {"uid-p"}
    cluster = MirroredCluster()
    pod = cluster.info(make_pod("p"))
    assert plugin.pre_enqueue(pod).is_success
    plugin.gate_by(preempting.__contains__)
    assert plugin.pre_enqueue(pod).reasons == (WAITING,)
    preempting.clear()
    assert plugin.pre_enqueue(pod).is_success


class AtMostOnePod:
    """Rejects all nodes if PreFilter has counted more than one pod in the cluster."""

    name = "AtMostOnePod"

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        del pod
        state.write(Counted(sum(len(snapshot.pods_on(name)) for name in ("n0", "n1", "n2"))))
        return PreFilterResult()

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> FilterVerdict:
        del pod
        if state.read(Counted).pods <= 1:
            return ACCEPT_ALL
        return FilterVerdict((Rejection("company", np.ones(len(nodes), dtype=np.bool_)),))


class Counted:
    """The number of pods that PreFilter counted."""

    def __init__(self, pods: int) -> None:
        self.pods = pods


def test_a_plugin_without_the_what_if_trait_filters_one_node_at_a_time() -> None:
    cluster = MirroredCluster([make_node(name, cpu="4") for name in ("n0", "n1", "n2")])
    for name, node in (("a", "n0"), ("b", "n0"), ("c", "n1")):
        cluster.update_pod(make_pod(name, cpu="1", node=node, priority=1))
    result = _preempt(_framework(plugin_factory(AtMostOnePod)), cluster)
    assert result.preemption is not None
    (candidate,) = result.preemption.find_candidates().values()
    assert candidate.node_name == "n0"
    assert [victim.name for victim in candidate.victims] == ["a", "b"]


class NoNoisyPod:
    """A scalar filter that rejects nodes with a noisy pod."""

    name = "NoNoisyPod"

    def filter_node(self, pod: PodInfo, node: Any) -> Status | None:
        del pod
        noisy = any(other.labels.get("noise") == "loud" for other in node.pods)
        return unschedulable("too loud") if noisy else None


def test_a_scalar_filter_gets_each_node_with_the_remaining_pods() -> None:
    cluster = MirroredCluster([make_node("n0", cpu="4")])
    for name, noise in (("a", "low"), ("b", "loud"), ("c", "low")):
        pod = make_pod(name, cpu="1", node="n0", priority=1, labels={"noise": noise})
        cluster.update_pod(pod)
    result = _preempt(_framework(plugin_factory(NoNoisyPod)), cluster)
    assert result.preemption is not None
    chosen = result.preemption.chosen
    assert chosen is not None
    assert [victim.name for victim in chosen.victims] == ["b"]


def test_the_rows_of_every_budget_that_would_be_violated_are_found() -> None:
    cache = ClusterCache()
    for name in ("a", "b", "c"):
        cache.update_node(make_node(name))
        pod = make_pod(name, labels={"app": name}, node=name)
        cache.update_pod(make_pod_info(pod, cache.classes))
    for name, allowed in (("a", 0), ("b", 1), ("c", 0)):
        cache.update_budget(
            PodDisruptionBudget(
                ObjectMeta(name=name, namespace="default"),
                PodDisruptionBudgetSpec(label_selector({"app": name})),
                PodDisruptionBudgetStatus(allowed),
            )
        )
    snapshot = cache.snapshot()
    rows = np.array([snapshot.row_of(name) for name in ("a", "b", "c")])
    what_if = RowWhatIf(snapshot, rows)
    beyond = rows_beyond_budgets(what_if, ~what_if.removed)
    assert beyond.tolist() == [True, False, True]
