"""What a request consumes of a device's capacity (``structured/.../consumable_capacity.go`` v1.36).

Amounts are exact: nano units, with the text that a quantity was read from.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import msgspec

from stowage.api.objects.device import CapacityRequestPolicy, DeviceCapacity, QuantityText
from stowage.api.values.quantity import parse_quantity, rounded_up

_NANO_PER_UNIT = 10**9


class Amount(msgspec.Struct, frozen=True, gc=False):
    """An exact amount.

    Attributes:
        nano: Nano units.
        text: The quantity in canonical form.
    """

    nano: int
    text: str


class CapacityRule(msgspec.Struct, frozen=True):
    """A capacity of a device and its request policy.

    Attributes:
        value: The whole capacity.
        default: What a request consumes that does not name the capacity; None for all of it.
        valid_values: The amounts that can be consumed, ascending; empty if any can.
        minimum: The least amount that can be consumed, if there is a range.
        maximum: The greatest amount, if the range has one.
        step: The distance of valid amounts from `minimum` on, in whole units; 0 if there is none.
    """

    value: Amount
    default: Amount | None = None
    valid_values: tuple[Amount, ...] = ()
    minimum: Amount | None = None
    maximum: Amount | None = None
    step: int = 0

    def consumption(self, requested: Amount | None) -> Amount | None:
        """What a request consumes; None if the policy does not allow that amount."""
        consumed = self._applied(requested)
        return None if self._violates(consumed) else consumed

    def _applied(self, requested: Amount | None) -> Amount:
        if requested is None:
            return self.default or self.value
        if self.minimum is not None:
            return self._in_range(requested, self.minimum)
        return next((each for each in self.valid_values if requested.nano <= each.nano), requested)

    def _in_range(self, requested: Amount, minimum: Amount) -> Amount:
        if requested.nano < minimum.nano:
            return minimum
        if not self.step:
            return requested
        least = _whole(minimum)
        steps = -(-(_whole(requested) - least) // self.step)
        whole = least + steps * self.step
        return Amount(whole * _NANO_PER_UNIT, str(whole))

    def _violates(self, consumed: Amount) -> bool:
        if self.default is not None and consumed.nano == self.default.nano:
            return False
        if self.maximum is not None and consumed.nano > self.maximum.nano:
            return True
        if self.step:
            least = _whole(self.minimum) if self.minimum is not None else 0
            return (_whole(consumed) - least) % self.step != 0
        valid = self.valid_values
        return bool(valid) and all(consumed.nano != each.nano for each in valid)


@lru_cache(maxsize=65536)
def amount(text: QuantityText) -> Amount:
    """The amount of a quantity.

    Raises:
        QuantityError: `text` is not a quantity.
    """
    quantity = parse_quantity(text)
    return Amount(quantity.nano_value(), quantity.canonical())


def capacity_rule(capacity: DeviceCapacity) -> CapacityRule:
    """The rule of a device's capacity.

    Raises:
        QuantityError: A quantity cannot be parsed.
    """
    policy = capacity.request_policy or CapacityRequestPolicy()
    limits = policy.valid_range
    default = None if policy.default is None else amount(policy.default)
    if limits is None:
        values = tuple(amount(each) for each in policy.valid_values)
        return CapacityRule(amount(capacity.value), default, values)
    return CapacityRule(
        amount(capacity.value),
        default,
        minimum=None if limits.min is None else amount(limits.min),
        maximum=None if limits.max is None else amount(limits.max),
        step=0 if limits.step is None else _whole(amount(limits.step)),
    )


def consumed_capacity(
    rules: Mapping[str, CapacityRule],
    requested: Mapping[str, Amount],
    consumed: Mapping[str, int],
) -> dict[str, Amount] | None:
    """What a request consumes of each capacity of a device; None if the device cannot serve it.

    Args:
        rules: The capacities of the device.
        requested: The requested amounts.
        consumed: Nano units that are consumed already.
    """
    if not requested.keys() <= rules.keys():
        return None
    taken: dict[str, Amount] = {}
    for name, rule in rules.items():
        wanted = rule.consumption(requested.get(name))
        if wanted is None or consumed.get(name, 0) + wanted.nano > rule.value.nano:
            return None
        taken[name] = wanted
    return taken


def _whole(given: Amount) -> int:
    """Whole units, rounded away from zero (``Quantity.Value``)."""
    return rounded_up(given.nano)
