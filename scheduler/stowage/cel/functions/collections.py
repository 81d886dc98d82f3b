"""Lists, sets and maps: the lists of Kubernetes and of cel-go (version 3), sets, map entries."""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

from stowage.cel.errors import CelRuntimeError
from stowage.cel.functions import costs
from stowage.cel.functions.operators import in_int, in_uint
from stowage.cel.signatures.functions import Overload, overload
from stowage.cel.values.containers import CelMap, hashable_key
from stowage.cel.values.equality import Work, contains_value, surely_equal
from stowage.cel.values.numbers import Uint
from stowage.cel.values.ordering import compare, is_comparable
from stowage.cel.values.times import Duration, duration_of

_ELEMENTS_PER_WORK = 10
"""Elements that are copied for one unit of work."""

_COMPARABLE = ["int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes"]


def _is_sorted(elements: list[Any]) -> bool:
    return all(compare(one, other) != 1 for one, other in pairwise(elements))


def _sum_of(zero: Any, add: Callable[[Any, Any], Any]) -> Callable[[list[Any]], Any]:
    def total(elements: list[Any]) -> Any:
        found = zero
        for each in elements:
            found = add(found, each)
        return found

    return total


def _extreme(name: str, worse: int) -> Callable[[list[Any]], Any]:
    def found(elements: list[Any]) -> Any:
        if not elements:
            raise CelRuntimeError(f"{name} called on empty list")
        best = elements[0]
        for each in elements[1:]:
            if compare(best, each) == worse:
                best = each
        return best

    return found


def _index_of(work: Work, elements: list[Any], value: Any) -> int:
    found = (i for i, each in enumerate(elements) if surely_equal(each, value, work))
    return next(found, -1)


def _last_index_of(work: Work, elements: list[Any], value: Any) -> int:
    backwards = _index_of(work, elements[::-1], value)
    return -1 if backwards < 0 else len(elements) - 1 - backwards


def _includes(work: Work, target: Any, value: Any) -> bool:
    elements = target if isinstance(target, list) else [target]
    for index, each in enumerate(elements):
        if index >= _MAX_INCLUDES:
            raise CelRuntimeError(
                f"'includes' function cannot be applied to lists longer than {_MAX_INCLUDES} values"
            )
        if surely_equal(each, value, work):
            return True
    return False


_MAX_INCLUDES = 64


def _slice(elements: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise CelRuntimeError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise CelRuntimeError(
            f"cannot slice({start}, {end}), start index must be less than or equal to end index"
        )
    if len(elements) < end:
        raise CelRuntimeError(f"cannot slice({start}, {end}), list is length {len(elements)}")
    return elements[start:end]


def _flatten(work: Work, elements: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise CelRuntimeError("level must be non-negative")
    found = elements
    while depth and any(isinstance(each, list) for each in found):
        depth -= 1
        length = sum(len(each) if isinstance(each, list) else 1 for each in found)
        work.charge_work(length // _ELEMENTS_PER_WORK)
        found = [part for each in found for part in (each if isinstance(each, list) else [each])]
    return list(found)


def _sort(elements: list[Any]) -> list[Any]:
    return _sort_by(elements, elements)


def _sort_by(elements: list[Any], keys: list[Any]) -> list[Any]:
    if len(elements) != len(keys):
        raise CelRuntimeError(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list"
        )
    if not keys:
        return elements
    if not is_comparable(keys[0]):
        raise CelRuntimeError("list elements must be comparable")
    if any(type(each) is not type(keys[0]) for each in keys):
        raise CelRuntimeError("list elements must have the same type")
    by_key = cmp_to_key(compare)
    order = sorted(range(len(keys)), key=lambda index: by_key(keys[index]))
    return [elements[index] for index in order]


def _range(work: Work, length: int) -> list[int]:
    work.charge_work(max(0, length) // _ELEMENTS_PER_WORK)
    return list(range(length))


def _distinct(work: Work, elements: list[Any]) -> list[Any]:
    found: list[Any] = []
    for each in elements:
        if not any(surely_equal(each, other, work) for other in found):
            found.append(each)
    return found


def _contains(work: Work, elements: list[Any], subset: list[Any]) -> bool:
    return all(contains_value(work, each, elements) for each in subset)


def _equivalent(work: Work, left: list[Any], right: list[Any]) -> bool:
    return _contains(work, left, right) and _contains(work, right, left)


def _intersects(work: Work, left: list[Any], right: list[Any]) -> bool:
    return any(contains_value(work, each, right) for each in left)


def insert_entry(entries: CelMap, key: Any, value: Any) -> CelMap:
    """Add an entry to a map that only a macro can see; fails if it has the key."""
    hashable = hashable_key(key)
    if hashable in entries.entries:
        raise CelRuntimeError(f"insert failed: key '{key}' already exists")
    entries.entries[hashable] = value
    return entries


def insert_entries(entries: CelMap, added: CelMap) -> CelMap:
    """`insert_entry` for all entries of a map."""
    for key, value in added.items():
        insert_entry(entries, key, value)
    return entries


def _add_durations(left: Duration, right: Duration) -> Duration:
    return duration_of(left.nanos + right.nanos)


FUNCTIONS: list[Overload] = [
    *(overload(f"list({each}).isSorted() -> bool", _is_sorted) for each in _COMPARABLE),
    overload("list(int).sum() -> int", _sum_of(0, lambda a, b: in_int(a + b))),
    overload("list(uint).sum() -> uint", _sum_of(Uint(0), lambda a, b: in_uint(int(a) + int(b)))),
    overload("list(double).sum() -> double", _sum_of(0.0, lambda a, b: a + b)),
    overload("list(duration).sum() -> duration", _sum_of(Duration(0), _add_durations)),
    *(overload(f"list({each}).max() -> {each}", _extreme("max", -1)) for each in _COMPARABLE),
    *(overload(f"list({each}).min() -> {each}", _extreme("min", 1)) for each in _COMPARABLE),
    overload("list(A).indexOf(A) -> int", _index_of, needs_frame=True),
    overload("list(A).lastIndexOf(A) -> int", _last_index_of, needs_frame=True),
    overload("dyn.includes(dyn) -> bool", _includes, needs_frame=True),
    overload("list(T).slice(int, int) -> list(T)", _slice, costs.new_list),
    overload("list(list(T)).flatten() -> list(T)", _flatten, costs.flattened, needs_frame=True),
    overload("list(dyn).flatten(int) -> list(dyn)", _flatten, costs.flattened, needs_frame=True),
    *(
        overload(f"list({each}).sort() -> list({each})", _sort, costs.self_comparison)
        for each in _COMPARABLE
    ),
    *(
        overload(
            f"list(T).@sortByAssociatedKeys(list({each})) -> list(T)",
            _sort_by,
            costs.self_comparison,
        )
        for each in _COMPARABLE
    ),
    overload("lists.range(int) -> list(int)", _range, costs.new_list, needs_frame=True),
    overload("list(T).reverse() -> list(T)", lambda elements: elements[::-1], costs.new_list),
    overload("list(T).distinct() -> list(T)", _distinct, costs.self_comparison, needs_frame=True),
    overload(
        "sets.contains(list(T), list(T)) -> bool", _contains, costs.set_product, needs_frame=True
    ),
    overload(
        "sets.equivalent(list(T), list(T)) -> bool",
        _equivalent,
        costs.set_product_twice,
        needs_frame=True,
    ),
    overload(
        "sets.intersects(list(T), list(T)) -> bool",
        _intersects,
        costs.set_product,
        needs_frame=True,
    ),
    overload("cel.@mapInsert(map(K, V), K, V) -> map(K, V)", insert_entry),
    overload("cel.@mapInsert(map(K, V), map(K, V)) -> map(K, V)", insert_entries),
]
