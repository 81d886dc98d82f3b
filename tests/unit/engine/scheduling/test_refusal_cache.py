"""The refusal of a pod is reused for others of its class only if scheduling would give the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from stowage.api.config.loading import KubeSchedulerProfile
from stowage.api.objects.pod import Affinity, Pod, PodAffinity
from stowage.api.status import unschedulable
from stowage.engine.scheduling import (
    RefusalCache,
    Scheduled,
    SchedulingOutcome,
    SchedulingRequest,
    TieBreaker,
    Unschedulable,
    schedule_pod,
)
from stowage.framework import CycleState, Framework, PluginTraits, Reads, build_profile
from stowage.plugins import in_tree_registry
from stowage.queue.nominator import Nominator
from tests.support.builders import (
    HOSTNAME,
    affinity_term,
    label_selector,
    make_node,
    make_pod,
)
from tests.support.mirrored_cluster import MirroredCluster
from tests.support.plugins.small_plugins import FixedPostFilter, Refuses, framework_of
from tests.support.volume_builders import claim_volume, make_claim


class FullNodes:
    """Three nodes with less free than the pods of the tests request."""

    def __init__(self) -> None:
        self.cluster = MirroredCluster([make_node(f"n{index}", cpu="1") for index in range(3)])
        self.framework = _default_framework()
        self.nominator = Nominator()
        self.refusals = RefusalCache()
        self.ties = TieBreaker(lambda _: 0)

    def schedule(self, pod: Pod) -> SchedulingOutcome:
        """Schedule a pod."""
        info, snapshot = self.cluster.info(pod), self.cluster.snapshot()
        request = SchedulingRequest(
            self.framework, snapshot, info, CycleState(), self.ties, nominated=self.nominator
        )
        return schedule_pod(request, self.refusals)


def _default_framework() -> Framework:
    return Framework(build_profile(KubeSchedulerProfile(), in_tree_registry()))


def _large(name: str, **more: object) -> Pod:
    return make_pod(name, requests={"cpu": "2"}, **more)  # type: ignore[arg-type]


def test_the_second_pod_of_a_class_gets_the_same_result() -> None:
    nodes = FullNodes()
    first = nodes.schedule(_large("a"))
    assert isinstance(first, Unschedulable)
    assert first.message.startswith("0/3 nodes are available: 3 Insufficient cpu.")
    assert nodes.schedule(_large("b")) is first
    assert nodes.schedule(make_pod("c", requests={"cpu": "3"})) is not first


def test_a_pod_with_other_labels_gets_the_same_result() -> None:
    nodes = FullNodes()
    first = nodes.schedule(_large("web-0", labels={"pod-index": "0"}))
    assert nodes.schedule(_large("web-1", labels={"pod-index": "1"})) is first


def test_a_pod_whose_labels_other_pods_reject_gets_its_own_result() -> None:
    nodes = FullNodes()
    term = affinity_term(HOSTNAME, label_selector({"app": "loud"}))
    rejecting = make_pod("picky", affinity=Affinity(pod_anti_affinity=PodAffinity((term,))))
    nodes.cluster.bind(rejecting, "n1")
    first = nodes.schedule(_large("quiet", labels={"app": "quiet"}))
    loud = nodes.schedule(_large("loud", labels={"app": "loud"}))
    assert isinstance(loud, Unschedulable)
    assert loud is not first


def test_a_pod_of_another_priority_gets_its_own_result() -> None:
    nodes = FullNodes()
    first = nodes.schedule(_large("a", labels={"pod-index": "0"}))
    assert nodes.schedule(_large("b", labels={"pod-index": "1"}, priority=7)) is not first


def test_evaluations_and_tie_breaks_are_the_same_as_without_the_cache() -> None:
    nodes, uncached = FullNodes(), FullNodes()
    for each in (nodes, uncached):
        each.cluster.bind(make_pod("blocker", requests={"cpu": "1"}, priority=5), "n1")
        each.schedule(make_pod("tiny"))
    for name in ("a", "b", "c"):
        nodes.schedule(make_pod(name, requests={"cpu": "1500m"}, priority=1))
        uncached.refusals = RefusalCache()
        uncached.schedule(make_pod(name, requests={"cpu": "1500m"}, priority=1))
    for index in range(3):
        labels = {"pod-index": str(index)}
        for each in (nodes, uncached):
            each.schedule(make_pod("d", requests={"cpu": "1800m"}, priority=1, labels=labels))
            uncached.refusals = RefusalCache()
    assert nodes.ties.sizes == uncached.ties.sizes
    assert nodes.framework.evaluations.totals() == uncached.framework.evaluations.totals()


def _add_node(nodes: FullNodes) -> None:
    nodes.cluster.update_node(make_node("n3", cpu="1"))


def _bind_pod(nodes: FullNodes) -> None:
    nodes.cluster.bind(make_pod("other"), "n0")


def _nominate(nodes: FullNodes) -> None:
    nodes.nominator.nominate(nodes.cluster.info(make_pod("other")), "n0")


def _replace_nominator(nodes: FullNodes) -> None:
    nodes.nominator = Nominator()


def _replace_framework(nodes: FullNodes) -> None:
    nodes.framework = _default_framework()


@pytest.mark.parametrize(
    "event",
    [_add_node, _bind_pod, _nominate, _replace_nominator, _replace_framework],
)
def test_any_change_of_the_cluster_makes_the_next_pod_run_again(
    event: Callable[[FullNodes], None],
) -> None:
    nodes = FullNodes()
    first = nodes.schedule(_large("a"))
    event(nodes)
    again = nodes.schedule(_large("b"))
    assert isinstance(again, Unschedulable)
    assert again is not first
    assert nodes.schedule(_large("c")) is again


def test_a_nominated_pod_does_not_use_the_cache() -> None:
    nodes = FullNodes()
    first = nodes.schedule(_large("a"))
    assert nodes.schedule(_large("b", nominated_node="n1")) is not first


def test_pods_with_claims_do_not_use_the_cache() -> None:
    nodes = FullNodes()
    nodes.cluster.update_storage(make_claim("c"))
    first = nodes.schedule(_large("a", volumes=(claim_volume("c"),)))
    assert nodes.schedule(_large("b", volumes=(claim_volume("c"),))) is not first
    assert not len(nodes.refusals)


def test_a_profile_with_an_out_of_tree_plugin_does_not_use_the_cache() -> None:
    nodes, own = FullNodes(), Refuses("Own", {"n0", "n1", "n2"})
    nodes.framework = framework_of(own)
    first = nodes.schedule(_large("a"))
    assert isinstance(first, Unschedulable)
    num_asked = len(own.asked)
    assert nodes.schedule(_large("b")) is not first
    assert len(own.asked) > num_asked


PER_CLASS = PluginTraits(rejects_per_class=True)


def test_an_out_of_tree_plugin_can_declare_that_it_rejects_per_class() -> None:
    nodes, own = FullNodes(), Refuses("Own", {"n0", "n1", "n2"}, traits=PER_CLASS)
    room = FixedPostFilter("Room", unschedulable("no"), traits=PER_CLASS)
    nodes.framework = framework_of(own, room)
    first = nodes.schedule(_large("a"))
    num_asked = len(own.asked)
    assert nodes.schedule(_large("b")) is first
    assert len(own.asked) == num_asked


@pytest.mark.parametrize("reads_only_demand", [True, False])
def test_a_post_filter_is_asked_about_other_labels_unless_it_reads_only_the_demand(
    *, reads_only_demand: bool
) -> None:
    traits = replace(PER_CLASS, reads_only_node_demand=True, filter_reads=Reads.NODE)
    nodes, own = FullNodes(), Refuses("Own", {"n0", "n1", "n2"}, traits=traits)
    of_room = replace(PER_CLASS, reads_only_node_demand=reads_only_demand)
    nodes.framework = framework_of(own, FixedPostFilter("Room", unschedulable("no"), None, of_room))
    first = nodes.schedule(_large("a", labels={"app": "a"}))
    assert (nodes.schedule(_large("b", labels={"app": "b"})) is first) is reads_only_demand


def test_a_result_with_preemption_is_not_reused() -> None:
    nodes = FullNodes()
    for index in range(3):
        nodes.cluster.bind(make_pod(f"low{index}", requests={"cpu": "1"}), f"n{index}")
    first = nodes.schedule(make_pod("a", requests={"cpu": "1"}, priority=9))
    assert isinstance(first, Unschedulable)
    assert first.preemption is not None
    assert first.preemption.chosen is not None
    assert not len(nodes.refusals)


def test_a_refusal_from_before_a_change_is_not_reused_once_another_class_is_refused() -> None:
    nodes = FullNodes()
    assert isinstance(nodes.schedule(_large("a")), Unschedulable)
    nodes.cluster.update_node(make_node("n3", cpu="2"))
    assert isinstance(nodes.schedule(make_pod("huge", requests={"cpu": "9"})), Unschedulable)
    assert isinstance(nodes.schedule(_large("b")), Scheduled)
