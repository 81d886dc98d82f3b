"""Pools of slices: complete, valid, shared between nodes, and in their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from stowage.api.decoding.errors import InvalidObject
from stowage.api.objects.device import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceSlice,
)
from stowage.state import ClusterCache, InvariantViolation
from stowage.state.devices.device_info import PoolId, compile_slice
from stowage.state.devices.devices import ClaimAllocation
from stowage.state.devices.features import ALL_FEATURES
from tests.support.builders import make_node
from tests.support.device_builders import allocated, device, make_claim, make_slice, quantities


def pools(*slices: ResourceSlice) -> list[tuple[str, bool, bool]]:
    """(pool, is incomplete, is invalid) of node ``n``."""
    cache = ClusterCache()
    cache.update_node(make_node("n", labels={"zone": "a"}))
    for each in slices:
        cache.update_device_object(each)
    snapshot = cache.snapshot()
    row = snapshot.row_of("n")
    assert row is not None
    cache.validate()
    return [
        (pool.id.pool, pool.is_incomplete, pool.is_invalid)
        for pool in snapshot.devices.slices.pools_of(row)
    ]


def part(name: str, generation: int, count: int, *devices: str, **fields: Any) -> ResourceSlice:
    pool = {"name": "p", "generation": generation, "resourceSliceCount": count}
    return make_slice("n", devices, name=name, pool=pool, **fields)


def test_a_pool_is_incomplete_until_all_its_slices_are_there() -> None:
    assert pools(part("a", 1, 2, "x")) == [("p", True, False)]
    assert pools(part("a", 1, 2, "x"), part("b", 1, 2, "y")) == [("p", False, False)]


def test_slices_on_other_nodes_complete_a_pool() -> None:
    elsewhere = make_slice(
        "m", ["y"], name="b", pool={"name": "p", "generation": 1, "resourceSliceCount": 2}
    )
    assert pools(part("a", 1, 2, "x"), elsewhere) == [("p", False, False)]


def test_an_older_generation_is_dropped() -> None:
    assert pools(part("a", 1, 1, "x"), part("b", 2, 1, "x")) == [("p", False, False)]
    newer_elsewhere = make_slice(
        "m", ["y"], name="b", pool={"name": "p", "generation": 2, "resourceSliceCount": 2}
    )
    assert pools(part("a", 1, 2, "x"), newer_elsewhere) == []


def test_a_device_name_twice_makes_a_pool_invalid() -> None:
    assert pools(part("a", 1, 2, "x"), part("b", 1, 2, "x")) == [("p", False, True)]


def test_an_unknown_counter_makes_a_pool_invalid_for_every_node() -> None:
    use = [{"counterSet": "set", "counters": quantities({"bogus": "1"})}]
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 2}
    counters = [{"name": "set", "counters": quantities({"slots": "2"})}]
    slices = (
        make_slice("m", [], name="a", pool=pool, sharedCounters=counters),
        make_slice("m", [device("x", consumesCounters=use)], name="b", pool=pool),
    )
    assert pools(*slices) == [("p", False, True)]


def test_a_node_selector_says_which_nodes_share_a_slice() -> None:
    for zone, expected in (("a", [("p", False, False)]), ("b", [])):
        key = {"key": "zone", "operator": "In", "values": [zone]}
        selector = {"nodeSelectorTerms": [{"matchExpressions": [key]}]}
        assert pools(part("s", 1, 1, "x", nodeSelector=selector)) == expected


def test_a_slice_with_an_invalid_quantity_is_refused_and_the_known_one_stays() -> None:
    cache = ClusterCache()
    cache.update_device_object(make_slice("n", ["gpu-0"], "1"))
    capacity = quantities({"memory": "many"})
    with pytest.raises(InvalidObject):
        cache.update_device_object(make_slice("n", [device("gpu-0", capacity=capacity)], "2"))
    slices = cache.snapshot().devices.slices
    assert [each.resource_version for each in slices] == ["1"]
    cache.validate()


def test_a_partition_is_not_plain_whether_or_not_its_counters_are_read() -> None:
    counters = [{"counterSet": "s", "counters": quantities({"memory": "4Gi"})}]
    found = make_slice("n", [device("part", consumesCounters=counters), device("whole")])
    for partitionable in (True, False):
        features = replace(ALL_FEATURES, partitionable=partitionable)
        plain = [each.id.device for each in compile_slice(found, features).devices if each.is_plain]
        assert plain == ["whole"]


def _with_node() -> tuple[ClusterCache, int]:
    cache = ClusterCache()
    cache.update_node(make_node("n"))
    row = cache.snapshot().row_of("n")
    assert row is not None
    return cache, row


def test_pools_are_tried_by_name_and_those_with_binding_conditions_last() -> None:
    bound = device("x", bindingConditions=["ready"], bindingFailureConditions=["failed"])
    slices = [
        make_slice(
            "n", [each], name=name, pool={"name": name, "generation": 1, "resourceSliceCount": 1}
        )
        for name, each in (("a", bound), ("c", device("y")), ("b", device("z")))
    ]
    assert [name for name, _, _ in pools(*slices)] == ["b", "c", "a"]


def test_a_slice_that_is_deleted_leaves_nothing_behind() -> None:
    cache, row = _with_node()
    counters = [{"name": "set", "counters": quantities({"slots": "2"})}]
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 2}
    cache.update_device_object(make_slice("n", [], name="a", pool=pool, sharedCounters=counters))
    cache.update_device_object(part("b", 1, 2, "x"))
    slices = cache.snapshot().devices.slices
    assert [each.is_usable for each in slices.pools_of(row)] == [True]
    cache.remove_device_object(ResourceSlice, "a")
    assert [(each.is_incomplete, each.counter_sets) for each in slices.pools_of(row)] == [
        (True, {})
    ]
    cache.remove_device_object(ResourceSlice, "b")
    assert slices.pools_of(row) == ()
    cache.validate()


def _with_counters(name: str, driver: str) -> ResourceSlice:
    counters = [{"name": "set", "counters": quantities({"slots": "2"})}]
    return make_slice("n", [], name=name, driver=driver, sharedCounters=counters)


def test_counters_are_ambiguous_while_pools_of_one_name_have_several_drivers() -> None:
    cache, _ = _with_node()
    slices = cache.snapshot().devices.slices
    for name, driver in (("a", "one.example.com"), ("b", "two.example.com")):
        assert not slices.has_ambiguous_counters
        cache.update_device_object(_with_counters(name, driver))
    assert slices.has_ambiguous_counters
    cache.update_device_object(_with_counters("c", "one.example.com"))
    cache.remove_device_object(ResourceSlice, "a")
    assert slices.has_ambiguous_counters, "another slice of the driver has counters"
    cache.remove_device_object(ResourceSlice, "c")
    assert not slices.has_ambiguous_counters


def test_a_node_is_simple_again_once_no_slice_of_its_pool_is_shared() -> None:
    cache, row = _with_node()
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    slices = cache.snapshot().devices.slices
    cache.update_device_object(part("own", 1, 1, "x"))
    assert slices.are_simple()[row]
    for name in ("all", "more"):
        cache.update_device_object(make_slice("", [name], name=name, pool=pool, allNodes=True))
        assert not slices.are_simple()[row]
    for name in ("all", "more"):
        assert not slices.are_simple()[row]
        cache.remove_device_object(ResourceSlice, name)
    assert slices.are_simple()[row]


def test_only_the_rows_of_a_pool_without_shared_slices_change_with_it() -> None:
    cache, row = _with_node()
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    cache.update_device_object(part("own", 1, 1, "x"))
    cache.update_device_object(make_slice("", ["y"], name="all", pool=pool, allNodes=True))
    cache.remove_device_object(ResourceSlice, "all")
    changes = cache.snapshot().devices.slices.changes
    before = changes.generation
    cache.update_device_object(allocated(make_claim("c"), "p", "x"))
    changed = changes.since(before)
    assert changed is not None
    assert changed.tolist() == [row]


def test_a_device_of_another_driver_is_another_device() -> None:
    cache = ClusterCache()
    for name, driver in (("c", "one.example.com"), ("d", "two.example.com")):
        result = DeviceRequestAllocationResult("r", driver, "n", "gpu-0")
        allocation = AllocationResult(DeviceAllocationResult((result,)))
        reserved = ClaimAllocation(f"uid-{name}", f"default/{name}", allocation)
        cache.snapshot().devices.begin(reserved, "uid-p")
    cache.validate()


def test_without_binding_conditions_only_devices_that_have_them_are_unseen() -> None:
    bound = device("x", bindingConditions=["ready"], bindingFailureConditions=["failed"])
    features = replace(ALL_FEATURES, binding_conditions=False)
    compiled = compile_slice(make_slice("n", [bound, "y", "z"]), features)
    assert [each.id.device for each in compiled.devices if each.is_unseen] == ["x"]


@pytest.mark.parametrize(("version", "ignored"), [("5", True), ("4", True), ("6", False)])
def test_only_a_newer_version_of_a_slice_counts(version: str, ignored: bool) -> None:
    cache = ClusterCache()
    cache.update_device_object(make_slice("n", ["x"], "5"))
    assert cache.update_device_object(make_slice("n", ["y"], version)).ignored is ignored
    (known,) = cache.snapshot().devices.slices
    assert [each.id.device for each in known.devices] == (["x"] if ignored else ["y"])


def _attributes_column(cache: ClusterCache) -> Any:
    published = cache.snapshot().devices.slices.columns.published
    published.attribute("model")
    return published


def _noted_as_odd(cache: ClusterCache) -> None:
    slices = cache.snapshot().devices.slices
    (info,) = slices
    slices._odd_rows[info.pool] = [info.holds_row]  # noqa: SLF001 - planted


def _unknown_pool_noted(cache: ClusterCache) -> None:
    cache.snapshot().devices.slices._unseen[PoolId("d", "gone")] = None  # noqa: SLF001 - planted


def _another_value(cache: ClusterCache) -> None:
    _attributes_column(cache)._columns["model"][0] = -1  # noqa: SLF001 - planted


def _another_length(cache: ClusterCache) -> None:
    _attributes_column(cache)._lengths[:] += 1  # noqa: SLF001 - planted


def _another_base(cache: ClusterCache) -> None:
    _attributes_column(cache)._base[0] = -1  # noqa: SLF001 - planted


def _another_driver(cache: ClusterCache) -> None:
    _attributes_column(cache)._driver[0] = -1  # noqa: SLF001 - planted


@pytest.mark.parametrize(
    ("break_", "subject"),
    [
        (_noted_as_odd, "rows of nodes that are not simple"),
        (_unknown_pool_noted, "rows of nodes that are not simple"),
        (_another_value, "columns of signature 0"),
        (_another_length, "columns of signature 0"),
        (_another_base, "columns of signature 0"),
        (_another_driver, "columns of signature 0"),
    ],
)
def test_validation_finds_what_is_derived_from_slices(
    break_: Callable[[ClusterCache], None], subject: str
) -> None:
    cache, _ = _with_node()
    cache.update_device_object(make_slice("n", [device("x", model="a")]))
    _attributes_column(cache)
    cache.validate()
    break_(cache)
    with pytest.raises(InvariantViolation, match=subject):
        cache.validate()
