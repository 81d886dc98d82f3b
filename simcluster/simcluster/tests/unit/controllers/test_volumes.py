"""Volumes and claims: binding, provisioning, attachment, protection and reclaiming."""

from typing import Any

import pytest

from simcluster.kinds.resources import (
    CSI_STORAGE_CAPACITIES,
    EVENTS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
)
from simcluster.tests.support.manual_cluster import ManualCluster, template, workload

Json = dict[str, Any]

DRIVER = "disk.example.com"
ZONE = "topology.kubernetes.io/zone"
SELECTED = "volume.kubernetes.io/selected-node"


def storage_class(name: str = "fast", *, waits: bool = False, **fields: Any) -> Json:
    mode = "WaitForFirstConsumer" if waits else "Immediate"
    defaults = {"provisioner": DRIVER, "volumeBindingMode": mode}
    return {"metadata": {"name": name}, **defaults, **fields}


def claim(name: str = "data", size: str = "1Gi", **spec: Any) -> Json:
    defaults = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": size}},
        "storageClassName": "fast",
    }
    return {"metadata": {"name": name}, "spec": {**defaults, **spec}}


def volume(name: str, size: str = "1Gi", **spec: Any) -> Json:
    defaults = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "fast",
        "hostPath": {"path": "/data"},
    }
    labels = spec.pop("labels", {})
    return {"metadata": {"name": name, "labels": labels}, "spec": {**defaults, **spec}}


def static(*volumes: Json) -> ManualCluster:
    """A cluster with these volumes, of a class without a provisioner."""
    cluster = ManualCluster(binds=False)
    cluster.create(STORAGE_CLASSES, storage_class(provisioner="kubernetes.io/no-provisioner"))
    for found in volumes:
        cluster.create(PERSISTENT_VOLUMES, found)
    cluster.settle()
    return cluster


def phase(cluster: ManualCluster, name: str = "data") -> str:
    return str(cluster.get(PERSISTENT_VOLUME_CLAIMS, name)["status"]["phase"])


def reasons(cluster: ManualCluster, name: str = "data") -> list[str]:
    return [
        event["reason"] for event in cluster.all(EVENTS) if event["involvedObject"]["name"] == name
    ]


def select(node: str) -> Any:
    def act(obj: Json) -> None:
        obj["metadata"].setdefault("annotations", {})[SELECTED] = node

    return act


def mounting(name: str = "p", claim_name: str = "data") -> Json:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": claim_name}}]
    return {**template(volumes=volumes), "metadata": {"name": name}}


@pytest.mark.parametrize(
    ("wanted", "got"),
    [
        (claim(size="2Gi"), "medium"),
        (claim(size="9Gi"), "large"),
        (claim(size="99Gi"), ""),
        (claim(accessModes=["ReadWriteMany"]), "shared"),
        (claim(volumeMode="Block"), "raw"),
        (claim(selector={"matchLabels": {"disk": "nvme"}}), "labelled"),
        (claim(storageClassName="other"), ""),
    ],
)
def test_a_claim_gets_the_smallest_volume_that_fits(wanted: Json, got: str) -> None:
    cluster = static(
        volume("small"),
        volume("medium", "3Gi"),
        volume("large", "10Gi"),
        volume("shared", "20Gi", accessModes=["ReadWriteOnce", "ReadWriteMany"]),
        volume("raw", volumeMode="Block"),
        volume("labelled", "30Gi", labels={"disk": "nvme"}),
    )
    cluster.create(PERSISTENT_VOLUME_CLAIMS, wanted)
    cluster.settle()
    found = cluster.get(PERSISTENT_VOLUME_CLAIMS, "data")
    assert found["spec"].get("volumeName", "") == got
    assert found["status"]["phase"] == ("Bound" if got else "Pending")
    if got:
        assert cluster.get(PERSISTENT_VOLUMES, got)["status"]["phase"] == "Bound"


def test_a_volume_reserved_for_a_claim_is_bound_to_no_other_claim() -> None:
    reserved = volume("a", claimRef={"namespace": "default", "name": "data"})
    cluster = static(reserved, volume("b"))
    cluster.create(PERSISTENT_VOLUME_CLAIMS, claim("other"))
    cluster.create(PERSISTENT_VOLUME_CLAIMS, claim("data"))
    cluster.settle()
    names = {
        found["metadata"]["name"]: found["spec"]["volumeName"]
        for found in cluster.all(PERSISTENT_VOLUME_CLAIMS)
    }
    assert names == {"other": "b", "data": "a"}


def test_a_claim_with_a_volume_name_waits_for_that_volume() -> None:
    cluster = static(volume("a"))
    cluster.create(PERSISTENT_VOLUME_CLAIMS, claim(volumeName="b"))
    cluster.settle()
    assert phase(cluster) == "Pending"
    cluster.create(PERSISTENT_VOLUMES, volume("b"))
    cluster.settle()
    assert phase(cluster) == "Bound"
    assert cluster.get(PERSISTENT_VOLUMES, "a")["status"]["phase"] == "Available"


def test_a_claim_whose_volume_was_deleted_is_lost() -> None:
    cluster = static(volume("a"))
    cluster.create(PERSISTENT_VOLUME_CLAIMS, claim())
    cluster.settle()
    stored = cluster.find(PERSISTENT_VOLUMES, "a")
    assert stored is not None
    cluster.store.remove(PERSISTENT_VOLUMES.stored_in, stored)
    cluster.settle()
    assert phase(cluster) == "Lost"
    assert "ClaimLost" in reasons(cluster)


def test_a_claim_of_an_immediate_class_is_provisioned_at_once() -> None:
    cluster = ManualCluster(binds=False)
    cluster.create(STORAGE_CLASSES, storage_class())
    cluster.create(PERSISTENT_VOLUME_CLAIMS, claim())
    cluster.settle()
    assert phase(cluster) == "Bound"
    (made,) = cluster.all(PERSISTENT_VOLUMES)
    assert made["spec"]["csi"]["driver"] == DRIVER
    assert made["metadata"]["annotations"]["pv.kubernetes.io/provisioned-by"] == DRIVER
    wanted = ["ExternalProvisioning", "Provisioning", "ProvisioningSucceeded"]
    assert sorted(reasons(cluster)) == sorted(wanted)


def test_a_waiting_claim_is_provisioned_on_the_node_of_its_pod() -> None:
    cluster = ManualCluster(binds=False)
    cluster.create(STORAGE_CLASSES, storage_class(waits=True))
    cluster.create(PERSISTENT_VOLUME_CLAIMS, claim())
    cluster.settle()
    assert (phase(cluster), reasons(cluster)) == ("Pending", ["WaitForFirstConsumer"])
    cluster.change(PERSISTENT_VOLUME_CLAIMS, "data", select("node-1"))
    assert phase(cluster) == "Bound"
    (made,) = cluster.all(PERSISTENT_VOLUMES)
    (term,) = made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [{"key": ZONE, "operator": "In", "values": ["b"]}]


def test_provisioning_outside_of_the_allowed_topologies_fails() -> None:
    allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": ["a"]}]}]
    cluster = ManualCluster(binds=False)
    cluster.create(STORAGE_CLASSES, storage_class(waits=True, allowedTopologies=allowed))
    cluster.create(PERSISTENT_VOLUME_CLAIMS, claim())
    cluster.settle()
    cluster.change(PERSISTENT_VOLUME_CLAIMS, "data", select("node-1"))
    assert (phase(cluster), "ProvisioningFailed" in reasons(cluster)) == ("Pending", True)
    cluster.change(PERSISTENT_VOLUME_CLAIMS, "data", select("node-0"))
    cluster.pass_time(5)
    assert phase(cluster) == "Bound"


def test_provisioning_takes_the_configured_time() -> None:
    cluster = ManualCluster(binds=False)
    slow = storage_class(parameters={"stowage/delay-seconds": "20"})
    cluster.create(STORAGE_CLASSES, slow)
    cluster.create(PERSISTENT_VOLUME_CLAIMS, claim())
    cluster.settle()
    cluster.pass_time(19)
    assert phase(cluster) == "Pending"
    cluster.pass_time(2)
    assert phase(cluster) == "Bound"


def test_failed_provisioning_is_retried() -> None:
    cluster = ManualCluster(binds=False)
    parameters = {"stowage/fail": "the backend is away", "stowage/fail-times": "2"}
    cluster.create(STORAGE_CLASSES, storage_class(parameters=parameters))
    cluster.create(PERSISTENT_VOLUME_CLAIMS, claim())
    cluster.settle()
    (event,) = [found for found in cluster.all(EVENTS) if found["reason"] == "ProvisioningFailed"]
    text = 'failed to provision volume with StorageClass "fast": the backend is away'
    assert (event["type"], event["message"]) == ("Warning", text)
    cluster.pass_time(10)
    assert phase(cluster) == "Bound"


def test_exhausted_storage_removes_the_selected_node() -> None:
    cluster = ManualCluster(binds=False)
    parameters = {"stowage/fail": "ResourceExhausted: no space", "stowage/fail-times": "1"}
    cluster.create(STORAGE_CLASSES, storage_class(waits=True, parameters=parameters))
    cluster.create(PERSISTENT_VOLUME_CLAIMS, claim())
    cluster.settle()
    cluster.change(PERSISTENT_VOLUME_CLAIMS, "data", select("node-0"))
    annotations = cluster.get(PERSISTENT_VOLUME_CLAIMS, "data")["metadata"]["annotations"]
    assert SELECTED not in annotations
    cluster.change(PERSISTENT_VOLUME_CLAIMS, "data", select("node-1"))
    assert phase(cluster) == "Bound"


def test_storage_capacity_is_published_and_decreases() -> None:
    cluster = ManualCluster(binds=False)
    limited = storage_class(waits=True, parameters={"stowage/capacity": "3Gi"})
    cluster.create(STORAGE_CLASSES, limited)
    for name in ("data", "more"):
        cluster.create(PERSISTENT_VOLUME_CLAIMS, claim(name, "2Gi"))
    cluster.settle()
    cluster.change(PERSISTENT_VOLUME_CLAIMS, "data", select("node-0"))
    left = {
        found["nodeTopology"]["matchLabels"][ZONE]: found["capacity"]
        for found in cluster.all(CSI_STORAGE_CAPACITIES)
    }
    assert left == {"a": "1Gi", "b": "3Gi"}
    cluster.change(PERSISTENT_VOLUME_CLAIMS, "more", select("node-0"))
    assert phase(cluster, "more") == "Pending"
    cluster.change(PERSISTENT_VOLUME_CLAIMS, "more", select("node-1"))
    assert phase(cluster, "more") == "Bound"


@pytest.mark.parametrize(("policy", "left"), [("Delete", []), ("Retain", ["Released"])])
def test_the_reclaim_policy_decides_about_a_released_volume(policy: str, left: list[str]) -> None:
    cluster = ManualCluster(binds=False)
    cluster.create(STORAGE_CLASSES, storage_class(reclaimPolicy=policy))
    cluster.create(PERSISTENT_VOLUME_CLAIMS, claim())
    cluster.settle()
    cluster.delete(PERSISTENT_VOLUME_CLAIMS, "data")
    assert [found["status"]["phase"] for found in cluster.all(PERSISTENT_VOLUMES)] == left


def test_a_claim_in_use_and_a_bound_volume_are_protected_from_deletion() -> None:
    cluster = ManualCluster(binds=False)
    cluster.create(STORAGE_CLASSES, storage_class())
    cluster.create(PERSISTENT_VOLUME_CLAIMS, claim())
    cluster.create(PODS, mounting())
    cluster.settle()
    cluster.bind("p", "node-0")
    (made,) = cluster.names(PERSISTENT_VOLUMES)
    cluster.delete(PERSISTENT_VOLUME_CLAIMS, "data")
    cluster.delete(PERSISTENT_VOLUMES, made)
    assert cluster.get(PERSISTENT_VOLUME_CLAIMS, "data")["metadata"]["deletionTimestamp"]
    assert cluster.get(PERSISTENT_VOLUMES, made)["metadata"]["deletionTimestamp"]
    cluster.delete(PODS, "p")
    assert cluster.names(PERSISTENT_VOLUME_CLAIMS) == []
    assert cluster.names(PERSISTENT_VOLUMES) == []


def test_volumes_are_attached_to_the_nodes_of_their_pods() -> None:
    cluster = ManualCluster(binds=False)
    cluster.create(STORAGE_CLASSES, storage_class())
    cluster.create(PERSISTENT_VOLUME_CLAIMS, claim())
    cluster.create(PODS, mounting())
    cluster.settle()
    assert cluster.all(VOLUME_ATTACHMENTS) == []
    cluster.bind("p", "node-0")
    (made,) = cluster.all(VOLUME_ATTACHMENTS)
    assert (made["spec"]["nodeName"], made["status"]["attached"]) == ("node-0", True)
    cluster.delete(PODS, "p")
    assert cluster.all(VOLUME_ATTACHMENTS) == []


def test_a_pod_does_not_run_before_its_claim_is_bound() -> None:
    cluster = ManualCluster(binds=False)
    slow = storage_class(parameters={"stowage/delay-seconds": "5"})
    cluster.create(STORAGE_CLASSES, slow)
    cluster.create(PERSISTENT_VOLUME_CLAIMS, claim())
    cluster.create(PODS, mounting())
    cluster.settle()
    cluster.bind("p", "node-0")
    assert cluster.get(PODS, "p")["status"]["phase"] == "Pending"
    cluster.pass_time(6)
    assert cluster.get(PODS, "p")["status"]["phase"] == "Running"


def test_a_pod_waits_while_the_labels_of_its_node_keep_its_volume_away() -> None:
    """The volume is on another node, until this one has its label."""
    term = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["near"]}]}
    affinity = {"required": {"nodeSelectorTerms": [term]}}
    cluster = static(volume("away", nodeAffinity=affinity))
    cluster.create(PERSISTENT_VOLUME_CLAIMS, claim())
    cluster.create(PODS, mounting())
    cluster.settle()
    cluster.bind("p", "node-0")
    status = cluster.get(PODS, "p")["status"]
    assert status["phase"] == "Pending"
    assert status["containerStatuses"][0]["state"]["waiting"]["reason"] == "ContainerCreating"
    assert reasons(cluster, "p") == ["FailedMount"]
    cluster.change(NODES, "node-0", lambda node: node["metadata"]["labels"].update(disk="near"))
    assert cluster.get(PODS, "p")["status"]["phase"] == "Running"


def test_an_ephemeral_volume_is_created_and_deleted_with_its_pod() -> None:
    cluster = ManualCluster(binds=False)
    cluster.create(STORAGE_CLASSES, storage_class())
    volumes = [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": claim()["spec"]}}}]
    cluster.create(PODS, {**template(volumes=volumes), "metadata": {"name": "p"}})
    cluster.settle()
    assert cluster.names(PERSISTENT_VOLUME_CLAIMS) == ["p-v"]
    cluster.bind("p", "node-0")
    assert cluster.get(PODS, "p")["status"]["phase"] == "Running"
    cluster.delete(PODS, "p")
    assert cluster.names(PERSISTENT_VOLUME_CLAIMS) == []


def test_a_stateful_set_with_volumes_runs_once_its_pods_are_bound() -> None:
    cluster = ManualCluster()
    cluster.create(STORAGE_CLASSES, storage_class())
    templates = [claim("data")]
    cluster.create(STATEFUL_SETS, workload("db", 2, volumeClaimTemplates=templates))
    cluster.settle()
    assert cluster.get(STATEFUL_SETS, "db")["status"]["readyReplicas"] == 2
    assert cluster.names(PERSISTENT_VOLUME_CLAIMS) == ["data-db-0", "data-db-1"]
    assert len(cluster.all(VOLUME_ATTACHMENTS)) == 2


@pytest.mark.parametrize(("older", "newer", "want"), [("a", "b", "b"), ("b", "a", "a")])
def test_of_several_default_classes_the_newest_counts(older: str, newer: str, want: str) -> None:
    cluster = ManualCluster(binds=False)
    for name in (older, newer):
        default = storage_class(name)
        default["metadata"]["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}
        cluster.create(STORAGE_CLASSES, default)
        cluster.time.now += 60.0
    classless = claim()
    del classless["spec"]["storageClassName"]
    cluster.create(PERSISTENT_VOLUME_CLAIMS, classless)
    assert cluster.get(PERSISTENT_VOLUME_CLAIMS, "data")["spec"]["storageClassName"] == want


def test_a_claim_without_a_class_gets_a_default_class_that_is_made_later() -> None:
    cluster = ManualCluster(binds=False)
    for name in ("classless", "static"):
        made = claim(name)
        made["spec"]["storageClassName"] = ""
        if name == "classless":
            del made["spec"]["storageClassName"]
        cluster.create(PERSISTENT_VOLUME_CLAIMS, made)
    cluster.settle()
    default = storage_class("late")
    default["metadata"]["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}
    cluster.create(STORAGE_CLASSES, default)
    cluster.settle()
    claims = [cluster.get(PERSISTENT_VOLUME_CLAIMS, name) for name in ("classless", "static")]
    assert [each["spec"]["storageClassName"] for each in claims] == ["late", ""]
