"""Finds the requests that fail on a node by allocating a pod's requests one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from stowage.analysis.devices.funnel import Funnel, NodeDevices, counters_left
from stowage.analysis.devices.shortage import DeviceShortage, Why
from stowage.api.objects.device import EXACT_COUNT
from stowage.api.objects.pod import Toleration
from stowage.api.values.device_capacity import Amount
from stowage.plugins.dynamic_resources.allocator import (
    AllocationError,
    NodeSearch,
    OutOfTime,
)
from stowage.plugins.dynamic_resources.counters import Counters
from stowage.plugins.dynamic_resources.requests import ClaimRequests, Request
from stowage.state.devices.devices import Devices

#: The search for one prefix of the requests ends after so many checks of its time limit.
_MAX_CHECKS = 2000


class Failing(msgspec.Struct, frozen=True, eq=False):
    """A request that fails.

    Attributes:
        claim: The index of its claim.
        index: Its index in the claim.
        request: The request, or one of its alternatives.
        has_list: Whether it is one of several alternatives.
        funnel: What it finds.
        shortage: What it finds, as a value without nodes.
    """

    claim: int
    index: int
    request: Request
    has_list: bool
    funnel: Funnel
    shortage: DeviceShortage


class NodeRequests:
    """The requests of a pod on one node.

    Args:
        devices: Slices, classes and allocated devices.
        node: The node and its pools.
        claims: The claims to allocate, in order.
        names: ``namespace/name`` of the claims.
    """

    def __init__(
        self,
        devices: Devices,
        node: NodeDevices,
        claims: Sequence[ClaimRequests],
        names: Sequence[str],
    ) -> None:
        self._devices, self._node = devices, node
        self._claims, self._names = tuple(claims), tuple(names)

    def failing(self) -> list[Failing]:
        """The requests that fail, each beside those before it that do not.

        A request that fails counts with as many devices as it can get for those behind it.
        """
        found: list[Failing] = []
        kept: list[ClaimRequests] = []
        for number, claim in enumerate(self._claims):
            kept.append(_first(claim, 0))
            for index in range(len(claim.requests)):
                own = [*kept[-1].requests, claim.requests[index]]
                kept[-1] = _with(_first(claim, index + 1), own)
                if self.fits(kept):
                    continue
                failures, least = self._failures(kept, number, index)
                found += failures
                kept[-1] = _with(_first(claim, index + 1), [*own[:-1], (least,)])
        return found

    def fits(self, claims: Sequence[ClaimRequests], available: Counters | None = None) -> bool:
        """Whether claims can be allocated; False if the search takes too long."""
        checks = iter(range(_MAX_CHECKS))
        search = NodeSearch(
            self._devices,
            claims,
            self._names[: len(claims)],
            {} if available is None else available,
            lambda: next(checks, None) is None,
        )
        try:
            found = search.run(self._node.pools, self._node.node, self._node.labels)
        except (AllocationError, OutOfTime):
            return False
        return found is not None

    def changed(
        self, failing: Failing, change: Callable[[Request], Request]
    ) -> list[ClaimRequests]:
        """All claims, with a changed request."""
        claims = list(self._claims)
        claim = claims[failing.claim]
        requests = list(claim.requests)
        requests[failing.index] = tuple(
            change(each) if each is failing.request else each for each in requests[failing.index]
        )
        claims[failing.claim] = replace(claim, requests=tuple(requests))
        return claims

    def helps_to_tolerate(self, failing: Failing) -> bool:
        """Whether the pod fits if the request tolerates the taints that it does not."""
        more = tuple(
            Toleration(each.key, "Equal", each.value, each.effect) for each in failing.funnel.taints
        )
        return self.fits(
            self.changed(failing, lambda it: replace(it, tolerations=(*it.tolerations, *more)))
        )

    def helps_to_select_all(self, failing: Failing) -> bool:
        """Whether the pod fits if the request's own selectors select every device of the class."""
        return self.fits(self.changed(failing, lambda it: replace(it, selectors=())))

    def helps_to_ask_for_less(self, failing: Failing) -> bool:
        """Whether the pod fits if the request asks for less capacity by what a device lacks."""
        lacks = {each.name: each.lack for each in failing.funnel.shortfalls}
        capacity = {
            name: Amount(each.nano - lacks.get(name, 0), "")
            for name, each in failing.request.capacity.items()
        }
        return self.fits(self.changed(failing, lambda it: replace(it, capacity=capacity)))

    def helps_to_free_counters(self, failing: Failing) -> bool:
        """Whether the pod fits if more is left of counters by what a device lacks."""
        more = {each.name: each.lack for each in failing.funnel.counters}
        available: Counters = {}
        for pool in self._node.pools:
            left = counters_left(pool, self._devices)
            for counter_set, counters in left.items():
                for counter in counters:
                    counters[counter] += more.get(f"{counter} of {counter_set}", 0)
            available.setdefault(pool.id.pool, left)
        return self.fits(self._claims, available)

    def _failures(
        self, kept: list[ClaimRequests], claim: int, index: int
    ) -> tuple[list[Failing], Request]:
        """Why the last request of `kept` fails, and what is left of it that can be allocated.

        An alternative each, if it has several.
        """
        has_list = self._claims[claim].has_list[index]
        found, rests = [], []
        for request in kept[-1].requests[-1]:
            rest, is_decided = self._largest(kept, request)
            rests.append(rest)
            funnel = Funnel(self._devices, request, self._node)
            wanted = max(funnel.counts.selected, 1) if request.wants_all else request.count
            why = funnel.why(wanted) or self._other_reason(kept, request)
            shortage = DeviceShortage(
                self._names[claim],
                why if is_decided else Why.UNDECIDED,
                request=request.full_name,
                device_class=request.class_name,
                wanted=0 if request.wants_all else request.count,
                short_by=wanted - (funnel.counts.available if request.wants_all else rest.count),
                counts=funnel.counts,
                details=self._details(funnel, why, claim),
            )
            found.append(Failing(claim, index, request, has_list, funnel, shortage))
        return found, max(rests, key=lambda each: each.count)

    def _largest(self, kept: list[ClaimRequests], request: Request) -> tuple[Request, bool]:
        """The request with the largest number of devices that it can get; whether that is known."""
        most = 0 if request.wants_all else request.count - 1
        for number in range(most, -1, -1):
            smaller = replace(request, mode=EXACT_COUNT, count=number)
            if self.fits(_ending_with(kept, smaller)):
                return smaller, True
        return replace(request, mode=EXACT_COUNT, count=0), False

    def _other_reason(self, kept: list[ClaimRequests], request: Request) -> Why:
        """Why a request fails although there are enough devices for it alone."""
        claims = _ending_with(kept, request)
        last = claims[-1]
        unconstrained = replace(last.spec.devices, constraints=())
        claims[-1] = replace(last, spec=replace(last.spec, devices=unconstrained))
        has_constraints = bool(last.constraints)
        return Why.CONSTRAINT if has_constraints and self.fits(claims) else Why.OTHER_REQUESTS

    def _details(self, funnel: Funnel, why: Why, claim: int) -> tuple[str, ...]:
        if why is not Why.CONSTRAINT:
            return funnel.details(why)
        constraints = self._claims[claim].constraints
        return tuple(
            f"matchAttribute {each.match_attribute}"
            if each.match_attribute
            else f"distinctAttribute {each.distinct_attribute}"
            for each in constraints
        )


def _first(claim: ClaimRequests, number: int) -> ClaimRequests:
    """The claim with its first requests only."""
    return ClaimRequests(
        claim.spec, claim.requests[:number], claim.has_list[:number], claim.problems[:number]
    )


def _with(claim: ClaimRequests, requests: Sequence[tuple[Request, ...]]) -> ClaimRequests:
    return replace(claim, requests=tuple(requests))


def _ending_with(kept: Sequence[ClaimRequests], request: Request) -> list[ClaimRequests]:
    """The claims with another last request, which has no alternatives."""
    last = kept[-1]
    return [*kept[:-1], _with(last, [*last.requests[:-1], (request,)])]


def in_groups(found: Iterator[tuple[str, DeviceShortage]]) -> tuple[DeviceShortage, ...]:
    """Equal shortages of several nodes as one, those of most nodes first."""
    groups: dict[DeviceShortage, list[str]] = {}
    for node, shortage in found:
        groups.setdefault(shortage, []).append(node)
    shortages = [replace(each, nodes=tuple(nodes)) for each, nodes in groups.items()]
    return tuple(sorted(shortages, key=lambda each: (-len(each.nodes), each.claim, each.request)))
