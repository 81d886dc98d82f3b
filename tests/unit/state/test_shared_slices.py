"""Slices that are not for one node: the work does not grow with nodes times slices."""

from __future__ import annotations

import numpy as np
import pytest

from stowage.state import ClusterCache
from stowage.state.devices.device_info import SliceInfo
from stowage.state.devices.shared_slices import group_rows
from tests.support.builders import make_node
from tests.support.device_builders import make_slice

NUM_NODES, NUM_SLICES = 40, 30


def _cluster() -> ClusterCache:
    cache = ClusterCache()
    for number in range(NUM_NODES):
        cache.update_node(make_node(f"n{number}", labels={"zone": f"z{number % 2}"}))
    for number in range(NUM_SLICES):
        requirement = {"key": "zone", "operator": "In", "values": [f"z{number % 2}"]}
        selector = {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}
        pool = {"name": f"p{number:02d}", "generation": 1, "resourceSliceCount": 1}
        made = make_slice("", ["x"], name=f"s{number}", pool=pool, nodeSelector=selector)
        cache.update_device_object(made)
    return cache


def test_nodes_are_asked_once_for_all_slices_with_the_same_selector(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    snapshot = _cluster().snapshot()
    asked: list[str] = []
    is_relevant = SliceInfo.is_relevant

    def counted(info: SliceInfo, name: str, labels: dict[str, str]) -> bool:
        asked.append(name)
        return is_relevant(info, name, labels)

    monkeypatch.setattr(SliceInfo, "is_relevant", counted)
    pools = [snapshot.devices.slices.pools_of(row) for row in range(NUM_NODES)]
    num_zones = 2
    assert [len(each) for each in pools] == [NUM_SLICES // num_zones] * NUM_NODES
    assert len(asked) <= num_zones * num_zones
    assert len({id(each) for each in pools}) == num_zones


def test_a_node_that_changes_its_labels_gets_other_pools() -> None:
    cache = _cluster()
    slices, row = cache.snapshot().devices.slices, cache.snapshot().row_of("n0")
    assert row is not None
    before = [pool.id.pool for pool in slices.pools_of(row)]
    cache.update_node(make_node("n0", labels={"zone": "z1"}))
    after = [pool.id.pool for pool in slices.pools_of(row)]
    assert before == [f"p{number:02d}" for number in range(0, NUM_SLICES, 2)]
    assert after == [f"p{number:02d}" for number in range(1, NUM_SLICES, 2)]


def test_rows_are_in_one_group_if_they_are_in_the_same_masks() -> None:
    num_rows, num_masks = 50, 100
    rng = np.random.default_rng(0)
    masks = [rng.random(num_rows) < 0.02 for _ in range(num_masks)]
    groups = group_rows(masks, num_rows)
    members = [tuple(bool(mask[row]) for mask in masks) for row in range(num_rows)]
    for row in range(num_rows):
        for other in range(num_rows):
            assert (groups[row] == groups[other]) == (members[row] == members[other])
