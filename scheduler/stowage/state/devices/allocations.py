"""The devices that are allocated, as a whole or in part (``allocateddevices.go`` of v1.36)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from stowage.api.objects.device import DeviceRequestAllocationResult
from stowage.api.values.device_capacity import amount
from stowage.state.devices.device_info import DeviceId


class AllocatedDevices:
    """Allocated devices and consumed capacity, counted over allocations.

    An allocation with admin access counts nothing. One with a share ID consumes capacity only.

    Args:
        on_change: Called with a device whose use changed, whether it is allocated as a whole, and
            whether somebody has a share of it.
        may_share: Whether share IDs count; otherwise every device is allocated as a whole.

    Attributes:
        may_share: See above.
        whole: Device -> number of allocations; more than one while a claim is both written and in
            flight.
        shares: Device -> number of shares.
        consumed: Device with shares -> capacity -> nano units.
    """

    __slots__ = ("_on_change", "consumed", "may_share", "shares", "whole")

    def __init__(
        self, on_change: Callable[[DeviceId, bool, bool], None], *, may_share: bool = True
    ) -> None:
        self.may_share = may_share
        self._on_change = on_change
        self.whole: dict[DeviceId, int] = {}
        self.shares: dict[DeviceId, int] = {}
        self.consumed: dict[DeviceId, dict[str, int]] = {}

    def is_used(self, device: DeviceId) -> bool:
        """Whether a device is allocated, as a whole or in part (``IsDeviceAllocated``)."""
        return device in self.whole or device in self.shares

    def add(self, results: Iterable[DeviceRequestAllocationResult]) -> None:
        """Count the devices of an allocation."""
        for result in results:
            self._change(result, 1)

    def remove(self, results: Iterable[DeviceRequestAllocationResult]) -> None:
        """Undo `add`."""
        for result in results:
            self._change(result, -1)

    def _change(self, result: DeviceRequestAllocationResult, sign: int) -> None:
        if result.admin_access:
            return
        device = DeviceId(result.driver, result.pool, result.device)
        if result.share_id is None or not self.may_share:
            _count(self.whole, device, sign)
        else:
            _count(self.shares, device, sign)
            consumed = self.consumed.setdefault(device, {})
            for name, text in result.consumed_capacity.items():
                consumed[name] = consumed.get(name, 0) + sign * amount(text).nano
            if device not in self.shares:
                del self.consumed[device]
        self._on_change(device, device in self.whole, device in self.shares)


def _count(counts: dict[DeviceId, int], device: DeviceId, sign: int) -> None:
    counts[device] = counts.get(device, 0) + sign
    if not counts[device]:
        del counts[device]
