"""Which devices requests may take at all: without the others, a search ends soon.

A depth-first search tries every choice of devices before it finds that there are too few. Counted
beforehand, the devices with one combination of values of match attributes serve the requests that
must agree in these attributes, or none of them is worth a try.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import msgspec

from stowage.plugins.dynamic_resources.constraints import Constraint, MatchAttribute
from stowage.plugins.dynamic_resources.requests import ClaimRequests, Request
from stowage.state.devices.device_info import UNKNOWN_VALUE, AttributeValue, DeviceId, DeviceInfo
from stowage.state.devices.pool import Pool

#: A value of an attribute; a device whose value equals no other's stands for itself.
Value: TypeAlias = AttributeValue | DeviceId
Combination: TypeAlias = tuple[Value, ...]
#: The constraints of a claim that concern a request: the position of each, and its attribute.
Matches: TypeAlias = tuple[tuple[int, str], ...]


class Need(msgspec.Struct, frozen=True, eq=False):
    """What a request needs.

    Attributes:
        claim: The position of its claim.
        count: How many devices.
        matches: The match constraints that concern it, in order.
        devices: The devices that it may take by all conditions but the constraints.
    """

    claim: int
    count: int
    matches: Matches
    devices: Sequence[DeviceInfo]


#: Combination -> devices with these values, for each request of a group.
_ByValues: TypeAlias = dict[Combination, list[list[DeviceId]]]


def is_prunable(
    claims: Sequence[ClaimRequests],
    constraints: Sequence[Sequence[Constraint]],
    pools: Sequence[Pool],
) -> bool:
    """Whether all requests, constraints and devices are of the kinds that a `Need` describes.

    Then a step back leaves nothing consumed, so only the order of devices decides.
    """
    return (
        not any(any(claim.has_list) for claim in claims)
        and all(request.is_plain for claim in claims for request in claim.all_requests)
        and all(isinstance(each, MatchAttribute) for of_claim in constraints for each in of_claim)
        and all(device.is_plain for pool in pools for device in pool.devices)
    )


def match_constraints(constraints: Sequence[Constraint], request: Request) -> Matches:
    """The match constraints of a claim that concern a request."""
    return tuple(
        (index, each.attribute)
        for index, each in enumerate(constraints)
        if isinstance(each, MatchAttribute) and each.concerns(request)
    )


def worthwhile_devices(needs: Sequence[Need]) -> list[frozenset[DeviceId]] | None:
    """For each request the devices that a solution may hold; None if there is no solution.

    A device that is left out is in no solution. One that is kept may still be in none.

    Args:
        needs: The requests of all claims.
    """
    groups: dict[tuple[int, Matches], list[int]] = {}
    for position, need in enumerate(needs):
        groups.setdefault((need.claim, need.matches), []).append(position)
    combinations = {
        key: _combinations([needs[position] for position in members])
        for key, members in groups.items()
    }
    _agree(combinations)
    kept: list[frozenset[DeviceId]] = [frozenset()] * len(needs)
    for key, members in groups.items():
        for index, position in enumerate(members):
            lists = (each[index] for each in combinations[key].values())
            kept[position] = frozenset(device for each in lists for device in each)
    served = can_serve([need.count for need in needs], kept)
    return kept if served else None


def can_serve(counts: Sequence[int], devices: Sequence[Iterable[DeviceId]]) -> bool:
    """Whether each request gets its count of devices, and no device serves two requests.

    Args:
        counts: How many devices each request needs.
        devices: The devices that each request may get.
    """
    holder: dict[DeviceId, int] = {}
    choices = [list(each) for each in devices]
    if any(len(each) < count for each, count in zip(choices, counts, strict=True)):
        return False
    return all(
        _serve_one_more(request, choices, holder)
        for request, count in enumerate(counts)
        for _ in range(count)
    )


def _serve_one_more(
    request: int, choices: Sequence[Sequence[DeviceId]], holder: dict[DeviceId, int]
) -> bool:
    """Give a request one more device; others get another one if they must (augmenting path)."""
    gets_from: dict[int, tuple[int, DeviceId] | None] = {request: None}
    waiting = [request]
    for taker in waiting:
        for device in choices[taker]:
            owner = holder.get(device)
            if owner is None:
                _pass_on(device, taker, gets_from, holder)
                return True
            if owner not in gets_from:
                gets_from[owner] = (taker, device)
                waiting.append(owner)
    return False


def _pass_on(
    free: DeviceId,
    taker: int,
    gets_from: dict[int, tuple[int, DeviceId] | None],
    holder: dict[DeviceId, int],
) -> None:
    """Give a free device to a request, and what it held to the next one, up to the first."""
    holder[free] = taker
    step = gets_from[taker]
    while step is not None:
        next_taker, device = step
        holder[device] = next_taker
        step = gets_from[next_taker]


def _combinations(members: Sequence[Need]) -> _ByValues:
    """The combinations of values with enough devices for all requests of a group."""
    found: _ByValues = {}
    for index, need in enumerate(members):
        for device in need.devices:
            values = _values(need.matches, device)
            if values is not None:
                lists = found.setdefault(values, [[] for _ in members])
                lists[index].append(device.id)
    counts = [need.count for need in members]
    return {values: lists for values, lists in found.items() if can_serve(counts, lists)}


def _values(matches: Matches, device: DeviceInfo) -> Combination | None:
    """The values of a device; None if it lacks an attribute."""
    values: list[Value] = []
    for _, attribute in matches:
        value = device.signature.attribute(attribute)
        if value is None:
            return None
        values.append(device.id if value == UNKNOWN_VALUE else value)
    return tuple(values)


def _agree(combinations: dict[tuple[int, Matches], _ByValues]) -> None:
    """Drop combinations with a value that another group under the same constraint cannot have."""
    changed = True
    while changed:
        changed = False
        common: dict[tuple[int, int], set[Value]] = {}
        for (claim, matches), found in combinations.items():
            for index, (constraint, _) in enumerate(matches):
                here = {values[index] for values in found}
                common[claim, constraint] = common.get((claim, constraint), here) & here
        for (claim, matches), found in combinations.items():
            allowed = [common[claim, constraint] for constraint, _ in matches]
            for values in list(found):
                if any(value not in those for value, those in zip(values, allowed, strict=True)):
                    del found[values]
                    changed = True
