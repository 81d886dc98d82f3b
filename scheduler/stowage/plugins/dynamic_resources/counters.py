"""The shared counters of pools while devices are taken and given back.

What kube-scheduler does not give back when it backtracks stays consumed here too.
"""

from __future__ import annotations

from typing import TypeAlias

from stowage.state.devices.allocations import AllocatedDevices
from stowage.state.devices.device_info import DeviceInfo
from stowage.state.devices.pool import Pool

#: Pool name -> counter set -> counter -> nano units.
Counters: TypeAlias = dict[str, dict[str, dict[str, int]]]


class FreeCounters:
    """What allocated devices leave of counters, less what one search has taken.

    Args:
        allocated: The allocated devices.
        available: What they leave, by pool; filled when a pool is first asked. kube-scheduler
            computes it once per attempt, for the first pool of a name.
    """

    def __init__(self, allocated: AllocatedDevices, available: Counters) -> None:
        self._allocated = allocated
        self._available = available
        self._consumed: Counters = {}

    def take(self, pool: Pool, device: DeviceInfo) -> bool:
        """Consume the counters of a device, if there is enough of each."""
        available = self._left_by_allocated(pool)
        consumed = self._consumed.setdefault(pool.id.pool, {})
        for use in device.counters:
            counters = consumed.setdefault(use.counter_set, {})
            counters[use.counter] = counters.get(use.counter, 0) + use.nano
        for name, counters in available.items():
            taken = consumed.get(name, {})
            if any(free < taken.get(counter, 0) for counter, free in counters.items()):
                self.release(pool, device)
                return False
        return True

    def release(self, pool: Pool, device: DeviceInfo) -> None:
        """Give the counters of a device back."""
        consumed = self._consumed.get(pool.id.pool, {})
        for use in device.counters:
            counters = consumed.get(use.counter_set, {})
            counters[use.counter] = counters.get(use.counter, 0) - use.nano

    def _left_by_allocated(self, pool: Pool) -> dict[str, dict[str, int]]:
        available = self._available.get(pool.id.pool)
        if available is None:
            available = {name: dict(counters) for name, counters in pool.counter_sets.items()}
            for device in pool.with_counters:
                if self._allocated.is_used(device.id):
                    for use in device.counters:
                        counters = available.get(use.counter_set, {})
                        if use.counter in counters:
                            counters[use.counter] -= use.nano
            self._available[pool.id.pool] = available
        return available
