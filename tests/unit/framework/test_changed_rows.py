"""The rows that a plugin with columns of its own computes again."""

from __future__ import annotations

import pytest

from stowage.framework.authoring import ChangedRows
from stowage.state.cache import ClusterCache
from stowage.state.pods.pod_info import make_pod_info
from stowage.state.what_if.snapshot import WhatIfSnapshot
from tests.support.builders import make_node, make_pod


def _cache(*names: str) -> ClusterCache:
    cache = ClusterCache()
    for name in names:
        cache.update_node(make_node(name))
    return cache


def _rows(changed: ChangedRows, cache: ClusterCache) -> list[str]:
    snapshot = cache.snapshot()
    return [snapshot.node_names[row] for row in changed.since_last_call(snapshot).tolist()]


def test_all_rows_at_first_then_those_whose_node_or_pods_changed() -> None:
    cache, changed = _cache("a", "b", "c"), ChangedRows()
    assert set(_rows(changed, cache)) >= {"a", "b", "c"}
    assert _rows(changed, cache) == []
    cache.assume_pod(make_pod_info(make_pod("p"), cache.classes), "b")
    assert _rows(changed, cache) == ["b"]
    cache.update_node(make_node("a", labels={"x": "y"}))
    cache.forget_pod("uid-p")
    assert _rows(changed, cache) == ["a", "b"]


def test_another_cluster_changes_all_rows() -> None:
    changed = ChangedRows()
    first, second = _cache("a"), _cache("b")
    assert "a" in _rows(changed, first)
    assert "b" in _rows(changed, second)
    assert "a" in _rows(changed, first)


def test_a_what_if_has_no_changes() -> None:
    cache, changed = _cache("a"), ChangedRows()
    imagined = WhatIfSnapshot(cache.snapshot(), [], [], row=0)
    with pytest.raises(ValueError, match="what-if"):
        changed.since_last_call(imagined)


def test_all_rows_if_nodes_changed_more_often_than_is_noted() -> None:
    cache, changed = _cache("a", "b", "c"), ChangedRows()
    _rows(changed, cache)
    for number in range(9_000):
        cache.update_node(make_node("a", labels={"x": str(number)}))
    assert set(_rows(changed, cache)) >= {"a", "b", "c"}
