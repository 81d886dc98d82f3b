"""The simulation finds each fault of claims and devices that is planted in the scheduler."""

from __future__ import annotations

from typing import Any

import pytest

from stowage.api.cluster_events import ActionType, EventResource
from stowage.api.status import SKIP
from stowage.operator.watch.reflector import Reflector
from stowage.operator.writers.claim_releaser import ClaimReleaser
from stowage.operator.writers.claim_writer import ClaimWriter
from stowage.plugins.dynamic_resources import allocator
from stowage.plugins.dynamic_resources.counters import FreeCounters
from stowage.plugins.dynamic_resources.hints import ClaimHints
from stowage.plugins.dynamic_resources.plugin import DynamicResources
from stowage.state.devices.devices import Devices
from stowage.state.devices.slices import DeviceSlices
from tests.simulation.plan import Emphasis
from tests.simulation.planted import PlantedFault, assert_found, does_not_register, returns

_MANY = Emphasis(often=frozenset(["create_burst_with_devices"]), has_devices=True)
_SHARED = Emphasis(often=frozenset(["share_device_claim"]), has_devices=True)


def _ignores_what_is_consumed(usual: Any) -> Any:
    return lambda capacity, requested, _consumed: usual(capacity, requested, {})


def _overlooks_some_claims(usual: Any) -> Any:
    def add_seen(self: Any, found: Any, events: list[Any]) -> None:
        if self.kind != "ResourceClaim" or not found.metadata.uid.endswith("7"):
            usual(self, found, events)

    return add_seen


async def _does_nothing(_self: Any, _claim: Any, *_arguments: Any) -> None:
    return


def _gives_up_without_writing(_usual: Any) -> Any:
    async def write_once(_self: Any, claim: Any, *_arguments: Any) -> Any:
        return claim

    return write_once


PLANTED = {
    "devices of claims that are being written are free": PlantedFault(
        Devices, "begin", returns(None), _MANY, "was given to"
    ),
    "the scheduler does not know what it has written": PlantedFault(
        Devices,
        "assume",
        returns(None),
        Emphasis({"stalled": 0.3}, _MANY.often, has_devices=True),
        "was given to",
        first_seed=4,
    ),
    "counters have no limit": PlantedFault(FreeCounters, "take", returns(True), _MANY, " size"),
    "capacity has no limit": PlantedFault(
        allocator,
        "consumed_capacity",
        _ignores_what_is_consumed,
        _MANY,
        " bandwidth",
        first_seed=9,
    ),
    "a claim counts as written without a write": PlantedFault(
        ClaimWriter, "_write_once", _gives_up_without_writing, _MANY, "before its claim"
    ),
    "claims are not written before the binding": PlantedFault(
        DynamicResources, "pre_bind_pre_flight", returns(SKIP), _MANY, "before its claim"
    ),
    "an unavailable claim is not deallocated": PlantedFault(
        ClaimReleaser,
        "_deallocate",
        lambda _usual: _does_nothing,
        _SHARED,
        "could be taken back",
        first_seed=57,
    ),
    "devices stay in flight after the claim is written": PlantedFault(
        Devices, "end", returns(None), _MANY, "still reserving devices"
    ),
    "a column does not follow the allocations": PlantedFault(
        DeviceSlices, "use_changed", returns(None), _MANY, "in_use of device"
    ),
    "some events of claims are dropped": PlantedFault(
        Reflector, "_add_seen", _overlooks_some_claims, _MANY, "differs from the server in"
    ),
    "a freed device requeues no pod": PlantedFault(
        ClaimHints,
        "events_to_register",
        does_not_register(EventResource.RESOURCE_CLAIM, ActionType.UPDATE),
        _MANY,
        "could be on",
        first_seed=74,
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(name: str) -> None:
    assert_found(PLANTED[name])
