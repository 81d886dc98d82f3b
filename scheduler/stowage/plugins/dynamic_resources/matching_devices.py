"""All nodes at once: where enough devices agree in the attributes of match constraints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import msgspec
import numpy as np

from stowage.plugins.dynamic_resources.constraints import make_constraint
from stowage.plugins.dynamic_resources.pruning import Matches, match_constraints
from stowage.plugins.dynamic_resources.requests import Request
from stowage.plugins.dynamic_resources.templates import Template
from stowage.state.arrays import BoolArray, Int64Array
from stowage.state.devices.device_columns import DeviceColumns
from stowage.state.devices.device_info import UNKNOWN_VALUE
from stowage.state.devices.published_columns import dense
from stowage.state.interning import ABSENT

#: Up to so many pairs of node and values, each pair has a counter; from there on only those in use.
_MAX_PAIRS = 4_000_000
_LACKS_ONE = -1

#: The devices of a request, ``bool[devices]``, and how many it needs.
Want: TypeAlias = tuple[BoolArray, int]


class MatchGroup(msgspec.Struct, frozen=True, eq=False):
    """Requests of a claim that the same constraints concern.

    Attributes:
        requests: The requests.
        attributes: The attributes in which their devices must agree.
        is_whole: Whether these are all requests of all claims.
    """

    requests: Sequence[Request]
    attributes: tuple[str, ...]
    is_whole: bool


def match_groups(template: Template) -> Iterator[MatchGroup]:
    """The requests whose devices must agree, for claims with match constraints only."""
    for claim in template.claims:
        constraints = [each for each in map(make_constraint, claim.constraints) if each is not None]
        groups: dict[Matches, list[Request]] = {}
        for request in claim.all_requests:
            groups.setdefault(match_constraints(constraints, request), []).append(request)
        is_whole = len(groups) == len(template.claims) == 1
        for matches, requests in groups.items():
            if matches:
                yield MatchGroup(requests, tuple(name for _, name in matches), is_whole)


class MatchingDevices:
    """Devices by their values of some attributes.

    Args:
        columns: The devices.
        attributes: The attributes.
    """

    def __init__(self, columns: DeviceColumns, attributes: tuple[str, ...]) -> None:
        self._node_row = columns.node_row.astype(np.int64)
        published = columns.published
        table = np.zeros(len(columns.signatures), dtype=np.int64)
        lacks_one = np.zeros(len(table), dtype=np.bool_)
        odd = np.zeros(len(table), dtype=np.bool_)
        self._num_values = 1
        for attribute in attributes:
            codes = published.attribute(attribute).astype(np.int64) - ABSENT
            lacks_one |= codes == 0
            odd |= codes == published.code_of(UNKNOWN_VALUE) - ABSENT
            codes, width = dense(codes, published.num_values + 1)
            table, self._num_values = dense(table * width + codes, self._num_values * width)
        table[lacks_one] = _LACKS_ONE
        odd &= ~lacks_one
        if len(table):
            self._values: Int64Array = table[columns.signature]
            self._odd: BoolArray = odd[columns.signature]
        else:
            self._values = np.full(columns.num_rows, _LACKS_ONE, dtype=np.int64)
            self._odd = np.zeros(columns.num_rows, dtype=np.bool_)

    def have_enough(self, wants: Sequence[Want], num_rows: int) -> BoolArray:
        """``bool[rows]``: nodes where devices with equal values suffice for each want alone."""
        usable = (self._values != _LACKS_ONE) & (self._node_row >= 0)
        frequent = np.ones(self._num_values, dtype=np.bool_)
        for selected, number in wants:
            values = self._values[selected & usable]
            frequent &= np.bincount(values, minlength=self._num_values) >= number
        # Values that are rarer in the whole cluster than one node needs are left out before the
        # pairs of node and value are counted: serial numbers, for example.
        width = int(np.count_nonzero(frequent))
        if not width:
            return np.zeros(num_rows, dtype=np.bool_)
        position = np.cumsum(frequent) - 1
        usable[usable] = frequent[self._values[usable]]
        used = usable.nonzero()[0]
        pairs = self._node_row[used] * width + position[self._values[used]]
        cells: Int64Array | None = None
        if num_rows * width > _MAX_PAIRS:
            cells, pairs = np.unique(pairs, return_inverse=True)
        size = num_rows * width if cells is None else len(cells)
        enough = np.ones(size, dtype=np.bool_)
        for selected, number in wants:
            enough &= np.bincount(pairs[selected[used]], minlength=size) >= number
        if cells is None:
            some: BoolArray = np.logical_or.reduce(enough.reshape(num_rows, width), axis=1)
            return some
        found = np.zeros(num_rows, dtype=np.bool_)
        found[cells[enough] // width] = True
        return found

    def odd_rows(self, wants: Sequence[Want], num_rows: int) -> BoolArray:
        """``bool[rows]``: nodes with a selected device that has a value of an unknown type."""
        found = np.zeros(num_rows, dtype=np.bool_)
        for selected, _ in wants:
            rows = self._node_row[selected & self._odd]
            found[rows[rows >= 0]] = True
        return found
