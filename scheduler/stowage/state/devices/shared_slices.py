"""The slices that are not for one node, and the nodes that can use the same ones of them.

Slices for the same nodes are an audience: a node is asked once for all of them. Nodes in the same
audiences are a group: they can use the same shared slices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import TypeAlias

import msgspec
import numpy as np

from stowage.state.arrays import BoolArray, Int64Array, read_only
from stowage.state.devices.device_info import NodeCondition, SliceInfo
from stowage.state.devices.slice_rows import rows_using
from stowage.state.nodes.node_columns import NodeColumns

#: What says which nodes may use a slice: its conditions, one of which must hold.
Audience: TypeAlias = tuple[NodeCondition, ...]

_EVERY_NODE: Audience = (NodeCondition(all_nodes=True),)
_MASKS_AT_ONCE = 32
"""So many bits of a number; the bits above them are the group by the masks before."""
_IN_ORDER = attrgetter("id")


class _Audiences(msgspec.Struct, frozen=True, eq=False):
    """The audiences, by position, and the nodes by their groups.

    Attributes:
        positions: The position of each audience.
        groups: ``int64[rows]``: the group of each node.
        num_groups: How many groups there are.
        pairs: ``int64[2, pairs]``: each audience, by position, with each group in it.
    """

    positions: dict[Audience, int]
    groups: Int64Array
    num_groups: int
    pairs: Int64Array

    def sums(self, numbers: Int64Array) -> Int64Array:
        """``int64[rows]``: the sum over the audiences of each node.

        Args:
            numbers: ``int64[audiences]``.
        """
        audience, group = self.pairs
        by_group = np.zeros(self.num_groups, dtype=np.int64)
        np.add.at(by_group, group, numbers[audience])
        found: Int64Array = by_group[self.groups]
        return found


class SharedDevices(msgspec.Struct, frozen=True, eq=False):
    """The devices of the slices that are not for one node.

    Attributes:
        rows: ``int64[]``: their rows in the columns of devices.
        audience: ``int64[]``: the position of the audience of each of them.
        audiences: The audiences.
    """

    rows: Int64Array
    audience: Int64Array
    audiences: _Audiences

    def per_node(self, mask: BoolArray) -> Int64Array:
        """``int64[rows]``: how many of these devices each node can use.

        A node counts for all devices of a slice that it can use some device of.

        Args:
            mask: ``bool[devices]`` over the columns of devices.
        """
        size = len(self.audiences.positions)
        return self.audiences.sums(np.bincount(self.audience[mask[self.rows]], minlength=size))


class SharedSlices:
    """The slices that are not for one node.

    Args:
        nodes: The nodes.
    """

    def __init__(self, nodes: NodeColumns) -> None:
        self._nodes = nodes
        self._audiences: dict[Audience, dict[str, SliceInfo]] = {}
        self._num_invalid = 0
        self._made: _Audiences | None = None
        self._devices: SharedDevices | None = None
        self._nodes_seen = -1

    @property
    def has_invalid_selectors(self) -> bool:
        """Whether a selector of a slice is invalid, so that asking a node may raise an error."""
        return self._num_invalid > 0

    def __bool__(self) -> bool:
        return bool(self._audiences)

    def add(self, info: SliceInfo) -> None:
        """Add a slice."""
        audience = _audience(info)
        self._audiences.setdefault(audience, {})[info.name] = info
        self._num_invalid += _is_invalid(audience)
        self._made = self._devices = None

    def remove(self, info: SliceInfo) -> None:
        """Remove a slice."""
        audience = _audience(info)
        members = self._audiences[audience]
        del members[info.name]
        if not members:
            del self._audiences[audience]
        self._num_invalid -= _is_invalid(audience)
        self._made = self._devices = None

    def with_rows(self) -> Iterator[tuple[Iterable[SliceInfo], BoolArray]]:
        """The slices of each audience, with ``bool[rows]`` of the nodes that can use them."""
        for members in self._audiences.values():
            yield members.values(), rows_using(next(iter(members.values())), self._nodes)

    def users(self, slices: Iterable[SliceInfo]) -> BoolArray:
        """``bool[rows]``: nodes that can use some of these slices, which are shared."""
        audiences = self._audiences_now()
        numbers = np.zeros(len(audiences.positions), dtype=np.int64)
        numbers[[audiences.positions[_audience(each)] for each in slices]] = 1
        return audiences.sums(numbers) > 0

    def groups(self) -> Int64Array:
        """``int64[rows]``: the group of each node; rows without a node are in groups of any."""
        return self._audiences_now().groups

    def devices(self) -> SharedDevices:
        """The devices of all shared slices."""
        audiences = self._audiences_now()
        if self._devices is None:
            blocks = [
                (position, each.devices[0].row, len(each.devices))
                for position, members in enumerate(self._audiences.values())
                for each in members.values()
                if each.devices
            ]
            position, start, size = np.array(blocks, dtype=np.int64).reshape(-1, 3).T
            # The devices of a slice are consecutive rows.
            before = np.repeat(np.cumsum(size) - size, size)
            rows = np.repeat(start, size) + np.arange(len(before)) - before
            self._devices = SharedDevices(rows, np.repeat(position, size), audiences)
        return self._devices

    def _audiences_now(self) -> _Audiences:
        if self._made is None or self._nodes_seen != self._nodes.node_changes.generation:
            masks = [rows for _, rows in self.with_rows()]
            groups = read_only(group_rows(masks, self._nodes.num_rows))
            firsts = np.unique(groups, return_index=True)[1]
            members = [np.flatnonzero(mask[firsts]) for mask in masks]
            self._made = _Audiences(
                {audience: i for i, audience in enumerate(self._audiences)},
                groups,
                len(firsts),
                _paired(members),
            )
            self._devices = None
            self._nodes_seen = self._nodes.node_changes.generation
        return self._made

    def relevant(self, name: str, labels: dict[str, str]) -> list[SliceInfo]:
        """The slices that a node can use, or whose counters it needs, in the order of arrival.

        Raises:
            SelectorError: A node selector is invalid.
        """
        if self._num_invalid:
            # The error names the first slice that cannot be decided.
            return [each for each in self._all() if each.is_relevant(name, labels)]
        found = (
            members.values()
            for members in self._audiences.values()
            if next(iter(members.values())).is_relevant(name, labels)
        )
        return sorted((each for members in found for each in members), key=_IN_ORDER)

    def _all(self) -> list[SliceInfo]:
        audiences = self._audiences.values()
        return sorted((each for members in audiences for each in members.values()), key=_IN_ORDER)


def group_rows(masks: Iterable[BoolArray], num_rows: int) -> Int64Array:
    """``int64[rows]``: equal numbers for the rows that are in the same masks, from 0 on.

    Args:
        masks: ``bool[rows]`` each.
        num_rows: Number of rows.
    """
    groups: Int64Array = np.zeros(num_rows, dtype=np.int64)
    num_bits = 0
    for mask in masks:
        groups = (groups << 1) | mask
        num_bits += 1
        if num_bits == _MASKS_AT_ONCE:
            groups, num_bits = _numbered(groups), 0
    return _numbered(groups)


def _numbered(values: Int64Array) -> Int64Array:
    numbers: Int64Array = np.unique(values, return_inverse=True)[1]
    return numbers.reshape(values.shape)


def _paired(members: Sequence[Int64Array]) -> Int64Array:
    """``int64[2, pairs]``: the position of each audience, with each of its members."""
    if not members:
        return np.zeros((2, 0), dtype=np.int64)
    positions = np.repeat(np.arange(len(members)), [len(each) for each in members])
    return np.stack([positions, np.concatenate(members)])


def _audience(info: SliceInfo) -> Audience:
    if info.counter_sets:
        return _EVERY_NODE
    if info.nodes is not None:
        return (info.nodes,)
    if not info.is_per_device:
        return ()
    return tuple(each.nodes for each in info.devices if each.nodes is not None)


def _is_invalid(audience: Audience) -> bool:
    return any(each.terms is not None and bool(each.terms.error) for each in audience)
