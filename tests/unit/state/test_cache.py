"""The cache stores nodes and pods, whatever the order of their events."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any

import msgspec
import pytest

from stowage.api.cluster_events import ActionType
from stowage.api.decoding.errors import InvalidObject
from stowage.api.objects.meta import Condition
from stowage.api.objects.node import Node
from stowage.state import CPU, ClusterCache, InvariantViolation, PodInfo, make_pod_info
from stowage.state.pods.pod_info import PodClasses
from tests.support.builders import make_node, make_pod
from tests.support.volume_builders import claim_volume


@pytest.fixture
def cache() -> ClusterCache:
    cache = ClusterCache()
    for name in ("n1", "n2"):
        cache.update_node(make_node(name))
    return cache


def info(cache: ClusterCache, name: str = "p", **fields: Any) -> PodInfo:
    return make_pod_info(make_pod(name, **{"cpu": "1"} | fields), cache.classes)


def requested(cache: ClusterCache, node: str) -> int:
    snapshot = cache.snapshot()
    row = snapshot.row_of(node)
    return 0 if row is None else int(snapshot.requested[row, CPU])


def test_an_assumed_pod_counts_at_once_and_can_be_forgotten(cache: ClusterCache) -> None:
    placed = cache.assume_pod(info(cache), "n1")
    assert placed.node_name == "n1"
    assert cache.is_assumed("uid-p")
    assert requested(cache, "n1") == 1000
    assert cache.forget_pod("uid-p") == placed
    assert requested(cache, "n1") == 0
    assert cache.forget_pod("uid-p") is None


def test_a_pod_is_not_assumed_twice(cache: ClusterCache) -> None:
    cache.assume_pod(info(cache), "n1")
    with pytest.raises(ValueError, match=r"default/p \(uid-p\) is on node n1 already"):
        cache.assume_pod(info(cache), "n2")
    assert requested(cache, "n2") == 0


def test_the_watch_confirms_an_assumed_pod(cache: ClusterCache) -> None:
    cache.assume_pod(info(cache), "n1")
    usage = cache.snapshot().usage_changes.generation
    change = cache.update_pod(info(cache, node="n1"))
    assert change.confirmed
    assert change.actions == ActionType.ADD
    assert not cache.is_assumed("uid-p")
    assert cache.forget_pod("uid-p") is None
    assert requested(cache, "n1") == 1000
    assert cache.snapshot().usage_changes.generation == usage


def test_a_pod_bound_to_another_node_than_assumed_moves(cache: ClusterCache) -> None:
    cache.assume_pod(info(cache), "n1")
    change = cache.update_pod(info(cache, node="n2"))
    assert change.moved_from == "n1"
    assert not change.confirmed
    assert (requested(cache, "n1"), requested(cache, "n2")) == (0, 1000)
    assert not cache.is_assumed("uid-p")


def test_an_assumed_pod_that_is_deleted_is_removed(cache: ClusterCache) -> None:
    cache.assume_pod(info(cache), "n1")
    assert cache.remove_pod("uid-p") is not None
    assert cache.remove_pod("uid-p") is None
    assert cache.counts() == {"nodes": 2, "pods": 0, "assumed_pods": 0}


def test_an_update_of_an_assumed_pod_without_a_node_keeps_its_node(
    cache: ClusterCache,
) -> None:
    cache.assume_pod(info(cache), "n1")
    change = cache.update_pod(info(cache, labels={"app": "new"}))
    assert change.actions == ActionType.UPDATE_POD_LABEL
    assert cache.is_assumed("uid-p")
    pod = cache.get_pod("uid-p")
    assert pod is not None
    assert (pod.node_name, pod.labels) == ("n1", {"app": "new"})
    cache.validate()


def test_an_older_version_of_an_assumed_pod_is_ignored(cache: ClusterCache) -> None:
    cache.assume_pod(info(cache, resource_version="10"), "n1")
    change = cache.update_pod(info(cache, labels={"app": "old"}, resource_version="9"))
    assert change.ignored
    assert change.actions == 0
    pod = cache.get_pod("uid-p")
    assert pod is not None
    assert (pod.node_name, pod.labels) == ("n1", {})


def test_a_pod_without_a_node_that_is_not_assumed_is_refused(cache: ClusterCache) -> None:
    with pytest.raises(ValueError, match="has no node and is not assumed"):
        cache.update_pod(info(cache))


def test_an_update_replaces_the_usage_of_the_pod(cache: ClusterCache) -> None:
    cache.update_pod(info(cache, node="n1", cpu="2"))
    change = cache.update_pod(info(cache, node="n1", cpu="1"))
    assert change.actions == ActionType.UPDATE_POD_SCALE_DOWN
    assert requested(cache, "n1") == 1000


def test_an_update_older_than_the_known_version_is_ignored(cache: ClusterCache) -> None:
    cache.update_pod(info(cache, node="n1", cpu="2", resource_version="10"))
    change = cache.update_pod(info(cache, node="n1", cpu="1", resource_version="9"))
    assert change.ignored
    assert change.actions == 0
    assert requested(cache, "n1") == 2000


def test_a_pod_in_a_terminal_phase_uses_no_resources(cache: ClusterCache) -> None:
    cache.update_pod(info(cache, node="n1"))
    change = cache.update_pod(info(cache, node="n1", phase="Succeeded"))
    assert change.actions == ActionType.DELETE
    assert change.old is not None
    assert change.new is None
    assert requested(cache, "n1") == 0


def test_a_pod_first_seen_in_a_terminal_phase_is_ignored(cache: ClusterCache) -> None:
    change = cache.update_pod(info(cache, node="n1", phase="Failed"))
    assert change.ignored
    assert cache.counts()["pods"] == 0


def test_an_update_of_labels_does_not_change_the_usage(cache: ClusterCache) -> None:
    cache.update_pod(info(cache, node="n1"))
    before = cache.snapshot().usage_changes.generation
    change = cache.update_pod(info(cache, node="n1", labels={"app": "b"}))
    assert change.actions == ActionType.UPDATE_POD_LABEL
    assert cache.snapshot().usage_changes.generation == before
    cache.validate()


def test_a_terminating_pod_still_uses_its_node(cache: ClusterCache) -> None:
    cache.update_pod(info(cache, node="n1", terminating=True))
    assert requested(cache, "n1") == 1000


def test_a_pod_seen_before_its_node_counts_once_the_node_is_added(
    cache: ClusterCache,
) -> None:
    cache.update_pod(info(cache, node="late"))
    assert cache.snapshot().row_of("late") is None
    assert cache.snapshot().num_nodes == 2
    assert len(cache.pods_on("late")) == 1
    cache.validate()
    assert cache.update_node(make_node("late")).actions == ActionType.ADD
    assert requested(cache, "late") == 1000


def test_a_deleted_node_keeps_its_pods_until_they_are_removed(cache: ClusterCache) -> None:
    cache.update_pod(info(cache, node="n1"))
    assert cache.remove_node("n1") is not None
    assert cache.remove_node("n1") is None
    assert cache.snapshot().num_nodes == 1
    assert cache.get_pod("uid-p") is not None
    cache.validate()
    cache.update_node(make_node("n1"))
    assert requested(cache, "n1") == 1000
    cache.remove_node("n1")
    cache.remove_pod("uid-p")
    assert cache.snapshot().node_names.count("n1") == 0


def test_pods_of_the_same_name_are_distinguished_by_uid(cache: ClusterCache) -> None:
    cache.update_pod(info(cache, "p", uid="old", node="n1"))
    cache.update_pod(info(cache, "p", uid="new", node="n1"))
    cache.remove_pod("old")
    assert [pod.uid for pod in cache.pods_on("n1")] == ["new"]


def test_a_changed_condition_of_a_node_renews_kept_answers(cache: ClusterCache) -> None:
    before = cache.snapshot().node_changes.generation
    change = cache.update_node(make_node("n1", conditions=(Condition("Ready", "False"),)))
    assert change.actions == ActionType.UPDATE_NODE_CONDITION
    assert cache.snapshot().node_changes.generation == before + 1


def test_a_heartbeat_of_the_kubelet_changes_no_column(cache: ClusterCache) -> None:
    cache.update_node(make_node("n1", conditions=(Condition("Ready", "True"),)))
    before = cache.snapshot().node_changes.generation
    beat = make_node("n1", conditions=(Condition("Ready", "True", message="posting status"),))
    change = cache.update_node(beat)
    assert not change.actions
    snapshot = cache.snapshot()
    assert snapshot.node_changes.generation == before
    row = snapshot.row_of("n1")
    assert row is not None
    assert snapshot.node(row) == beat


def test_a_new_annotation_is_a_change_of_the_node(cache: ClusterCache) -> None:
    before = cache.snapshot().node_changes.generation
    node = make_node("n1")
    metadata = msgspec.structs.replace(node.metadata, annotations={"a": "b"})
    change = cache.update_node(msgspec.structs.replace(node, metadata=metadata))
    assert change.actions == ActionType.UPDATE_NODE_ANNOTATION
    changed = cache.snapshot().node_changes.since(before)
    assert changed is not None
    assert changed.tolist() == [cache.snapshot().row_of("n1")]


def test_a_node_older_than_the_known_version_is_ignored(cache: ClusterCache) -> None:
    cache.update_node(make_node("n1", cpu="8", resource_version="10"))
    assert cache.update_node(make_node("n1", cpu="4", resource_version="9")).ignored
    reborn = msgspec.structs.replace(
        make_node("n1", cpu="2", resource_version="9").metadata, uid="another"
    )
    change = cache.update_node(Node(metadata=reborn))
    assert not change.ignored


def test_the_snapshot_is_the_same_until_something_changes(cache: ClusterCache) -> None:
    snapshot = cache.snapshot()
    assert cache.snapshot() is snapshot
    current = [snapshot.is_current]
    cache.assume_pod(info(cache), "n1")
    current += [snapshot.is_current, cache.snapshot().is_current]
    assert current == [True, False, True]


class _OpenCache(ClusterCache):
    def count_unknown_pod(self) -> None:
        """Count a pod in row 0 that is in no other part of the cache."""
        self._state.columns.add_pod(0, make_pod_info(make_pod(cpu="3"), PodClasses()).pod_class)


def test_validate_finds_inconsistent_columns() -> None:
    cache = _OpenCache()
    cache.update_node(make_node("n1"))
    cache.assume_pod(info(cache), "n1")
    cache.validate()
    cache.count_unknown_pod()
    with pytest.raises(InvariantViolation, match="requested of node n1 in row 0"):
        cache.validate()


def test_a_pod_seen_again_in_another_namespace_uses_the_claim_of_that_namespace(
    cache: ClusterCache,
) -> None:
    """No API server sends this for one UID, but the counts must stay consistent."""
    for namespace in ("a", "b"):
        pod = info(cache, namespace=namespace, node="n1", volumes=(claim_volume("data"),))
        cache.update_pod(pod)
        cache.validate()
    assert cache.remove_pod("uid-p") is not None
    cache.validate()


def test_custom_objects_outdate_a_snapshot_only_if_they_change() -> None:
    cache, resource = ClusterCache(), "quotas.example.com"
    found = {"metadata": {"name": "q", "resourceVersion": "1"}}
    steps: list[Callable[[], object]] = [
        lambda: cache.update_custom_object(resource, found),
        lambda: cache.update_custom_object(resource, found),
        lambda: cache.remove_custom_object(resource, "other"),
        lambda: cache.remove_custom_object(resource, "q"),
        lambda: cache.remove_custom_resource(resource),
    ]
    outdated = []
    for step in steps:
        snapshot = cache.snapshot()
        step()
        outdated.append(not snapshot.is_current)
    assert outdated == [True, False, False, True, False]


#: Each changes what a snapshot shows.
CHANGES: dict[str, Callable[[ClusterCache], object]] = {
    "a node changes": lambda cache: cache.update_node(make_node("n1", cpu="9")),
    "a node goes": lambda cache: cache.remove_node("n2"),
    "a pod is assumed": lambda cache: cache.assume_pod(info(cache), "n1"),
    "a pod changes": lambda cache: cache.update_pod(info(cache, "placed", node="n1", cpu="2")),
    "a pod goes": lambda cache: cache.remove_pod("uid-placed"),
    "devices are taken": lambda cache: cache.begin_allocations([], "uid-p"),
    "devices are given up": lambda cache: cache.give_up_allocations([], "uid-p"),
    "devices are written": lambda cache: cache.end_allocations([]),
    "an eviction begins": lambda cache: cache.note_eviction(info(cache, "placed")),
    "an eviction is given up": lambda cache: cache.forget_eviction(info(cache, "placed")),
}


@pytest.mark.parametrize(("first", "second"), list(permutations(CHANGES, 2)))
def test_a_snapshot_is_replaced_after_any_two_changes(
    cache: ClusterCache, first: str, second: str
) -> None:
    cache.update_pod(info(cache, "placed", node="n1"))
    before = cache.snapshot()
    assert cache.snapshot() is before
    for change in (first, second):
        CHANGES[change](cache)
    assert cache.snapshot() is not before


def test_a_node_without_a_name_is_refused_as_a_node(cache: ClusterCache) -> None:
    with pytest.raises(InvalidObject) as caught:
        cache.update_node(make_node(""))
    assert (caught.value.kind, caught.value.field) == ("Node", "metadata.name")
    assert cache.counts()["nodes"] == 2


def test_the_update_of_an_assumed_pod_has_both_versions(cache: ClusterCache) -> None:
    assumed = cache.assume_pod(info(cache, resource_version="1"), "n1")
    change = cache.update_pod(info(cache, resource_version="2", labels={"a": "b"}))
    assert (change.old, change.actions) == (assumed, ActionType.UPDATE_POD_LABEL)
    assert change.new is not None
    assert (change.new.labels, change.new.node_name) == ({"a": "b"}, "n1")


def test_the_update_of_a_node_has_both_versions(cache: ClusterCache) -> None:
    before, after = make_node("n1"), make_node("n1", cpu="9")
    change = cache.update_node(after)
    assert (change.old, change.new) == (before, after)
    assert change.actions == ActionType.UPDATE_NODE_ALLOCATABLE


def test_a_snapshot_is_replaced_each_time_devices_are_written() -> None:
    cache = ClusterCache()
    seen = [cache.snapshot()]
    for _ in range(3):
        cache.end_allocations([])
        assert all(cache.snapshot() is not before for before in seen)
        seen.append(cache.snapshot())
