"""Volume plugins: queueing hints."""

from __future__ import annotations

from typing import Any

import pytest

from stowage.api.cluster_events import QueueingHint
from stowage.api.objects.meta import LabelSelector
from stowage.api.objects.volume import (
    AWSElasticBlockStoreVolumeSource,
    GCEPersistentDiskVolumeSource,
    PersistentVolumeClaim,
    Volume,
)
from stowage.plugins.volumes import hints, limits, restrictions, zone
from tests.support.builders import ZONE, make_pod
from tests.support.mirrored_cluster import MirroredCluster
from tests.support.volume_builders import (
    claim_volume,
    ephemeral_volume,
    make_attachment,
    make_capacity,
    make_claim,
    make_class,
    make_csi_node,
    make_driver,
    make_volume,
)

DATA = claim_volume("data")
IMMEDIATE = make_class("now", mode="Immediate")
QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.SKIP


def _hint(hint: Any, volumes: tuple[Volume, ...], old: Any, new: Any) -> QueueingHint:
    answer: QueueingHint = hint(MirroredCluster().info(make_pod("p", volumes=volumes)), old, new)
    return answer


def _claim(name: str, namespace: str = "default") -> PersistentVolumeClaim:
    return make_claim(name, namespace=namespace)


@pytest.mark.parametrize("claim", [_claim("other"), _claim("data", "elsewhere")])
def test_claims_of_other_pods_do_not_queue_a_pod(claim: PersistentVolumeClaim) -> None:
    for hint in (
        restrictions.after_claim_added,
        limits.after_claim_added,
        zone.after_claim_changed,
        hints.after_claim_changed,
    ):
        assert _hint(hint, (DATA,), None, claim) is SKIP
        assert _hint(hint, (DATA,), None, _claim("data")) is QUEUE


def test_claims_of_ephemeral_volumes_queue_pods_for_limits_and_binding() -> None:
    claim, volumes = _claim("p-tmp"), (ephemeral_volume("tmp"),)
    answers = {
        hint: _hint(hint, volumes, None, claim)
        for hint in (
            restrictions.after_claim_added,
            limits.after_claim_added,
            zone.after_claim_changed,
            hints.after_claim_changed,
        )
    }
    assert list(answers.values()) == [SKIP, QUEUE, SKIP, QUEUE]


def test_a_deleted_pod_queues_a_pod_that_needs_its_disk_or_claim() -> None:
    def disk(read_only: bool) -> Volume:
        return Volume("g", gce_persistent_disk=GCEPersistentDiskVolumeSource("x", 0, read_only))

    info = MirroredCluster().info
    cases: list[tuple[Volume, Volume, str, QueueingHint]] = [
        (DATA, DATA, "default", QUEUE),
        (DATA, claim_volume("other"), "default", SKIP),
        (DATA, DATA, "elsewhere", SKIP),
        (disk(True), disk(False), "default", QUEUE),
        (disk(True), disk(True), "default", SKIP),
        (disk(True), disk(False), "elsewhere", QUEUE),
    ]
    for mine, theirs, namespace, wanted in cases:
        gone = info(make_pod("gone", namespace=namespace, volumes=(theirs,), node="n0"))
        asking = info(make_pod("p", volumes=(mine,)))
        assert restrictions.after_pod_deleted(asking, gone, None) is wanted
    counted = info(make_pod("gone", volumes=(DATA,), node="n0"))
    assert limits.after_pod_deleted(counted, counted, None) is QUEUE
    unplaced = info(make_pod("gone", volumes=(DATA,)))
    assert limits.after_pod_deleted(counted, unplaced, None) is SKIP
    plain = info(make_pod("gone", node="n0"))
    assert limits.after_pod_deleted(counted, plain, None) is SKIP


def test_a_raised_volume_limit_queues_and_a_lowered_one_does_not() -> None:
    low, high = make_csi_node("n0", csi_example_com=1), make_csi_node("n0", csi_example_com=2)
    assert _hint(limits.after_csi_node_updated, (DATA,), low, high) is QUEUE
    assert _hint(limits.after_csi_node_updated, (DATA,), high, low) is SKIP
    endless = make_csi_node("n0", csi_example_com=None)
    assert _hint(limits.after_csi_node_updated, (DATA,), low, endless) is QUEUE
    assert _hint(limits.after_csi_node_updated, (DATA,), low, make_csi_node("n0")) is QUEUE
    assert _hint(limits.after_csi_node_updated, (DATA,), endless, low) is QUEUE
    assert _hint(limits.after_csi_node_updated, (DATA,), low, low) is SKIP
    migrated = make_csi_node("n0", migrated=["kubernetes.io/aws-ebs"], csi_example_com=2)
    assert _hint(hints.after_csi_node_changed, (DATA,), high, low) is SKIP
    assert _hint(hints.after_csi_node_changed, (DATA,), high, migrated) is QUEUE
    assert _hint(hints.after_csi_node_changed, (DATA,), None, high) is QUEUE


def test_a_deleted_attachment_queues_pods_with_claims_or_disks_of_its_driver() -> None:
    ebs = Volume("e", aws_elastic_block_store=AWSElasticBlockStoreVolumeSource("vol-1"))
    ours = make_attachment("a", "n0", "d", attacher="ebs.csi.aws.com")
    other = make_attachment("a", "n0", "d")
    assert _hint(limits.after_attachment_deleted, (DATA,), other, None) is QUEUE
    assert _hint(limits.after_attachment_deleted, (ephemeral_volume("x"),), other, None) is QUEUE
    assert _hint(limits.after_attachment_deleted, (ebs,), ours, None) is QUEUE
    assert _hint(limits.after_attachment_deleted, (ebs,), other, None) is SKIP


def test_classes_capacity_and_drivers_queue_pods_when_they_allow_more() -> None:
    narrow = make_class(topology=(ZONE, ["a"]))
    assert _hint(hints.after_class_changed, (), None, narrow) is QUEUE
    assert _hint(hints.after_class_changed, (), narrow, make_class()) is QUEUE
    assert _hint(hints.after_class_changed, (), narrow, narrow) is SKIP
    assert _hint(zone.after_class_added, (), None, narrow) is QUEUE
    assert _hint(zone.after_class_added, (), None, IMMEDIATE) is SKIP
    anywhere = LabelSelector()
    little, much = make_capacity("k", "1Gi", anywhere), make_capacity("k", "2Gi", anywhere)
    assert _hint(hints.after_capacity_changed, (), None, little) is QUEUE
    assert _hint(hints.after_capacity_changed, (), little, much) is QUEUE
    assert _hint(hints.after_capacity_changed, (), much, little) is SKIP
    asked, unasked = make_driver(capacity=True), make_driver(capacity=False)
    assert _hint(hints.after_csi_driver_changed, (DATA,), asked, unasked) is QUEUE
    assert _hint(hints.after_csi_driver_changed, (DATA,), asked, None) is QUEUE
    assert _hint(hints.after_csi_driver_changed, (DATA,), unasked, asked) is SKIP
    assert _hint(hints.after_csi_driver_changed, (DATA,), unasked, None) is SKIP
    there, moved = make_volume("d", labels={ZONE: "a"}), make_volume("d", labels={ZONE: "b"})
    assert _hint(zone.after_volume_changed, (), None, there) is QUEUE
    assert _hint(zone.after_volume_changed, (), there, moved) is QUEUE
    assert _hint(zone.after_volume_changed, (), there, there) is SKIP
