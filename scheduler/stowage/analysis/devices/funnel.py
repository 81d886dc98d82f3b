"""Step by step: which devices of a node a request could get, each device by itself."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from stowage.analysis.devices.shortage import DeviceCounts, Why
from stowage.analysis.near_misses import taint_text
from stowage.api.objects.node import Taint
from stowage.api.values.device_capacity import consumed_capacity
from stowage.api.values.quantity import Format, Quantity
from stowage.api.values.tolerations import DO_NOT_SCHEDULE_EFFECTS, tolerated
from stowage.plugins.dynamic_resources.requests import Request, expressions_of
from stowage.state.devices.device_info import CounterUse, DeviceInfo
from stowage.state.devices.devices import Devices
from stowage.state.devices.pool import Pool
from stowage.state.devices.selection import SelectionError

_NANO = 10**9
_KIB = 1024
_FEW = 3
#: ``device.attributes["domain"].name`` and the like.
_NAMED = re.compile(
    r"device\.(attributes|capacity)\[\s*[\"']([^\"']+)[\"']\s*\](?:\.(\w+)|\[[\"']([^\"']+)[\"']\])"
)


class NodeDevices(msgspec.Struct, frozen=True, eq=False):
    """The devices that a node can use.

    Attributes:
        node: Its name.
        labels: Its labels.
        pools: Its pools.
    """

    node: str
    labels: dict[str, str]
    pools: tuple[Pool, ...]

    def usable(self) -> Iterator[tuple[Pool, DeviceInfo]]:
        """The devices of complete and valid pools that are for this node."""
        for pool in self.pools:
            for device in pool.devices if pool.is_usable else ():
                if device.is_unseen:
                    continue
                if device.nodes is None or device.nodes.matches(self.node, self.labels):
                    yield pool, device

    def unusable_pools(self) -> tuple[str, ...]:
        """The pools that cannot be used, with the reason."""
        return tuple(
            f"{pool.id} is {'being updated' if pool.is_incomplete else 'invalid'}"
            for pool in self.pools
            if not pool.is_usable
        )


class Shortfall(msgspec.Struct, frozen=True):
    """What a device lacks of a capacity or a counter.

    Attributes:
        name: The capacity, or the counter and its set.
        lack: Nano units.
        wanted: Nano units that are asked for.
    """

    name: str
    lack: int
    wanted: int


class Funnel:
    """The devices of a node that are left for a request after each step.

    Args:
        devices: Classes, selectors and allocated devices.
        request: The request.
        node: The node.

    Attributes:
        taints: The taints that it does not tolerate, of devices that are selected.
        shortfalls: The least that a device lacks of capacity.
        counters: The least that a free device lacks of counters.
    """

    def __init__(self, devices: Devices, request: Request, node: NodeDevices) -> None:
        self._devices, self._request, self._node = devices, request, node
        usable = list(node.usable())
        of_class = [each for each in usable if self._is_of_class(each[1])]
        selected = [each for each in of_class if self._is_selected(each[1])]
        tolerated_ = [each for each in selected if not self._untolerated(each[1])]
        sufficient = [each for each in tolerated_ if not self._lacks(each[1])]
        free = [each for each in sufficient if self._is_free(each[1])]
        available = [each for each in free if not self._lacking_counters(*each)]
        steps = (usable, of_class, selected, tolerated_, sufficient, free, available)
        self.counts = DeviceCounts(*map(len, steps))
        self.taints = _distinct(t for _, each in selected for t in self._untolerated(each))
        lacks = [self._lacks(each) for _, each in tolerated_]
        self.shortfalls = min((each for each in lacks if each), key=_distance, default=())
        lacks = [self._lacking_counters(*each) for each in free]
        self.counters = min((each for each in lacks if each), key=_distance, default=())
        self._unselected = [each for _, each in of_class if not self._is_selected(each)]

    def why(self, wanted: int) -> Why | None:
        """The first step that leaves too few devices; None if enough pass all of them."""
        it = self.counts
        if it.devices < wanted and self._node.unusable_pools():
            return Why.POOL
        if not it.devices:
            return Why.NO_DEVICES
        left = {
            Why.CLASS: it.of_class,
            Why.SELECTOR: it.selected,
            Why.TAINT: it.tolerated,
            Why.CAPACITY: it.sufficient,
            Why.IN_USE: it.free,
            Why.COUNTER: it.available,
        }
        return next((why for why, number in left.items() if number < wanted), None)

    def details(self, why: Why) -> tuple[str, ...]:
        """What explains the step."""
        match why:
            case Why.POOL:
                return self._node.unusable_pools()
            case Why.SELECTOR:
                return tuple(self._named_values())
            case Why.TAINT:
                return tuple(map(taint_text, self.taints))
            case Why.CAPACITY:
                return tuple(
                    f"{each.name} short by {nano_text(each.lack)}" for each in self.shortfalls
                )
            case Why.COUNTER:
                return tuple(
                    f"{each.name} short by {nano_text(each.lack)}" for each in self.counters
                )
        return ()

    def _is_of_class(self, device: DeviceInfo) -> bool:
        known = self._devices.classes.get(self._request.class_name)
        return known is not None and self._matches(expressions_of(known.spec.selectors), device)

    def _is_selected(self, device: DeviceInfo) -> bool:
        own = tuple(each for each in self._request.selectors if each is not None)
        return self._matches(own, device)

    def _matches(self, expressions: Sequence[str], device: DeviceInfo) -> bool:
        try:
            return self._devices.selectors.matches(expressions, device.signature)
        except SelectionError:
            return False

    def _untolerated(self, device: DeviceInfo) -> list[Taint]:
        return [
            each
            for each in device.taints
            if each.effect in DO_NOT_SCHEDULE_EFFECTS
            and not tolerated(each, self._request.tolerations)
        ]

    def _lacks(self, device: DeviceInfo) -> tuple[Shortfall, ...]:
        rules, wanted = device.signature.capacity, self._request.capacity
        consumed = self._devices.allocated.consumed.get(device.id, {})
        if consumed_capacity(rules, wanted, consumed) is not None:
            return ()
        found = []
        for name, each in wanted.items():
            value = rules[name].value.nano if name in rules else 0
            lack = each.nano + consumed.get(name, 0) - value
            if lack > 0:
                found.append(Shortfall(name, lack, each.nano))
        return tuple(found) or (Shortfall("an amount that its policy allows", 0, 0),)

    def _is_free(self, device: DeviceInfo) -> bool:
        return self._request.has_admin_access or device.id not in self._devices.allocated.whole

    def _lacking_counters(self, pool: Pool, device: DeviceInfo) -> tuple[Shortfall, ...]:
        if device.is_withheld:
            return (Shortfall("partitionable devices are switched off", 0, 0),)
        if not device.counters or self._devices.allocated.is_used(device.id):
            return ()
        left = counters_left(pool, self._devices)
        return tuple(
            Shortfall(f"{use.counter} of {use.counter_set}", use.nano - free, use.nano)
            for use in device.counters
            if (free := left.get(use.counter_set, {}).get(use.counter, 0)) < use.nano
        )

    def _named_values(self) -> Iterator[str]:
        """The values of what the selectors name, of devices that they do not select."""
        for expression in self._request.selectors:
            for kind, domain, *names in _NAMED.findall(expression or ""):
                name = names[0] or names[1]
                values = Counter(_value(each, kind, domain, name) for each in self._unselected)
                shown = " or ".join(value for value, _ in values.most_common(_FEW))
                if shown:
                    noun = "attribute" if kind == "attributes" else "capacity"
                    yield f"{noun} {name} is {shown}"


def counters_left(pool: Pool, devices: Devices) -> dict[str, dict[str, int]]:
    """Counter set -> counter -> nano units that allocated devices leave."""
    left = {name: dict(counters) for name, counters in pool.counter_sets.items()}
    uses: Iterable[CounterUse] = (
        use
        for device in pool.with_counters
        if devices.allocated.is_used(device.id)
        for use in device.counters
    )
    for use in uses:
        if use.counter in left.get(use.counter_set, {}):
            left[use.counter_set][use.counter] -= use.nano
    return left


def nano_text(nano: int) -> str:
    """Nano units as Kubernetes writes the quantity.

    Examples:
        >>> nano_text(4 * 2**30 * 10**9), nano_text(10**8), nano_text(7 * 10**9)
        ('4Gi', '100m', '7')
    """
    whole, rest = divmod(nano, _NANO)
    if rest:
        return str(Quantity(nano, -9, Format.DECIMAL_SI))
    is_binary = whole and not whole % _KIB
    return str(Quantity(whole, 0, Format.BINARY_SI if is_binary else Format.DECIMAL_SI))


def _text(shortfall: Shortfall) -> str:
    if not shortfall.lack:
        return shortfall.name
    return f"{shortfall.name} short by {nano_text(shortfall.lack)}"


def _value(device: DeviceInfo, kind: str, domain: str, name: str) -> str:
    full = f"{domain}/{name}"
    if kind == "attributes":
        found = device.signature.attribute(full)
        return "not set" if found is None else str(found[1])
    rules = device.signature.capacity
    own = domain == device.signature.driver
    rule = rules.get(full) or (rules.get(name) if own else None)
    return "not set" if rule is None else rule.value.text


def _distance(shortfalls: tuple[Shortfall, ...]) -> float:
    return sum(each.lack / max(each.wanted, 1) for each in shortfalls)


def _distinct(taints: Iterable[Taint]) -> tuple[Taint, ...]:
    known = {(each.key, each.value, each.effect): each for each in taints}
    return tuple(known.values())
