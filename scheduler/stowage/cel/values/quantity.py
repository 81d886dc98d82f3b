"""Quantities, as ``resource.Quantity`` of Kubernetes v1.36 parses, adds and compares them.

``isInteger`` and ``asInteger`` answer by the representation, not by the amount: kube-scheduler
stores a number as an int64 with a decimal exponent where it fits, else as a big decimal. Only an
int64 without a fraction is an integer: ``1000m``, ``1.5Gi`` and ``1Pi`` are not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from stowage.cel.errors import CelLimitError, CelRuntimeError
from stowage.cel.values.numbers import INT_MAX, INT_MIN

_SYNTAX = re.compile(r"([+-]?)0*([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII)
_EXPONENT_SUFFIX = re.compile(r"[eE]([+-]?[0-9]+)")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_NANO = -9
_NARROW_DIGITS = 18
_MAX_DIGITS = 4_000
_SYNTAX_ERROR = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)


@dataclass(slots=True, eq=False)
class Amount:
    """The amount ``mantissa * 10**exponent``; the exponent is -9 or more."""

    mantissa: int
    exponent: int


@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """A quantity.

    Attributes:
        amount: its amount. kube-scheduler adds to a big decimal in place, so ``a.add(b)`` changes
            ``a`` too if that is one, for the rest of the evaluation.
        wide: whether kube-scheduler stores it as a big decimal.
        computed: whether it is the result of ``add`` or ``sub``. Such a quantity on the right of
            ``==`` is equal to nothing, since kube-scheduler compares it as a pointer.
    """

    amount: Amount
    wide: bool = False
    computed: bool = False

    def fresh(self) -> Quantity:
        """The quantity with an amount of its own, if that may change."""
        if not self.wide:
            return self
        return quantity_of(self.amount.mantissa, self.amount.exponent, wide=True)

    @property
    def sign(self) -> int:
        """-1, 0 or 1."""
        return (self.amount.mantissa > 0) - (self.amount.mantissa < 0)

    def compare(self, other: Quantity) -> int:
        """-1, 0 or 1 by the amounts."""
        left, right, _ = self._aligned(other)
        return (left > right) - (left < right)

    def as_integer(self) -> int | None:
        """The amount as an int64; None if its representation is no integer."""
        mantissa, exponent = self.amount.mantissa, self.amount.exponent
        if self.wide or exponent < 0:
            return None
        if not mantissa:
            return 0
        return _in_int64(mantissa * _power_of_ten(exponent)) if exponent <= _NARROW_DIGITS else None

    def as_float(self) -> float:
        """The nearest double."""
        try:
            return float(self.amount.mantissa) * 10.0**self.amount.exponent
        except OverflowError:
            return float("inf") * self.sign

    def plus(self, other: Quantity) -> Quantity:
        """The sum, in the representation that kube-scheduler gives it."""
        if not self.wide and not other.wide and not (self.sign and other.sign):
            kept = (self if self.sign else other).amount
            return Quantity(Amount(kept.mantissa, kept.exponent), computed=True)
        left, right, common = self._aligned(other)
        if self.wide:
            self.amount.mantissa, self.amount.exponent = left + right, common
            return Quantity(self.amount, wide=True, computed=True)
        fits = all(_in_int64(part) is not None for part in (left, right, left + right))
        return Quantity(Amount(left + right, common), other.wide or not fits, computed=True)

    def minus(self, other: Quantity) -> Quantity:
        """The difference, in the representation that kube-scheduler gives it."""
        return self.plus(quantity_of(-other.amount.mantissa, other.amount.exponent, other.wide))

    def _aligned(self, other: Quantity) -> tuple[int, int, int]:
        """Both mantissas for the lower of the exponents, and that exponent."""
        one, two = self.amount, other.amount
        common = min(one.exponent, two.exponent)
        if max(one.exponent, two.exponent) - common > _MAX_DIGITS:
            raise CelLimitError("quantities differ by too many orders of magnitude")
        left = one.mantissa * _power_of_ten(one.exponent - common)
        return left, two.mantissa * _power_of_ten(two.exponent - common), common


def quantity_of(mantissa: int, exponent: int = 0, wide: bool = False) -> Quantity:
    """Make the quantity ``mantissa * 10**exponent``."""
    return Quantity(Amount(mantissa, exponent), wide)


@lru_cache(maxsize=4096)
def parse_quantity(text: str) -> Quantity:
    """Parse a quantity. Callers that let an expression see it use `Quantity.fresh`.

    Raises:
        CelRuntimeError: the text is not a quantity.
    """
    match = _SYNTAX.fullmatch(text) if 0 < len(text) <= _MAX_DIGITS else None
    if match is None:
        raise CelRuntimeError(_SYNTAX_ERROR)
    sign, whole, fraction, suffix = match.groups(default="")
    binary = suffix in _BINARY
    power = _BINARY[suffix] if binary else _decimal_exponent(suffix)
    found = _narrow(whole or "0", fraction, power, binary) or _wide(
        int((whole or "0") + fraction), -len(fraction), power, binary
    )
    if sign == "-":
        found.amount.mantissa *= -1
    return found


def _decimal_exponent(suffix: str) -> int:
    if suffix in _DECIMAL:
        return _DECIMAL[suffix]
    match = _EXPONENT_SUFFIX.fullmatch(suffix)
    if match is None or len(match[1]) > 10:
        raise CelRuntimeError("unable to parse quantity's suffix")
    return int(match[1])


def _narrow(whole: str, fraction: str, power: int, binary: bool) -> Quantity | None:
    digits = whole + fraction
    if binary:
        spare = -1 if fraction else 14 - len(whole) - power * 3 // 10
        mantissa, exponent = int(digits) << power, 0
    else:
        spare = _NARROW_DIGITS - len(digits)
        mantissa, exponent = int(digits), power - len(fraction)
    if spare < 0 or exponent < _NANO or mantissa > INT_MAX:
        return None
    return quantity_of(mantissa, exponent)


def _wide(mantissa: int, exponent: int, power: int, binary: bool) -> Quantity:
    if binary:
        mantissa <<= power
        if mantissa > INT_MAX * _power_of_ten(-exponent):
            return quantity_of(INT_MAX, wide=True)
    else:
        exponent += power
    surplus = _NANO - exponent
    if surplus > len(str(mantissa)):
        return quantity_of(min(mantissa, 1), _NANO, wide=True)
    if surplus > 0:
        return quantity_of(-(-mantissa // _power_of_ten(surplus)), _NANO, wide=True)
    return quantity_of(mantissa, exponent, wide=True)


def _power_of_ten(exponent: int) -> int:
    return int(10**exponent)


def _in_int64(value: int) -> int | None:
    return value if INT_MIN <= value <= INT_MAX else None
