"""Hypothesis strategies for clusters where claims, volumes, disks and drivers matter."""

from __future__ import annotations

from hypothesis import strategies as st

from stowage.api.objects.meta import LabelSelector
from stowage.api.objects.pod import Pod
from stowage.api.objects.volume import (
    AWSElasticBlockStoreVolumeSource,
    GCEPersistentDiskVolumeSource,
    ISCSIVolumeSource,
    PersistentVolumeClaim,
    RBDVolumeSource,
    StorageObject,
    Volume,
)
from tests.support.builders import HOSTNAME, ZONE, make_pod
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

NODES = ("n0", "n1", "n2", "n3")
CLAIMS = ("c0", "c1", "c2", "c3")
VOLUMES = ("d0", "d1", "d2", "d3", "d4")
CLASSES = ("waits", "local")
EBS = "kubernetes.io/aws-ebs"
_ZONES = ("z0", "z1")

_places = st.one_of(
    st.none(),
    st.sampled_from(_ZONES).map(lambda zone: (ZONE, (zone,))),
    st.sampled_from(NODES).map(lambda node: (HOSTNAME, (node,))),
)
_labels: st.SearchStrategy[dict[str, str]] = st.one_of(
    st.just({}),
    st.sampled_from(("z0", "z1", "z0__z1", "z0__")).map(lambda zone: {ZONE: zone}),
    st.just({"failure-domain.beta.kubernetes.io/zone": "z1", "grade": "gold"}),
)
volumes = st.builds(
    make_volume,
    st.sampled_from(VOLUMES),
    st.sampled_from(CLASSES),
    size=st.sampled_from(("1Gi", "2Gi", "3Gi")),
    given_to=st.sampled_from(("", "", *CLAIMS)),
    modes=st.sampled_from((("ReadWriteOnce",), ("ReadWriteOnce", "ReadOnlyMany"))),
    where=_places,
    labels=_labels,
    phase=st.sampled_from(("Available", "Available", "Released")),
    terminating=st.sampled_from((False, False, True)),
    volume_mode=st.sampled_from((None, "Filesystem", "Block")),
)
migrated_volumes = st.builds(
    make_volume,
    st.sampled_from(VOLUMES),
    driver=st.just(""),
    where=_places,
    labels=_labels,
    aws_elastic_block_store=st.sampled_from(("vol-1", "aws://z0/vol-1", "vol-2")).map(
        AWSElasticBlockStoreVolumeSource
    ),
)
unbound_claims = st.builds(
    make_claim,
    st.sampled_from(CLAIMS),
    st.sampled_from(CLASSES),
    size=st.sampled_from(("1Gi", "2Gi")),
    modes=st.sampled_from((("ReadWriteOnce",), ("ReadOnlyMany",), ("ReadWriteOncePod",))),
    selected_node=st.sampled_from(("", "", "", *NODES)),
    selector=st.sampled_from((None, LabelSelector({"grade": "gold"}))),
)
bound_claims = st.builds(
    make_claim,
    st.sampled_from(CLAIMS),
    st.sampled_from(CLASSES),
    volume=st.sampled_from((*VOLUMES, "gone")),
    modes=st.sampled_from((("ReadWriteOnce",), ("ReadWriteOncePod",))),
)
classes = st.builds(
    make_class,
    st.sampled_from(CLASSES),
    provisioner=st.sampled_from((DRIVER, "kubernetes.io/no-provisioner")),
    topology=st.sampled_from((None, (ZONE, ("z0",)))),
)
csi_nodes = st.builds(
    lambda name, count, migrated: make_csi_node(
        name, migrated=migrated, csi_example_com=count, ebs_csi_aws_com=count
    ),
    st.sampled_from(NODES),
    st.sampled_from((None, 0, 1, 2)),
    st.sampled_from(((), (EBS,))),
)
capacities = st.builds(
    make_capacity,
    st.sampled_from(("k0", "k1")),
    st.sampled_from((None, "1Gi", "2Gi")),
    st.sampled_from((None, LabelSelector(), LabelSelector({ZONE: "z0"}))),
    class_name=st.sampled_from(CLASSES),
    largest=st.sampled_from((None, "1Gi")),
)
attachments = st.builds(
    make_attachment,
    st.sampled_from(("a0", "a1", "a2")),
    st.sampled_from((*NODES, "elsewhere")),
    st.sampled_from((None, *VOLUMES)),
)
drivers = st.builds(
    make_driver, capacity=st.sampled_from((None, True, False)), needed=st.booleans()
)
objects: st.SearchStrategy[StorageObject] = st.one_of(
    volumes,
    migrated_volumes,
    unbound_claims,
    bound_claims,
    classes,
    csi_nodes,
    capacities,
    attachments,
    drivers,
)

#: All objects of a cluster: enough of each kind that they interact.
storages = st.tuples(
    st.lists(volumes, max_size=5),
    st.lists(migrated_volumes, max_size=1),
    st.lists(unbound_claims, max_size=3),
    st.lists(bound_claims, max_size=3),
    st.lists(classes, max_size=2),
    st.lists(csi_nodes, max_size=4),
    st.lists(capacities, max_size=2),
    st.lists(attachments, max_size=3),
    st.lists(drivers, max_size=1),
).map(lambda kinds: [obj for kind in kinds for obj in kind])

disks = st.one_of(
    st.builds(
        lambda name, shared: Volume(
            "g", gce_persistent_disk=GCEPersistentDiskVolumeSource(name, read_only=shared)
        ),
        st.sampled_from(("x", "y")),
        st.booleans(),
    ),
    st.sampled_from(("vol-1", "vol-2")).map(
        lambda name: Volume(
            "e", aws_elastic_block_store=AWSElasticBlockStoreVolumeSource(name, read_only=True)
        )
    ),
    st.builds(
        lambda name, shared: Volume("i", iscsi=ISCSIVolumeSource(name, read_only=shared)),
        st.sampled_from(("x", "y")),
        st.booleans(),
    ),
    st.builds(
        lambda monitors, shared: Volume("r", rbd=RBDVolumeSource(monitors, "i", "p", shared)),
        st.sampled_from((("m0",), ("m1",), ("m0", "m1"))),
        st.booleans(),
    ),
)
_pod_volumes = st.lists(
    st.one_of(st.sampled_from(CLAIMS).map(claim_volume), disks), min_size=1, max_size=3
)


def pods(names: tuple[str, ...] = ("p0", "p1", "p2", "p3")) -> st.SearchStrategy[Pod]:
    """Pods with claims and disks."""
    return st.builds(make_pod, st.sampled_from(names), volumes=_pod_volumes.map(tuple))


def missing_claims(pod: Pod, known: set[str]) -> list[PersistentVolumeClaim]:
    """Claims for the names of a pod's claims that do not exist."""
    named = [
        volume.persistent_volume_claim.claim_name
        for volume in pod.spec.volumes
        if volume.persistent_volume_claim is not None
    ]
    return [make_claim(name) for name in dict.fromkeys(named) if f"default/{name}" not in known]
