"""The pools of a node equal gathering them slice by slice, as ``GatherPools`` of v1.36 does."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from stowage.api.decoding.errors import SelectorError
from stowage.api.objects.device import ResourceSlice
from stowage.state import ClusterCache
from stowage.state.devices.device_info import PoolId, SliceInfo
from stowage.state.devices.pool import Pool, in_order, make_pool
from stowage.state.devices.slices import DeviceSlices
from tests.support.builders import make_node
from tests.support.device_builders import device, make_slice, quantities

NODES = ("a", "b", "c", "d", "e")
ZONES = ("z0", "z1")


def _in_zone(zone: str, operator: str = "In") -> dict[str, Any]:
    requirement = {"key": "zone", "operator": operator, "values": [zone]}
    return {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}}


def _per_device(zone: str) -> dict[str, Any]:
    devices = [device("gpu-0", nodeName="a"), device("gpu-1", **_in_zone(zone))]
    return {"perDeviceNodeSelection": True, "devices": devices}


COUNTERS = [{"name": "set", "counters": quantities({"slots": "2"})}]
PLACES = st.one_of(
    st.just({}),
    st.just({"allNodes": True}),
    st.sampled_from(ZONES).map(_in_zone),
    st.sampled_from(ZONES).map(_per_device),
    st.just({"sharedCounters": COUNTERS}),
    st.just({"sharedCounters": COUNTERS, **_in_zone("z0")}),
)
INVALID_PLACES = st.just(_in_zone("z0", "Wrong"))


def _slices(places: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[ResourceSlice]:
    return st.builds(_slice, st.sampled_from(NODES), st.integers(0, 1), st.booleans(), places)


def _slice(node: str, part: int, is_own: bool, place: dict[str, Any]) -> ResourceSlice:
    pool = {"name": node if is_own else "net", "generation": 1, "resourceSliceCount": 1 + part}
    devices = [] if "sharedCounters" in place else ["gpu-0"]
    spec = {"name": f"{node}-{part}", "pool": pool, "devices": devices, **place}
    return make_slice(node, **spec)


def _changes(places: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[Any]:
    return st.one_of(
        _slices(places),
        _slices(places),
        st.tuples(st.sampled_from(NODES), st.integers(0, 1)),
        st.tuples(st.sampled_from(NODES), st.sampled_from((*ZONES, None))),
    )


def _apply(cache: ClusterCache, change: Any, version: int) -> None:
    match change:
        case ResourceSlice():
            meta = replace(change.metadata, resource_version=str(version))
            cache.update_device_object(replace(change, metadata=meta))
        case (node, int(part)):
            cache.remove_device_object(ResourceSlice, f"{node}-{part}")
        case (node, None):
            cache.remove_node(node)
        case (node, zone):
            cache.update_node(make_node(node, labels={"zone": zone}))


def _gathered(slices: DeviceSlices, row: int) -> list[Pool]:
    """The pools of a node by asking it about each slice."""
    name, labels = slices.node_of(row)
    by_pool: dict[PoolId, list[SliceInfo]] = {}
    for info in sorted(slices, key=lambda each: _distance(each, name)):
        if info.is_relevant(name, labels):
            by_pool.setdefault(info.pool, []).append(info)
    pools = []
    for key, found in by_pool.items():
        newest = max(each.generation for each in found)
        current = [each for each in found if each.generation == newest]
        pools.append(make_pool(current, [each for each in slices if each.pool == key]))
    return list(in_order(each for each in pools if each is not None))


def _distance(info: SliceInfo, name: str) -> int:
    """Slices of the node itself come first, those of other nodes last."""
    return 1 if not info.node_name else 0 if info.node_name == name else 2


def _facts(pools: Any) -> list[Any]:
    """What a search reads of pools; a usable pool without devices says nothing."""
    return [
        (
            pool.id,
            [each.id for each in pool.devices],
            pool.is_incomplete,
            pool.is_invalid,
            pool.counter_sets,
            [each.id for each in pool.with_counters],
        )
        for pool in pools
        if pool.devices or not pool.is_usable
    ]


def _cluster(changes: list[Any]) -> ClusterCache:
    cache = ClusterCache()
    for name in NODES:
        cache.update_node(make_node(name, labels={"zone": "z0"}))
    for version, change in enumerate(changes, 1):
        _apply(cache, change, version)
        for row in range(cache.snapshot().num_rows):
            _facts_or_error(cache, row)
    return cache


def _facts_or_error(cache: ClusterCache, row: int) -> Any:
    try:
        return _facts(cache.snapshot().devices.slices.pools_of(row))
    except SelectorError as error:
        return str(error)


@settings(max_examples=150, deadline=None)
@given(st.lists(_changes(PLACES), min_size=1, max_size=10))
def test_a_node_has_the_pools_that_gathering_slice_by_slice_finds(changes: list[Any]) -> None:
    snapshot = _cluster(changes).snapshot()
    slices = snapshot.devices.slices
    for row in np.flatnonzero(snapshot.exists).tolist():
        assert _facts(slices.pools_of(row)) == _facts(_gathered(slices, row)), row


@settings(max_examples=150, deadline=None)
@given(st.lists(_changes(PLACES), min_size=1, max_size=10))
def test_nodes_of_a_part_have_the_same_pools_and_devices(changes: list[Any]) -> None:
    snapshot = _cluster(changes).snapshot()
    slices = snapshot.devices.slices
    rows = np.arange(snapshot.num_rows)
    parts = slices.alike(rows)
    assert sorted(row for part in parts for row in part.tolist()) == rows.tolist()
    for part in parts:
        found = {id(slices.pools_of(row)) for row in part.tolist()}
        assert len(part) == 1 or len(found) == 1
        pools = slices.pools_of(int(part[0]))
        assert len(part) == 1 or all(each.nodes is None for pool in pools for each in pool.devices)


@settings(max_examples=100, deadline=None)
@given(st.lists(_changes(st.one_of(PLACES, INVALID_PLACES)), min_size=1, max_size=8))
def test_an_invalid_selector_is_an_error_of_the_nodes_that_only_it_could_select(
    changes: list[Any],
) -> None:
    cache = _cluster(changes)
    snapshot = cache.snapshot()
    for row in np.flatnonzero(snapshot.exists).tolist():
        try:
            expected: Any = _facts(_gathered(snapshot.devices.slices, row))
        except SelectorError as error:
            expected = str(error)
        assert _facts_or_error(cache, row) == expected
