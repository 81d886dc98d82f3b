"""Snapshots of the live state, and what-if snapshots."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest

from stowage.api.values.selectors import selector_from_labels
from stowage.state import CPU, ClusterCache, PodInfo, Snapshot, make_pod_info
from stowage.state import snapshot as snapshots
from stowage.state.arrays import Int64Array, Rows
from stowage.state.snapshot import NodeView
from stowage.state.what_if.snapshot import WhatIfSnapshot
from tests.support.builders import HOSTNAME, ZONE, make_node, make_pod


@pytest.fixture
def cache() -> ClusterCache:
    cache = ClusterCache()
    for index in range(4):
        cache.update_node(make_node(f"n{index}", cpu=str(index + 1), zone="xy"[index % 2]))
    for index in range(3):
        pod = make_pod(f"p{index}", cpu="1", labels={"app": "a"}, node=f"n{index}", host_ports=[80])
        cache.update_pod(make_pod_info(pod, cache.classes))
    return cache


def rows(snapshot: Snapshot, *names: str) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.array([snapshot.row_of(name) for name in names], dtype=np.int64)


def what_if(snapshot: Snapshot, added: list[PodInfo]) -> WhatIfSnapshot:
    """A what-if snapshot in which node n0 has other pods."""
    row = snapshot.row_of("n0")
    assert row is not None
    return WhatIfSnapshot(snapshot, snapshot.pods_on("n0"), added, row)


def test_a_view_of_rows_keeps_their_order(cache: ClusterCache) -> None:
    snapshot = cache.snapshot()
    view = snapshot.view(rows(snapshot, "n3", "n0"))
    assert len(view) == 2
    assert view.names == ["n3", "n0"]
    assert view.allocatable[:, CPU].tolist() == [4000, 1000]
    assert view.requested[:, CPU].tolist() == [0, 1000]
    assert view.num_pods.tolist() == [0, 1]
    assert view.ports_in_conflict([("0.0.0.0", "TCP", 80)]).tolist() == [False, True]
    zones = snapshot.label_column(ZONE)
    assert [zones.value(code) for code in view.label_codes(ZONE)] == ["y", "x"]
    assert view.take(snapshot.all_rows).tolist() == view.rows.tolist()


def test_the_view_of_all_nodes_shares_the_memory(cache: ClusterCache) -> None:
    snapshot = cache.snapshot()
    view = snapshot.all_nodes
    assert len(view) == snapshot.num_rows
    assert np.shares_memory(view.requested, snapshot.requested)
    assert view.exists.sum() == snapshot.num_nodes == 4
    assert view.rows.tolist() == list(range(snapshot.num_rows))
    assert len(snapshot.view(slice(1, 3))) == 2


@pytest.mark.parametrize("which", [(0,), (1, 2), (0, 1, 2, 3), (0, 2, 3), ()])
def test_an_ascending_view_equals_any_other_view(
    cache: ClusterCache, which: tuple[int, ...]
) -> None:
    snapshot, picked = cache.snapshot(), np.array(which, dtype=np.int64)
    _check_equal_views(snapshot, picked, snapshot.ascending_view(picked))
    by_runs = Rows.where(np.isin(snapshot.all_rows, picked))
    _check_equal_views(snapshot, picked, snapshot.ascending_view(by_runs.numbers, by_runs.runs))
    with patch.object(snapshots, "_MANY_ROWS", 0):
        _check_equal_views(snapshot, picked, snapshot.ascending_view(picked.copy()))


def test_the_same_rows_again_give_the_same_view_of_the_same_snapshot_only(
    cache: ClusterCache,
) -> None:
    """What one plugin has read of a view, the next one need not read again."""
    before, picked = cache.snapshot(), np.array([0, 2])
    for view_of in (Snapshot.view, Snapshot.ascending_view):
        view = view_of(before, picked)
        assert view_of(before, picked) is view
        assert view_of(before, picked.copy()) is not view
    cache.update_node(make_node("n0", cpu="64"))
    after = cache.snapshot()
    for view_of in (Snapshot.view, Snapshot.ascending_view):
        view_of(before, picked)
        assert view_of(after, picked).snapshot is after


def _check_equal_views(snapshot: Snapshot, picked: Int64Array, ascending: NodeView) -> None:
    which, other = picked.tolist(), snapshot.view(picked.copy())
    for view in (ascending, other):
        assert (len(view), view.rows.tolist()) == (len(which), list(which))
    for column in ("exists", "allocatable", "requested", "nonzero_requested", "num_pods"):
        assert getattr(ascending, column).tolist() == getattr(other, column).tolist()
    assert ascending.names == other.names
    assert ascending.label_codes(ZONE).tolist() == other.label_codes(ZONE).tolist()
    for key in (ZONE, HOSTNAME, "none"):
        table = np.arange(snapshot.label_column(key).num_values + 1)
        codes = [snapshot.label_codes(key)[row] for row in which]
        assert ascending.by_label(key, table).tolist() == [table[code] for code in codes]
    ports = [("0.0.0.0", "TCP", 80)]
    assert ascending.ports_in_conflict(ports).tolist() == other.ports_in_conflict(ports).tolist()
    numbers = np.arange(snapshot.num_rows)
    ascending.copied(numbers)[:] = -1
    assert numbers.tolist() == list(range(snapshot.num_rows)), "a copy is the caller's own"


def test_a_snapshot_is_read_only(cache: ClusterCache) -> None:
    snapshot = cache.snapshot()
    counts = snapshot.pods.count_matching(
        selector_from_labels({"app": "a"}), None, skip_terminating=False
    )
    vector = snapshot.request_vector(next(iter(snapshot.pods_on("n0"))).pod_class)
    arrays = (snapshot.num_pods, snapshot.label_codes(ZONE), counts.per_node, vector)
    for array in (*arrays, counts.per_domain(ZONE)):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_all_nodes_have_a_label_although_rows_without_a_node_have_none(cache: ClusterCache) -> None:
    cache.remove_node("n3")
    snapshot = cache.snapshot()
    assert snapshot.num_rows > snapshot.num_nodes
    assert snapshot.all_have_label(ZONE)
    cache.update_node(make_node("n4"))
    assert not cache.snapshot().all_have_label(ZONE)


def test_only_pods_that_are_there_have_a_lower_priority(cache: ClusterCache) -> None:
    assert not cache.snapshot().has_pods_below(0)
    low = make_pod_info(make_pod("low", node="n3", priority=-5), cache.classes)
    cache.update_pod(low)
    assert [cache.snapshot().has_pods_below(each) for each in (-5, 0)] == [False, True]
    cache.remove_pod(low.uid)
    assert not cache.snapshot().has_pods_below(0)


def test_a_what_if_snapshot_has_other_pods_on_one_node(cache: ClusterCache) -> None:
    snapshot = cache.snapshot()
    extra = make_pod_info(make_pod("extra", cpu="2", labels={"app": "b"}), cache.classes)
    changed = what_if(snapshot, [extra])
    assert changed.is_what_if
    assert not snapshot.is_what_if
    view = changed.view(rows(changed, "n0", "n1"))
    assert view.requested[:, CPU].tolist() == [2000, 1000]
    assert view.num_pods.tolist() == [1, 1]
    ports = [("0.0.0.0", "TCP", 80)]
    assert view.ports_in_conflict(ports).tolist() == [False, True]
    assert changed.get_pod("uid-p0") is None
    assert changed.get_pod("uid-p1") is snapshot.get_pod("uid-p1")
    assert changed.get_pod("uid-extra") in changed.pods_on("n0")
    assert [pod.uid for pod in changed.pods_on("n0")] == ["uid-extra"]
    assert list(changed.pods_on("n1")) == list(snapshot.pods_on("n1"))
    selector = selector_from_labels({"app": "a"})
    for shown, want in ((changed, {"x": 1, "y": 1}), (snapshot, {"x": 2, "y": 1})):
        counts = shown.pods.count_matching(selector, None, skip_terminating=True)
        column = shown.label_column(ZONE)
        per_zone = dict(zip(column.values.values, counts.per_domain(ZONE).tolist(), strict=True))
        assert per_zone == want
    cache.validate()


def test_a_resource_that_no_node_has_is_counted_only_in_the_what_if(cache: ClusterCache) -> None:
    snapshot = cache.snapshot()
    pod = make_pod_info(make_pod("gpu", requests={"example.com/gpu": "2"}), cache.classes)
    changed = what_if(snapshot, [pod])
    row = snapshot.row_of("n0")
    assert row is not None
    assert changed.requested_by_name()[row]["example.com/gpu"] == 2
    assert "example.com/gpu" not in snapshot.requested_by_name()[row]
    assert changed.requested.shape == snapshot.requested.shape == snapshot.allocatable.shape
