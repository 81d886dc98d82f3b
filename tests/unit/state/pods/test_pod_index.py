"""Counts by selector stay right when pods are added or removed and node labels change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stowage.api.objects.pod import Affinity, PodAffinity
from stowage.api.values.selectors import selector_from_labels
from stowage.state import ClusterCache, PodCounts, PodIndex, PodInfo, TermKind, make_pod_info
from stowage.state.cluster_state import ClusterState
from stowage.state.pods import pod_counts
from stowage.state.pods.pod_counts import DomainTracking
from stowage.state.pods.term_counts import TermCounts
from tests.support.builders import (
    HOSTNAME,
    ZONE,
    affinity_term,
    label_selector,
    make_namespace,
    make_node,
    make_pod,
    weighted,
)

APP_A = selector_from_labels({"app": "a"})
DEFAULT = frozenset(["default"])
NEAR_A = affinity_term(ZONE, label_selector({"app": "a"}))


@pytest.fixture
def cache() -> ClusterCache:
    cache = ClusterCache()
    for name, zone in (("n1", "x"), ("n2", "x"), ("n3", "y")):
        cache.update_node(make_node(name, zone=zone))
    return cache


def place(cache: ClusterCache, name: str, node: str, app: str = "a", **fields: Any) -> None:
    pod = make_pod(name, node=node, labels={"app": app}, **fields)
    cache.update_pod(make_pod_info(pod, cache.classes))


def asking(cache: ClusterCache, app: str = "a", namespace: str = "default") -> PodInfo:
    return make_pod_info(make_pod("ask", namespace=namespace, labels={"app": app}), cache.classes)


def count(cache: ClusterCache, skip_terminating: bool = False) -> PodCounts:
    index = cache.snapshot().pods
    return index.count_matching(APP_A, DEFAULT, skip_terminating=skip_terminating)


def by_value(
    cache: ClusterCache, counts: PodCounts | TermCounts, key: str
) -> dict[str | None, int]:
    column = cache.snapshot().label_column(key)
    return {column.value(code): n for code, n in enumerate(counts.per_domain(key).tolist()) if n}


def test_pods_are_counted_per_node_and_per_domain(cache: ClusterCache) -> None:
    place(cache, "p1", "n1")
    place(cache, "p2", "n2", namespace="other")
    place(cache, "p3", "n2", app="b")
    place(cache, "p4", "n3")
    counts = count(cache)
    assert counts.total == 2
    assert by_value(cache, counts, ZONE) == {"x": 1, "y": 1}
    assert by_value(cache, counts, HOSTNAME) == {"n1": 1, "n3": 1}


def test_requested_counts_are_kept_up_to_date(cache: ClusterCache) -> None:
    counts = count(cache)
    assert by_value(cache, counts, ZONE) == {}
    place(cache, "p1", "n1")
    place(cache, "p2", "n2")
    assert by_value(cache, counts, ZONE) == {"x": 2}
    cache.remove_pod("uid-p1")
    assert by_value(cache, counts, ZONE) == {"x": 1}
    assert count(cache) is counts


def test_a_pod_whose_label_changes_is_no_longer_counted(cache: ClusterCache) -> None:
    counts = count(cache)
    place(cache, "p1", "n1")
    assert counts.total == 1
    place(cache, "p1", "n1", app="b")
    assert counts.total == 0


def test_pods_move_to_another_domain_with_their_node(cache: ClusterCache) -> None:
    counts = count(cache)
    place(cache, "p1", "n1")
    assert by_value(cache, counts, ZONE) == {"x": 1}
    cache.update_node(make_node("n1", zone="z"))
    assert by_value(cache, counts, ZONE) == {"z": 1}
    cache.remove_node("n1")
    assert by_value(cache, counts, ZONE) == {}
    assert counts.total == 1
    cache.update_node(make_node("n1", zone="y"))
    assert by_value(cache, counts, ZONE) == {"y": 1}


def test_counts_grow_with_the_cluster(cache: ClusterCache) -> None:
    counts = count(cache)
    assert by_value(cache, counts, HOSTNAME) == {}
    for index in range(100):
        cache.update_node(make_node(f"more{index}"))
    place(cache, "p1", "more99")
    assert len(counts.per_node) == cache.snapshot().num_rows
    assert by_value(cache, counts, HOSTNAME) == {"more99": 1}


def test_terminating_pods_are_counted_unless_they_are_skipped(cache: ClusterCache) -> None:
    place(cache, "p1", "n1", terminating=True)
    assert count(cache).total == 1
    assert count(cache, skip_terminating=True).total == 0


def test_the_least_recently_used_selector_is_dropped_and_can_be_counted_again() -> None:
    state = ClusterState()
    index = PodIndex(state.columns.labels, state.namespaces, 64, max_selectors=2)
    pod = asking(ClusterCache())
    questions = [selector_from_labels({"app": app}) for app in "abc"]
    for selector in questions:
        index.count_matching(selector, None, skip_terminating=False)
    assert len(index.kept_counts()) == 2
    index.add(pod, 5)
    again = index.count_matching(questions[0], None, skip_terminating=False)
    assert again.per_node[5] == again.total == 1


def test_equal_terms_of_pods_are_one_existing_term(cache: ClusterCache) -> None:
    affinity = Affinity(pod_anti_affinity=PodAffinity((NEAR_A,)))
    place(cache, "p1", "n1", affinity=affinity)
    place(cache, "p2", "n3", app="b", affinity=affinity)
    index = cache.snapshot().pods
    (carried,) = index.existing_terms(TermKind.REQUIRED_ANTI_AFFINITY)
    assert by_value(cache, carried.counts, ZONE) == {"x": 1, "y": 1}
    assert not index.existing_terms(TermKind.REQUIRED_AFFINITY)
    cache.remove_pod("uid-p1")
    cache.remove_pod("uid-p2")
    assert not index.existing_terms(TermKind.REQUIRED_ANTI_AFFINITY)


def test_an_existing_term_has_its_weight(cache: ClusterCache) -> None:
    rules = PodAffinity((), (weighted(5, NEAR_A), weighted(9, NEAR_A)))
    place(cache, "p1", "n1", affinity=Affinity(pod_affinity=rules))
    found = cache.snapshot().pods.existing_terms(TermKind.PREFERRED_AFFINITY)
    assert sorted(carried.weight for carried in found) == [5, 9]


def test_only_terms_that_match_the_pod_are_found(cache: ClusterCache) -> None:
    affinity = Affinity(pod_affinity=PodAffinity((NEAR_A,)))
    place(cache, "p1", "n1", affinity=affinity)
    index = cache.snapshot().pods
    which = TermKind.REQUIRED_AFFINITY
    assert len(index.existing_terms_matching(which, asking(cache))) == 1
    assert not index.existing_terms_matching(which, asking(cache, app="b"))
    assert not index.existing_terms_matching(which, asking(cache, namespace="other"))


def test_a_namespace_selector_follows_the_labels_of_namespaces(cache: ClusterCache) -> None:
    term = affinity_term(
        ZONE, label_selector({"app": "a"}), namespace_selector=label_selector({"team": "x"})
    )
    place(cache, "p1", "n1", affinity=Affinity(pod_affinity=PodAffinity((term,))))
    pod = asking(cache, namespace="red")

    def found() -> int:
        index = cache.snapshot().pods
        return len(index.existing_terms_matching(TermKind.REQUIRED_AFFINITY, pod))

    assert found() == 0
    cache.update_namespace(make_namespace("red", labels={"team": "x"}))
    assert found() == 1
    cache.update_namespace(make_namespace("red", labels={"team": "y"}))
    assert found() == 0


def test_cached_matches_include_new_terms(cache: ClusterCache) -> None:
    which = TermKind.REQUIRED_AFFINITY
    for number, app in enumerate(["a", "b", "a"]):
        term = affinity_term(HOSTNAME if number else ZONE, label_selector({"app": app}))
        affinity = Affinity(pod_affinity=PodAffinity((term,)))
        place(cache, f"p{number}", "n1", affinity=affinity)
        found = cache.snapshot().pods.existing_terms_matching(which, asking(cache))
        assert len(found) == [1, 1, 2][number]
    cache.remove_pod("uid-p0")
    assert len(cache.snapshot().pods.existing_terms_matching(which, asking(cache))) == 1


def test_a_term_that_comes_as_another_goes_is_found(cache: ClusterCache) -> None:
    which, rules = TermKind.REQUIRED_AFFINITY, PodAffinity((NEAR_A,))
    place(cache, "p1", "n1", affinity=Affinity(pod_affinity=rules))
    assert len(cache.snapshot().pods.existing_terms_matching(which, asking(cache))) == 1
    other = affinity_term(HOSTNAME, label_selector({"app": "a"}))
    place(cache, "p2", "n1", affinity=Affinity(pod_affinity=PodAffinity((other,))))
    cache.remove_pod("uid-p1")
    (found,) = cache.snapshot().pods.existing_terms_matching(which, asking(cache))
    assert found.term.topology_key == HOSTNAME


def test_counts_that_were_dropped_follow_no_node_any_more() -> None:
    state = ClusterState()
    tracking = DomainTracking(state.columns.labels)
    state.columns.set_node(make_node("n0", zone="x"))
    column = state.columns.labels.column(ZONE)
    per_node = np.ones(state.columns.num_rows, dtype=np.int64)
    kept, dropped = (PodCounts(state.columns.labels, per_node.copy(), tracking) for _ in range(2))
    assert kept.per_domain(ZONE).tolist() == dropped.per_domain(ZONE).tolist() == [1]
    dropped.dropped()
    for number in range(1, 200):
        kept.grow(max(state.columns.num_rows, number + 1))
        state.columns.set_node(make_node(f"n{number}", zone="x"))
    assert column.num_values == 1
    assert kept.per_domain(ZONE).tolist() == [len(per_node)]
    assert dropped.known_domains() == {}.keys()


def test_domains_with_pods_are_given_apart_while_they_are_few_of_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Many are from 64 on here; few of them are one in sixteen."""
    monkeypatch.setattr(pod_counts, "MANY_DOMAINS", 64)
    state = ClusterState()
    tracking = DomainTracking(state.columns.labels)
    for number in range(100):
        state.columns.set_node(make_node(f"n{number:02}"))
    zeros = np.zeros(state.columns.num_rows, dtype=np.int64)
    counts = PodCounts(state.columns.labels, zeros, tracking)
    for number in range(8):
        few = counts.few_domains(HOSTNAME)
        assert (few is not None) == (number <= 6)
        if few is not None:
            codes, pods = few
            assert (len(codes), pods.tolist()) == (number, [2] * number)
        counts.add(number, 2)
    assert counts.few_domains(ZONE) is None
    untracked = PodCounts(state.columns.labels, zeros)
    assert untracked.few_domains(HOSTNAME) is None


@pytest.mark.parametrize("num_pods", [1, 60])
def test_a_copy_of_the_counts_of_a_term_has_its_own_changes(
    cache: ClusterCache, num_pods: int
) -> None:
    for number in range(num_pods):
        cache.update_node(make_node(f"more{number}", zone="x"))
        affinity = Affinity(pod_affinity=PodAffinity((NEAR_A,)))
        place(cache, f"p{number}", f"more{number}", affinity=affinity)
    (existing,) = cache.snapshot().pods.existing_terms(TermKind.REQUIRED_AFFINITY)
    row = cache.snapshot().row_of("n3")
    assert row is not None
    changed = existing.counts.with_changes([(row, 2)])
    assert (existing.counts.total, changed.total) == (num_pods, num_pods + 2)
    assert (existing.counts.per_node[row], changed.per_node[row]) == (0, 2)
    assert by_value(cache, existing.counts, ZONE) == {"x": num_pods}
    assert by_value(cache, changed, ZONE) == {"x": num_pods, "y": 2}
