"""The use of storage on each node, counted as pods come and go."""

from __future__ import annotations

from typing import Any

import pytest

from stowage.api.objects.volume import (
    AWSElasticBlockStoreVolumeSource,
    GCEPersistentDiskVolumeSource,
    ISCSIVolumeSource,
    RBDVolumeSource,
    Volume,
)
from stowage.state import PodClasses, PodInfo, make_pod_info
from stowage.state.storage.objects import Storage
from stowage.state.storage.volume_use import VolumeUse, disk_conflicts
from tests.support.builders import make_pod
from tests.support.volume_builders import (
    DRIVER,
    claim_volume,
    ephemeral_volume,
    make_claim,
    make_class,
    make_volume,
)

NUM_ROWS = 4
CLASSES = PodClasses()


def _pod(name: str, *volumes: Volume, namespace: str = "default") -> PodInfo:
    return make_pod_info(make_pod(name, namespace=namespace, volumes=volumes), CLASSES)


def _use(*objects: Any) -> tuple[VolumeUse, Storage]:
    storage = Storage()
    for obj in (make_class(), *objects):
        storage.put(obj)
    return VolumeUse(storage, NUM_ROWS), storage


def _attached(use: VolumeUse) -> list[int]:
    counts = use.attached(DRIVER)
    return [] if counts is None else counts.tolist()


def test_pods_that_use_a_claim_of_a_name_are_found_in_any_namespace() -> None:
    use, _ = _use()
    pods = [
        (_pod("a", claim_volume("c")), 0),
        (_pod("b", claim_volume("c"), namespace="other"), 2),
        (_pod("c", claim_volume("d")), 3),
    ]
    for pod, row in pods:
        use.add_pod(pod, row)
    assert sorted(use.users_of_names(["c", "none"]).tolist()) == [0, 2]
    use.remove_pod(*pods[0])
    assert use.users_of_names(["c"]).tolist() == [2]
    use.remove_pod(*pods[1])
    assert use.users_of_names(["c"]).tolist() == []


def test_a_volume_counts_once_on_a_node_and_follows_its_claim() -> None:
    use, storage = _use(make_claim("c"), make_claim("d"))
    first, second = _pod("a", claim_volume("c")), _pod("b", claim_volume("c"), claim_volume("d"))
    use.add_pod(first, 1)
    use.add_pod(second, 1)
    assert _attached(use) == [0, 2, 0, 0]
    for name in ("c", "d"):
        storage.put(make_claim(name, volume="v"))
    storage.put(make_volume("v"))
    for name in ("c", "d"):
        use.claim_changed(f"default/{name}")
    assert _attached(use) == [0, 1, 0, 0]
    use.grow(6)
    assert _attached(use) == [0, 1, 0, 0, 0, 0]
    use.remove_pod(second, 1)
    assert _attached(use) == [0, 1, 0, 0, 0, 0]
    use.remove_pod(first, 1)
    assert _attached(use) == [0] * 6


def test_an_ephemeral_claim_counts_only_for_the_pod_that_owns_it() -> None:
    use, _ = _use(
        make_claim("owner-scratch", owner_uid="uid-owner"),
        make_claim("thief-scratch", owner_uid="uid-owner"),
    )
    use.add_pod(_pod("owner", ephemeral_volume("scratch")), 0)
    use.add_pod(_pod("thief", ephemeral_volume("scratch")), 1)
    assert _attached(use) == [1, 0, 0, 0]


DISKS = {
    "gce": (
        [Volume("v", gce_persistent_disk=GCEPersistentDiskVolumeSource("d"))],
        [Volume("v", gce_persistent_disk=GCEPersistentDiskVolumeSource("e"))],
        1,
    ),
    "ebs": (
        [Volume("v", aws_elastic_block_store=AWSElasticBlockStoreVolumeSource("d"))],
        [Volume("v", aws_elastic_block_store=AWSElasticBlockStoreVolumeSource("e"))],
        1,
    ),
    "iscsi": (
        [Volume("v", iscsi=ISCSIVolumeSource(iqn="d"))],
        [Volume("v", iscsi=ISCSIVolumeSource(iqn="e"))],
        1,
    ),
    "rbd with two monitors": (
        [Volume("v", rbd=RBDVolumeSource(("m", "n", "m"), "d", "p"))],
        [Volume("v", rbd=RBDVolumeSource(("m", "n"), "e", "p"))],
        2,
    ),
}


@pytest.mark.parametrize("kind", DISKS)
def test_pods_with_the_same_disk_conflict_and_with_others_do_not(kind: str) -> None:
    same, other, num_conflicts = DISKS[kind]
    use, _ = _use()
    use.add_pod(_pod("a", *same), 2)
    found = use.conflicts(same)
    assert found is not None
    assert found.tolist() == [0, 0, num_conflicts, 0]
    assert use.conflicts(other) is None
    assert (disk_conflicts(same, same), disk_conflicts(same, other)) == (num_conflicts, 0)


@pytest.mark.parametrize("placed_reads", [False, True])
@pytest.mark.parametrize("reads", [False, True])
def test_only_readers_share_a_disk(placed_reads: bool, reads: bool) -> None:
    def disk(read_only: bool) -> Volume:
        source = GCEPersistentDiskVolumeSource("d", read_only=read_only)
        return Volume("v", gce_persistent_disk=source)

    use, _ = _use()
    use.add_pod(_pod("a", disk(placed_reads)), 0)
    found = use.conflicts([disk(reads)])
    assert (found is None) == (placed_reads and reads)


def test_a_copy_with_other_pods_leaves_the_original_as_it_was() -> None:
    disk = Volume("v", gce_persistent_disk=GCEPersistentDiskVolumeSource("d"))
    use, _ = _use(make_claim("c"), make_claim("d"))
    before = _pod("before", claim_volume("c"), disk)
    use.add_pod(before, 0)
    changed = use.with_changes([before], [_pod("after", claim_volume("d"), claim_volume("c"))], 0)
    assert (_attached(use), _attached(changed)) == ([1, 0, 0, 0], [2, 0, 0, 0])
    assert use.conflicts([disk]) is not None
    assert changed.conflicts([disk]) is None
    more = use.with_changes([], [_pod("more", disk)], 1)
    found = more.conflicts([disk])
    assert found is not None
    assert found.tolist() == [1, 1, 0, 0]
