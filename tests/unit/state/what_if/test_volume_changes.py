"""Volumes that come and go with the pods of a node, against a recount."""

from __future__ import annotations

from itertools import chain, combinations

import numpy as np

from stowage.api.objects.pod import Pod
from stowage.api.values.csi_migration import AttachedVolume
from stowage.state import PodInfo
from stowage.state.pods.pod_variants import PodVariants
from stowage.state.storage.volume_use import VolumeUse
from stowage.state.what_if.added_pods import AddedPods
from stowage.state.what_if.row_local import RowWhatIf
from tests.support.builders import make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster
from tests.support.volume_builders import (
    DRIVER,
    claim_volume,
    make_attachment,
    make_claim,
    make_class,
    make_volume,
)

OTHER = "other.example.com"


def _cluster() -> MirroredCluster:
    """Two nodes; v0 is shared by pods of n0 and attached to it, v3 belongs to another driver."""
    cluster = MirroredCluster([make_node("n0"), make_node("n1")])
    cluster.update_storage(make_class())
    for number in range(5):
        driver = OTHER if number == 3 else DRIVER
        cluster.update_storage(
            make_volume(f"v{number}", given_to=f"c{number}", driver=driver),
            make_claim(f"c{number}", volume=f"v{number}"),
        )
    cluster.update_storage(make_attachment("a", "n0", "v0"), make_attachment("b", "n0", "v4"))
    for name, node, claims in (("a", "n0", (0, 1)), ("b", "n0", (0, 2, 3)), ("c", "n1", (1,))):
        cluster.bind(_pod(name, *claims), node)
    return cluster


def _pod(name: str, *claims: int) -> Pod:
    return make_pod(name, volumes=tuple(claim_volume(f"c{number}") for number in claims))


def _in_use(use: VolumeUse, pods: list[PodInfo]) -> set[AttachedVolume]:
    return {each for pod in pods for each in use.volumes_of(pod) if each.driver == DRIVER}


def test_the_changes_of_a_node_equal_a_recount_for_any_pods_removed_and_added() -> None:
    cluster = _cluster()
    snapshot = cluster.snapshot()
    rows = np.array([snapshot.row_of("n0"), snapshot.row_of("n1")], dtype=np.int64)
    use, row = snapshot.volume_use, int(rows[0])
    added = [cluster.info(_pod("d", 1, 2)), cluster.info(_pod("e", 3, 4)), cluster.info(_pod("f"))]
    wanted = {AttachedVolume(DRIVER, f"handle-v{number}") for number in (0, 2)}
    before = list(snapshot.pods_on("n0"))
    sets = list(chain.from_iterable(combinations([*before, *added], size) for size in range(6)))
    removed = RowWhatIf(snapshot, rows).removed_pods
    for now in map(list, sets):
        old, new = _in_use(use, before), _in_use(use, now)
        attached = {each for each in new | old if use.is_attached(each, row)}
        expected = (
            len(new | attached) - len(old | attached),
            len(new & wanted) - len(old & wanted),
        )
        assert removed.volume_changes_on(0, DRIVER, wanted, now) == expected


def test_the_volumes_that_removal_detaches_equal_a_recount() -> None:
    snapshot = _cluster().snapshot()
    rows = np.array([snapshot.row_of("n1"), snapshot.row_of("n0")], dtype=np.int64)
    wanted = {AttachedVolume(DRIVER, f"handle-v{number}") for number in (0, 2)}
    use = snapshot.volume_use
    tight = np.ones(snapshot.num_rows, dtype=np.bool_)
    for names in (set(), {"a"}, {"b"}, {"a", "b"}, {"a", "c"}, {"a", "b", "c"}):
        what_if = RowWhatIf(snapshot, rows)
        gone = np.zeros_like(what_if.removed)
        expected = []
        for position, row in enumerate(rows.tolist()):
            pods = what_if.ranked.pods_at(position)
            left = [pod for pod in pods if pod.name not in names]
            gone[what_if.ranked.slots_at(position)] = [pod.name in names for pod in pods]
            lost = _in_use(use, list(pods)) - _in_use(use, left)
            detached = [each for each in lost if not use.is_attached(each, row)]
            expected.append((len(detached), len(lost & wanted)))
        what_if.remove(gone)
        found = what_if.removed_pods.volumes(np.array([0, 1]), DRIVER, wanted, tight)
        assert [tuple(each) for each in np.array(found).T.tolist()] == expected


def test_added_pods_count_on_the_node_of_the_view_that_they_are_added_to() -> None:
    cluster = _cluster()
    snapshot = cluster.snapshot()
    rows = np.array([snapshot.row_of("n0"), snapshot.row_of("n1")], dtype=np.int64)
    variants, added = PodVariants(snapshot.resources), cluster.info(_pod("d", 1, 2))
    at_first = AddedPods(
        np.array([0]), np.array([variants.acquire(added)]), variants, [added], np.array([0])
    )
    wanted = {AttachedVolume(DRIVER, "handle-v2")}
    tight = np.ones(snapshot.num_rows, dtype=np.bool_)
    for positions, expected in (([0, 1], ([0, 0], [0, 0])), ([1, 0], ([1, 0], [1, 0]))):
        changes = RowWhatIf(snapshot, rows).view(np.array(positions), at_first).changes
        assert changes is not None
        attached, used = changes.volumes(DRIVER, wanted, tight)
        assert (attached.tolist(), used.tolist()) == expected
