"""The pools of devices that a node can use (``GatherPools`` of v1.36)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from stowage.state.devices.device_info import DeviceInfo, PoolId, SliceInfo


class Pool(msgspec.Struct, frozen=True, eq=False):
    """A pool, with the slices that are relevant for a node.

    Attributes:
        id: Driver and name.
        devices: The devices, in the order in which they are tried.
        slices: The slices, sorted by name.
        is_incomplete: Whether slices are missing: the driver is updating the pool.
        is_invalid: Whether the slices contradict each other.
        has_binding_conditions: Whether a device has binding conditions.
        counter_sets: Counter set -> counter -> nano units.
        with_counters: All devices of the pool that consume counters, also those for other nodes;
            as upstream, only those for this node if there are as many slices for it as the pool
            says it has.
    """

    id: PoolId
    devices: tuple[DeviceInfo, ...]
    slices: tuple[SliceInfo, ...]
    is_incomplete: bool
    is_invalid: bool
    has_binding_conditions: bool
    counter_sets: dict[str, dict[str, int]]
    with_counters: tuple[DeviceInfo, ...]

    @property
    def is_usable(self) -> bool:
        """Whether devices may be allocated from it."""
        return not self.is_incomplete and not self.is_invalid


def make_pool(relevant: Sequence[SliceInfo], everywhere: Iterable[SliceInfo]) -> Pool | None:
    """The pool of the slices that are relevant for a node; None if it is obsolete.

    Args:
        relevant: The relevant slices of the pool, of the highest generation among them.
        everywhere: All slices of the pool in the cluster.
    """
    first = relevant[0]
    generation, wanted = first.generation, first.num_slices
    current = relevant
    if len(current) != wanted:
        whole = list(everywhere)
        if any(each.generation > generation for each in whole):
            return None
        current = [each for each in whole if each.generation == generation]
    is_complete = len(current) == wanted
    slices = tuple(sorted(relevant, key=lambda each: each.name))
    devices = tuple(device for each in slices for device in each.devices)
    return Pool(
        first.pool,
        devices,
        slices,
        not is_complete,
        is_complete and _is_invalid(slices, devices, current),
        any(each.has_binding_conditions for each in slices),
        {name: counters for each in slices for name, counters in each.counter_sets},
        tuple(_with_counters(current)),
    )


def in_order(pools: Iterable[Pool]) -> tuple[Pool, ...]:
    """Pools sorted by driver and name; those with binding conditions come last."""
    return tuple(sorted(pools, key=lambda pool: (pool.has_binding_conditions, pool.id)))


def _is_invalid(
    slices: Sequence[SliceInfo], devices: Sequence[DeviceInfo], current: Sequence[SliceInfo]
) -> bool:
    if len({device.id.device for device in devices}) < len(devices):
        return True
    sets = [name for each in slices for name, _ in each.counter_sets]
    if any(times > 1 for times in Counter(sets).values()):
        return True
    known = {name: counters for each in slices for name, counters in each.counter_sets}
    return any(
        use.counter_set not in known or use.counter not in known[use.counter_set]
        for device in _with_counters(current)
        for use in device.counters
    )


def _with_counters(slices: Iterable[SliceInfo]) -> Iterator[DeviceInfo]:
    return (device for each in slices for device in each.devices if device.counters)
