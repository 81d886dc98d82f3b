"""StatefulSets: ordered pods with their own claims."""

from typing import Any

import pytest

from simcluster.kinds.resources import (
    CONTROLLER_REVISIONS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    STATEFUL_SETS,
    STORAGE_CLASSES,
)
from simcluster.tests.support.manual_cluster import ManualCluster, workload

Json = dict[str, Any]

CLAIM = {
    "metadata": {"name": "data"},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "fast",
    },
}
FAST = {"metadata": {"name": "fast"}, "provisioner": "disk.example.com"}


def stateful(replicas: int = 3, **spec: Any) -> Json:
    return workload("db", replicas, serviceName="db", **spec)


def image(name: str) -> Any:
    def act(obj: Json) -> None:
        obj["spec"]["template"]["spec"]["containers"][0]["image"] = name

    return act


def images(cluster: ManualCluster) -> dict[str, str]:
    return {
        pod["metadata"]["name"]: pod["spec"]["containers"][0]["image"] for pod in cluster.all(PODS)
    }


def test_ordered_pods_are_created_one_after_the_other() -> None:
    cluster = ManualCluster(binds=False)
    cluster.create(STATEFUL_SETS, stateful())
    cluster.settle()
    assert cluster.names(PODS) == ["db-0"]
    cluster.bind("db-0", "node-0")
    assert cluster.names(PODS) == ["db-0", "db-1"]
    pod = cluster.get(PODS, "db-0")
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("db-0", "db")
    assert pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] == "db-0"
    assert pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "0"


def test_parallel_pods_are_created_at_once() -> None:
    cluster = ManualCluster(binds=False)
    cluster.create(STATEFUL_SETS, stateful(podManagementPolicy="Parallel"))
    cluster.settle()
    assert cluster.names(PODS) == ["db-0", "db-1", "db-2"]


def test_ordinals_can_start_at_another_number() -> None:
    cluster = ManualCluster()
    cluster.create(STATEFUL_SETS, stateful(2, ordinals={"start": 5}))
    cluster.settle()
    assert cluster.names(PODS) == ["db-5", "db-6"]


def test_scaling_down_deletes_the_highest_ordinals_first_and_keeps_claims() -> None:
    cluster = ManualCluster()
    cluster.create(STORAGE_CLASSES, dict(FAST))
    cluster.create(STATEFUL_SETS, stateful(volumeClaimTemplates=[CLAIM]))
    gone: list[str] = []
    cluster.store.subscribe(
        PODS.stored_in,
        lambda change: gone.append(change.current.name) if change.type == "DELETED" else None,
    )
    cluster.settle()
    cluster.change(STATEFUL_SETS, "db", lambda obj: obj["spec"].update(replicas=1))
    assert gone == ["db-2", "db-1"]
    assert cluster.names(PERSISTENT_VOLUME_CLAIMS) == ["data-db-0", "data-db-1", "data-db-2"]


def test_the_claim_retention_policy_decides_about_claims() -> None:
    cluster = ManualCluster()
    cluster.create(STORAGE_CLASSES, dict(FAST))
    policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
    spec = stateful(2, volumeClaimTemplates=[CLAIM], persistentVolumeClaimRetentionPolicy=policy)
    cluster.create(STATEFUL_SETS, spec)
    cluster.settle()
    cluster.change(STATEFUL_SETS, "db", lambda obj: obj["spec"].update(replicas=1))
    assert cluster.names(PERSISTENT_VOLUME_CLAIMS) == ["data-db-0"]
    cluster.delete(STATEFUL_SETS, "db", "Background")
    assert cluster.names(PERSISTENT_VOLUME_CLAIMS) == []


def test_an_update_replaces_pods_from_the_highest_ordinal() -> None:
    cluster = ManualCluster()
    cluster.create(STATEFUL_SETS, stateful())
    cluster.settle()
    order: list[str] = []
    cluster.store.subscribe(
        PODS.stored_in,
        lambda change: order.append(change.current.name) if change.type == "DELETED" else None,
    )
    cluster.change(STATEFUL_SETS, "db", image("web:2"))
    assert order == ["db-2", "db-1", "db-0"]
    assert set(images(cluster).values()) == {"web:2"}
    status = cluster.get(STATEFUL_SETS, "db")["status"]
    assert status["currentRevision"] == status["updateRevision"]
    assert (status["updatedReplicas"], status["currentReplicas"]) == (3, 3)


def test_a_partition_excludes_lower_ordinals_from_the_update() -> None:
    cluster = ManualCluster()
    cluster.create(STATEFUL_SETS, stateful())
    cluster.settle()

    def act(obj: Json) -> None:
        obj["spec"]["updateStrategy"] = {
            "type": "RollingUpdate",
            "rollingUpdate": {"partition": 2},
        }
        image("web:2")(obj)

    cluster.change(STATEFUL_SETS, "db", act)
    assert images(cluster) == {"db-0": "web:1", "db-1": "web:1", "db-2": "web:2"}
    cluster.delete(PODS, "db-0")
    assert images(cluster)["db-0"] == "web:1"


@pytest.mark.parametrize(("kind", "want"), [("OnDelete", {"web:1"}), ("RollingUpdate", {"web:2"})])
def test_the_on_delete_strategy_replaces_only_deleted_pods(kind: str, want: set[str]) -> None:
    cluster = ManualCluster()
    cluster.create(STATEFUL_SETS, stateful(updateStrategy={"type": kind}))
    cluster.settle()
    cluster.change(STATEFUL_SETS, "db", image("web:2"))
    assert set(images(cluster).values()) == want


def test_an_earlier_template_gets_its_earlier_revision() -> None:
    cluster = ManualCluster()
    cluster.create(STATEFUL_SETS, stateful())
    cluster.settle()
    for name in ("web:2", "web:1"):
        cluster.change(STATEFUL_SETS, "db", image(name))
    revisions = sorted(found["revision"] for found in cluster.all(CONTROLLER_REVISIONS))
    assert revisions == [2, 3]
