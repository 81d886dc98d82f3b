"""PodTopologySpread: built-in and listed default constraints of a pod."""

from __future__ import annotations

import pytest

from stowage.api.objects.meta import LabelSelector, OwnerReference
from stowage.framework import CycleState
from stowage.plugins.pod_topology_spread import (
    DefaultConstraint,
    PodTopologySpread,
    PodTopologySpreadArgs,
)
from tests.support.builders import ZONE, label_selector, make_node
from tests.support.mirrored_cluster import MirroredCluster, existing_nodes
from tests.unit.plugins.spread_pods import (
    SKEWED,
    UNLABELLED,
    WEB,
    incoming,
    placed,
    refused,
    scored,
    spread,
    web,
    zones,
)

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
