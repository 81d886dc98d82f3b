"""Label groups are matched by columns if there are many, else one by one, with equal results."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from stowage.api.values.selectors import EVERYTHING, NOTHING, Operator, Requirement, Selector
from stowage.state import ClusterCache, PodInfo, make_pod_info
from stowage.state.cluster_state import ClusterState
from stowage.state.pods import pod_index
from stowage.state.pods.label_groups import LabelGroup, WeightedQuery
from stowage.state.pods.pod_index import PodIndex
from tests.support.builders import ZONE, make_node, make_pod

NUM_ROWS = 64


def _selector(rng: Random) -> Selector:
    values = tuple(sorted({f"v{rng.randrange(40)}" for _ in range(rng.choice((1, 2, 30)))}))
    requirements = [
        Requirement("app", Operator.IN, values),
        Requirement("app", Operator.NOT_IN, values),
        Requirement("tier", Operator.EXISTS),
        Requirement("tier", Operator.DOES_NOT_EXIST),
        Requirement("unheard-of", Operator.DOES_NOT_EXIST),
        Requirement("unheard-of", Operator.IN, values),
    ]
    picked = rng.sample(requirements, rng.choice((1, 1, 2)))
    return rng.choice((Selector(tuple(sorted(picked))),) * 8 + (EVERYTHING, NOTHING))


def _pod(cache: ClusterCache, rng: Random, number: int) -> PodInfo:
    labels = {"app": f"v{rng.randrange(40)}"} if rng.random() < 0.9 else {}
    labels |= {"tier": f"t{rng.randrange(5)}"} if rng.random() < 0.5 else {}
    deleted = "2026-01-01T00:00:00Z" if rng.random() < 0.2 else None
    pod = make_pod(f"p{number}", namespace=f"ns{rng.randrange(6)}", labels=labels)
    metadata = pod.metadata
    if deleted is not None:
        pod = replace(pod, metadata=replace(metadata, deletion_timestamp=deleted))
    return make_pod_info(pod, cache.classes)


@pytest.mark.parametrize("num_pods", [20, 400])
@pytest.mark.parametrize("max_selectors", [3, 512])
def test_counts_equal_a_recount_of_all_pods(num_pods: int, max_selectors: int) -> None:
    rng, cache, state = Random(num_pods), ClusterCache(), ClusterState()
    index = PodIndex(state.columns.labels, state.namespaces, NUM_ROWS, max_selectors)
    placed: list[tuple[PodInfo, int]] = []
    for number in range(num_pods + 60):
        if len(placed) >= num_pods and rng.random() < 0.5:
            index.remove(*placed.pop(rng.randrange(len(placed))))
        else:
            placed.append((_pod(cache, rng, number), rng.randrange(NUM_ROWS)))
            index.add(*placed[-1])
        if number < num_pods - 20:
            continue
        for _ in range(5):
            selector = _selector(rng)
            namespaces = rng.choice((None, frozenset(("ns1",)), frozenset(("ns1", "ns2", "no"))))
            skip = rng.random() < 0.5
            counts = index.count_matching(selector, namespaces, skip_terminating=skip)
            want = np.zeros(NUM_ROWS, dtype=np.int64)
            for pod, row in placed:
                if namespaces is not None and pod.namespace not in namespaces:
                    continue
                if not (skip and pod.terminating) and selector.matches(pod.labels):
                    want[row] += 1
            assert counts.per_node.tolist() == want.tolist()
            assert counts.total == want.sum()


def test_queries_beyond_the_maximum_do_not_evict_kept_ones() -> None:
    cache, state = ClusterCache(), ClusterState()
    index = PodIndex(state.columns.labels, state.namespaces, NUM_ROWS, max_selectors=4)
    pod = make_pod_info(make_pod("p", labels={"app": "v1"}), cache.classes)
    index.add(pod, 3)
    selectors = [
        Selector((Requirement("app", Operator.NOT_IN, (f"v{n + 2}",)),)) for n in range(20)
    ]
    for _ in range(3):
        for selector in selectors:
            counts = index.count_matching(selector, None, skip_terminating=False)
            assert counts.per_node[3] == 1
    assert [query.selector for query in index.kept_counts()] == selectors[:4]
    index.remove(pod, 3)
    assert index.count_matching(selectors[19], None, skip_terminating=False).total == 0
    assert selectors[19] in [query.selector for query in index.kept_counts()]


def test_labels_that_no_pod_has_any_more_have_no_column() -> None:
    cache, state = ClusterCache(), ClusterState()
    index = PodIndex(state.columns.labels, state.namespaces, NUM_ROWS)
    others = [
        make_pod_info(make_pod(f"o{n}", labels={"n": str(n)}), cache.classes) for n in range(99)
    ]
    for other in others:
        index.add(other, 0)
    for number in range(50):
        key = f"key-{number}"
        pod = make_pod_info(make_pod("p", labels={key: "x"}), cache.classes)
        index.add(pod, 1)
        selector = Selector((Requirement(key, Operator.EXISTS),))
        assert index.count_matching(selector, None, skip_terminating=False).total == 1
        index.remove(pod, 1)
    assert set(index.groups.labels.built()) <= {"n"}


def test_fewer_selectors_are_kept_if_each_matches_very_many_groups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pod_index, "MAX_MEMBERSHIPS", 500)
    monkeypatch.setattr(pod_index, "MAX_MEMBERSHIPS_AT_ONCE", 200)
    cache, state = ClusterCache(), ClusterState()
    index = PodIndex(state.columns.labels, state.namespaces, NUM_ROWS)
    pods = [
        make_pod_info(make_pod(f"p{n}", labels={"n": str(n)}), cache.classes) for n in range(90)
    ]
    for pod in pods:
        index.add(pod, 0)
    selectors = [
        Selector((Requirement("n", Operator.NOT_IN, (f"x{number}",)),)) for number in range(20)
    ]
    for number in range(4):
        for selector in selectors[number:]:
            counts = index.count_matching(selector, None, skip_terminating=False)
            assert counts.total == len(pods)
        assert len(index.kept_counts()) <= 5
        index.remove(pods.pop(), 0)
    for counts in index.kept_counts().values():
        assert counts.total == len(pods)


@pytest.mark.parametrize("num_pods", [20, 400])
def test_weights_of_queries_add_up_as_in_a_recount_of_all_pods(num_pods: int) -> None:
    rng, cache, state = Random(num_pods), ClusterCache(), ClusterState()
    index = PodIndex(state.columns.labels, state.namespaces, NUM_ROWS)
    zones = [f"z{row % 5}" for row in range(NUM_ROWS)]
    for row, zone in enumerate(zones):
        assert state.columns.set_node(make_node(f"n{row}", zone=zone)) == row
    column = state.columns.labels.column(ZONE)
    codes = dict(zip(zones, column.codes.tolist(), strict=False))
    placed = [(_pod(cache, rng, number), rng.randrange(NUM_ROWS)) for number in range(num_pods)]
    for pod, row in placed:
        index.add(pod, row)
    for _ in range(30):
        queries = [
            (
                _selector(rng),
                rng.choice((None, frozenset(("ns1",)), frozenset(("ns1", "ns2")))),
                weight,
            )
            for weight in rng.sample(range(1, 100), 3)
        ]
        want = dict.fromkeys(codes, 0)
        for (pod, row), (selector, namespaces, weight) in product(placed, queries):
            is_inside = namespaces is None or pod.namespace in namespaces
            if is_inside and selector.matches(pod.labels):
                want[zones[row]] += weight
        sums = index.weigh_matching(ZONE, queries)
        found = {zone: int(sums[code]) if len(sums) else 0 for zone, code in codes.items()}
        assert found == want


def test_label_groups_of_no_pods_weigh_nothing() -> None:
    state = ClusterState()
    index = PodIndex(state.columns.labels, state.namespaces, NUM_ROWS)
    assert index.weigh_matching(ZONE, [(EVERYTHING, None, 5)]).tolist() == []


def test_a_topology_key_that_no_node_has_is_not_weighed() -> None:
    state, cache = ClusterState(), ClusterCache()
    index = PodIndex(state.columns.labels, state.namespaces, NUM_ROWS)
    row = state.columns.set_node(make_node("n", zone="z"))
    index.add(_pod(cache, Random(1), 0), row)
    unread: Iterator[WeightedQuery] = iter([(EVERYTHING, None, 5)])
    assert index.weigh_matching("none", unread).tolist() == []
    assert list(unread)
    assert index.weigh_matching(ZONE, [(EVERYTHING, None, 5)]).tolist() == [5]


@pytest.mark.parametrize(("num_groups", "one_by_one"), [(3, True), (400, False)])
def test_of_many_groups_in_the_namespaces_of_a_query_none_is_matched_alone(
    num_groups: int, one_by_one: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, state = ClusterCache(), ClusterState()
    index = PodIndex(state.columns.labels, state.namespaces, NUM_ROWS)
    for number in range(num_groups):
        namespace = ("red", "blue", "green")[number % 3]
        pod = make_pod(f"p{number}", namespace=namespace, labels={"app": f"v{number}"})
        index.add(make_pod_info(pod, cache.classes), 0)
    matched: list[LabelGroup] = []
    matches = LabelGroup.matches

    def noted(group: LabelGroup, *arguments: Any) -> bool:
        matched.append(group)
        return matches(group, *arguments)

    monkeypatch.setattr(LabelGroup, "matches", noted)
    selector = Selector((Requirement("app", Operator.EXISTS),))
    counts = index.count_matching(selector, frozenset(("red", "blue")), skip_terminating=False)
    assert counts.total == len([number for number in range(num_groups) if number % 3 < 2])
    assert bool(matched) == one_by_one


def test_a_selector_that_is_dropped_makes_room_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_index, "MAX_MEMBERSHIPS", 40)
    cache, state = ClusterCache(), ClusterState()
    index = PodIndex(state.columns.labels, state.namespaces, NUM_ROWS)
    for number in range(10):
        pod = make_pod(f"p{number}", labels={"n": str(number)})
        index.add(make_pod_info(pod, cache.classes), 0)
    for number in range(12):
        selector = Selector((Requirement("n", Operator.NOT_IN, (f"x{number}",)),))
        for _ in range(3):
            index.count_matching(selector, None, skip_terminating=False)
    assert len(index.kept_counts()) == 4
