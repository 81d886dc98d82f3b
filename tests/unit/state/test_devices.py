"""Claims laid over the watch: what is in flight, what is allocated, what is refused."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from msgspec.structs import replace

from stowage.api.decoding.errors import QUANTITY_EXPECTATION, InvalidObject
from stowage.api.objects.device import ResourceClaim
from stowage.api.objects.meta import OwnerReference
from stowage.api.values.claim_writes import EXTENDED_RESOURCE_CLAIM
from stowage.state import ClusterCache, InvariantViolation
from stowage.state.devices.devices import ClaimAllocation
from tests.support.device_builders import allocated, make_claim, with_version


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


def test_a_claim_with_an_invalid_quantity_is_refused_with_what_was_expected() -> None:
    share: dict[str, Any] = {"share_id": "s", "consumed_capacity": {"memory": "many"}}
    with pytest.raises(InvalidObject) as caught:
        ClusterCache().update_device_object(allocated(make_claim("a"), "n", "gpu-0", **share))
    assert (caught.value.value, caught.value.expectation) == ("many", QUANTITY_EXPECTATION)
