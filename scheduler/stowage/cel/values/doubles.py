"""Doubles as text."""

from __future__ import annotations

import math

_EXPONENT_FORM = 6
"""Go writes a double of seven digits and more before the point with an exponent."""


def double_text(value: float) -> str:
    """A double as Go prints it with ``%g``: the shortest text that is exact."""
    if math.isnan(value) or math.isinf(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    digits, exponent = _shortest(value)
    sign = "-" if math.copysign(1, value) < 0 else ""
    if -4 <= exponent < _EXPONENT_FORM:
        return sign + _positional(digits, exponent)
    mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
    return f"{sign}{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def _shortest(value: float) -> tuple[str, int]:
    """The digits of the shortest exact decimal, and the exponent of the first one."""
    mantissa, _, exponent = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    first = len(whole) - 1 if whole.strip("0") else -1 - (len(fraction) - len(digits))
    return digits.rstrip("0") or "0", (first if digits else 0) + int(exponent or 0)


def _positional(digits: str, exponent: int) -> str:
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    padded = digits.ljust(exponent + 1, "0")
    whole, fraction = padded[: exponent + 1], padded[exponent + 1 :]
    return f"{whole}.{fraction}" if fraction else whole
