"""Rows with pods removed, each for itself, as plugins read them."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from stowage.api.objects.pod import Affinity, PodAffinity
from stowage.api.values.selectors import selector_from_labels
from stowage.state import PodInfo, TermKind
from stowage.state.arrays import BoolArray
from stowage.state.pods.pod_class import HostPort
from stowage.state.snapshot import Snapshot
from stowage.state.what_if.row_local import RowWhatIf
from tests.support.builders import (
    HOSTNAME,
    ZONE,
    affinity_term,
    label_selector,
    make_node,
    make_pod,
)
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
    what_if.remove(_named(what_if, removed))
    return what_if


def _named(what_if: RowWhatIf, names: Collection[str]) -> BoolArray:
    ranked = what_if.ranked
    return np.array([ranked.pod_in(slot).name in names for slot in range(ranked.num_slots)])


def test_a_view_has_the_requests_of_the_remaining_pods() -> None:
    view = _what_if(_cluster(), "a1", "b1").view(np.array([0, 1]))
    expected = _cluster("a1", "b1")
    rows = np.array([expected.row_of(name) for name in ("a", "b")], dtype=np.int64)
    assert view.requested.tolist() == expected.requested[rows].tolist()
    assert view.nonzero_requested.tolist() == expected.nonzero_requested[rows].tolist()
    assert view.num_pods.tolist() == [1, 1]


def test_a_number_of_each_pod_is_summed_over_the_removed_pods_of_the_rows_that_have_it() -> None:
    snapshot = _cluster()
    rows = np.array([snapshot.row_of(name) for name in ("a", "b")], dtype=np.int64)
    positions = np.array([1, 0, 1])
    untouched = RowWhatIf(snapshot, rows).removed_pods
    assert untouched.sum_by_pod(positions, "length", _number, rows).tolist() == [0, 0, 0]
    removed = _what_if(snapshot, "a1", "a2", "b1").removed_pods
    assert removed.sum_by_pod(positions, "all", _number, rows).tolist() == [1, 3, 1]
    assert removed.sum_by_pod(positions, "of b", _number, rows[1:]).tolist() == [1, 0, 1]


def test_removed_pods_are_counted_in_the_namespaces_that_are_asked_for() -> None:
    cluster = MirroredCluster([make_node("a"), make_node("b")])
    for name, node, namespace in (("a1", "a", "x"), ("a2", "a", "y"), ("b1", "b", "x")):
        cluster.bind(make_pod(name, namespace=namespace, labels={"app": "db"}), node)
    changes = _what_if(cluster.snapshot(), "a1", "a2", "b1").view(np.array([0, 1])).changes
    assert changes is not None
    selector = selector_from_labels({"app": "db"})
    for namespaces, expected in (({"x"}, [-1, -1]), ({"y"}, [-1, 0]), (set(), [0, 0])):
        counts = changes.count_matching(selector, frozenset(namespaces), skip_terminating=False)
        assert counts.tolist() == expected
    assert changes.count_matching(selector, None, skip_terminating=True).tolist() == [-2, -1]


def test_the_terms_of_removed_pods_are_counted_once_for_each_time_they_have_them() -> None:
    near, far = (affinity_term(key, label_selector({"app": "db"})) for key in (HOSTNAME, ZONE))
    cluster = MirroredCluster([make_node("a"), make_node("b")])
    for name, node, terms in (("a1", "a", (near, near)), ("a2", "a", (near,)), ("b1", "b", (far,))):
        cluster.bind(make_pod(name, affinity=Affinity(pod_affinity=PodAffinity(terms))), node)
    snapshot = cluster.snapshot()
    (term,) = {
        existing.term
        for existing in snapshot.pods.existing_terms(TermKind.REQUIRED_AFFINITY)
        if existing.term.topology_key == HOSTNAME
    }
    for removed, expected in ((("a1", "b1"), [-2, 0]), (("a1", "a2"), [-3, 0]), ((), [0, 0])):
        changes = _what_if(snapshot, *removed).view(np.array([0, 1])).changes
        assert changes is not None
        assert changes.count_terms(TermKind.REQUIRED_AFFINITY, term).tolist() == expected


def _number(pod: PodInfo) -> int:
    return int(pod.name[1:])


def test_a_pod_that_is_put_back_counts_until_it_is_removed_again() -> None:
    what_if = _what_if(_cluster(), "a1", "a2", "b1")
    every, position = np.array([0, 1]), np.array([0])
    removed = what_if.view(every).requested.copy()
    what_if.put_back(position, np.array([0]))
    assert what_if.view(every).num_pods.tolist() == [1, 1]
    changes = what_if.view(every).changes
    assert changes is not None
    (left,) = changes.pods(0)
    expected = _cluster(*{"a1", "a2", "b1"} - {left.name})
    row = expected.row_of("a")
    assert what_if.view(every).requested[0].tolist() == expected.requested[row].tolist()
    what_if.remove_again(position, np.array([0]))
    assert what_if.view(every).requested.tolist() == removed.tolist()
    assert what_if.view(every).num_pods.tolist() == [0, 1]


def test_a_host_port_is_taken_on_its_node_until_its_pod_is_removed() -> None:
    cluster = MirroredCluster([make_node(name) for name in ("a", "b", "c")])
    for name, number in (("a", 80), ("b", 8080), ("c", 80)):
        cluster.bind(make_pod(f"{name}1", host_ports=[number]), name)
    snapshot = cluster.snapshot()
    port: HostPort = ("0.0.0.0", "TCP", 80)
    rows = np.array([snapshot.row_of(name) for name in ("c", "b", "a")], dtype=np.int64)
    what_if = RowWhatIf(snapshot, rows, [port])
    assert what_if.view(np.arange(3)).ports_in_conflict([port]).tolist() == [True, False, True]
    assert what_if.view(np.array([1, 2])).ports_in_conflict([port]).tolist() == [False, True]
    what_if.remove(_named(what_if, ["c1"]))
    assert what_if.view(np.arange(3)).ports_in_conflict([port]).tolist() == [False, False, True]


def test_there_is_a_slot_for_each_pod_and_no_more() -> None:
    snapshot = _cluster("b2")
    rows = np.array([snapshot.row_of(name) for name in ("a", "b")], dtype=np.int64)
    both = RowWhatIf(snapshot, rows).ranked
    assert (both.ends.tolist(), both.positions.tolist()) == ([0, 2, 3], [0, 0, 1])
    assert RowWhatIf(snapshot, rows[1:]).ranked.ends.tolist() == [0, 1]
