"""Kubernetes quantities ("500m", "1.5Gi", "2e3") as exact integers.

The semantics, including the printed text, are those of ``resource.Quantity`` (v1.36). There is no
floating point: an amount is ``mantissa * 10**exponent`` with Python integers.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache

import msgspec

from stowage.api.decoding.errors import QuantityError

INT64_MAX = 2**63 - 1
INT64_MIN = -(2**63)

_SYNTAX = re.compile(r"([+-]?)0*([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)")
_EXPONENT_SUFFIX = re.compile(r"[eE]([+-]?[0-9]+)")
_DECIMAL_SUFFIXES = {
    "n": -9,
    "u": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
}
_BINARY_SUFFIXES = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX_OF = {exponent: suffix for suffix, exponent in _DECIMAL_SUFFIXES.items()}
_BINARY_SUFFIX_OF = {0: "", **{power: suffix for suffix, power in _BINARY_SUFFIXES.items()}}

_NANO = -9
_MILLI = -3
_NARROW_DIGITS = 18
"""Longest number that v1.36 parses to an int64; longer ones become big decimals."""
_MAX_LENGTH = 4_000
"""Maximum length of a quantity; Python refuses integers of more than 4,300 digits."""
_BEYOND_INT64 = 28
"""10**28 nano units are more than an int64 of whole units, whatever the mantissa."""


class Format(Enum):
    """The notation of a quantity, in which it is printed."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


class Quantity(msgspec.Struct, frozen=True):
    """An exact amount, ``mantissa * 10**exponent``, never finer than 10**-9.

    Attributes:
        mantissa: Any integer.
        exponent: -9 or more.
        format: Determines the suffix of the canonical form.
        text: The parsed text, if v1.36 prints it; empty if v1.36 prints the canonical form.
        wide: Whether v1.36 stores the amount as a big decimal, which rounds negative amounts
            differently from an int64 (see `scaled_value`).
    """

    mantissa: int
    exponent: int
    format: Format
    text: str = ""
    wide: bool = False

    @property
    def sign(self) -> int:
        """-1, 0 or 1."""
        return (self.mantissa > 0) - (self.mantissa < 0)

    def value(self) -> int:
        """Whole units, rounded away from zero; capped to int64 (``Quantity.Value``)."""
        return self._capped(0)

    def milli_value(self) -> int:
        """Thousandths, rounded away from zero; capped to int64 (``Quantity.MilliValue``)."""
        return self._capped(_MILLI)

    def nano_value(self) -> int:
        """The exact amount in nano units; amounts far beyond int64 become 10**40 or -10**40."""
        if self.exponent > _BEYOND_INT64:
            return self.sign * _power_of_ten(40)
        return self.mantissa * _power_of_ten(self.exponent - _NANO)

    def scaled_value(self, exponent: int) -> int | None:
        """The amount in units of ``10**exponent``; None if it does not fit an int64.

        Rounds away from zero; negative big decimals are rounded up (``ScaledValue`` of v1.36).
        """
        drop = exponent - self.exponent
        if not self.mantissa:
            return 0
        if drop <= 0:
            if -drop > _BEYOND_INT64:
                return None
            return _in_int64(self.mantissa * _power_of_ten(-drop))
        rounded = _in_int64(_divided_away_from_zero(self.mantissa, _power_of_ten(drop)))
        if rounded is None or not (self.wide and self.mantissa < 0):
            return rounded
        return _divided_as_big_decimal(self.mantissa, drop)

    def canonical(self) -> str:
        """The canonical form: no fraction, the largest suffix that keeps it exact."""
        if not self.mantissa:
            return "0"
        if self.format is Format.BINARY_SI:
            whole = self._whole()
            if whole is not None and abs(whole) >= 1024:
                return _binary_text(whole)
        return self._decimal_text()

    def __str__(self) -> str:
        return self.text or self.canonical()

    def _capped(self, exponent: int) -> int:
        scaled = self.scaled_value(exponent)
        if scaled is None:
            return INT64_MAX if self.mantissa > 0 else INT64_MIN
        return scaled

    def _whole(self) -> int | None:
        if self.exponent >= 0:
            return self.mantissa * _power_of_ten(self.exponent)
        whole, fraction = divmod(self.mantissa, _power_of_ten(-self.exponent))
        return None if fraction else whole

    def _decimal_text(self) -> str:
        digits = str(self.mantissa)
        stripped = digits.rstrip("0")
        exponent = self.exponent + len(digits) - len(stripped)
        padding = exponent % 3
        number, exponent = stripped + "0" * padding, exponent - padding
        if self.format is Format.DECIMAL_EXPONENT:
            return f"{number}e{exponent}" if exponent else number
        return number + _DECIMAL_SUFFIX_OF.get(exponent, "")


def parse_quantity(text: str | int | float) -> Quantity:
    """Parse a quantity in any form that the Kubernetes API accepts (``resource.ParseQuantity``).

    Amounts finer than 10**-9 are rounded away from zero. Amounts with a binary suffix are capped to
    2**63-1. JSON numbers are parsed from their shortest decimal text.

    Raises:
        QuantityError: `text` is not a quantity.

    Examples:
        >>> parse_quantity("1.5Gi").value(), str(parse_quantity("1.5Gi"))
        (1610612736, '1536Mi')
        >>> parse_quantity("0.1").milli_value(), parse_quantity("100u").milli_value()
        (100, 1)
    """
    written = text if isinstance(text, str) else repr(text)
    match = _SYNTAX.fullmatch(written) if len(written) <= _MAX_LENGTH else None
    if match is None or not written:
        raise QuantityError(text)
    sign, whole, fraction, suffix = match.groups(default="")
    number_format, power = _interpret_suffix(suffix, text)
    number = _Number(-1 if sign == "-" else 1, whole or "0", fraction, number_format, power)
    return _narrow_quantity(number, written) or _wide_quantity(number)


@lru_cache(maxsize=65536)
def quantity_value(text: str | int | float) -> int:
    """`parse_quantity` and `Quantity.value` in one call, cached; for resources other than cpu."""
    return parse_quantity(text).value()


@lru_cache(maxsize=65536)
def quantity_milli_value(text: str | int | float) -> int:
    """`parse_quantity` and `Quantity.milli_value` in one call, cached; for cpu."""
    return parse_quantity(text).milli_value()


@lru_cache(maxsize=65536)
def quantity_nano_value(text: str | int | float) -> int:
    """`parse_quantity` and `Quantity.nano_value` in one call, cached; for exact sums."""
    return parse_quantity(text).nano_value()


def rounded_up(nano: int, unit_exponent: int = 0) -> int:
    """Nano units as units of ``10**unit_exponent``, away from zero and capped to int64."""
    rounded = _divided_away_from_zero(nano, _power_of_ten(unit_exponent - _NANO))
    return max(INT64_MIN, min(INT64_MAX, rounded))


class _Number(msgspec.Struct, frozen=True):
    """The parts of a quantity's text; `power` is of ten, or of two in binary format."""

    sign: int
    whole: str
    fraction: str
    format: Format
    power: int


def _interpret_suffix(suffix: str, text: str | int | float) -> tuple[Format, int]:
    if suffix in _DECIMAL_SUFFIXES:
        return Format.DECIMAL_SI, _DECIMAL_SUFFIXES[suffix]
    if suffix in _BINARY_SUFFIXES:
        return Format.BINARY_SI, _BINARY_SUFFIXES[suffix]
    match = _EXPONENT_SUFFIX.fullmatch(suffix)
    if match is None or len(match[1]) > 10:
        raise QuantityError(text)
    return Format.DECIMAL_EXPONENT, int(match[1])


def _narrow_quantity(number: _Number, text: str) -> Quantity | None:
    """The int64 path of v1.36; None if v1.36 uses big decimals."""
    digits = number.whole + number.fraction
    exponent, factor = number.power - len(number.fraction), 1
    if number.format is Format.BINARY_SI:
        exponent, factor = 0, 1 << number.power
        spare = 14 - len(number.whole) - number.power * 3 // 10 if not number.fraction else -1
    else:
        spare = _NARROW_DIGITS - len(digits)
    if spare < 0 or exponent < _NANO:
        return None
    value = int(digits)
    if value * factor > INT64_MAX:
        return None
    if number.format is Format.BINARY_SI:
        kept = value & 7 != 0
    else:
        kept = exponent % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
    mantissa = number.sign * value * factor
    return Quantity(mantissa, exponent, number.format, text if kept else "")


def _wide_quantity(number: _Number) -> Quantity:
    """The big decimal path of v1.36."""
    mantissa, exponent = int(number.whole + number.fraction), -len(number.fraction)
    number_format = number.format
    if number_format is Format.BINARY_SI:
        mantissa <<= number.power
        if mantissa < _power_of_ten(-exponent):
            number_format = Format.DECIMAL_SI
        if mantissa > INT64_MAX * _power_of_ten(-exponent):
            return Quantity(number.sign * INT64_MAX, 0, number_format)
    else:
        exponent += number.power
    mantissa, exponent = _in_nano_units(mantissa, exponent)
    return Quantity(number.sign * mantissa, exponent, number_format, wide=True)


def _in_nano_units(mantissa: int, exponent: int) -> tuple[int, int]:
    """Round a positive amount up to a multiple of 10**-9; huge exponents stay as they are."""
    if exponent > _BEYOND_INT64:
        return mantissa, exponent
    surplus = _NANO - exponent
    if surplus <= 0:
        return mantissa * _power_of_ten(-surplus), _NANO
    if surplus > len(str(mantissa)):
        return min(mantissa, 1), _NANO
    return _divided_away_from_zero(mantissa, _power_of_ten(surplus)), _NANO


def _power_of_ten(exponent: int) -> int:
    return int(10**exponent)


def _in_int64(value: int) -> int | None:
    return value if INT64_MIN <= value <= INT64_MAX else None


def _divided_away_from_zero(value: int, divisor: int) -> int:
    return -(-value // divisor) if value >= 0 else value // divisor


def _divided_as_big_decimal(mantissa: int, drop: int) -> int:
    """Divide a negative big decimal as v1.36 does: through an int64, though it may not fit one."""
    shift = _power_of_ten(drop)
    if drop >= _NARROW_DIGITS:
        quotient, remainder = divmod(mantissa, shift)
        return quotient + (remainder != 0)
    low_bits = -mantissa & (2**64 - 1)
    magnitude = low_bits - 2**64 if low_bits > INT64_MAX else low_bits
    quotient = abs(magnitude) // shift * (1 if magnitude < 0 else -1)
    return quotient + (magnitude % shift != 0)


def _binary_text(whole: int) -> str:
    power = 0
    while whole % 1024 == 0:
        whole, power = whole // 1024, power + 10
    return f"{whole}{_BINARY_SUFFIX_OF[power]}"
