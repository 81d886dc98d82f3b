"""When two values are equal (``types.Equal`` and the ``Equal`` methods of cel-go).

Numbers are equal by their amount, whatever their types. Values of different other types are not
equal; for versions, URLs, addresses, networks and formats that comparison is an error. Such an
error counts as equal between elements of lists and maps, as it does in cel-go.
"""

from __future__ import annotations

from typing import Any, Protocol

from stowage.cel.errors import CelLimitError, CelRuntimeError, no_such_overload
from stowage.cel.values.containers import MISSING, CelMap, Optional
from stowage.cel.values.named_format import NamedFormat
from stowage.cel.values.network import CIDR, IP
from stowage.cel.values.numbers import Uint
from stowage.cel.values.quantity import Quantity
from stowage.cel.values.semver import Semver
from stowage.cel.values.url import URL

_NUMBERS = (int, Uint, float)
_SCALARS = (str, bytes, bool)
_MAX_DEPTH = 100


class Work(Protocol):
    """Counts work that grows with the size of values, and ends it at a limit."""

    def charge_work(self, amount: int) -> None:
        """Count `amount`; raises a CelLimitError at the limit."""


STRICT_TYPES = frozenset([Semver, IP, CIDR, URL, NamedFormat])
"""Classes whose comparison with another class is an error."""


def equal(left: Any, right: Any, work: Work, depth: int = 0) -> bool:
    """Whether the values are equal.

    Raises:
        CelRuntimeError: they cannot be compared.
    """
    kind, other = type(left), type(right)
    if kind in _SCALARS:
        return kind is other and bool(left == right)
    if left is None or right is None:
        return left is right
    if kind in _NUMBERS:
        return other in _NUMBERS and _numbers_equal(left, right)
    if kind is Quantity:
        return other is Quantity and not right.computed and left.compare(right) == 0
    if kind in STRICT_TYPES and kind is not other:
        raise no_such_overload()
    if kind is not other and not (isinstance(left, CelMap) and isinstance(right, CelMap)):
        return False
    if isinstance(left, list | CelMap | Optional):
        return _containers_equal(left, right, work, depth + 1)
    return bool(left == right)


def contains_value(work: Work, value: Any, elements: list[Any]) -> bool:
    """Whether an element is equal to `value`; elements that cannot be compared are not."""
    return any(surely_equal(value, each, work) for each in elements)


def surely_equal(left: Any, right: Any, work: Work) -> bool:
    """`equal`; False if the values cannot be compared."""
    work.charge_work(1)
    try:
        return equal(left, right, work)
    except CelLimitError:
        raise
    except CelRuntimeError:
        return False


def _numbers_equal(left: Any, right: Any) -> bool:
    if isinstance(left, float) or isinstance(right, float):
        return float(left) == float(right)
    return int(left) == int(right)


def _containers_equal(left: Any, right: Any, work: Work, depth: int) -> bool:
    if depth > _MAX_DEPTH:
        raise CelLimitError("values are nested too deeply to be compared")
    if isinstance(left, Optional):
        if not (left.present and right.present):
            return left.present is right.present
        return equal(left.content, right.content, work, depth)
    if len(left) != len(right):
        return False
    work.charge_work(len(left))
    if isinstance(left, list):
        pairs = zip(left, right, strict=True)
        return all(_maybe_equal(one, other, work, depth) for one, other in pairs)
    return all(
        (other := right.find(key)) is not MISSING and _maybe_equal(value, other, work, depth)
        for key, value in left.items()
    )


def _maybe_equal(left: Any, right: Any, work: Work, depth: int) -> bool:
    try:
        return equal(left, right, work, depth)
    except CelLimitError:
        raise
    except CelRuntimeError:
        return True
