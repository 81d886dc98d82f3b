"""The volume limits of kube-scheduler 1.12."""

from __future__ import annotations

from stowage.api.objects.pod import Pod
from stowage.api.objects.volume import AWSElasticBlockStoreVolumeSource, Volume
from tests.stories.requeue_cases.case import (
    NO_PODS,
    Delete,
    Put,
    RequeueCase,
    node,
    only,
    placed,
    pod,
)
from tests.support.volume_builders import (
    claim_volume,
    make_claim,
    make_class,
    make_csi_node,
    make_volume,
)

EBS, CSI = ("MaxEBSVolumeCount",), ("MaxCSIVolumeCount",)
LIMIT = "attachable-volumes-aws-ebs"
FAST = make_class("fast", provisioner="kubernetes.io/aws-ebs")
DISK = AWSElasticBlockStoreVolumeSource("vol-1")


def with_disk(name: str) -> Pod:
    """A pending pod with the EBS volume vol-1."""
    return pod(name, volumes=(Volume("e", aws_elastic_block_store=DISK),))


def used(name: str) -> Pod:
    """A pod on node n with a claim of the class of EBS volumes."""
    return placed(name, "n", volumes=(claim_volume("c"),))


TAKEN = [node(allocatable={LIMIT: "1"}), FAST, make_claim("c", "fast"), used("r")]
FULL = [
    node(),
    make_csi_node("n", csi_example_com=0),
    make_volume("v", given_to="c"),
    make_claim("c", volume="v"),
]

LEGACY_LIMIT_CASES = (
    RequeueCase(
        "the limit in the node's allocatable is raised",
        EBS,
        objects=TAKEN,
        pending=[with_disk("p")],
        trigger=[Put(node(allocatable={LIMIT: "2"}))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a node is added",
        EBS,
        objects=TAKEN,
        pending=[with_disk("p")],
        trigger=[Put(node("m"))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a pod with a volume is deleted",
        EBS,
        objects=TAKEN,
        pending=[with_disk("p")],
        trigger=[Delete(used("r"))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a pod without volumes is deleted",
        EBS,
        objects=[*TAKEN, placed("plain", "n")],
        pending=[with_disk("p")],
        trigger=[Delete(placed("plain", "n"))],
        requeued=NO_PODS,
    ),
    RequeueCase(
        "a claim on the node gets the volume of the pod",
        EBS,
        objects=[*TAKEN, make_volume("v", driver="", aws_elastic_block_store=DISK)],
        pending=[with_disk("p")],
        trigger=[Put(make_claim("c", "fast", volume="v"))],
        requeued=only("p"),
    ),
    RequeueCase(
        "the limit of the CSINode is raised",
        CSI,
        objects=FULL,
        pending=[pod("p", volumes=(claim_volume("c"),))],
        trigger=[Put(make_csi_node("n", csi_example_com=1))],
        requeued=only("p"),
    ),
)
