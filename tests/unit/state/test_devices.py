"""Classes that serve resources, claims laid over the watch, pools of nodes."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from msgspec.structs import replace

from stowage.api.decoding.errors import QUANTITY_EXPECTATION, InvalidObject
from stowage.api.objects.device import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceClass,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceSlice,
)
from stowage.api.objects.meta import OwnerReference
from stowage.api.values.claim_writes import EXTENDED_RESOURCE_CLAIM
from stowage.state import ClusterCache, InvariantViolation
from stowage.state.devices.classes import DeviceClasses
from stowage.state.devices.device_info import PoolId, compile_slice
from stowage.state.devices.devices import ClaimAllocation
from stowage.state.devices.features import ALL_FEATURES
from tests.support.builders import make_node
from tests.support.device_builders import (
    allocated,
    device,
    make_claim,
    make_class,
    make_slice,
    quantities,
    with_version,
)

GPU = "example.com/gpu"


def created(given: DeviceClass, timestamp: str) -> DeviceClass:
    return replace(given, metadata=replace(given.metadata, creation_timestamp=timestamp))


def serving(*classes: DeviceClass) -> str:
    """The class that serves the resource after these classes arrived."""
    cache = ClusterCache()
    for each in classes:
        cache.update_device_object(each)
    found = cache.snapshot().devices.classes.serving(GPU)
    return "" if found is None else found.metadata.name


OLD = created(make_class("old", resource=GPU), "2026-01-01T00:00:00Z")
NEW = created(make_class("new", resource=GPU), "2026-01-02T00:00:00Z")


def test_the_newer_class_serves_a_resource_whatever_the_order() -> None:
    assert serving(OLD, NEW) == "new"
    assert serving(NEW, OLD) == "new"


def test_of_equally_old_classes_the_lower_name_serves() -> None:
    first, second = make_class("a", resource=GPU), make_class("b", resource=GPU)
    assert serving(first, second) == serving(second, first) == "a"


def test_a_class_serves_its_implicit_resource_unless_it_lost_at_its_arrival() -> None:
    cache = ClusterCache()
    for each in (NEW, OLD):
        cache.update_device_object(each)
    classes = cache.snapshot().devices.classes
    assert classes.serving("deviceclass.resource.kubernetes.io/new") is not None
    assert classes.serving("deviceclass.resource.kubernetes.io/old") is None
    cache.remove_device_object(DeviceClass, "new")
    assert classes.serving(GPU) is None


def devices_of(cache: ClusterCache) -> set[str]:
    return {str(each) for each in cache.snapshot().devices.allocated.whole}


def test_what_was_written_counts_until_the_watch_shows_a_newer_version() -> None:
    cache, claim = ClusterCache(), make_claim("c", version="1")
    cache.update_device_object(claim)
    cache.assume_claim(allocated(claim, "n", "gpu-0", version="5"))
    assert devices_of(cache) == {"gpu.example.com/n/gpu-0"}
    cache.update_device_object(with_version(claim, "3"))
    assert devices_of(cache) == {"gpu.example.com/n/gpu-0"}
    cache.update_device_object(with_version(claim, "6"))
    assert devices_of(cache) == set()
    cache.validate()


def test_an_answer_that_the_watch_has_overtaken_is_not_believed() -> None:
    cache, claim = ClusterCache(), make_claim("c", version="7")
    cache.update_device_object(claim)
    cache.assume_claim(allocated(claim, "n", "gpu-0", version="5"))
    cache.assume_claim(allocated(make_claim("unknown"), "n", "gpu-1"))
    assert devices_of(cache) == set()


def test_shares_and_admin_access_do_not_take_a_device() -> None:
    cache = ClusterCache()
    share: dict[str, Any] = {"share_id": "s", "consumed_capacity": {"memory": "2Gi"}}
    cache.update_device_object(allocated(make_claim("a"), "n", "gpu-0", **share))
    cache.update_device_object(allocated(make_claim("b"), "n", "gpu-1", admin_access=True))
    allocated_devices = cache.snapshot().devices.allocated
    assert allocated_devices.whole == {}
    assert [*allocated_devices.consumed.values()] == [{"memory": 2 * 2**30 * 10**9}]
    cache.validate()
    cache.remove_device_object(ResourceClaim, "default/a")
    assert allocated_devices.consumed == {}


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


def test_a_claim_with_an_invalid_quantity_is_refused() -> None:
    cache = ClusterCache()
    share: dict[str, Any] = {"share_id": "s", "consumed_capacity": {"memory": "many"}}
    with pytest.raises(InvalidObject):
        cache.update_device_object(allocated(make_claim("a"), "n", "gpu-0", **share))


def _in_flight(name: str) -> ClaimAllocation:
    claim = allocated(make_claim(name), "n", "gpu-0")
    assert claim.status.allocation is not None
    return ClaimAllocation(claim.metadata.uid, f"default/{name}", claim.status.allocation)


def test_validation_counts_devices_in_flight() -> None:
    cache = ClusterCache()
    cache.snapshot().devices.begin(_in_flight("c"), "uid-p")
    cache.validate()
    cache.snapshot().devices.in_flight.clear()
    with pytest.raises(InvariantViolation, match="allocated devices"):
        cache.validate()


def test_validation_counts_the_shares_of_devices() -> None:
    cache = ClusterCache()
    claim = make_claim("a")
    cache.update_device_object(
        allocated(claim, "n", "gpu-0", share_id="s", consumed_capacity={"memory": "2Gi"})
    )
    shares = cache.snapshot().devices.allocated.shares
    ((device, number),) = shares.items()
    cache.validate()
    shares[device] = number + 1
    with pytest.raises(InvariantViolation, match="shared devices"):
        cache.validate()


def test_a_share_in_flight_counts_once_when_the_watch_shows_it_before_the_answer() -> None:
    cache = ClusterCache()
    free = make_claim("c")
    share: dict[str, Any] = {"share_id": "s", "consumed_capacity": {"memory": "2Gi"}}
    taken = with_version(allocated(free, "n", "gpu-0", **share), "2")
    cache.update_device_object(with_version(free, "1"))
    devices = cache.snapshot().devices
    assert taken.status.allocation is not None
    reserved = ClaimAllocation(free.metadata.uid, "default/c", taken.status.allocation)
    devices.begin(reserved, "uid-p")
    consumed = deepcopy(devices.allocated.consumed)
    cache.update_device_object(taken)
    assert devices.allocated.consumed == consumed
    cache.validate()
    cache.update_device_object(with_version(free, "3"))
    assert devices.allocated.consumed == consumed
    cache.update_device_object(with_version(taken, "4"))
    devices.end(free.metadata.uid)
    assert devices.allocated.consumed == consumed
    cache.validate()
    cache.remove_device_object(ResourceClaim, "default/c")
    assert devices.allocated.consumed == {}
    cache.validate()


def test_an_allocation_that_is_reserved_again_after_the_watch_has_shown_it_counts_once() -> None:
    cache = ClusterCache()
    share: dict[str, Any] = {"share_id": "s", "consumed_capacity": {"memory": "2Gi"}}
    taken = allocated(make_claim("c"), "n", "gpu-0", **share)
    cache.update_device_object(taken)
    devices = cache.snapshot().devices
    consumed = deepcopy(devices.allocated.consumed)
    assert taken.status.allocation is not None
    reserved = ClaimAllocation(taken.metadata.uid, "default/c", taken.status.allocation)
    devices.begin(reserved, "uid-p")
    assert devices.allocated.consumed == consumed
    cache.validate()


def test_validation_finds_a_device_that_two_claims_get() -> None:
    cache = ClusterCache()
    for name in ("c", "d"):
        cache.snapshot().devices.begin(_in_flight(name), "uid-p")
    with pytest.raises(InvariantViolation, match=r"device .*gpu-0"):
        cache.validate()


def test_a_device_in_flight_counts_once_when_the_claim_for_extended_resources_is_seen() -> None:
    cache = ClusterCache()
    devices = cache.snapshot().devices
    devices.begin(replace(_in_flight("c"), claim_uid="uid-p/extended"), "uid-p")
    assert [uid for uid, _ in devices.allocations()] == ["uid-p/extended"]
    claim = allocated(make_claim("c"), "n", "gpu-0")
    owner = OwnerReference("Pod", "p", "uid-p", controller=True)
    metadata = replace(
        claim.metadata, annotations={EXTENDED_RESOURCE_CLAIM: "true"}, owner_references=(owner,)
    )
    cache.update_device_object(replace(claim, metadata=metadata))
    assert [uid for uid, _ in devices.allocations()] == ["uid-c"]
    cache.remove_device_object(ResourceClaim, "default/c")
    assert [uid for uid, _ in devices.allocations()] == ["uid-p/extended"]


def test_a_partition_is_not_plain_whether_or_not_its_counters_are_read() -> None:
    counters = [{"counterSet": "s", "counters": quantities({"memory": "4Gi"})}]
    found = make_slice("n", [device("part", consumesCounters=counters), device("whole")])
    for partitionable in (True, False):
        features = replace(ALL_FEATURES, partitionable=partitionable)
        plain = [each.id.device for each in compile_slice(found, features).devices if each.is_plain]
        assert plain == ["whole"]


def test_a_claim_with_an_invalid_quantity_is_refused_with_what_was_expected() -> None:
    share: dict[str, Any] = {"share_id": "s", "consumed_capacity": {"memory": "many"}}
    with pytest.raises(InvalidObject) as caught:
        ClusterCache().update_device_object(allocated(make_claim("a"), "n", "gpu-0", **share))
    assert (caught.value.value, caught.value.expectation) == ("many", QUANTITY_EXPECTATION)


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


def test_answers_about_nodes_are_void_once_another_or_no_class_serves_a_resource() -> None:
    cache, _ = _with_node()
    snapshot = cache.snapshot()
    logs = (snapshot.node_changes, snapshot.usage_changes, snapshot.devices.slices.changes)
    changes: tuple[Callable[[], object], ...] = (
        lambda: cache.update_device_object(OLD),
        lambda: cache.update_device_object(NEW),
        lambda: cache.remove_device_object(DeviceClass, "new"),
    )
    for change in changes:
        before = [log.generation for log in logs]
        change()
        assert [log.since(each) for log, each in zip(logs, before, strict=True)] == [None] * 3


def _version(given: DeviceClass, version: str) -> DeviceClass:
    return replace(given, metadata=replace(given.metadata, resource_version=version))


def test_only_a_change_of_a_served_resource_or_of_selectors_is_told() -> None:
    told: list[str] = []
    classes = DeviceClasses(lambda: told.append("served"))
    classes.put(_version(OLD, "1"))
    assert len(told) == 1
    classes.put(_version(OLD, "2"))
    assert len(told) == 1
    other = "example.com/other"
    renamed = replace(OLD, spec=replace(OLD.spec, extended_resource_name=other))
    classes.put(_version(renamed, "3"))
    assert len(told) == 2
    assert (classes.serving(GPU), classes.serving(other)) == (None, classes.get("old"))
    classes.put(_version(OLD, "2"))  # older than what is known
    assert (len(told), classes.serving(GPU)) == (2, None)
    classes.drop("old")
    assert len(told) == 3
    assert not classes.serves_any


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
