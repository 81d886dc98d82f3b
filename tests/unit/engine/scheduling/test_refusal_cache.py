"""A pod is answered like the last one of its class only where that cannot be told from judging."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stowage.api.config.loading import KubeSchedulerProfile
from stowage.api.objects.pod import Pod
from stowage.api.status import unschedulable
from stowage.engine.scheduling import (
    RefusalCache,
    SchedulingOutcome,
    SchedulingRequest,
    TieBreaker,
    Unschedulable,
    schedule_pod,
)
from stowage.framework import CycleState, Framework, PluginTraits, build_profile
from stowage.plugins import in_tree_registry
from stowage.queue.nominator import Nominator
from tests.support.builders import make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster
from tests.support.plugins.small_plugins import MakesRoom, Refuses, framework_of
from tests.support.volume_builders import claim_volume, make_claim


class FullNodes:
    """Three full nodes, and pods that ask for more than is left."""

    def __init__(self) -> None:
        self.cluster = MirroredCluster([make_node(f"n{index}", cpu="1") for index in range(3)])
        self.framework = _default_framework()
        self.nominator = Nominator()
        self.refusals = RefusalCache()
        self.ties = TieBreaker(lambda _: 0)

    def ask(self, pod: Pod) -> SchedulingOutcome:
        """Have a pod scheduled."""
        info, snapshot = self.cluster.info(pod), self.cluster.snapshot()
        request = SchedulingRequest(
            self.framework, snapshot, info, CycleState(), self.ties, nominated=self.nominator
        )
        return schedule_pod(request, self.refusals)


def _default_framework() -> Framework:
    return Framework(build_profile(KubeSchedulerProfile(), in_tree_registry()))


def _large(name: str, **more: object) -> Pod:
    return make_pod(name, requests={"cpu": "2"}, **more)  # type: ignore[arg-type]


def test_the_second_pod_of_a_class_is_told_the_very_same() -> None:
    nodes = FullNodes()
    first = nodes.ask(_large("a"))
    assert isinstance(first, Unschedulable)
    assert first.message.startswith("0/3 nodes are available: 3 Insufficient cpu.")
    assert nodes.ask(_large("b")) is first
    assert nodes.ask(make_pod("c", requests={"cpu": "3"})) is not first


def test_evaluations_are_counted_and_dice_are_thrown_as_if_it_had_been_judged() -> None:
    nodes, judged = FullNodes(), FullNodes()
    for each in (nodes, judged):
        each.cluster.bind(make_pod("in the way", requests={"cpu": "1"}, priority=5), "n1")
    for name in ("a", "b", "c"):
        nodes.ask(make_pod(name, requests={"cpu": "1500m"}, priority=1))
        judged.refusals = RefusalCache()
        judged.ask(make_pod(name, requests={"cpu": "1500m"}, priority=1))
    assert nodes.ties.sizes == judged.ties.sizes
    assert nodes.framework.evaluations.totals() == judged.framework.evaluations.totals()


def _node_comes(nodes: FullNodes) -> None:
    nodes.cluster.update_node(make_node("n3", cpu="1"))


def _pod_comes(nodes: FullNodes) -> None:
    nodes.cluster.bind(make_pod("other"), "n0")


def _nomination(nodes: FullNodes) -> None:
    nodes.nominator.nominate(nodes.cluster.info(make_pod("other")), "n0")


def _another_nominator(nodes: FullNodes) -> None:
    nodes.nominator = Nominator()


def _another_configuration(nodes: FullNodes) -> None:
    nodes.framework = _default_framework()


@pytest.mark.parametrize(
    "happens",
    [_node_comes, _pod_comes, _nomination, _another_nominator, _another_configuration],
)
def test_whatever_happens_the_next_pod_is_judged_anew(happens: Callable[[FullNodes], None]) -> None:
    nodes = FullNodes()
    first = nodes.ask(_large("a"))
    happens(nodes)
    again = nodes.ask(_large("b"))
    assert isinstance(again, Unschedulable)
    assert again is not first
    assert nodes.ask(_large("c")) is again


def test_a_pod_that_is_nominated_is_judged_itself() -> None:
    nodes = FullNodes()
    first = nodes.ask(_large("a"))
    assert nodes.ask(_large("b", nominated_node="n1")) is not first


def test_pods_with_claims_are_judged_one_by_one() -> None:
    nodes = FullNodes()
    nodes.cluster.update_storage(make_claim("c"))
    first = nodes.ask(_large("a", volumes=(claim_volume("c"),)))
    assert nodes.ask(_large("b", volumes=(claim_volume("c"),))) is not first
    assert not len(nodes.refusals)


def test_a_profile_with_a_plugin_of_ones_own_is_asked_about_every_pod() -> None:
    nodes, own = FullNodes(), Refuses("Own", {"n0", "n1", "n2"})
    nodes.framework = framework_of(own)
    first = nodes.ask(_large("a"))
    assert isinstance(first, Unschedulable)
    num_asked = len(own.asked)
    assert nodes.ask(_large("b")) is not first
    assert len(own.asked) > num_asked


PER_CLASS = PluginTraits(rejects_per_class=True)


def test_a_plugin_of_ones_own_may_say_that_the_class_decides() -> None:
    nodes, own = FullNodes(), Refuses("Own", {"n0", "n1", "n2"}, traits=PER_CLASS)
    room = MakesRoom("Room", unschedulable("no"), traits=PER_CLASS)
    nodes.framework = framework_of(own, room)
    first = nodes.ask(_large("a"))
    num_asked = len(own.asked)
    assert nodes.ask(_large("b")) is first
    assert len(own.asked) == num_asked


def test_room_is_made_for_each_pod_anew() -> None:
    nodes = FullNodes()
    for index in range(3):
        nodes.cluster.bind(make_pod(f"low{index}", requests={"cpu": "1"}), f"n{index}")
    first = nodes.ask(make_pod("a", requests={"cpu": "1"}, priority=9))
    assert isinstance(first, Unschedulable)
    assert first.preemption is not None
    assert first.preemption.chosen is not None
    assert not len(nodes.refusals)
