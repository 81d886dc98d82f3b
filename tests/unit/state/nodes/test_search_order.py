"""The search order after any sequence of node events."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stowage.state import ClusterCache
from stowage.state.nodes.search_order import zone_of_labels
from tests.support.builders import make_node
from tests.support.scalar.search_order import Zones

ZONE = "topology.kubernetes.io/zone"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"

labels = st.dictionaries(
    st.sampled_from((ZONE, OLD_ZONE, REGION)), st.sampled_from(("", "a", "b")), max_size=2
)
events = st.lists(st.tuples(st.integers(0, 80), st.none() | labels), max_size=60)


def names_in_order(cache: ClusterCache) -> list[str]:
    snapshot = cache.snapshot()
    return [snapshot.node_names[row] for row in snapshot.search_order.rows.tolist()]


@settings(deadline=None)
@given(events)
def test_the_order_equals_its_scalar_twin_after_each_event(
    history: list[tuple[int, dict[str, str] | None]],
) -> None:
    cache, zones = ClusterCache(), Zones()
    for number, wanted in history:
        name = f"n{number}"
        if wanted is None:
            cache.remove_node(name)
            zones.remove(name)
        else:
            node = make_node(name, labels=wanted)
            cache.update_node(node)
            zones.put(name, node.metadata.labels)
        assert names_in_order(cache) == zones.order()
    snapshot = cache.snapshot()
    ranks = snapshot.search_order.ranks
    assert len(ranks) == snapshot.num_rows
    by_rank = {int(ranks[row]): row for row in range(snapshot.num_rows) if snapshot.exists[row]}
    assert [by_rank[rank] for rank in range(snapshot.num_nodes)] == (
        snapshot.search_order.rows.tolist()
    )
    assert (ranks[~snapshot.exists] == -1).all()
    cache.validate()


def test_zones_follow_as_they_appeared_and_take_turns() -> None:
    cache = ClusterCache()
    for name, zone in (("a1", "a"), ("a2", "a"), ("a3", "a"), ("b1", "b"), ("c1", "c")):
        cache.update_node(make_node(name, zone=zone))
    assert names_in_order(cache) == ["a1", "b1", "c1", "a2", "a3"]
    cache.remove_node("b1")
    cache.update_node(make_node("b2", zone="b"))
    assert names_in_order(cache) == ["a1", "c1", "b2", "a2", "a3"]
    cache.update_node(make_node("a1", zone="c"))
    assert names_in_order(cache) == ["a2", "c1", "b2", "a3", "a1"]


def test_the_order_grows_with_the_rows() -> None:
    cache = ClusterCache()
    for number in range(200):
        cache.update_node(make_node(f"n{number}", zone=f"z{number // 100}"))
    assert names_in_order(cache)[:4] == ["n0", "n100", "n1", "n101"]


def test_the_order_is_computed_once_after_a_change_of_nodes() -> None:
    cache = ClusterCache()
    cache.update_node(make_node("a"))
    rows = cache.snapshot().search_order.rows
    cache.update_node(make_node("a", cpu="8"))
    assert cache.snapshot().search_order.rows is rows
    cache.update_node(make_node("b"))
    assert cache.snapshot().search_order.rows is not rows


@pytest.mark.parametrize(
    ("of_node", "zone"),
    [
        ({}, ("", "")),
        ({ZONE: "a"}, ("", "a")),
        ({ZONE: "a", REGION: "r"}, ("r", "a")),
        ({ZONE: "a", OLD_ZONE: "old"}, ("", "old")),
        ({ZONE: "a", OLD_ZONE: ""}, ("", "")),
    ],
)
def test_the_zone_is_that_of_get_zone_key(of_node: dict[str, str], zone: tuple[str, str]) -> None:
    assert zone_of_labels(of_node) == zone
