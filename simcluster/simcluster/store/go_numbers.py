"""Numbers of objects without Go types, as a Go server writes them."""

from decimal import Decimal
from typing import Any

_PLAIN_BELOW = 1e21
"""Greater numbers are written with an exponent."""
_INT64 = range(-(2**63), 2**63)


def numbers_in_go(value: Any) -> Any:
    """A value whose numbers that are whole, or do not fit into 64 bits, are written as by Go.

    Examples:
        >>> numbers_in_go({"ratios": [1.0, 0.5, 99999999999999999999]})
        {'ratios': [1, 0.5, 100000000000000000000]}
    """
    if isinstance(value, dict):
        return {key: numbers_in_go(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [numbers_in_go(inner) for inner in value]
    if isinstance(value, int) and value not in _INT64:
        value = float(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < _PLAIN_BELOW:
        return int(Decimal(repr(value)))
    return value
