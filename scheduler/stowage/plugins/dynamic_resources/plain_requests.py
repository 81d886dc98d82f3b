"""All nodes at once, for requests that ask for numbers of devices, which may have to match.

A node has enough devices if as many of them are free and selected as requested. That is exact for
nodes whose pools are complete and valid, and whose selected devices are plain; the others are left
to the exact search. So are nodes with enough devices of equal attributes for each constraint,
unless there is one claim, its constraints concern all its requests, and the devices are the node's
own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import msgspec
import numpy as np

from stowage.api.values.device_capacity import consumed_capacity
from stowage.api.values.tolerations import first_untolerated_taint
from stowage.plugins.dynamic_resources.allocator import MAX_RESULTS
from stowage.plugins.dynamic_resources.matching_devices import MatchingDevices, match_groups
from stowage.plugins.dynamic_resources.requests import Request, expressions_of
from stowage.plugins.dynamic_resources.templates import Template
from stowage.state.arrays import BoolArray, Int64Array
from stowage.state.devices.device_columns import DeviceColumns
from stowage.state.devices.device_info import PoolId, Signature
from stowage.state.devices.devices import Devices
from stowage.state.devices.selection import (
    FAILS,
    NO,
    YES,
    Selectors,
    select_signatures,
    selection_steps,
)
from stowage.state.devices.shared_slices import SharedDevices

#: Class, selectors, tolerations and capacity: requests that select the same devices.
_Key: TypeAlias = tuple[object, ...]


class PlainAnswer(msgspec.Struct, frozen=True, eq=False):
    """The nodes that have enough devices.

    Attributes:
        has_enough: ``bool[rows]``.
        is_open: ``bool[rows]``: nodes that only the exact search can decide.
    """

    has_enough: BoolArray
    is_open: BoolArray


class _Selected(msgspec.Struct, frozen=True, eq=False):
    """The devices that a request selects, ``bool[devices]`` each.

    Attributes:
        plain: Free plain devices that it can get.
        odd: Free devices that it may get under further conditions, or for which a selector fails.
    """

    plain: BoolArray
    odd: BoolArray


class _Counting:
    """Counts devices per node, the node's own ones and shared ones.

    Attributes:
        is_there: ``bool[devices]``: the rows that are devices.
        shared: The devices that are not for one node.
    """

    def __init__(self, columns: DeviceColumns, shared: SharedDevices, num_rows: int) -> None:
        self._node_row = columns.node_row
        self._num_rows = num_rows
        self._is_local: BoolArray = columns.node_row >= 0
        self.is_there = self._is_local.copy()
        self.is_there[shared.rows] = True
        self.shared = shared

    def __call__(self, mask: BoolArray) -> Int64Array:
        """``int64[rows]``: how many of the devices of ``bool[devices]`` each node can use."""
        own = np.bincount(self._node_row[mask & self._is_local], minlength=self._num_rows)
        return own + self.shared.per_node(mask)


def has_enough_devices(template: Template, devices: Devices, num_rows: int) -> PlainAnswer | None:
    """The nodes that have enough devices for a template; None if the question is not plain."""
    if not template.is_plain or not _is_valid(template, devices):
        return None
    columns = devices.slices.columns
    per_node = _Counting(columns, devices.slices.shared_devices(), num_rows)
    selected: dict[_Key, _Selected] = {}
    wanted: Counter[_Key] = Counter()
    for claim in template.claims:
        for request in claim.all_requests:
            key = _key(request)
            wanted[key] += request.count
            if key not in selected:
                selected[key] = _select(request, devices, per_node.is_there)
    has_enough = np.ones(num_rows, dtype=np.bool_)
    is_open = ~devices.slices.are_simple()
    several = np.zeros(columns.num_rows, dtype=np.int64)
    for key, number in wanted.items():
        has_enough &= per_node(selected[key].plain) >= number
        is_open |= per_node(selected[key].odd) > 0
        several += selected[key].plain
    uncertain = per_node(several > 1) > 0
    for group in match_groups(template):
        matching = MatchingDevices(columns, group.attributes)
        numbers: Counter[_Key] = Counter()
        for request in group.requests:
            numbers[_key(request)] += request.count
        wants = [(selected[key].plain, number) for key, number in numbers.items()]
        has_enough &= matching.have_enough(wants, num_rows)
        is_open |= matching.odd_rows(wants, num_rows)
        for mask, _ in wants:
            is_open |= per_node.shared.per_node(mask) > 0
        uncertain |= not group.is_whole
    return PlainAnswer(has_enough, is_open | (has_enough & uncertain))


def _is_valid(template: Template, devices: Devices) -> bool:
    """Whether the search would begin without an error."""
    return all(
        sum(request.count for request in claim.all_requests) <= MAX_RESULTS
        and all(
            devices.classes.get(request.class_name) is not None and None not in request.selectors
            for request in claim.all_requests
        )
        for claim in template.claims
    )


def _key(request: Request) -> _Key:
    capacity = tuple(sorted((name, each.nano) for name, each in request.capacity.items()))
    tolerations = tuple(
        (each.key, each.operator, each.value, each.effect) for each in request.tolerations
    )
    return request.class_name, request.selectors, tolerations, capacity


def preparation_steps(template: Template, devices: Devices) -> Iterator[None]:
    """Find out in steps what nothing has asked `has_enough_devices` for yet.

    These are the verdicts of selectors, and the columns of attributes that have to match.
    """
    columns = devices.slices.columns
    for expressions in _new_expressions(template, devices):
        yield from selection_steps(devices.selectors, expressions, columns)
    for group in match_groups(template) if template.is_plain else ():
        for attribute in group.attributes:
            yield from columns.published.build(columns.published.names_of(attribute))


def _new_expressions(template: Template, devices: Devices) -> Iterator[tuple[str, ...]]:
    """The expressions of each request that has one that nothing has asked for yet."""
    for claim in template.claims:
        for request in claim.all_requests:
            expressions = _expressions(request, devices)
            if any(map(devices.selectors.is_new, expressions)):
                yield expressions


def _expressions(request: Request, devices: Devices) -> tuple[str, ...]:
    """The expressions of the class, then those of the request."""
    device_class = devices.classes.get(request.class_name)
    selectors = () if device_class is None else device_class.spec.selectors
    own = tuple(each for each in request.selectors if each is not None)
    return (*expressions_of(selectors), *own)


def _select(request: Request, devices: Devices, is_there: BoolArray) -> _Selected:
    columns = devices.slices.columns
    verdict = select_signatures(devices.selectors, _expressions(request, devices), columns)
    if not len(verdict):
        nothing = np.zeros(columns.num_rows, dtype=np.bool_)
        return _Selected(nothing, nothing)
    verdict = verdict[columns.signature]
    is_free = ~columns.in_use & is_there
    is_selected = is_free & (verdict == YES)
    fits = _fitting_signatures(request, columns)[columns.signature]
    fits &= _tolerated_taints(request, columns)[columns.taints]
    # The shares of a device that has been declared dedicated since still use up its capacity.
    is_plain = columns.is_plain & ~columns.has_shares
    odd = (is_selected & ~is_plain) | (is_free & (verdict == FAILS))
    return _Selected(is_selected & is_plain & fits, odd)


def _fitting_signatures(request: Request, columns: DeviceColumns) -> BoolArray:
    """``bool[signatures]``: whether the capacity suffices."""
    codes = columns.published.codes()
    members, firsts = columns.published.group(codes)
    fits = np.zeros(len(columns.signatures), dtype=np.bool_)
    fits[codes] = _table(
        [
            consumed_capacity(each.capacity, request.capacity, {}) is not None
            for each in columns.signatures_of(firsts)
        ]
    )[members]
    return fits


def _tolerated_taints(request: Request, columns: DeviceColumns) -> BoolArray:
    """``bool[taint sets]``: whether the request tolerates all taints."""
    return _table(
        [
            each is not None and first_untolerated_taint(each, request.tolerations) is None
            for each in columns.taint_sets.values
        ]
    )


def have_selected(template: Template, devices: Devices) -> BoolArray:
    """``bool[rows]``: nodes with a device of their own for which `may_select` holds."""
    columns = devices.slices.columns
    found = np.zeros(devices.slices.node_rows, dtype=np.bool_)
    requests = [request for claim in template.claims for request in claim.all_requests]
    for expressions in {_expressions(each, devices) for each in requests}:
        verdict = select_signatures(devices.selectors, expressions, columns)
        if len(verdict):
            rows = columns.node_row[verdict[columns.signature] != NO]
            found[rows[rows >= 0]] = True
    return found


def may_select(template: Template, devices: Devices, pool: PoolId) -> bool:
    """Whether a request may get devices of a pool, or a selector fails for one of them."""
    signatures = devices.slices.signatures_in(pool)
    return any(
        _may_select(_expressions(request, devices), devices.selectors, signatures)
        for claim in template.claims
        for request in claim.all_requests
    )


def _may_select(
    expressions: Sequence[str], selectors: Selectors, signatures: Sequence[Signature]
) -> bool:
    for text in expressions:
        verdicts = selectors.verdicts(text, signatures)
        if FAILS in verdicts:
            return True
        pairs = zip(signatures, verdicts, strict=True)
        signatures = [each for each, verdict in pairs if verdict == YES]
    return bool(signatures)


def _table(verdicts: Sequence[bool]) -> BoolArray:
    return np.array(verdicts, dtype=np.bool_)
