"""SchedulingGates, NodeDeclaredFeatures and DynamicResources."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from stowage.api.objects.pod import PodResourceClaim, PodResourceClaimStatus, PodStatus
from tests.stories.requeue_cases.case import NO_PODS, Put, RequeueCase, node, only, pod

GATES = ("SchedulingGates",)
FEATURES = ("NodeDeclaredFeatures",)
CLAIMS = ("DynamicResources",)
HOST_USERS = "UserNamespacesHostNetworkSupport"
CLAIM = (PodResourceClaim(name="gpu", resource_claim_template_name="gpus"),)
#: Requires a declared feature of its node.
OWN_USERS: dict[str, Any] = {"host_network": True, "host_users": False}

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

CLAIM_CASES = (
    RequeueCase(
        "a node is added while a pod waits for devices",
        CLAIMS,
        objects=[node()],
        pending=[pod("p", resource_claims=CLAIM)],
        trigger=[Put(node("m"))],
        requeued=only("p"),
    ),
    RequeueCase(
        "the claim of a pod's template is created",
        CLAIMS,
        objects=[node()],
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
        objects=[node()],
        pending=[pod("p", resource_claims=CLAIM)],
        trigger=[Put(pod("p", {"key": "value"}, resource_claims=CLAIM))],
        requeued=NO_PODS,
    ),
)
