"""ReplicaSets: number of pods, adoption, and order of deletion."""

from typing import Any

from simcluster.controllers.workloads.deletion_order import in_deletion_order
from simcluster.kinds.resources import PODS, REPLICA_SETS, REPLICATION_CONTROLLERS
from simcluster.store.store import Stored
from simcluster.tests.support.manual_cluster import ManualCluster, template, workload

Json = dict[str, Any]


def pod(
    name: str, *, node: str = "", phase: str = "Pending", ready: str = "", **meta: Any
) -> Stored:
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": ready}] if ready else []
    metadata = {"name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z", **meta}
    spec = {"nodeName": node} if node else {}
    status = {"phase": phase, "conditions": conditions}
    return Stored({"metadata": metadata, "spec": spec, "status": status}, 1)


def test_the_status_counts_pods() -> None:
    cluster = ManualCluster()
    cluster.create(REPLICA_SETS, workload())
    cluster.settle()
    assert cluster.get(REPLICA_SETS, "web")["status"] == {
        "replicas": 3,
        "fullyLabeledReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "observedGeneration": 1,
    }
    cluster.change(REPLICA_SETS, "web", lambda obj: obj["spec"].update(replicas=1))
    assert len(cluster.all(PODS)) == 1


def test_pods_are_available_after_min_ready_seconds() -> None:
    cluster = ManualCluster()
    cluster.create(REPLICA_SETS, workload(minReadySeconds=30))
    cluster.settle()
    assert "availableReplicas" not in cluster.get(REPLICA_SETS, "web")["status"]
    cluster.pass_time(31)
    assert cluster.get(REPLICA_SETS, "web")["status"]["availableReplicas"] == 3


def test_a_matching_orphan_is_adopted_instead_of_creating_a_pod() -> None:
    cluster = ManualCluster()
    cluster.create(PODS, {**template(), "metadata": {"name": "lone", "labels": {"app": "web"}}})
    cluster.create(REPLICA_SETS, workload(replicas=2))
    cluster.settle()
    owners = cluster.get(PODS, "lone")["metadata"]["ownerReferences"]
    assert [owner["name"] for owner in owners] == ["web"]
    assert len(cluster.all(PODS)) == 2


def test_a_pod_that_no_longer_matches_is_released_and_replaced() -> None:
    cluster = ManualCluster()
    cluster.create(REPLICA_SETS, workload(replicas=1))
    cluster.settle()
    (name,) = cluster.names(PODS)
    cluster.change(PODS, name, lambda obj: obj["metadata"]["labels"].update(app="debug"))
    assert "ownerReferences" not in cluster.get(PODS, name)["metadata"]
    assert len(cluster.all(PODS)) == 2


def test_a_replication_controller_selects_by_plain_labels() -> None:
    cluster = ManualCluster()
    controller = {"metadata": {"name": "rc"}, "spec": {"replicas": 2, "template": template()}}
    cluster.create(REPLICATION_CONTROLLERS, controller)
    cluster.settle()
    assert cluster.get(REPLICATION_CONTROLLERS, "rc")["status"]["readyReplicas"] == 2


def test_pods_are_deleted_in_the_order_of_kube_controller_manager() -> None:
    cost = {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-5"}}
    early, late = "2026-01-01T00:00:01Z", "2026-01-01T00:09:00Z"
    pods = [
        pod("old", node="a", phase="Running", ready=early),
        pod("crowded", node="b", phase="Running", ready=early),
        pod("young", node="b", phase="Running", ready=late),
        pod("cheap", node="c", phase="Running", ready=early, **cost),
        pod("unready", node="d", phase="Running"),
        pod("starting", node="e"),
        pod("unassigned"),
    ]
    assert [found.name for found in in_deletion_order(pods)] == [
        "unassigned",
        "starting",
        "unready",
        "cheap",
        "young",
        "crowded",
        "old",
    ]
