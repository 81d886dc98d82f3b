"""Binding conditions: whether the devices of a claim are ready to be used."""

from __future__ import annotations

from datetime import datetime
from enum import Enum

import msgspec

from stowage.api.objects.device import (
    AllocatedDeviceStatus,
    DeviceRequestAllocationResult,
    ResourceClaim,
)

_TRUE = "True"


class Readiness(Enum):
    """The state of the devices of a claim."""

    READY = 0
    WAITING = 1
    FAILED = 2


class ConditionState(msgspec.Struct, frozen=True):
    """The readiness of a claim, and the condition that failed."""

    readiness: Readiness
    reason: str = ""
    message: str = ""


_READY = ConditionState(Readiness.READY)
_WAITING = ConditionState(Readiness.WAITING)


def has_binding_conditions(claim: ResourceClaim) -> bool:
    """Whether a device of the allocation has binding conditions."""
    return any(each.binding_conditions for each in _results(claim))


def condition_state(claim: ResourceClaim) -> ConditionState:
    """The state of the first device that is not ready (``isClaimReadyForBinding``).

    A claim without an allocation waits for one.
    """
    if claim.status.allocation is None:
        return _WAITING
    # Of several shares of a device, the first one that is listed stands for all, as upstream.
    by_device = {
        (each.driver, each.pool, each.device): each for each in reversed(claim.status.devices)
    }
    for result in _results(claim):
        if result.binding_conditions:
            status = by_device.get((result.driver, result.pool, result.device))
            state = _WAITING if status is None else _device_state(result, status)
            if state.readiness is not Readiness.READY:
                return state
    return _READY


def seconds_left(claim: ResourceClaim, timeout_s: float, now: float) -> float | None:
    """How long the devices of a claim may still take; None if there is no limit.

    Args:
        claim: The claim.
        timeout_s: The longest time after the allocation.
        now: Seconds since the epoch.
    """
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None:
        return None
    if not has_binding_conditions(claim):
        return None
    return _seconds(allocation.allocation_timestamp) + timeout_s - now


def _results(claim: ResourceClaim) -> tuple[DeviceRequestAllocationResult, ...]:
    allocation = claim.status.allocation
    return () if allocation is None else allocation.devices.results


def _device_state(
    result: DeviceRequestAllocationResult, status: AllocatedDeviceStatus
) -> ConditionState:
    known = {each.type: each for each in status.conditions}
    for name in result.binding_failure_conditions:
        failed = known.get(name)
        if failed is not None and failed.status == _TRUE:
            return ConditionState(Readiness.FAILED, failed.reason, failed.message)
    for name in result.binding_conditions:
        if name not in known or known[name].status != _TRUE:
            return _WAITING
    return _READY


def _seconds(timestamp: str) -> float:
    """Seconds since the epoch of an RFC 3339 time."""
    return datetime.fromisoformat(timestamp).timestamp()
