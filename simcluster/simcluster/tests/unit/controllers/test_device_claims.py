"""The life of device claims: from a template to a device on a node, until their deletion."""

from typing import Any

import pytest

from simcluster.kinds.resources import (
    EVENTS,
    NAMESPACES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
)
from simcluster.kubelet.kubelet import KubeletOptions
from simcluster.tests.support.manual_cluster import ManualCluster
from simcluster.tests.unit.controllers.claims import (
    DEVICES,
    add_claim,
    add_pod,
    allocate,
    set_status,
)

Json = dict[str, Any]


@pytest.fixture
def cluster() -> ManualCluster:
    return ManualCluster(binds=False, kubelet=KubeletOptions(job_run_s=10))


def add_template(cluster: ManualCluster, name: str = "one-gpu", **metadata: Any) -> None:
    spec = {"metadata": metadata, "spec": {"devices": DEVICES}}
    cluster.create(RESOURCE_CLAIM_TEMPLATES, {"metadata": {"name": name}, "spec": spec})
    cluster.settle()


def claim_of(cluster: ManualCluster, pod: str = "p") -> Json:
    [status] = cluster.get(PODS, pod)["status"]["resourceClaimStatuses"]
    return cluster.get(RESOURCE_CLAIMS, status["resourceClaimName"])


def finish(cluster: ManualCluster, pod: str = "p") -> None:
    status = {**cluster.get(PODS, pod)["status"], "phase": "Succeeded"}
    set_status(cluster, PODS, pod, status)


def phase(cluster: ManualCluster, pod: str = "p") -> str:
    return str(cluster.get(PODS, pod)["status"]["phase"])


def events(cluster: ManualCluster) -> list[str]:
    return [f"{event['reason']}: {event['message']}" for event in cluster.all(EVENTS)]


def test_a_claim_is_made_from_its_template_and_named_in_the_status_of_the_pod(
    cluster: ManualCluster,
) -> None:
    add_template(cluster, labels={"team": "a"}, annotations={"note": "b"})
    pod = add_pod(cluster)
    claim = claim_of(cluster)
    metadata = claim["metadata"]
    assert metadata["name"].startswith("p-gpu-")
    assert len(metadata["name"]) == len("p-gpu-") + 5
    assert metadata["labels"] == {"team": "a"}
    assert metadata["annotations"] == {
        "note": "b",
        "resource.kubernetes.io/pod-claim-name": "gpu",
    }
    [owner] = metadata["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == (
        "Pod",
        pod["metadata"]["uid"],
        True,
    )
    assert claim["spec"]["devices"]["requests"][0]["exactly"]["count"] == 1
    assert cluster.names(RESOURCE_CLAIMS) == [metadata["name"]]


def test_a_long_name_is_cut_in_proportion(cluster: ManualCluster) -> None:
    add_template(cluster)
    add_pod(cluster, "a" * 90)
    assert len(claim_of(cluster, "a" * 90)["metadata"]["name"]) <= 63
    assert "-g" in claim_of(cluster, "a" * 90)["metadata"]["name"]


def test_a_pod_waits_for_its_template_with_a_warning(cluster: ManualCluster) -> None:
    add_pod(cluster)
    [event] = events(cluster)
    assert event == (
        'FailedResourceClaimCreation: PodResourceClaim gpu: resource claim template "one-gpu": '
        'resourceclaimtemplate.resource.k8s.io "one-gpu" not found'
    )
    add_template(cluster)
    assert claim_of(cluster)["status"] == {}


def test_a_claim_that_its_namespace_does_not_allow_is_tried_again(cluster: ManualCluster) -> None:
    label = {"resource.kubernetes.io/admin-access": "true"}
    cluster.change(NAMESPACES, "default", lambda obj: obj["metadata"]["labels"].update(label))
    request = {
        "name": "gpu",
        "exactly": {"deviceClassName": "gpu.example.com", "adminAccess": True},
    }
    spec = {"spec": {"devices": {"requests": [request]}}}
    cluster.create(RESOURCE_CLAIM_TEMPLATES, {"metadata": {"name": "one-gpu"}, "spec": spec})
    cluster.change(NAMESPACES, "default", lambda obj: obj["metadata"]["labels"].pop(*label))
    add_pod(cluster)
    assert cluster.names(RESOURCE_CLAIMS) == []
    assert "admin access to devices requires" in events(cluster)[0]
    cluster.change(NAMESPACES, "default", lambda obj: obj["metadata"]["labels"].update(label))
    cluster.pass_time(5)
    assert len(cluster.names(RESOURCE_CLAIMS)) == 1


def test_a_deleted_claim_of_a_waiting_pod_is_made_again(cluster: ManualCluster) -> None:
    add_template(cluster)
    add_pod(cluster)
    first = claim_of(cluster)["metadata"]["name"]
    cluster.delete(RESOURCE_CLAIMS, first)
    assert claim_of(cluster)["metadata"]["name"] != first
    assert len(cluster.get(PODS, "p")["status"]["resourceClaimStatuses"]) == 1


def test_a_claim_that_was_made_before_a_failure_is_found_again(cluster: ManualCluster) -> None:
    add_template(cluster)
    add_pod(cluster)
    status = cluster.get(PODS, "p")["status"]
    made = claim_of(cluster)["metadata"]["name"]
    set_status(cluster, PODS, "p", {**status, "resourceClaimStatuses": []})
    assert claim_of(cluster)["metadata"]["name"] == made
    assert cluster.names(RESOURCE_CLAIMS) == [made]


def test_a_claim_made_for_a_pod_goes_when_the_pod_is_done(cluster: ManualCluster) -> None:
    add_template(cluster)
    add_pod(cluster)
    allocate(cluster, claim_of(cluster), "p")
    cluster.bind("p", "node-0")
    assert phase(cluster) == "Running"
    finish(cluster)
    assert cluster.names(RESOURCE_CLAIMS) == []


def test_a_claim_made_for_a_pod_goes_with_the_pod(cluster: ManualCluster) -> None:
    add_template(cluster)
    add_pod(cluster)
    allocate(cluster, claim_of(cluster), "p")
    cluster.bind("p", "node-0")
    cluster.delete(PODS, "p")
    cluster.pass_time(1)
    assert cluster.names(PODS) == []
    assert cluster.names(RESOURCE_CLAIMS) == []


def test_a_shared_claim_is_deallocated_after_its_last_pod(cluster: ManualCluster) -> None:
    add_claim(cluster)
    for pod in ("p", "q"):
        add_pod(cluster, pod, resourceClaimName="shared")
    allocate(cluster, cluster.get(RESOURCE_CLAIMS, "shared"), "p", "q")
    cluster.bind("p", "node-0")
    cluster.bind("q", "node-0")
    finish(cluster, "p")
    claim = cluster.get(RESOURCE_CLAIMS, "shared")
    assert [consumer["name"] for consumer in claim["status"]["reservedFor"]] == ["q"]
    assert "allocation" in claim["status"]
    cluster.delete(PODS, "q")
    cluster.pass_time(1)
    claim = cluster.get(RESOURCE_CLAIMS, "shared")
    assert claim["status"] == {}
    assert "finalizers" not in claim["metadata"]


def test_a_reservation_of_a_pod_that_was_replaced_is_removed(cluster: ManualCluster) -> None:
    add_claim(cluster)
    add_pod(cluster, resourceClaimName="shared")
    allocate(cluster, cluster.get(RESOURCE_CLAIMS, "shared"), "p")
    cluster.delete(PODS, "p")
    add_pod(cluster, resourceClaimName="shared")
    assert cluster.get(RESOURCE_CLAIMS, "shared")["status"] == {}


def test_an_allocated_claim_without_reservations_keeps_its_devices(cluster: ManualCluster) -> None:
    add_claim(cluster)
    allocate(cluster, cluster.get(RESOURCE_CLAIMS, "shared"))
    assert "allocation" in cluster.get(RESOURCE_CLAIMS, "shared")["status"]
    cluster.delete(RESOURCE_CLAIMS, "shared")
    assert cluster.find(RESOURCE_CLAIMS, "shared") is None


def test_a_claim_in_use_is_deleted_after_its_pod(cluster: ManualCluster) -> None:
    add_claim(cluster)
    add_pod(cluster, resourceClaimName="shared")
    allocate(cluster, cluster.get(RESOURCE_CLAIMS, "shared"), "p")
    cluster.bind("p", "node-0")
    cluster.delete(RESOURCE_CLAIMS, "shared")
    assert cluster.get(RESOURCE_CLAIMS, "shared")["metadata"]["deletionTimestamp"]
    finish(cluster)
    assert cluster.find(RESOURCE_CLAIMS, "shared") is None


def test_an_allocated_claim_is_reserved_for_a_pod_that_no_scheduler_bound(
    cluster: ManualCluster,
) -> None:
    add_claim(cluster)
    allocate(cluster, cluster.get(RESOURCE_CLAIMS, "shared"))
    add_pod(cluster, resourceClaimName="shared")
    cluster.bind("p", "node-0")
    [consumer] = cluster.get(RESOURCE_CLAIMS, "shared")["status"]["reservedFor"]
    assert consumer["uid"] == cluster.get(PODS, "p")["metadata"]["uid"]
    assert phase(cluster) == "Running"


def test_a_bound_pod_waits_until_its_claim_is_reserved_for_it(cluster: ManualCluster) -> None:
    add_claim(cluster)
    pod = add_pod(cluster, resourceClaimName="shared")
    cluster.bind("p", "node-0")
    claim = cluster.get(RESOURCE_CLAIMS, "shared")
    [event] = events(cluster)
    assert event == (
        "FailedPrepareDynamicResources: Failed to prepare dynamic resources: prepare dynamic "
        f"resources: pod p ({pod['metadata']['uid']}) is not allowed to use ResourceClaim shared "
        f"({claim['metadata']['uid']})"
    )
    [container] = cluster.get(PODS, "p")["status"]["containerStatuses"]
    assert container["state"] == {"waiting": {"reason": "ContainerCreating"}}
    allocate(cluster, claim, "p")
    assert phase(cluster) == "Running"


def test_a_bound_pod_waits_for_a_claim_that_does_not_exist_yet(cluster: ManualCluster) -> None:
    add_pod(cluster, resourceClaimName="shared")
    cluster.bind("p", "node-0")
    assert (
        'fetch ResourceClaim shared: resourceclaims.resource.k8s.io "shared" not found'
        in (events(cluster)[0])
    )
    add_claim(cluster)
    allocate(cluster, cluster.get(RESOURCE_CLAIMS, "shared"), "p")
    assert phase(cluster) == "Running"


def two_pods(cluster: ManualCluster, **second: Any) -> str:
    """Run a pod with gpu-0 of node-0; then bind another one with what ``second`` says."""
    for pod, allocated in (("p", {}), ("q", second)):
        add_claim(cluster, f"of-{pod}")
        add_pod(cluster, pod, resourceClaimName=f"of-{pod}")
        allocate(cluster, cluster.get(RESOURCE_CLAIMS, f"of-{pod}"), pod, **allocated)
        cluster.bind(pod, "node-0")
    return phase(cluster, "q")


def test_a_pod_whose_device_another_claim_holds_fails(cluster: ManualCluster) -> None:
    assert two_pods(cluster) == "Failed"
    status = cluster.get(PODS, "q")["status"]
    assert status["reason"] == "UnexpectedAdmissionError"
    assert status["message"] == (
        "Pod was rejected: device d/node-0/gpu-0 of ResourceClaim default/of-q is held by "
        "ResourceClaim default/of-p"
    )
    assert phase(cluster, "p") == "Running"


@pytest.mark.parametrize(
    "second",
    [{"device": "gpu-1"}, {"shareID": "11111111-1111-1111-1111-111111111111"}],
    ids=["another device", "a share of it"],
)
def test_a_pod_with_another_device_runs(cluster: ManualCluster, second: Json) -> None:
    assert two_pods(cluster, **second) == "Running"


def test_a_pod_with_admin_access_runs_beside_the_holder_of_the_device(
    cluster: ManualCluster,
) -> None:
    assert two_pods(cluster, adminAccess=True) == "Running"


def test_a_device_is_free_again_after_its_pod(cluster: ManualCluster) -> None:
    add_template(cluster)
    for pod in ("p", "q"):
        add_pod(cluster, pod)
        allocate(cluster, claim_of(cluster, pod), pod)
        cluster.bind(pod, "node-0")
        assert phase(cluster, pod) == "Running"
        finish(cluster, pod)


def test_a_pod_on_another_node_than_its_claim_fails(cluster: ManualCluster) -> None:
    add_claim(cluster)
    add_pod(cluster, resourceClaimName="shared")
    allocate(cluster, cluster.get(RESOURCE_CLAIMS, "shared"), "p")
    cluster.bind("p", "node-1")
    assert cluster.get(PODS, "p")["status"]["message"] == (
        "Pod was rejected: ResourceClaim default/shared is not allocated for node node-1"
    )


def test_a_claim_for_extended_resources_is_prepared_and_released(cluster: ManualCluster) -> None:
    spec = {"containers": [{"name": "c", "image": "x:1"}], "restartPolicy": "Never"}
    cluster.create(PODS, {"metadata": {"name": "p"}, "spec": spec})
    add_claim(cluster, "extended")
    mapping = {"containerName": "c", "resourceName": "example.com/gpu", "requestName": "gpu"}
    extended = {"resourceClaimName": "extended", "requestMappings": [mapping]}
    status = cluster.get(PODS, "p")["status"]
    set_status(cluster, PODS, "p", {**status, "extendedResourceClaimStatus": extended})
    allocate(cluster, cluster.get(RESOURCE_CLAIMS, "extended"), "p")
    cluster.bind("p", "node-0")
    assert phase(cluster) == "Running"
    finish(cluster)
    assert cluster.get(RESOURCE_CLAIMS, "extended")["status"] == {}
