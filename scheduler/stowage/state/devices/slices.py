"""The slices in the cluster, by pool and by node, and the nodes whose devices changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
import numpy as np

from stowage.api.objects.device import ResourceSlice
from stowage.state.arrays import BoolArray, Int64Array
from stowage.state.change_log import ChangeLog, Log
from stowage.state.changes import is_older
from stowage.state.devices.device_columns import DeviceColumns
from stowage.state.devices.device_info import (
    DeviceId,
    DeviceInfo,
    PoolId,
    Signature,
    SliceInfo,
    compile_slice,
)
from stowage.state.devices.features import ALL_FEATURES, DeviceFeatures
from stowage.state.devices.pool import Pool, in_order, make_pool
from stowage.state.devices.shared_slices import SharedDevices, SharedSlices
from stowage.state.nodes.node_columns import NodeColumns

_FEW_SLICES = 8


class PoolSlices(msgspec.Struct, eq=False):
    """All slices of a pool.

    Attributes:
        slices: By name.
        by_device: Device name -> the devices of that name; more than one while the driver updates
            the pool.
        pools: The pool as nodes see it, by the relevant slices; None if it is obsolete.
        num_shared: How many slices are not for one node.
        num_with_counters: How many slices have counters.
    """

    slices: dict[str, SliceInfo] = msgspec.field(default_factory=dict)
    by_device: dict[str, list[DeviceInfo]] = msgspec.field(default_factory=dict)
    pools: dict[tuple[int, ...], Pool | None] = msgspec.field(default_factory=dict)
    num_shared: int = 0
    num_with_counters: int = 0


class _SharedView(msgspec.Struct, frozen=True, eq=False):
    """What nodes of a group see that have no slices of their own.

    Attributes:
        pools: The pools, in the order in which they are tried.
        slices: The shared slices that are relevant, by pool.
        is_per_device: Whether a device may be for some of the nodes only.
    """

    pools: tuple[Pool, ...] = ()
    slices: Mapping[PoolId, list[SliceInfo]] = msgspec.field(default_factory=dict)
    is_per_device: bool = False


_NOTHING_SHARED = _SharedView()


class DeviceSlices:
    """All slices.

    A slice for one node holds the row of the node, so it may arrive before the node and outlast it.

    Attributes:
        columns: The devices as columns.
        changes: Rows of nodes whose devices, or their use, changed. Read the nodes' own changes
            too where slices are shared.
        shared_uses: Pools without slices for one node of which a device was allocated or freed.
            These are not in `changes`.
        serves_resources: Whether devices may count as resources of nodes; then their changes are
            changes of the usage of nodes, too.
    """

    def __init__(self, nodes: NodeColumns, features: DeviceFeatures = ALL_FEATURES) -> None:
        self._features = features
        self.columns = DeviceColumns()
        self.changes = ChangeLog()
        self.shared_uses: Log[PoolId] = Log()
        self.serves_resources = False
        self._nodes = nodes
        self._by_name: dict[str, SliceInfo] = {}
        self._pools: dict[PoolId, PoolSlices] = {}
        self._local: dict[str, dict[str, SliceInfo]] = {}
        self._shared = SharedSlices(nodes)
        # What the nodes of a group see, for the groups that were asked for.
        self._views: dict[int, _SharedView] = {}
        self._groups: Int64Array | None = None
        self._rows_with_slices: Int64Array | None = None
        self._drivers_with_counters: dict[str, Counter[str]] = {}
        # Pools with counters that are incomplete or invalid, as nodes see them that only get
        # their counters. Every node gets the counters of every pool.
        self._odd: dict[PoolId, Pool] = {}
        # The pools that are not simple, see `are_simple`, with the rows that they have slices for,
        # and the pools to look at.
        self._odd_rows: dict[PoolId, list[int]] = {}
        self._unseen: dict[PoolId, None] = {}

    def __iter__(self) -> Iterator[SliceInfo]:
        return iter(self._by_name.values())

    @property
    def node_rows(self) -> int:
        """Number of rows of nodes."""
        return self._nodes.num_rows

    @property
    def has_shared(self) -> bool:
        """Whether there are slices that are not for one node."""
        return bool(self._shared)

    @property
    def has_ambiguous_counters(self) -> bool:
        """Whether pools of one name and different drivers have counters.

        The allocator then takes the counters of the pool that is asked first.
        """
        return any(len(drivers) > 1 for drivers in self._drivers_with_counters.values())

    def get(self, name: str) -> SliceInfo | None:
        """A slice by name."""
        return self._by_name.get(name)

    def put(self, given: ResourceSlice) -> tuple[SliceInfo | None, bool]:
        """Store a slice; (the one known before, whether this one is newer).

        Raises:
            InvalidObject: A quantity cannot be parsed; the known version stays.
        """
        old = self._by_name.get(given.metadata.name)
        if old is not None and old.uid == given.metadata.uid:
            version = given.metadata.resource_version
            if is_older(version, old.resource_version) or version == old.resource_version != "":
                return old, False
        new = compile_slice(given, self._features)
        if old is not None:
            self._remove(old)
        self._add(new)
        if old is not None:
            self._release(old)
        return old, True

    def drop(self, name: str) -> SliceInfo | None:
        """Remove a slice; None if it is unknown."""
        old = self._by_name.get(name)
        if old is not None:
            self._remove(old)
            self._release(old)
        return old

    def devices_of(self, device: DeviceId) -> Sequence[DeviceInfo]:
        """The devices with an ID."""
        pool = self._pools.get(PoolId(device.driver, device.pool))
        return () if pool is None else pool.by_device.get(device.device, ())

    def use_changed(self, device: DeviceId, is_in_use: bool, has_shares: bool) -> None:
        """Note that a device, or a share of it, was allocated or freed."""
        key = PoolId(device.driver, device.pool)
        pool = self._pools.get(key)
        if pool is None:
            return
        for found in pool.by_device.get(device.device, ()):
            self.columns.in_use[found.row] = is_in_use
            self.columns.has_shares[found.row] = has_shares
        if pool.num_shared < len(pool.slices):
            self._note(pool)
            return
        self.shared_uses.record(key)
        if self.serves_resources:
            self._nodes.usage_changes.forget()

    def pools_of(self, row: int) -> tuple[Pool, ...]:
        """The pools that the node of a row can use, in the order in which they are tried.

        Raises:
            SelectorError: A node selector of a slice is invalid.
        """
        view, local = self._view(row), self._local.get(self._nodes.names[row])
        if local is None:
            return view.pools
        by_pool: dict[PoolId, list[SliceInfo]] = {}
        for each in local.values():
            by_pool.setdefault(each.pool, []).append(each)
        pools = [pool for pool in view.pools if pool.id not in by_pool]
        for key, slices in by_pool.items():
            relevant = [*slices, *view.slices.get(key, ())]
            pools += self._seen_by(self._nodes.names[row], key, relevant)
        return in_order(pools)

    def alike(self, rows: Int64Array, is_special: BoolArray | None = None) -> Sequence[Int64Array]:
        """These rows in parts, by the first row: the nodes of a part have the same devices.

        Args:
            rows: The rows.
            is_special: ``bool[rows]``: whether a node's own devices matter. The nodes of a part may
                differ in devices of their own that do not, but only if these are in complete and
                valid pools. None if all of them matter.
        """
        if not self._shared or self._shared.has_invalid_selectors:
            return [*rows[:, np.newaxis]]
        may_join = self._with_others(is_special)[rows]
        is_alone, others = rows[~may_join], rows[may_join]
        groups = self._shared.groups()[others]
        order = np.argsort(groups, kind="stable")
        parts = [*is_alone[:, np.newaxis]]
        for part in np.split(others[order], np.flatnonzero(np.diff(groups[order])) + 1):
            if len(part):
                is_one = not self._view(int(part[0])).is_per_device
                parts += [part] if is_one else [*part[:, np.newaxis]]
        return sorted(parts, key=lambda part: int(part[0]))

    def _with_others(self, is_special: BoolArray | None) -> BoolArray:
        """``bool[rows]``: the nodes that may be in a part with others, see `alike`."""
        if self._rows_with_slices is None:
            holders = [self._nodes.row_of(name) for name in self._local]
            self._rows_with_slices = np.array(holders, dtype=np.int64)
        found = self._nodes.exists.copy()
        if is_special is None:
            found[self._rows_with_slices] = False
        else:
            # A pool whose counters are odd for all nodes is odd for those that have slices of it.
            self._see_all()
            found[is_special] = False
            found[[row for rows in self._odd_rows.values() for row in rows]] = False
        return found

    def shared(self) -> Iterator[tuple[SliceInfo, BoolArray]]:
        """The slices that are not for one node, with ``bool[rows]`` of nodes that can use them."""
        for slices, rows in self._shared.with_rows():
            for each in slices:
                yield each, rows

    def shared_devices(self) -> SharedDevices:
        """The devices of the slices that are not for one node."""
        return self._shared.devices()

    def users_of(self, pools: Iterable[PoolId]) -> BoolArray:
        """``bool[rows]``: nodes that can use devices of pools without slices for one node."""
        slices = (each for key in pools for each in self._pools[key].slices.values())
        return self._shared.users(each for each in slices if each.devices)

    def signatures_in(self, key: PoolId) -> Sequence[Signature]:
        """The different signatures of the devices of a pool."""
        listed = self._pools[key].slices.values()
        return [
            *{each.signature.id: each.signature for it in listed for each in it.devices}.values()
        ]

    def are_simple(self) -> BoolArray:
        """``bool[rows]``: nodes whose pools are complete and valid, and of one kind each.

        A pool is either of slices for one node, or of slices that are not for one node.
        """
        if self._odd:
            return np.zeros(self._nodes.num_rows, dtype=np.bool_)
        simple = np.ones(self._nodes.num_rows, dtype=np.bool_)
        self._see_all()
        simple[[row for rows in self._odd_rows.values() for row in rows]] = False
        odd: Iterable[SliceInfo] = self
        if not self._shared.has_invalid_selectors:
            odd = (each for key in self._odd_rows for each in self._pools[key].slices.values())
        shared = [each for each in odd if not each.node_name]
        return simple & ~self._shared.users(shared) if shared else simple

    def noted_pools(self) -> set[PoolId]:
        """The pools, and those of which something is noted: the same ones."""
        return {*self._pools, *self._odd_rows, *self._unseen}

    def odd_rows(self, key: PoolId) -> tuple[list[int] | None, list[int] | None]:
        """Rows for which a pool that is not simple has slices: (noted, recounted).

        None for a simple pool, and for one that is to be looked at.
        """
        pool = self._pools.get(key)
        if pool is None:
            return ([] if key in self._unseen else self._odd_rows.get(key)), None
        if key in self._unseen:
            return None, None
        return self._odd_rows.get(key), self._recounted(key)

    def _changed(self, key: PoolId) -> None:
        """Note that a pool changed: small ones are looked at now, large ones when asked."""
        pool = self._pools.get(key)
        self._odd_rows.pop(key, None)
        if pool is None:
            self._unseen.pop(key, None)
        elif len(pool.slices) <= _FEW_SLICES:
            self._see(key)
        else:
            self._unseen[key] = None

    def _see_all(self) -> None:
        for key in self._unseen:
            self._see(key)
        self._unseen.clear()

    def _see(self, key: PoolId) -> None:
        """Note a pool and the nodes that it has slices for, unless it is simple."""
        rows = self._recounted(key)
        if rows is not None:
            self._odd_rows[key] = rows

    def _recounted(self, key: PoolId) -> list[int] | None:
        slices = list(self._pools[key].slices.values())
        if self._is_simple(key, slices):
            return None
        return [each.holds_row for each in slices if each.holds_row >= 0]

    def _is_simple(self, key: PoolId, slices: list[SliceInfo]) -> bool:
        pool, first = self._pools[key], slices[0]
        if pool.num_shared not in (0, len(slices)) or len(slices) != first.num_slices:
            return False
        if any(
            each.holds_row != first.holds_row or each.generation != first.generation
            for each in slices
        ):
            return False
        if sum(len(each.devices) for each in slices) > len(pool.by_device):
            return False
        if pool.num_with_counters or any(
            device.counters for each in slices for device in each.devices
        ):
            seen = self._pool(key, slices)
            return seen is not None and seen.is_usable
        return True

    def _counters_elsewhere(self, key: PoolId, node_name: str) -> list[SliceInfo]:
        """The slices with counters of a pool that are for another node."""
        pool = self._pools[key]
        if not pool.num_with_counters:
            return []
        return [
            each
            for each in pool.slices.values()
            if each.counter_sets and each.node_name not in ("", node_name)
        ]

    def _watch_counters(self, key: PoolId) -> None:
        """Note whether the counters of a pool are incomplete or invalid for all nodes."""
        pool, before = self._pools.get(key), self._odd.pop(key, None)
        seen = None
        if pool is not None and pool.num_with_counters:
            counters = [each for each in pool.slices.values() if each.counter_sets]
            seen = self._pool(key, counters)
        if seen is not None and not seen.is_usable:
            self._odd[key] = seen
        if before is not None or key in self._odd:
            self.changes.forget()

    def _view(self, row: int) -> _SharedView:
        """What the node of a row sees without its own slices.

        Raises:
            SelectorError: A node selector of a slice is invalid.
        """
        if not self._shared and not self._odd:
            return _NOTHING_SHARED
        if self._nodes.nodes[row] is None or self._shared.has_invalid_selectors:
            return self._make_view(row)
        groups = self._shared.groups()
        if groups is not self._groups:
            self._views.clear()
            self._groups = groups
        group = int(groups[row])
        view = self._views.get(group)
        if view is None:
            view = self._views[group] = self._make_view(row)
        return view

    def _make_view(self, row: int) -> _SharedView:
        by_pool: dict[PoolId, list[SliceInfo]] = {}
        relevant = self._shared.relevant(*self.node_of(row))
        for each in relevant:
            by_pool.setdefault(each.pool, []).append(each)
        pools = [pool for key, pool in self._odd.items() if key not in by_pool]
        for key, slices in by_pool.items():
            pools += self._seen_by("", key, slices)
        return _SharedView(in_order(pools), by_pool, any(each.is_per_device for each in relevant))

    def _seen_by(self, node_name: str, key: PoolId, relevant: list[SliceInfo]) -> list[Pool]:
        """The pool of these slices and of the counters that a node needs; none if obsolete."""
        pool = self._pool(key, [*relevant, *self._counters_elsewhere(key, node_name)])
        return [] if pool is None else [pool]

    def _pool(self, key: PoolId, relevant: list[SliceInfo]) -> Pool | None:
        pool = self._pools[key]
        current = _current(relevant)
        ids = tuple(each.id for each in current)
        if ids not in pool.pools:
            pool.pools[ids] = make_pool(current, pool.slices.values())
        return pool.pools[ids]

    def _add(self, info: SliceInfo) -> None:
        if info.node_name:
            info.holds_row = self._nodes.hold(info.node_name)
            self._local.setdefault(info.node_name, {})[info.name] = info
        else:
            self._shared.add(info)
        self._forget_views()
        self.columns.add(info)
        self._by_name[info.name] = info
        pool = self._pools.setdefault(info.pool, PoolSlices())
        pool.slices[info.name] = info
        pool.num_shared += not info.node_name
        pool.num_with_counters += bool(info.counter_sets)
        pool.pools.clear()
        for device in info.devices:
            pool.by_device.setdefault(device.id.device, []).append(device)
        self._count_counters(info, 1)
        self._watch_counters(info.pool)
        self._changed(info.pool)
        self._note(pool)

    def _remove(self, info: SliceInfo) -> None:
        """Take a slice out, except for the row that it holds."""
        pool = self._pools[info.pool]
        self._note(pool)
        del self._by_name[info.name]
        del pool.slices[info.name]
        pool.num_shared -= not info.node_name
        pool.num_with_counters -= bool(info.counter_sets)
        pool.pools.clear()
        for device in info.devices:
            alike = pool.by_device[device.id.device]
            alike.remove(device)
            if not alike:
                del pool.by_device[device.id.device]
        if not pool.slices:
            del self._pools[info.pool]
        if info.node_name:
            del self._local[info.node_name][info.name]
            if not self._local[info.node_name]:
                del self._local[info.node_name]
        else:
            self._shared.remove(info)
        self._forget_views()
        self.columns.remove(info.devices)
        self._count_counters(info, -1)
        self._watch_counters(info.pool)
        self._changed(info.pool)

    def _forget_views(self) -> None:
        self._views.clear()
        self._rows_with_slices = None

    def _release(self, info: SliceInfo) -> None:
        if info.holds_row >= 0:
            self._nodes.release(info.holds_row)

    def _count_counters(self, info: SliceInfo, sign: int) -> None:
        if not info.counter_sets:
            return
        drivers = self._drivers_with_counters.setdefault(info.pool.pool, Counter())
        drivers[info.pool.driver] += sign
        if not drivers[info.pool.driver]:
            del drivers[info.pool.driver]
        if not drivers:
            del self._drivers_with_counters[info.pool.pool]

    def node_of(self, row: int) -> tuple[str, dict[str, str]]:
        """Name and labels of the node of a row."""
        node = self._nodes.nodes[row]
        return self._nodes.names[row], {} if node is None else node.metadata.labels

    def _note(self, pool: PoolSlices) -> None:
        """Note a change of the nodes that can use a pool."""
        logs = [self.changes]
        if self.serves_resources:
            logs.append(self._nodes.usage_changes)
        rows = {each.holds_row for each in pool.slices.values()}
        for log in logs:
            if pool.num_shared:
                log.forget()
                continue
            for row in rows:
                log.record(row)


def _current(slices: list[SliceInfo]) -> list[SliceInfo]:
    newest = max(each.generation for each in slices)
    return [each for each in slices if each.generation == newest]
