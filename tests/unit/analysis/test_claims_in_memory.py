"""A cluster in memory carries out what its scheduler decides about claims for devices."""

from __future__ import annotations

from msgspec.structs import replace

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.analysis.virtual_cluster import VirtualCluster
from stowage.analysis.what_if import Question, what_if
from stowage.api.objects.device import ResourceClaim
from stowage.api.objects.meta import OwnerReference
from stowage.api.objects.pod import Pod, PodResourceClaim, PodResourceClaimStatus, PodStatus
from stowage.api.values.claim_writes import FINALIZER
from tests.support.builders import make_node, make_pod, owned_by
from tests.support.clusters import loaded_cluster, nodes_of_pods
from tests.support.device_builders import (
    device,
    make_claim,
    make_class,
    make_slice,
    pod_with_claims,
)


def cluster_with(*devices: object, **fields: object) -> VirtualCluster:
    """One node with these devices."""
    listed = [device(str(name), **fields) for name in devices]
    return VirtualCluster(
        loaded_cluster(
            make_node("n"), make_class(resource="example.com/gpu"), make_slice("n", listed)
        )
    )


def create(cluster: VirtualCluster, *objects: Pod | ResourceClaim) -> None:
    made = ClusterObjects()
    for obj in objects:
        made.add(obj)
    cluster.create(made)
    cluster.run()


def claim_of(cluster: VirtualCluster, name: str = "claim") -> ResourceClaim:
    found = cluster.objects.find(ResourceClaim, f"default/{name}")
    assert found is not None
    return found


def test_a_claim_is_allocated_and_its_pod_bound() -> None:
    conditions = {"bindingConditions": ["ready"], "bindingFailureConditions": ["broken"]}
    cluster = cluster_with("gpu-0", bindsToNode=True, **conditions)
    create(cluster, make_claim(), pod_with_claims("a", "claim"))
    assert nodes_of_pods(cluster) == {"default/a": "n"}
    claim = claim_of(cluster)
    assert claim.status.allocation is not None
    assert [each.name for each in claim.status.reserved_for] == ["a"]
    assert claim.metadata.finalizers == (FINALIZER,)


def test_the_devices_of_a_deleted_pod_are_free_for_the_next_one() -> None:
    cluster = cluster_with("gpu-0")
    first = pod_with_claims("a", "one")
    create(cluster, make_claim("one"), first)
    create(cluster, make_claim("two"), pod_with_claims("b", "two"))
    assert nodes_of_pods(cluster) == {"default/a": "n", "default/b": ""}
    bound = cluster.objects.pod("default/a")
    assert bound is not None
    cluster.delete_pod(bound)
    cluster.run()
    assert nodes_of_pods(cluster) == {"default/b": "n"}
    assert claim_of(cluster, "one").status.allocation is None
    assert claim_of(cluster, "one").metadata.finalizers == ()


def test_a_claim_stays_allocated_while_a_pod_uses_it() -> None:
    cluster = cluster_with("gpu-0")
    create(cluster, make_claim(), pod_with_claims("a", "claim"), pod_with_claims("b", "claim"))
    bound = cluster.objects.pod("default/a")
    assert bound is not None
    cluster.delete_pod(bound)
    claim = claim_of(cluster)
    assert claim.status.allocation is not None
    assert [each.name for each in claim.status.reserved_for] == ["b"]


def test_extended_resources_get_a_claim_and_the_pod_names_it() -> None:
    cluster = cluster_with("gpu-0")
    pod = make_pod("a", requests={"example.com/gpu": "1"})
    create(cluster, pod)
    assert nodes_of_pods(cluster) == {"default/a": "n"}
    bound = cluster.objects.pod("default/a")
    assert bound is not None
    named = bound.status.extended_resource_claim_status
    assert named is not None
    assert claim_of(cluster, named.resource_claim_name).status.allocation is not None
    cluster.delete_pod(bound)
    assert claim_of(cluster, named.resource_claim_name).status.allocation is None


def test_an_evicted_pod_keeps_the_claims_that_were_made_for_it() -> None:
    cluster = cluster_with("gpu-0")
    owner = OwnerReference("Pod", "a", "uid-a", "v1", controller=True)
    claim = make_claim("made")
    claim = replace(claim, metadata=replace(claim.metadata, owner_references=(owner,)))
    pod = make_pod("a", owner=owned_by("ReplicaSet", "web", "rs"))
    wanted = PodResourceClaim("gpu", resource_claim_template_name="template")
    pod = Pod(
        replace(pod.metadata, uid="uid-a"),
        replace(pod.spec, resource_claims=(wanted,)),
        PodStatus(resource_claim_statuses=(PodResourceClaimStatus("gpu", "made"),)),
    )
    create(cluster, claim, pod)
    bound = cluster.objects.pod("default/a")
    assert bound is not None
    assert bound.spec.node_name == "n"
    assert cluster.evict_pod(bound)
    cluster.run()
    assert nodes_of_pods(cluster) == {"default/a": "n"}
    assert [each.uid for each in claim_of(cluster, "made").status.reserved_for] == ["uid-a#again-1"]


def test_a_what_if_question_about_pods_with_claims_has_an_answer() -> None:
    cluster = loaded_cluster(make_node("n"), make_class(), make_slice("n", ["gpu-0"]))
    objects = ClusterObjects()
    for obj in (make_claim("one"), make_claim("two")):
        objects.add(obj)
    for name, claim in (("a", "one"), ("b", "two")):
        objects.add(pod_with_claims(name, claim))
    answer = what_if(cluster, Question(objects=objects))
    assert [each.pod for each in answer.placed] == ["default/a"]
    (pending,) = answer.pending
    assert "cannot allocate all claims" in pending.message
