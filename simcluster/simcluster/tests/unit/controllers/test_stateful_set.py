"""StatefulSets: in order, with claims of their own."""

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


def test_pods_come_one_after_the_other() -> None:
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


def test_parallel_pods_come_at_once() -> None:
    cluster = ManualCluster(binds=False)
    cluster.create(STATEFUL_SETS, stateful(podManagementPolicy="Parallel"))
    cluster.settle()
    assert cluster.names(PODS) == ["db-0", "db-1", "db-2"]


def test_ordinals_may_start_elsewhere() -> None:
    cluster = ManualCluster()
    cluster.create(STATEFUL_SETS, stateful(2, ordinals={"start": 5}))
    cluster.settle()
    assert cluster.names(PODS) == ["db-5", "db-6"]


def test_scaling_down_takes_the_highest_first_and_keeps_claims() -> None:
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


def test_claims_go_as_the_policy_says() -> None:
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


def test_an_update_goes_from_the_highest_ordinal_and_is_complete_in_the_end() -> None:
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


def test_a_partition_keeps_lower_ordinals_as_they_are() -> None:
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
def test_on_delete_leaves_updating_to_others(kind: str, want: set[str]) -> None:
    cluster = ManualCluster()
    cluster.create(STATEFUL_SETS, stateful(updateStrategy={"type": kind}))
    cluster.settle()
    cluster.change(STATEFUL_SETS, "db", image("web:2"))
    assert set(images(cluster).values()) == want


def test_a_template_that_comes_back_is_no_new_revision() -> None:
    cluster = ManualCluster()
    cluster.create(STATEFUL_SETS, stateful())
    cluster.settle()
    for name in ("web:2", "web:1"):
        cluster.change(STATEFUL_SETS, "db", image(name))
    revisions = sorted(found["revision"] for found in cluster.all(CONTROLLER_REVISIONS))
    assert revisions == [2, 3]
