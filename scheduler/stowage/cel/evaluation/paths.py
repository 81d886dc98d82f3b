"""Paths: a variable or another value, with selections of fields and elements after it.

``device.attributes["dra.example.com"].model`` is one path. It costs 1, and 1 more for each constant
key; keys that are computed cost what their computation costs (attributes of cel-go).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from stowage.cel.errors import CelRuntimeError, no_such_overload
from stowage.cel.evaluation.frame import Failure, Frame, Run
from stowage.cel.values.containers import MISSING, NONE, CelMap, Optional


@dataclass(frozen=True, slots=True)
class Key:
    """A selection: the constant `value`, or what `run` computes."""

    value: Any = None
    run: Run | None = None
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Path:
    """A path.

    Attributes:
        root: evaluates what the keys select from.
        keys: the selections.
        slot: index of the variable that `root` reads, if that cannot fail.
        branches: for a conditional, its condition and the paths of both cases.
    """

    root: Run
    keys: tuple[Key, ...] = ()
    slot: int | None = None
    branches: tuple[Run, Path, Path] | None = None

    def selecting(self, key: Key) -> Path:
        """The path with one more selection."""
        if self.branches is None:
            return replace(self, keys=(*self.keys, key))
        condition, chosen, other = self.branches
        return replace(self, branches=(condition, chosen.selecting(key), other.selecting(key)))


def variable_path(slot: int, may_fail: bool) -> Path:
    """The path that is a variable."""
    if not may_fail:
        return Path(lambda frame: frame.slots[slot], slot=slot)

    def root(frame: Frame) -> Any:
        value = frame.slots[slot]
        if type(value) is Failure:
            raise value.error
        return value

    return Path(root)


def conditional_path(condition: Run, chosen: Path, other: Path) -> Path:
    """The path of ``condition ? chosen : other``."""
    return Path(condition, branches=(condition, chosen, other))


def run_path(path: Path, base: int = 1) -> Run:
    """Make the closure of a path; `base` is what it costs besides its keys."""
    if path.branches is not None:
        return _run_branches(*path.branches)
    constant = all(key.run is None and not key.optional for key in path.keys)
    if path.slot is not None and constant:
        return _run_constant(path.slot, tuple(key.value for key in path.keys), base)
    return _run_general(path.root, path.keys, base)


def run_presence(path: Path, field: str) -> Run:
    """Make the closure of ``has(path.field)``."""
    run = run_path(path)

    def presence(frame: Frame) -> bool:
        value = run(frame)
        if type(value) is Optional:
            value = value.content
        return _find(value, field) is not MISSING

    return presence


def _run_branches(condition: Run, chosen: Path, other: Path) -> Run:
    if_true, if_false = run_path(chosen, base=0), run_path(other, base=0)

    def run(frame: Frame) -> Any:
        value = condition(frame)
        if value is True:
            return if_true(frame)
        if value is False:
            return if_false(frame)
        raise no_such_overload()

    return run


def _run_constant(slot: int, keys: tuple[Any, ...], base: int) -> Run:
    if not keys:

        def variable(frame: Frame) -> Any:
            frame.cost += base
            return frame.slots[slot]

        return variable

    def run(frame: Frame) -> Any:
        value = frame.slots[slot]
        cost = base
        for key in keys:
            cost += 1
            if type(value) is CelMap and type(key) is str:
                found = value.entries.get(key, value.default)
            else:
                found = _find(value, key)
            if found is MISSING:
                frame.cost += cost
                raise _missing(value, key)
            value = found
        frame.cost += cost
        return value

    return run


def _run_general(root: Run, keys: tuple[Key, ...], base: int) -> Run:
    def run(frame: Frame) -> Any:
        frame.cost += base
        value = root(frame)
        optional = bool(keys) and type(value) is Optional
        if optional:
            value = value.content
        for key in keys:
            if value is MISSING:
                return NONE
            optional = optional or key.optional
            selected = key.value if key.run is None else key.run(frame)
            found = _find(value, selected)
            if key.run is None and not (optional and found is MISSING):
                frame.cost += 1
            if found is MISSING and not optional:
                raise _missing(value, selected)
            value = found
        if not optional:
            return value
        return NONE if value is MISSING else Optional(value)

    return run


def _find(value: Any, key: Any) -> Any:
    """What `key` selects from `value`; MISSING if there is nothing."""
    if isinstance(value, CelMap):
        return value.find(key)
    if isinstance(value, list):
        index = _index(key)
        return value[index] if 0 <= index < len(value) else MISSING
    return MISSING


def _index(key: Any) -> int:
    if isinstance(key, bool) or not isinstance(key, int | float):
        raise CelRuntimeError("unsupported index type in list")
    if isinstance(key, float) and not key.is_integer():
        raise CelRuntimeError(f"unsupported index value {key} in list")
    return int(key)


def _missing(value: Any, key: Any) -> CelRuntimeError:
    if isinstance(value, list):
        return CelRuntimeError(f"index out of bounds: {key}")
    return CelRuntimeError(f"no such key: {key}")
