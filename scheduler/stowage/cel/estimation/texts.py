"""Worst costs of calls about strings, bytes, patterns, addresses and quantities."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import ceil

from stowage.cel.estimation.called import CallCost, CalledOverload, Estimate
from stowage.cel.estimation.sizes import MOST, UNKNOWN, Size, bounded, exactly, scaled
from stowage.cel.functions.costs import REGEX_LENGTH, TRAVERSAL
from stowage.cel.signatures.types import BYTES, STRING

_LONGEST_PATTERN = 128
"""Of a named format."""


def _read_target(called: CalledOverload) -> CallCost:
    size = called.target
    return CallCost(size.cost(TRAVERSAL), size)


def _format(called: CalledOverload) -> CallCost:
    return CallCost(called.target.cost(TRAVERSAL))


def _url(called: CalledOverload) -> CallCost:
    size = called.argument(0)
    return CallCost(size.cost(TRAVERSAL), size)


def _replace(called: CalledOverload) -> CallCost:
    size, old, new = called.target, called.argument(0), called.argument(1)
    least = _replaced(size.least, old.most, new.least, makes_no_difference=old.most <= new.least)
    most = _replaced(size.most, old.least, new.most, makes_no_difference=new.most <= old.least)
    return CallCost(size.cost(2 * TRAVERSAL), Size(least, most))


def _replaced(size: int, old: int, new: int, *, makes_no_difference: bool) -> int:
    """The size of a text after replacements, in which nothing is around every character."""
    if old == 0:
        return bounded(bounded(size + 1) * new + size)
    return size if makes_no_difference else bounded(ceil(float(size) / old) * new)


def _split(called: CalledOverload) -> CallCost:
    size = called.target
    most = called.whole_number(1, size.most) if len(called.call.args) > 1 else size.most
    return CallCost(size.cost(2 * TRAVERSAL), Size(0, most))


def _join(called: CalledOverload) -> CallCost:
    target, items = called.call.target, called.target
    size = items.times(UNKNOWN if target is None else called.sizes.size_of_items(target))
    if called.call.args:
        separators = Size(max(0, items.least - 1), max(0, items.most - 1))
        size = size.plus(called.argument(0).times(separators))
    return CallCost(size.cost(TRAVERSAL), size)


def _find(called: CalledOverload) -> CallCost:
    return CallCost(_pattern(called), Size(0, called.target.most))


def _matches(called: CalledOverload) -> CallCost | None:
    return CallCost(_pattern(called)) if called.candidate.member else None


def _pattern(called: CalledOverload) -> int:
    text = called.target.plus(exactly(1)).cost(TRAVERSAL)
    return bounded(text * called.argument(0).cost(REGEX_LENGTH))


def _network(masked: int, called: CalledOverload) -> CallCost:
    """Compare two addresses of at most 16 bytes, one of which may be parsed first."""
    parsed = called.argument(0).cost(TRAVERSAL) if called.candidate.arguments[1] == STRING else 0
    return CallCost(bounded(scaled(2 * 16, TRAVERSAL) + masked + parsed))


def _validate(called: CalledOverload) -> CallCost:
    read = called.argument(0).cost(TRAVERSAL)
    return CallCost(scaled(read, _LONGEST_PATTERN * REGEX_LENGTH))


def _contains(called: CalledOverload) -> CallCost:
    text = called.target.cost(TRAVERSAL)
    return CallCost(bounded(text * called.argument(0).cost(TRAVERSAL)))


def _read_argument(called: CalledOverload) -> CallCost:
    return CallCost(called.argument(0).cost(TRAVERSAL))


def _ip(called: CalledOverload) -> CallCost | None:
    return _read_argument(called) if called.call.args else None


def _is_canonical(called: CalledOverload) -> CallCost:
    return CallCost(called.argument(0).cost(2 * TRAVERSAL))


def _bytes(called: CalledOverload) -> CallCost | None:
    size = called.argument(0)
    if called.candidate.arguments[0] != STRING:
        return None
    return CallCost(size.cost(TRAVERSAL), Size(size.least, size.most * 4 & MOST))


def _string(called: CalledOverload) -> CallCost | None:
    size = called.argument(0)
    if called.candidate.arguments[0] != BYTES:
        return None
    return CallCost(size.cost(TRAVERSAL), Size(size.least // 4, size.most))


def _quote(called: CalledOverload) -> CallCost:
    size = called.argument(0)
    return CallCost(size.cost(TRAVERSAL), Size(size.least + 2, size.most * 2 + 2 & MOST))


TEXTS: Mapping[str, Estimate] = {
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _read_target),
    **dict.fromkeys(("find", "findAll"), _find),
    **dict.fromkeys(("startsWith", "endsWith", "cidr", "isCIDR", "isIP"), _read_argument),
    **dict.fromkeys(("quantity", "isQuantity", "semver", "isSemver"), _read_argument),
    "bytes": _bytes,
    "contains": _contains,
    "containsCIDR": partial(_network, scaled(16, TRAVERSAL) + 1),
    "containsIP": partial(_network, 0),
    "format": _format,
    "ip": _ip,
    "ip.isCanonical": _is_canonical,
    "join": _join,
    "matches": _matches,
    "replace": _replace,
    "split": _split,
    "string": _string,
    "strings.quote": _quote,
    "url": _url,
    "validate": _validate,
}
