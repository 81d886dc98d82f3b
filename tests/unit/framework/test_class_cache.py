"""Which answers of a class are kept, and for which snapshots."""

from __future__ import annotations

import pytest

from stowage.framework.runtime.class_cache import ClassCache, Seen
from stowage.state.what_if.snapshot import WhatIfSnapshot
from tests.support.builders import make_node
from tests.support.mirrored_cluster import MirroredCluster


@pytest.mark.parametrize(("size", "serves"), [(0, False), (1, True)])
def test_a_cache_without_room_serves_no_snapshot(size: int, serves: bool) -> None:
    assert ClassCache[str](size).serves(MirroredCluster().snapshot()) is serves


def test_a_what_if_is_never_served() -> None:
    snapshot = MirroredCluster([make_node("n")]).snapshot()
    assert not ClassCache[str](1).serves(WhatIfSnapshot(snapshot, [], [], 0))


def test_another_cluster_finds_no_answers_and_the_least_used_class_is_dropped() -> None:
    cache, snapshot = ClassCache[str](2), MirroredCluster().snapshot()
    assert cache.serves(snapshot)
    for class_id, answers in ((1, "a"), (2, "b")):
        cache.put(class_id, answers)
    assert (cache.get(1), cache.get(2)) == ("a", "b")
    cache.put(3, "c")
    assert (cache.get(1), cache.get(2), cache.get(3)) == (None, "b", "c")
    cache.drop(3)
    assert cache.serves(snapshot)
    assert (cache.get(3), len(cache)) == (None, 1)
    assert cache.serves(MirroredCluster().snapshot())
    assert (cache.get(2), len(cache)) == (None, 0)


def test_answers_are_updated_as_long_as_at_most_a_quarter_of_the_rows_has_changed() -> None:
    cluster = MirroredCluster([make_node(f"n{index}") for index in range(8)])
    seen = Seen.now(cluster.snapshot())
    quarter = cluster.snapshot().num_rows // 4
    for index in range(quarter):
        cluster.update_node(make_node(f"n{index}", labels={"x": "y"}))
    changes = seen.advance(cluster.snapshot())
    assert changes is not None
    assert len(changes.nodes) == quarter
