"""Amounts of resources as Kubernetes writes them."""

from __future__ import annotations

from stowage.api.values.quantity import Format, Quantity
from stowage.api.values.resource_names import CPU, EPHEMERAL_STORAGE, HUGEPAGES_PREFIX, MEMORY

_MILLI = -3


def amount_text(resource: str, amount: int) -> str:
    """The amount of a column: cpu in milli units, all other resources in whole units.

    Examples:
        >>> amount_text("cpu", 1500), amount_text("memory", 2**30), amount_text("pods", 110)
        ('1500m', '1Gi', '110')
    """
    if resource == CPU:
        return str(Quantity(amount, _MILLI, Format.DECIMAL_SI))
    is_bytes = resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith(HUGEPAGES_PREFIX)
    return str(Quantity(amount, 0, Format.BINARY_SI if is_bytes else Format.DECIMAL_SI))
