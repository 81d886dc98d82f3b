"""Worst costs of calls about lists and sets."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from stowage.cel.estimation.called import CallCost, CalledOverload, Estimate
from stowage.cel.estimation.sizes import MOST, Size, bounded, exactly
from stowage.cel.functions.costs import LIST_BASE, TRAVERSAL
from stowage.cel.signatures.types import BYTES, STRING


def _over_elements(called: CalledOverload) -> CallCost | None:
    """Compare the elements of a list, or read a string."""
    target = called.call.target
    if target is None:
        return None
    if not target.type.parameters:
        return CallCost(called.target.cost(TRAVERSAL))
    element = 1
    if target.type.parameters[0] in (STRING, BYTES):
        element = bounded(1 + called.sizes.size_of_items(target).cost(TRAVERSAL))
    return CallCost(bounded(called.target.most * element))


def _new_list(factor: float, size: Size) -> CallCost:
    return CallCost(bounded(size.cost(factor) + 1 + LIST_BASE), size)


def _slice(called: CalledOverload) -> CallCost:
    start = called.whole_number(0, 0)
    end = called.whole_number(1, called.target.most)
    return _new_list(1, exactly(end - start & MOST))


def _range(called: CalledOverload) -> CallCost:
    return _new_list(1, exactly(called.whole_number(0, MOST)))


def _reverse(called: CalledOverload) -> CallCost:
    return _new_list(1, called.target)


def _flatten(called: CalledOverload) -> CallCost:
    depth = called.whole_number(0, MOST) if called.call.args else 1
    return _new_list(float(depth), called.target)


def _distinct(called: CalledOverload) -> CallCost:
    size = called.target
    return _new_list(2, size.times(size))


def _sort(called: CalledOverload) -> CallCost:
    keys = called.candidate.arguments[-1].parameters[0]
    size = called.argument(0) if called.call.args else called.target
    factor = 2 + TRAVERSAL if keys in (STRING, BYTES) else 2
    return _new_list(factor, size.times(size))


def _sets(factor: int, called: CalledOverload) -> CallCost:
    compared = called.argument(0).times(called.argument(1))
    return CallCost(bounded(compared.cost(factor) + 1))


LISTS: Mapping[str, Estimate] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _over_elements),
    **dict.fromkeys(("sort", "@sortByAssociatedKeys"), _sort),
    **dict.fromkeys(("sets.contains", "sets.intersects"), partial(_sets, 1)),
    "distinct": _distinct,
    "flatten": _flatten,
    "lists.range": _range,
    "reverse": _reverse,
    "sets.equivalent": partial(_sets, 2),
    "slice": _slice,
}
