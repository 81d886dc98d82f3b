"""Compact names nodes that can be removed with every pod keeping a place."""

from __future__ import annotations

import pytest

from stowage.analysis.compact import CompactAnswer, compact
from stowage.api.objects.meta import ApiStruct, LabelSelector, ObjectMeta
from stowage.api.objects.pod import Toleration
from stowage.api.objects.policy import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
)
from stowage.api.objects.volume import GCEPersistentDiskVolumeSource, Volume
from tests.support.builders import HOSTNAME, make_node, make_pod, owned_by
from tests.support.clusters import loaded_cluster

WEB = owned_by("ReplicaSet", "web", "rs")
DISK = Volume(name="v", gce_persistent_disk=GCEPersistentDiskVolumeSource("disk"))
TOLERATES_CORDON = (Toleration(key="node.kubernetes.io/unschedulable", operator="Exists"),)
AGENT = owned_by("DaemonSet", "agent", "ds")


def ask(*objects: ApiStruct) -> CompactAnswer:
    cluster = loaded_cluster(*objects)
    answer = compact(cluster)
    cluster.engine.validate()
    return answer


@pytest.mark.parametrize("volumes", [(), (DISK,)], ids=["at once", "by the queue"])
def test_a_needed_node_says_nothing_about_a_preemption_that_is_not_tried(
    volumes: tuple[Volume, ...],
) -> None:
    answer = ask(
        make_node("a", cpu="4"),
        make_node("b", cpu="1"),
        make_pod("big", cpu="3", node="a", owner=WEB, volumes=volumes),
        make_pod("small", cpu="1", node="b"),
    )
    refusal = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable."
    assert [(each.node, each.why) for each in answer.needed] == [
        ("a", f"default/big would stay pending: {refusal}"),
        ("b", "default/small has no controller that would make it again"),
    ]


def test_the_least_used_nodes_are_emptied_into_the_others() -> None:
    answer = ask(
        make_node("a", cpu="4"),
        make_node("b", cpu="4"),
        make_node("idle", cpu="4"),
        make_pod("big", cpu="3", node="a", owner=WEB),
        make_pod("small", cpu="1", node="b", owner=WEB),
        make_pod("agent", node="b", owner=AGENT),
    )
    assert answer.removable == ("idle", "b")
    assert [(each.pod, each.was, each.node) for each in answer.moved] == [
        ("default/small", "b", "a")
    ]
    assert [each.node for each in answer.needed] == ["a"]
    assert answer.needed[0].why.startswith("default/big would stay pending: 0/1 nodes")
    assert (answer.before.nodes, answer.after.nodes) == (3, 1)


def test_a_failed_move_puts_every_pod_back() -> None:
    answer = ask(
        make_node("a", cpu="4"),
        make_node("b", cpu="4"),
        make_pod("fits", cpu="1", node="b", owner=WEB),
        make_pod("stuck", cpu="2", node="b", owner=WEB),
        make_pod("other", cpu="3500m", node="a", owner=WEB),
    )
    assert answer.removable == ()
    assert answer.moved == ()
    assert answer.after == answer.before


def test_a_pod_without_a_controller_needs_its_node() -> None:
    answer = ask(make_node("a"), make_node("b"), make_pod("lone", node="b"))
    assert answer.removable == ("a",)
    assert [(each.node, each.why) for each in answer.needed] == [
        ("b", "default/lone has no controller that would make it again")
    ]


def test_a_disruption_budget_protects_the_node() -> None:
    budget = PodDisruptionBudget(
        ObjectMeta(name="web", namespace="default", uid="pdb"),
        PodDisruptionBudgetSpec(LabelSelector({"app": "web"})),
        PodDisruptionBudgetStatus(0),
    )
    pod = make_pod("w", cpu="1", node="b", labels={"app": "web"}, owner=WEB)
    answer = ask(make_node("a"), make_node("b"), pod, budget)
    assert [(each.node, each.why) for each in answer.needed] == [
        ("b", "default/w: PodDisruptionBudget default/web allows no disruption")
    ]


def test_the_budget_of_another_namespace_or_selector_protects_no_pod() -> None:
    others = [
        PodDisruptionBudget(
            ObjectMeta(name="other", namespace=namespace, uid=f"pdb-{namespace}"),
            PodDisruptionBudgetSpec(LabelSelector({"app": app})),
            PodDisruptionBudgetStatus(0),
        )
        for namespace, app in (("shop", "web"), ("default", "db"))
    ]
    pod = make_pod("w", cpu="1", node="b", labels={"app": "web"}, owner=WEB)
    assert ask(make_node("a"), make_node("b"), pod, *others).removable == ("a",)


def test_a_pending_pod_does_not_take_the_room_of_a_pod_that_moves() -> None:
    waiting = make_pod(
        "waiting", cpu="2", node_selector={HOSTNAME: "b"}, tolerations=TOLERATES_CORDON
    )
    answer = ask(
        make_node("a", cpu="1"),
        make_node("b", cpu="2"),
        make_pod("disk", cpu="2", node="b", owner=WEB, volumes=(DISK,)),
        waiting,
    )
    assert answer.removable == ("a",)
    assert [each.node for each in answer.needed] == ["b"]
    assert answer.moved == ()
    assert (answer.before.pending, answer.after.pending) == (1, 1)


def test_no_pod_is_preempted_for_a_moved_one() -> None:
    answer = ask(
        make_node("a", cpu="2"),
        make_node("b", cpu="4"),
        make_pod("high", cpu="2", node="a", priority=9, owner=WEB),
        make_pod("low", cpu="3", node="b", owner=WEB),
    )
    assert answer.removable == ()
    assert answer.after == answer.before


def test_a_pod_that_would_come_back_needs_its_node() -> None:
    for volumes in ((), (DISK,)):
        answer = ask(
            make_node("a", cpu="1"),
            make_node("b"),
            make_pod(
                "w", cpu="2", node="b", owner=WEB, tolerations=TOLERATES_CORDON, volumes=volumes
            ),
        )
        assert [(each.node, each.why) for each in answer.needed] == [
            ("b", "default/w would come back to the node, although it is cordoned")
        ]
        assert answer.moved == ()


def test_pods_move_to_nodes_that_stay() -> None:
    answer = ask(
        make_node("a", cpu="8"),
        make_node("b", cpu="4"),
        make_node("c", cpu="4"),
        make_pod("large", cpu="4", node="a", owner=WEB),
        make_pod("p", cpu="1", node="b", owner=WEB),
        make_pod("q", cpu="1500m", node="c", owner=WEB),
    )
    assert answer.removable == ("b", "c")
    assert {each.pod: each.node for each in answer.moved} == {"default/p": "a", "default/q": "a"}
