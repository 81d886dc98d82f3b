"""The exact allocator: a depth-first search for devices on one node (``structured`` of v1.36).

The first complete solution is taken. Candidates are tried in the order of pools, slices and
devices; the next device of a request is searched only behind the previous one. What kube-scheduler
does not give back when it backtracks stays consumed here too, because it decides which nodes fit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum

import msgspec

from stowage.api.objects.device import EXACT_COUNT
from stowage.api.values.device_capacity import Amount, consumed_capacity
from stowage.api.values.tolerations import first_untolerated_taint
from stowage.plugins.dynamic_resources.constraints import Constraint, make_constraint
from stowage.plugins.dynamic_resources.counters import Counters, FreeCounters
from stowage.plugins.dynamic_resources.pruning import (
    Need,
    is_prunable,
    match_constraints,
    worthwhile_devices,
)
from stowage.plugins.dynamic_resources.requests import ClaimRequests, Request, expressions_of
from stowage.state.devices.device_info import DeviceId, DeviceInfo, NodeCondition
from stowage.state.devices.devices import Devices
from stowage.state.devices.pool import Pool
from stowage.state.devices.selection import SelectionError

MAX_RESULTS = 32
#: The time limit is checked once in so many steps.
_STEPS_PER_CHECK = 64


class AllocationError(ValueError):
    """An error that ends the attempt of the pod."""


class OutOfTime(Exception):  # noqa: N818 - it names the finding
    """The time limit for one node has passed."""


class _NoSolution(Exception):  # noqa: N818 - it names the finding
    """There are too few devices, whichever ones are taken."""


class _Outcome(Enum):
    """The outcome of a part of the search.

    EXCEEDED: a claim would get too many devices, whichever ones they are.
    """

    DONE = 0
    FAILED = 1
    EXCEEDED = 2


class Taken(msgspec.Struct, frozen=True, eq=False):
    """A device that is taken for a request.

    Attributes:
        consumed: What it consumes of a shared device; empty for others.
    """

    request: Request
    device: DeviceInfo
    pool: Pool
    consumed: dict[str, Amount]


class Solution(msgspec.Struct, frozen=True, eq=False):
    """The devices on one node.

    Attributes:
        taken: The devices of each claim, in order.
        chosen: For each claim and request the index of the chosen alternative.
    """

    taken: tuple[tuple[Taken, ...], ...]
    chosen: tuple[tuple[int, ...], ...]


class _Wanted(msgspec.Struct, eq=False):
    """A request on this node.

    Attributes:
        expressions: The selectors of the class.
        own: The selectors of the request.
        num_devices: How many devices it needs.
        devices: The devices, if it asks for all.
        results: Signature ID -> whether the selectors select it.
        worthwhile: The devices that may be in a solution; None if that is not known.
    """

    request: Request
    expressions: tuple[str, ...]
    own: tuple[str, ...]
    num_devices: int = 0
    devices: list[tuple[Pool, DeviceInfo]] = msgspec.field(default_factory=list)
    results: dict[int, bool] = msgspec.field(default_factory=dict)
    worthwhile: frozenset[DeviceId] | None = None


class NodeSearch:
    """The search on one node.

    Args:
        devices: Slices, classes and allocated devices.
        claims: The claims to allocate, in order; at least one.
        names: ``namespace/name`` of the claims, for messages.
        available: The free counters of pools by name. kube-scheduler computes them once per
            attempt, for the first pool of a name that is asked; pass the same dictionary for all
            nodes of an attempt.
        is_late: Whether the time limit has passed.
    """

    def __init__(
        self,
        devices: Devices,
        claims: Sequence[ClaimRequests],
        names: Sequence[str],
        available: Counters,
        is_late: Callable[[], bool],
    ) -> None:
        self._devices = devices
        self._allocated = devices.allocated
        self._claims = claims
        self._names = names
        self._is_late = is_late
        self._pools: tuple[Pool, ...] = ()
        self._node = ""
        self._labels: dict[str, str] = {}
        self._wanted: list[list[list[_Wanted]]] = []
        self._constraints: list[list[Constraint]] = []
        self._results: list[list[Taken]] = []
        self._chosen: list[list[int]] = []
        self._taking: dict[DeviceId, set[int]] = {}
        self._consuming: dict[DeviceId, dict[str, int]] = {}
        self._counters = FreeCounters(devices.allocated, available)
        self._steps = 0
        self._is_pruned = False

    def run(
        self, pools: tuple[Pool, ...], node_name: str, labels: dict[str, str]
    ) -> Solution | None:
        """The first solution; None if there is none.

        Raises:
            AllocationError: A claim cannot be allocated at all, or a selector fails.
            OutOfTime: The time limit has passed.
        """
        self._pools, self._node, self._labels = pools, node_name, labels
        for claim in range(len(self._claims)):
            self._prepare(claim)
        try:
            if self._allocate_request(0, 0) is not _Outcome.DONE:
                return None
        except _NoSolution:
            return None
        taken = tuple(tuple(each) for each in self._results)
        return Solution(taken, tuple(tuple(each) for each in self._chosen))

    def _prepare(self, claim: int) -> None:
        """Check a claim before the search, and set up its part of the state."""
        given, name = self._claims[claim], self._names[claim]
        wanted: list[list[_Wanted]] = []
        least = 0
        for alternatives, problem in zip(given.requests, given.problems, strict=True):
            if problem:
                raise AllocationError(f"claim {name}, {problem}")
            wanted.append([self._want(claim, each) for each in alternatives])
            least += min((each.num_devices for each in wanted[-1]), default=0)
        if least > MAX_RESULTS:
            text = f"number of requested devices {least} exceeds the claim limit of {MAX_RESULTS}"
            raise AllocationError(f"claim {name}: {text}")
        self._wanted.append(wanted)
        self._results.append([])
        self._chosen.append([0] * len(wanted))
        self._constraints.append([])
        for index, each in enumerate(given.constraints):
            constraint = make_constraint(each)
            if constraint is None:
                text = f"constraint #{index}: empty constraint (unsupported constraint type?)"
                raise AllocationError(f"claim {name}, {text}")
            self._constraints[-1].append(constraint)

    def _want(self, claim: int, request: Request) -> _Wanted:
        name = f"claim {self._names[claim]}, request {request.name}"
        for index, each in enumerate(request.selectors):
            if each is None:
                text = f"selector #{index}: CEL expression empty (unsupported selector type?)"
                raise AllocationError(f"{name}, {text}")
        if not request.class_name:
            text = "missing device class name (unsupported request type?)"
            raise AllocationError(f"{name}: {text}")
        device_class = self._devices.classes.get(request.class_name)
        if device_class is None:
            text = f"could not retrieve device class {request.class_name}"
            missing = f'deviceclass.resource.k8s.io "{request.class_name}" not found'
            raise AllocationError(f"{name}: {text}: {missing}")
        own = tuple(each for each in request.selectors if each is not None)
        wanted = _Wanted(request, expressions_of(device_class.spec.selectors), own)
        if request.wants_all:
            self._want_all(claim, wanted, name)
        elif request.mode == EXACT_COUNT:
            wanted.num_devices = request.count
        else:
            raise AllocationError(f"{name}: unsupported count mode {request.mode}")
        return wanted

    def _want_all(self, claim: int, wanted: _Wanted, name: str) -> None:
        """Fix the list of all devices, whether they are free or not."""
        for pool in self._pools:
            text = f"{name}: asks for all devices, but resource pool {pool.id} is currently"
            if pool.is_incomplete:
                raise AllocationError(f"{text} being updated")
            if pool.is_invalid:
                raise AllocationError(f"{text} invalid")
            for device in pool.devices:
                if (
                    self._is_selectable(claim, wanted, device)
                    and self._consumption(wanted.request, device) is not None
                ):
                    wanted.devices.append((pool, device))
        wanted.num_devices = len(wanted.devices)

    def _allocate_request(self, claim: int, request: int) -> _Outcome:
        """Allocate a request of a claim and everything behind it."""
        if request >= len(self._wanted[claim]):
            if claim + 1 >= len(self._claims):
                return _Outcome.DONE
            outcome = self._allocate_request(claim + 1, 0)
            return _Outcome.FAILED if outcome is _Outcome.EXCEEDED else outcome
        alternatives = self._wanted[claim][request]
        if not self._claims[claim].has_list[request]:
            return self._allocate_device(claim, request, alternatives[0], 0, (0, 0))
        all_exceeded = True
        for index, wanted in enumerate(alternatives):
            outcome = self._allocate_device(claim, request, wanted, 0, (0, 0))
            if outcome is _Outcome.EXCEEDED:
                continue
            all_exceeded = False
            if outcome is _Outcome.DONE:
                self._chosen[claim][request] = index
                return outcome
        return _Outcome.EXCEEDED if all_exceeded else _Outcome.FAILED

    def _allocate_device(
        self, claim: int, request: int, wanted: _Wanted, index: int, start: tuple[int, int]
    ) -> _Outcome:
        """Allocate a device of a request from a position (pool, device) on, and all behind it."""
        self._check_time()
        if wanted.request.wants_all and not wanted.devices:
            return _Outcome.FAILED
        if index >= wanted.num_devices:
            return self._allocate_request(claim, request + 1)
        if len(self._results[claim]) + wanted.num_devices - index > MAX_RESULTS:
            return _Outcome.EXCEEDED
        if wanted.request.wants_all:
            pool, device = wanted.devices[index]
            if not self._take(claim, wanted.request, pool, device, must=True):
                return _Outcome.FAILED
            outcome = self._allocate_device(claim, request, wanted, index + 1, start)
            if outcome is not _Outcome.DONE:
                self._give_back(claim)
            return outcome
        return self._allocate_any(claim, request, wanted, index, start)

    def _allocate_any(
        self, claim: int, request: int, wanted: _Wanted, index: int, start: tuple[int, int]
    ) -> _Outcome:
        first_pool, first_device = start
        for pool_index in range(first_pool, len(self._pools)):
            pool = self._pools[pool_index]
            if not pool.is_usable:
                continue
            begin = first_device if pool_index == first_pool else 0
            for position in range(begin, len(pool.devices)):
                device = pool.devices[position]
                if not self._is_candidate(claim, wanted, device):
                    continue
                if not self._take(claim, wanted.request, pool, device, must=False):
                    continue
                behind = (pool_index, position + 1)
                outcome = self._allocate_device(claim, request, wanted, index + 1, behind)
                if outcome is _Outcome.DONE:
                    return outcome
                self._give_back(claim)
                if outcome is _Outcome.EXCEEDED:
                    return outcome
                self._prune()
        return _Outcome.FAILED

    def _prune(self) -> None:
        """At the first step back: leave out devices that are in no solution, if that is exact.

        It is where the rest of the search could neither fail with an error nor leave anything
        consumed behind, so that only the order of devices decides.

        Raises:
            _NoSolution: There is none.
        """
        if self._is_pruned:
            return
        self._is_pruned = True
        if not is_prunable(self._claims, self._constraints, self._pools):
            return
        wanted = [(claim, each[0]) for claim, all_ in enumerate(self._wanted) for each in all_]
        try:
            needs = [self._need(*each) for each in wanted]
        except AllocationError:
            return
        kept = worthwhile_devices(needs)
        if kept is None:
            raise _NoSolution
        for (_, each), devices in zip(wanted, kept, strict=True):
            each.worthwhile = devices

    def _need(self, claim: int, wanted: _Wanted) -> Need:
        matches = match_constraints(self._constraints[claim], wanted.request)
        devices = [
            device
            for pool in self._pools
            if pool.is_usable
            for device in pool.devices
            if device.id not in self._allocated.whole
            and self._is_selectable(claim, wanted, device)
            and self._consumption(wanted.request, device) is not None
            and not first_untolerated_taint(device.taints, wanted.request.tolerations)
        ]
        return Need(claim, wanted.num_devices, matches, devices)

    def _is_candidate(self, claim: int, wanted: _Wanted, device: DeviceInfo) -> bool:
        if wanted.worthwhile is not None and device.id not in wanted.worthwhile:
            return False
        if wanted.request.has_admin_access:
            if claim in self._taking.get(device.id, ()):
                return False
        elif self._is_in_use(device.id):
            return False
        if not self._is_selectable(claim, wanted, device):
            return False
        return self._consumption(wanted.request, device) is not None

    def _is_in_use(self, device: DeviceId) -> bool:
        return device in self._allocated.whole or bool(self._taking.get(device))

    def _is_selectable(self, claim: int, wanted: _Wanted, device: DeviceInfo) -> bool:
        if device.is_unseen:
            return False
        signature = device.signature
        selected = wanted.results.get(signature.id)
        if selected is None:
            selected = self._select(claim, wanted, device)
            wanted.results[signature.id] = selected
        if not selected or device.nodes is None:
            return selected
        return self._is_here(device.nodes)

    def _select(self, claim: int, wanted: _Wanted, device: DeviceInfo) -> bool:
        matches, name = self._devices.selectors.matches, f"class {wanted.request.class_name}"
        try:
            if not matches(wanted.expressions, device.signature):
                return False
            name = f"claim {self._names[claim]}"
            return matches(wanted.own, device.signature)
        except SelectionError as error:
            raise AllocationError(f"{name}: {error}") from error

    def _is_here(self, nodes: NodeCondition) -> bool:
        return nodes.matches(self._node, self._labels)

    def _consumption(self, request: Request, device: DeviceInfo) -> dict[str, Amount] | None:
        """What a request consumes of a device now; None if too little is left."""
        signature = device.signature
        if not signature.capacity and not request.capacity:
            return {}
        consumed = self._allocated.consumed.get(device.id, {})
        taken = self._consuming.get(device.id)
        if taken:
            consumed = {
                name: consumed.get(name, 0) + taken.get(name, 0) for name in signature.capacity
            }
        return consumed_capacity(signature.capacity, request.capacity, consumed)

    def _take(
        self, claim: int, request: Request, pool: Pool, device: DeviceInfo, *, must: bool
    ) -> bool:
        """Take a device for a request, if it is free and allowed (``allocateDevice``)."""
        if device.is_withheld:
            return False
        is_shared = device.signature.allows_multiple
        if not self._is_free(claim, request, device):
            return False
        takes_counters = device.counters and not (is_shared and self._is_consumed(device.id))
        if takes_counters and not self._counters.take(pool, device):
            return False
        if device.taints and first_untolerated_taint(device.taints, request.tolerations):
            return False
        if not self._add_to_constraints(claim, request, device, must=must):
            return False
        if not is_shared:
            self._taking.setdefault(device.id, set()).add(claim)
        consumed = self._consumption(request, device)
        if consumed is None:
            return False
        if is_shared:
            taken = self._consuming.setdefault(device.id, {})
            for name, each in consumed.items():
                taken[name] = taken.get(name, 0) + each.nano
        self._results[claim].append(Taken(request, device, pool, consumed if is_shared else {}))
        return True

    def _is_free(self, claim: int, request: Request, device: DeviceInfo) -> bool:
        if not request.has_admin_access:
            return not self._is_in_use(device.id)
        is_shared = device.signature.allows_multiple
        return is_shared or claim not in self._taking.get(device.id, ())

    def _give_back(self, claim: int) -> None:
        """Undo the last `_take` for a claim."""
        last = self._results[claim].pop()
        device = last.device
        for constraint in self._constraints[claim]:
            constraint.remove(last.request)
        self._taking.get(device.id, set()).discard(claim)
        if not device.signature.allows_multiple:
            self._counters.release(last.pool, device)
        elif last.consumed:
            taken = self._consuming[device.id]
            for name, each in last.consumed.items():
                taken[name] -= each.nano
            if not any(taken.values()):
                del self._consuming[device.id]

    def _add_to_constraints(
        self, claim: int, request: Request, device: DeviceInfo, *, must: bool
    ) -> bool:
        constraints = self._constraints[claim]
        for index, constraint in enumerate(constraints):
            if constraint.add(request, device.signature):
                continue
            if must:
                name = f"claim {self._names[claim]}, request {request.name}"
                text = "because a claim constraint would not be satisfied"
                raise AllocationError(f"{name}: cannot add device {device.id} {text}")
            for before in constraints[:index]:
                before.remove(request)
            return False
        return True

    def _is_consumed(self, device: DeviceId) -> bool:
        # As upstream, a share of a device without capacities counts in this search only.
        return bool(self._allocated.consumed.get(device)) or device in self._consuming

    def _check_time(self) -> None:
        self._steps += 1
        if self._steps % _STEPS_PER_CHECK == 0 and self._is_late():
            raise OutOfTime
