"""Costs of calls (``k8s.io/apiserver/pkg/cel/library/cost.go``, ``runtimecost.go`` of cel-go).

A call costs 1 unless its function or overload says otherwise. Costs are computed with floating
point numbers, as upstream does; ``3 * 0.1`` rounds up to 1, ``30 * 0.1`` to 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Any

from stowage.cel.signatures.functions import CostFunction
from stowage.cel.values.containers import CelMap, Optional
from stowage.cel.values.network import CIDR, IP

_Args = tuple[Any, ...]

TRAVERSAL = 0.1
REGEX_LENGTH = 0.25
LIST_BASE, MAP_BASE = 10, 30


def size_of(value: Any) -> int:
    """The size of a value: characters, bytes, elements; 1 for scalars."""
    if isinstance(value, str | bytes | list | CelMap):
        return len(value)
    if isinstance(value, IP | CIDR):
        return value.size
    if isinstance(value, Optional) and value.present:
        return size_of(value.content)
    return 1


def traversal(args: _Args, _result: Any) -> int:
    """Reading the first argument once."""
    return ceil(size_of(args[0]) * TRAVERSAL)


def smaller_traversal(args: _Args, _result: Any) -> int:
    """Comparing two values up to the end of the smaller one."""
    return ceil(min(size_of(args[0]), size_of(args[1])) * TRAVERSAL)


def both_traversals(args: _Args, _result: Any) -> int:
    """Copying two values."""
    return ceil((size_of(args[0]) + size_of(args[1])) * TRAVERSAL)


def second_size(args: _Args, _result: Any) -> int:
    """Comparing each element of the second argument."""
    return size_of(args[1])


def regex(args: _Args, _result: Any) -> int:
    """Matching the first argument against a pattern."""
    text = ceil((1.0 + size_of(args[0])) * TRAVERSAL)
    return text * ceil(size_of(args[1]) * REGEX_LENGTH)


def contains(args: _Args, _result: Any) -> int:
    """Searching one string in another."""
    return ceil(size_of(args[0]) * TRAVERSAL) * ceil(size_of(args[1]) * TRAVERSAL)


def twice_traversal(args: _Args, _result: Any) -> int:
    """Reading a value and constructing another from it."""
    return ceil(size_of(args[0]) * 2 * TRAVERSAL)


def twice_result(_args: _Args, result: Any) -> int:
    """Constructing the result."""
    return ceil(size_of(result) * 2 * TRAVERSAL)


def tree(args: _Args, _result: Any) -> int:
    """Reading the first argument with all that it contains."""
    return _tree_cost(args[0])


def contains_ip(args: _Args, _result: Any) -> int:
    """Comparing an address with a network."""
    return ceil(2 * size_of(args[0]) * TRAVERSAL)


def contains_ip_text(args: _Args, result: Any) -> int:
    """`contains_ip` after parsing the address."""
    return contains_ip(args, result) + ceil(size_of(args[1]) * TRAVERSAL)


def contains_cidr(args: _Args, result: Any) -> int:
    """Comparing a network with another."""
    return contains_ip(args, result) + ceil(size_of(args[0]) * TRAVERSAL) + 1


def contains_cidr_text(args: _Args, result: Any) -> int:
    """`contains_cidr` after parsing the other network."""
    return contains_cidr(args, result) + ceil(size_of(args[1]) * TRAVERSAL)


def set_product(args: _Args, _result: Any) -> int:
    """Comparing each element of one list with each of the other."""
    return 1 + size_of(args[0]) * size_of(args[1])


def set_product_twice(args: _Args, _result: Any) -> int:
    """`set_product` in both directions."""
    return 1 + 2 * size_of(args[0]) * size_of(args[1])


def new_list(_args: _Args, result: Any) -> int:
    """Constructing a list."""
    return size_of(result) + 1 + LIST_BASE


def flattened(args: _Args, _result: Any) -> int:
    """Flattening a list, by its depth."""
    depth = float(args[1]) if len(args) == 2 and isinstance(args[1], int) else 1.0
    return max(0, int(size_of(args[0]) * depth)) + 1 + LIST_BASE


def self_comparison(args: _Args, _result: Any) -> int:
    """Comparing all elements of the last argument with each other."""
    keys = args[-1] if isinstance(args[-1], list) else []
    factor = 2.0 + (TRAVERSAL if keys and isinstance(keys[0], str | bytes) else 0.0)
    return int(len(keys) ** 2 * factor) + 1 + LIST_BASE


def _tree_cost(value: Any) -> int:
    if isinstance(value, str):
        return int(len(value.encode()) * TRAVERSAL)
    if isinstance(value, bytes):
        return int(len(value) * TRAVERSAL)
    if isinstance(value, list):
        return sum(map(_tree_cost, value))
    if isinstance(value, CelMap):
        return sum(_tree_cost(key) + _tree_cost(each) for key, each in value.items())
    return 1


FUNCTION_COSTS: Mapping[str, CostFunction] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), tree),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim"), traversal),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity"), traversal),
    **dict.fromkeys(("semver", "isSemver"), traversal),
    **dict.fromkeys(("replace", "split"), twice_traversal),
    "ip.isCanonical": twice_traversal,
    "join": twice_result,
    "find": regex,
    "findAll": regex,
    "containsIP": contains_ip,
    "containsCIDR": contains_cidr,
}
"""Costs by function, for overloads without a cost of their own."""
