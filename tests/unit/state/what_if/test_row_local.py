"""Rows with pods removed, each for itself, as plugins read them."""

from __future__ import annotations

import numpy as np

from stowage.state.snapshot import Snapshot
from stowage.state.what_if.row_local import RowWhatIf
from tests.support.builders import make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster

GPU, LICENCE = "example.com/gpu", "example.com/licence"


def _cluster(*removed: str) -> Snapshot:
    """Two nodes with two pods each, but for those that are removed."""
    amounts = {GPU: "8", LICENCE: "8"}
    cluster = MirroredCluster([make_node(name, allocatable=amounts) for name in ("a", "b")])
    pods: tuple[tuple[str, str, dict[str, str]], ...] = (
        ("a1", "a", {"cpu": "1", "memory": "1Gi", GPU: "1", LICENCE: "3"}),
        ("a2", "a", {"cpu": "2", LICENCE: "1"}),
        ("b1", "b", {"memory": "2Gi", GPU: "4"}),
        ("b2", "b", {}),
    )
    for name, node, requests in pods:
        if name not in removed:
            cluster.bind(make_pod(name, requests=requests), node)
    return cluster.snapshot()


def _what_if(snapshot: Snapshot, *removed: str) -> RowWhatIf:
    rows = np.array([snapshot.row_of(name) for name in ("a", "b")], dtype=np.int64)
    what_if = RowWhatIf(snapshot, rows)
    gone = np.zeros_like(what_if.ranked.present)
    for position in range(len(rows)):
        for slot, pod in enumerate(what_if.ranked.pods_at(position)):
            gone[position, slot] = pod.name in removed
    what_if.remove(gone)
    return what_if


def test_a_view_has_the_requests_of_the_remaining_pods() -> None:
    view = _what_if(_cluster(), "a1", "b1").view(np.array([0, 1]))
    expected = _cluster("a1", "b1")
    rows = np.array([expected.row_of(name) for name in ("a", "b")], dtype=np.int64)
    assert view.requested.tolist() == expected.requested[rows].tolist()
    assert view.nonzero_requested.tolist() == expected.nonzero_requested[rows].tolist()
    assert view.num_pods.tolist() == [1, 1]
