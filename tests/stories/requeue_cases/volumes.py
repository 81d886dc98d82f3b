"""VolumeBinding, VolumeZone, VolumeRestrictions and NodeVolumeLimits."""

from __future__ import annotations

from stowage.api.objects.pod import Pod
from stowage.api.objects.volume import (
    AWSElasticBlockStoreVolumeSource,
    GCEPersistentDiskVolumeSource,
    Volume,
)
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
from tests.support.builders import ZONE
from tests.support.volume_builders import (
    DRIVER,
    claim_volume,
    make_attachment,
    make_capacity,
    make_claim,
    make_class,
    make_csi_node,
    make_driver,
    make_volume,
)

BINDING = ("VolumeBinding",)
ZONES = ("VolumeZone",)
RESTRICTIONS = ("VolumeRestrictions",)
LIMITS = ("NodeVolumeLimits",)
IMMEDIATE = make_class("now", mode="Immediate")
IN_A, IN_B = {ZONE: "a"}, {ZONE: "b"}
ONCE = ["ReadWriteOncePod"]
DISK = Volume("disk", gce_persistent_disk=GCEPersistentDiskVolumeSource("x"))
EBS = Volume("ebs", aws_elastic_block_store=AWSElasticBlockStoreVolumeSource("x"))


def using(name: str, claim: str) -> Pod:
    """A pod without a node that uses a claim."""
    return pod(name, volumes=(claim_volume(claim),))


def used(name: str, claim: str) -> Pod:
    """A pod on node n that uses a claim."""
    return placed(name, "n", volumes=(claim_volume(claim),))


GIVEN = [make_volume("v", given_to="c"), make_claim("c", volume="v")]


BINDING_CASES = (
    RequeueCase(
        "a node that the volume can be attached to is added",
        BINDING,
        objects=[
            node(labels=IN_B),
            make_claim("c", volume="v"),
            make_volume("v", given_to="c", where=(ZONE, ["a"])),
        ],
        pending=[using("p", "c")],
        trigger=[Put(node("m", IN_A))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a node's labels come to match the volume",
        BINDING,
        objects=[
            node(labels=IN_B),
            make_claim("c", volume="v"),
            make_volume("v", given_to="c", where=(ZONE, ["a"])),
        ],
        pending=[using("p", "c")],
        trigger=[Put(node(labels=IN_A))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a node gets more resources, which were not missing",
        BINDING,
        objects=[
            node(labels=IN_B),
            make_claim("c", volume="v"),
            make_volume("v", given_to="c", where=(ZONE, ["a"])),
        ],
        pending=[using("p", "c")],
        trigger=[Put(node(cpu="8", labels=IN_B))],
        requeued=NO_PODS,
    ),
    RequeueCase(
        "the volume of a bound claim is created",
        BINDING,
        objects=[node(), make_claim("c", volume="v")],
        pending=[using("p", "c")],
        trigger=[Put(make_volume("v", given_to="c"))],
        requeued=only("p"),
    ),
    RequeueCase(
        "the volume's node affinity changes",
        BINDING,
        objects=[
            node(labels=IN_B),
            make_claim("c", volume="v"),
            make_volume("v", given_to="c", where=(ZONE, ["a"])),
        ],
        pending=[using("p", "c")],
        trigger=[Put(make_volume("v", given_to="c", where=(ZONE, ["b"])))],
        requeued=only("p"),
    ),
    RequeueCase(
        "the claim of one pod is created",
        BINDING,
        objects=[node(), make_volume("v", given_to="c")],
        pending=[using("p", "c"), using("q", "d")],
        trigger=[Put(make_claim("c", volume="v"))],
        requeued=only("p"),
    ),
    RequeueCase(
        "the claim of one pod is bound",
        BINDING,
        objects=[node(), IMMEDIATE, make_claim("c", "now"), make_claim("d", "now")],
        pending=[using("p", "c"), using("q", "d")],
        trigger=[Put(make_claim("c", "now", volume="v"))],
        requeued=only("p"),
    ),
    RequeueCase(
        "the claim's class is created",
        BINDING,
        objects=[node(), make_claim("c", "waits")],
        pending=[using("p", "c")],
        trigger=[Put(make_class("waits"))],
        requeued=only("p"),
    ),
    RequeueCase(
        "the class allows other topologies",
        BINDING,
        objects=[
            node(labels=IN_A),
            make_claim("c", "waits"),
            make_class("waits", topology=(ZONE, ["b"])),
        ],
        pending=[using("p", "c")],
        trigger=[Put(make_class("waits", topology=(ZONE, ["a"])))],
        requeued=only("p"),
    ),
    RequeueCase(
        "the class changes and allows the same topologies",
        BINDING,
        objects=[
            node(labels=IN_A),
            make_claim("c", "waits"),
            make_class("waits", topology=(ZONE, ["b"])),
        ],
        pending=[using("p", "c")],
        trigger=[Put(make_class("waits", topology=(ZONE, ["b"]), mode="Immediate"))],
        requeued=NO_PODS,
    ),
    RequeueCase(
        "a CSINode is created",
        BINDING,
        objects=[node(), IMMEDIATE, make_claim("c", "now")],
        pending=[using("p", "c")],
        trigger=[Put(make_csi_node("n"))],
        requeued=only("p"),
    ),
    RequeueCase(
        "other plugins of a CSINode are migrated",
        BINDING,
        objects=[node(), IMMEDIATE, make_claim("c", "now"), make_csi_node("n", version="1")],
        pending=[using("p", "c")],
        trigger=[Put(make_csi_node("n", migrated=["kubernetes.io/aws-ebs"], version="2"))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a CSINode changes in other ways",
        BINDING,
        objects=[node(), IMMEDIATE, make_claim("c", "now"), make_csi_node("n", version="1")],
        pending=[using("p", "c")],
        trigger=[Put(make_csi_node("n", csi_example_com=3, version="2"))],
        requeued=NO_PODS,
    ),
    RequeueCase(
        "capacity is published",
        BINDING,
        objects=[node(), IMMEDIATE, make_claim("c", "now")],
        pending=[using("p", "c")],
        trigger=[Put(make_capacity("k", "10Gi", None, class_name="now"))],
        requeued=only("p"),
    ),
    RequeueCase(
        "the published capacity grows",
        BINDING,
        objects=[
            node(),
            IMMEDIATE,
            make_claim("c", "now"),
            make_capacity("k", "10Gi", None, class_name="now"),
        ],
        pending=[using("p", "c")],
        trigger=[Put(make_capacity("k", "20Gi", None, class_name="now"))],
        requeued=only("p"),
    ),
    RequeueCase(
        "the published capacity shrinks",
        BINDING,
        objects=[
            node(),
            IMMEDIATE,
            make_claim("c", "now"),
            make_capacity("k", "10Gi", None, class_name="now"),
        ],
        pending=[using("p", "c")],
        trigger=[Put(make_capacity("k", "5Gi", None, class_name="now"))],
        requeued=NO_PODS,
    ),
    RequeueCase(
        "a driver stops publishing capacity",
        BINDING,
        objects=[node(), IMMEDIATE, make_claim("c", "now"), make_driver(DRIVER)],
        pending=[using("p", "c")],
        trigger=[Put(make_driver(DRIVER, capacity=False))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a driver that published capacity is deleted",
        BINDING,
        objects=[node(), IMMEDIATE, make_claim("c", "now"), make_driver(DRIVER)],
        pending=[using("p", "c")],
        trigger=[Delete(make_driver(DRIVER))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a driver begins to publish capacity",
        BINDING,
        objects=[node(), IMMEDIATE, make_claim("c", "now"), make_driver(DRIVER, capacity=False)],
        pending=[using("p", "c")],
        trigger=[Put(make_driver(DRIVER))],
        requeued=NO_PODS,
    ),
)

ZONE_CASES = (
    RequeueCase(
        "the volume is created in the node's zone",
        ZONES,
        objects=[node(labels=IN_A), make_claim("c", volume="v")],
        pending=[using("p", "c")],
        trigger=[Put(make_volume("v", given_to="c", labels=IN_A))],
        requeued=only("p"),
    ),
    RequeueCase(
        "the volume moves to the node's zone",
        ZONES,
        objects=[
            node(labels=IN_A),
            make_claim("c", volume="v"),
            make_volume("v", given_to="c", labels=IN_B),
        ],
        pending=[using("p", "c")],
        trigger=[Put(make_volume("v", given_to="c", labels=IN_A))],
        requeued=only("p"),
    ),
    RequeueCase(
        "the volume changes and stays in its zone",
        ZONES,
        objects=[
            node(labels=IN_A),
            make_claim("c", volume="v"),
            make_volume("v", given_to="c", labels=IN_B),
        ],
        pending=[using("p", "c")],
        trigger=[Put(make_volume("v", given_to="c", labels=IN_B | {"unrelated": "x"}))],
        requeued=NO_PODS,
    ),
    RequeueCase(
        "the claim of one pod is created",
        ZONES,
        objects=[node(labels=IN_A), make_volume("v", given_to="c", labels=IN_A)],
        pending=[using("p", "c"), using("q", "d")],
        trigger=[Put(make_claim("c", volume="v"))],
        requeued=only("p"),
    ),
    RequeueCase(
        "the claim of one pod is bound to a volume of the node's zone",
        ZONES,
        objects=[
            node(labels=IN_A),
            IMMEDIATE,
            make_claim("c", "now"),
            make_claim("d", "now"),
            make_volume("v", given_to="c", labels=IN_A),
        ],
        pending=[using("p", "c"), using("q", "d")],
        trigger=[Put(make_claim("c", "now", volume="v"))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a node of the volume's zone is added",
        ZONES,
        objects=[
            node(labels=IN_A),
            make_claim("c", volume="v"),
            make_volume("v", given_to="c", labels=IN_B),
        ],
        pending=[using("p", "c")],
        trigger=[Put(node("m", IN_B))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a storage class is created",
        ZONES,
        objects=[node(labels=IN_A), make_claim("c", volume="v")],
        pending=[using("p", "c")],
        trigger=[Put(make_class("new"))],
        requeued=only("p"),
    ),
)

RESTRICTION_CASES = (
    RequeueCase(
        "a node is added while the claim is in use on all nodes",
        RESTRICTIONS,
        objects=[node(), make_claim("c", volume="v", modes=ONCE), used("r", "c")],
        pending=[using("p", "c")],
        trigger=[Put(node("m"))],
        requeued=only("p"),
    ),
    RequeueCase(
        "the claim of one pod is created",
        RESTRICTIONS,
        objects=[node()],
        pending=[using("p", "c"), using("q", "d")],
        trigger=[Put(make_claim("c", volume="v", modes=ONCE))],
        requeued=only("p"),
    ),
    RequeueCase(
        "the only pod that may use the claim is deleted",
        RESTRICTIONS,
        objects=[node(), make_claim("c", volume="v", modes=ONCE), used("r", "c")],
        pending=[using("p", "c"), using("q", "d")],
        trigger=[Delete(used("r", "c"))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a pod of another namespace that uses the disk is deleted",
        RESTRICTIONS,
        objects=[node(), placed("r", "n", namespace="other", volumes=(DISK,))],
        pending=[pod("p", volumes=(DISK,))],
        trigger=[Delete(placed("r", "n", namespace="other", volumes=(DISK,)))],
        requeued=only("p"),
    ),
)

LIMIT_CASES = (
    RequeueCase(
        "the volume limit of a node ends",
        LIMITS,
        objects=[node(), make_csi_node("n", csi_example_com=0), *GIVEN],
        pending=[using("p", "c")],
        trigger=[Put(make_csi_node("n"))],
        requeued=only("p"),
    ),
    RequeueCase(
        "the volume limit of a node grows",
        LIMITS,
        objects=[node(), make_csi_node("n", csi_example_com=0), *GIVEN],
        pending=[using("p", "c")],
        trigger=[Put(make_csi_node("n", csi_example_com=1))],
        requeued=only("p"),
    ),
    RequeueCase(
        "the volume limit of a node shrinks",
        LIMITS,
        objects=[node(), make_csi_node("n", csi_example_com=0), *GIVEN],
        pending=[using("p", "c")],
        trigger=[Put(make_csi_node("n", csi_example_com=-1))],
        requeued=NO_PODS,
    ),
    RequeueCase(
        "the claim of one pod is created",
        LIMITS,
        objects=[node(), make_csi_node("n", csi_example_com=1)],
        pending=[using("p", "c"), using("q", "d")],
        trigger=[Put(make_claim("c", volume="v"))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a pod with a volume of its own is deleted",
        LIMITS,
        objects=[
            node(),
            make_csi_node("n", csi_example_com=1),
            make_volume("v", given_to="c"),
            make_volume("w", given_to="d"),
            make_claim("c", volume="v"),
            make_claim("d", volume="w"),
            used("r", "c"),
        ],
        pending=[using("p", "d")],
        trigger=[Delete(used("r", "c"))],
        requeued=only("p"),
    ),
    RequeueCase(
        "a CSINode is created",
        LIMITS,
        objects=[
            node(),
            make_csi_node("n", csi_example_com=0),
            make_volume("v", given_to="c"),
            make_claim("c", volume="v"),
        ],
        pending=[using("p", "c")],
        trigger=[Put(make_csi_node("m"))],
        requeued=only("p"),
    ),
    RequeueCase(
        "an attachment is deleted",
        LIMITS,
        objects=[
            node(),
            make_csi_node("n", csi_example_com=0),
            make_volume("v", given_to="c"),
            make_claim("c", volume="v"),
            make_attachment("a", "n", "v"),
        ],
        pending=[using("p", "c")],
        trigger=[Delete(make_attachment("a", "n", "v"))],
        requeued=only("p"),
    ),
    RequeueCase(
        "an attachment of the driver that serves one pod's disk is deleted",
        LIMITS,
        objects=[
            node(),
            make_csi_node("n", ebs_csi_aws_com=0, pd_csi_storage_gke_io=0),
            make_attachment("a", "n", "v", attacher="ebs.csi.aws.com"),
        ],
        pending=[pod("p", volumes=(EBS,)), pod("q", volumes=(DISK,))],
        trigger=[Delete(make_attachment("a", "n", "v", attacher="ebs.csi.aws.com"))],
        requeued=only("p"),
    ),
)
