"""SchedulingGates, NodeDeclaredFeatures and DynamicResources."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from stowage.api.objects.device import ResourceClaim
from stowage.api.objects.meta import OwnerReference
from stowage.api.objects.pod import Pod, PodResourceClaim, PodResourceClaimStatus, PodStatus
from tests.stories.requeue_cases.case import NO_PODS, Delete, Put, RequeueCase, node, only, pod
from tests.support.device_builders import allocated, make_claim, make_class, make_slice

GATES = ("SchedulingGates",)
FEATURES = ("NodeDeclaredFeatures",)
CLAIMS = ("DynamicResources",)
HOST_USERS = "UserNamespacesHostNetworkSupport"
CLAIM = (PodResourceClaim(name="gpu", resource_claim_template_name="gpus"),)
#: Requires a declared feature of its node.
OWN_USERS: dict[str, Any] = {"host_network": True, "host_users": False}
TAKEN = allocated(make_claim("other"), "n", "gpu-0")


def by_name(claim: str) -> tuple[PodResourceClaim, ...]:
    """The use of a claim by name."""
    return (PodResourceClaim(name="gpu", resource_claim_name=claim),)


def replace_labels(given: Pod) -> Pod:
    """The pod with another label."""
    return replace(given, metadata=replace(given.metadata, labels={"key": "value"}))


def generated_for(owner: Pod, claim: ResourceClaim) -> ResourceClaim:
    """The claim as made for a pod from a template."""
    reference = OwnerReference("Pod", owner.metadata.name, owner.metadata.uid, "v1", True)
    return replace(claim, metadata=replace(claim.metadata, owner_references=(reference,)))


GENERATED = generated_for(pod("p"), make_claim("p-gpu"))

GATE_CASES = (
    RequeueCase(
        "the last gate is removed",
        GATES,
        objects=[node()],
        pending=[pod("p", gates=["quota"]), pod("q", gates=["quota"])],
        trigger=[Put(pod("p"))],
        requeued=only("p"),
    ),
    RequeueCase(
        "one of two gates is removed",
        GATES,
        objects=[node()],
        pending=[pod("p", gates=["quota", "security"])],
        trigger=[Put(pod("p", gates=["security"]))],
        requeued=NO_PODS,
    ),
    RequeueCase(
        "a gated pod's labels change",
        GATES,
        objects=[node()],
        pending=[pod("p", gates=["quota"])],
        trigger=[Put(pod("p", {"key": "value"}, gates=["quota"]))],
        requeued=NO_PODS,
    ),
    RequeueCase(
        "a node is added while pods are gated",
        (),
        objects=[node()],
        pending=[pod("p", gates=["quota"])],
        trigger=[Put(node("m"))],
        requeued=NO_PODS,
    ),
)

FEATURE_CASES = (
    RequeueCase(
        "the node declares the feature",
        FEATURES,
        objects=[node()],
        pending=[pod("p", **OWN_USERS)],
        trigger=[Put(node(declared_features=[HOST_USERS]))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a node is added that has declared the feature",
        FEATURES,
        objects=[node()],
        pending=[pod("p", **OWN_USERS)],
        trigger=[Put(node("m", declared_features=[HOST_USERS]))],
        requeued=only("p"),
    ),
    RequeueCase(
        "any node is added",
        FEATURES,
        objects=[node()],
        pending=[pod("p", **OWN_USERS)],
        trigger=[Put(node("m", declared_features=["SomethingElse"]))],
        requeued=only("p"),
    ),
    RequeueCase(
        "the node changes and declares nothing new",
        FEATURES,
        objects=[node()],
        pending=[pod("p", **OWN_USERS)],
        trigger=[Put(node(labels={"key": "value"}))],
        requeued=NO_PODS,
    ),
    RequeueCase(
        "the pod no longer needs the feature",
        FEATURES,
        objects=[node()],
        pending=[pod("p", **OWN_USERS), pod("q", **OWN_USERS)],
        trigger=[Put(pod("p"))],
        requeued=only("p"),
    ),
    RequeueCase(
        "the pod changes and still needs the feature",
        FEATURES,
        objects=[node()],
        pending=[pod("p", **OWN_USERS)],
        trigger=[Put(pod("p", {"key": "value"}, **OWN_USERS))],
        requeued=NO_PODS,
    ),
)

CLASS = make_class()
#: Pods that use claims by name; the claims exist.
WAITING = pod("p", resource_claims=by_name("p-gpu"))
OTHER = pod("q", resource_claims=by_name("q-gpu"))
EXISTING = [CLASS, make_claim("p-gpu"), make_claim("q-gpu")]

CLAIM_CASES = (
    RequeueCase(
        "a node is added while a pod waits for devices",
        CLAIMS,
        objects=[node(), *EXISTING],
        pending=[WAITING],
        trigger=[Put(node("m"))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a slice is added while a pod waits for devices",
        CLAIMS,
        objects=[node(), *EXISTING],
        pending=[WAITING],
        trigger=[Put(make_slice("n", ["gpu-0"]))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a slice is deleted while a pod waits for devices",
        CLAIMS,
        objects=[node(), *EXISTING, make_slice("n")],
        pending=[WAITING],
        trigger=[Delete(make_slice("n"))],
        requeued=NO_PODS,
    ),
    RequeueCase(
        "a class is added while a pod waits for it",
        CLAIMS,
        objects=[node(), make_claim("p-gpu")],
        pending=[WAITING],
        trigger=[Put(CLASS)],
        requeued=only("p"),
    ),
    RequeueCase(
        "another claim is deallocated while a pod waits for devices",
        CLAIMS,
        objects=[node(), *EXISTING, make_slice("n", ["gpu-0"]), TAKEN],
        pending=[WAITING],
        trigger=[Put(make_claim("other", version="2"))],
        requeued=only("p"),
    ),
    RequeueCase(
        "an allocated claim is deleted while a pod waits for devices",
        CLAIMS,
        objects=[node(), *EXISTING, make_slice("n", ["gpu-0"]), TAKEN],
        pending=[WAITING],
        trigger=[Delete(TAKEN)],
        requeued=only("p"),
    ),
    RequeueCase(
        "the status of one pod's claim changes",
        CLAIMS,
        objects=[node(), *EXISTING],
        pending=[WAITING, OTHER],
        trigger=[Put(allocated(make_claim("q-gpu"), "n", "gpu-0", version="2"))],
        requeued=only("q"),
    ),
    RequeueCase(
        "the claim of a gated pod is created",
        CLAIMS,
        objects=[node(), CLASS],
        pending=[WAITING, OTHER],
        trigger=[Put(make_claim("p-gpu"))],
        requeued=only("p"),
    ),
    RequeueCase(
        "the claim of a pod's template is created",
        CLAIMS,
        objects=[node(), CLASS, GENERATED],
        pending=[pod("p", resource_claims=CLAIM), pod("q", resource_claims=CLAIM)],
        trigger=[
            Put(
                replace(
                    pod("p", resource_claims=CLAIM),
                    status=PodStatus(
                        resource_claim_statuses=(PodResourceClaimStatus("gpu", "p-gpu"),)
                    ),
                )
            )
        ],
        requeued=only("p"),
    ),
    RequeueCase(
        "the labels of a pod that waits for devices change",
        CLAIMS,
        objects=[node(), *EXISTING],
        pending=[WAITING],
        trigger=[Put(replace_labels(WAITING))],
        requeued=NO_PODS,
    ),
)
