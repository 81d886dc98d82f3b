"""Assignability of types, with substitutions for type variables (cel-go: ``checker/types.go``)."""

from __future__ import annotations

from collections.abc import Sequence

from stowage.cel.errors import CelCompileError
from stowage.cel.signatures.types import DYN, Kind, Type, is_dyn, is_dyn_or_error

_NULLABLE = frozenset([Kind.ANY, Kind.NULL, Kind.OPAQUE, Kind.STRUCT, Kind.WELL_KNOWN])
_MAX_STEPS = 100_000
"""Ends the check of types that contain others so often that cel-go would not come to an end."""


class Substitutions:
    """The types that type variables stand for, as far as the checker knows them."""

    def __init__(self) -> None:
        self._bound: dict[str, Type] = {}
        self._undo: list[tuple[str, Type | None]] = []
        self._steps = 0

    def substitute(self, what: Type, free_to_dyn: bool = False) -> Type:
        """Replace type variables; those without a substitution by dyn if `free_to_dyn`."""
        self._step()
        if what.kind is Kind.PARAMETER:
            bound = self._bound.get(what.name)
            if bound is not None:
                return self.substitute(bound, free_to_dyn)
            return DYN if free_to_dyn else what
        if not what.parameters:
            return what
        parts = tuple([self.substitute(part, free_to_dyn) for part in what.parameters])
        return Type(what.kind, what.name, parts)

    def unify(self, left: Sequence[Type], right: Sequence[Type]) -> bool:
        """Whether each type of `left` is assignable to that of `right`.

        If so, variables are bound such that it is.
        """
        start = len(self._undo)
        if self._all_assignable(left, right):
            return True
        while len(self._undo) > start:
            name, before = self._undo.pop()
            if before is None:
                del self._bound[name]
            else:
                self._bound[name] = before
        return False

    def _step(self) -> None:
        self._steps += 1
        if self._steps > _MAX_STEPS:
            raise CelCompileError("compilation failed: the types are too large")

    def _all_assignable(self, left: Sequence[Type], right: Sequence[Type]) -> bool:
        if len(left) != len(right):
            return False
        return all(self._assignable(one, other) for one, other in zip(left, right, strict=True))

    def _assignable(self, left: Type, right: Type) -> bool:
        self._step()
        if right.kind is Kind.PARAMETER:
            valid, was_bound = self._bind(left, right)
            if valid or was_bound:
                return valid
        if left.kind is Kind.PARAMETER:
            return self._bind(right, left)[0]
        if is_dyn_or_error(left) or is_dyn_or_error(right):
            return True
        if Kind.NULL in (left.kind, right.kind):
            other = right if left.kind is Kind.NULL else left
            return other.kind in _NULLABLE
        if left.kind is not right.kind:
            return False
        if left.kind is Kind.TYPE:
            return True
        return left.name == right.name and self._all_assignable(left.parameters, right.parameters)

    def _bind(self, what: Type, variable: Type) -> tuple[bool, bool]:
        """Bind `variable` to `what`; return whether that is possible, and whether it was bound."""
        if what.kind is Kind.PARAMETER and what.name == variable.name:
            return True, True
        bound = self._bound.get(variable.name)
        if bound is None:
            if self._occurs(variable.name, what):
                return False, False
            self._set(variable.name, what)
            return True, False
        if not self._assignable(what, bound):
            return False, True
        general = most_general(what, bound)
        if general is not bound and not self._occurs(variable.name, general):
            self._set(variable.name, general)
        return True, True

    def _set(self, name: str, what: Type) -> None:
        self._undo.append((name, self._bound.get(name)))
        self._bound[name] = what

    def _occurs(self, name: str, within: Type) -> bool:
        self._step()
        if within.kind is Kind.PARAMETER:
            if within.name == name:
                return True
            bound = self._bound.get(within.name)
            return bound is not None and self._occurs(name, bound)
        return any(self._occurs(name, part) for part in within.parameters)


def most_general(left: Type, right: Type) -> Type:
    """The less specific of two types that are assignable."""
    return left if _is_equal_or_less_specific(left, right) else right


def _is_equal_or_less_specific(left: Type, right: Type) -> bool:
    if is_dyn(left) or left.kind is Kind.PARAMETER:
        return True
    if is_dyn(right) or right.kind is Kind.PARAMETER:
        return False
    if left.kind is not right.kind:
        return False
    if left.kind is Kind.TYPE:
        return True
    if left.name != right.name or len(left.parameters) != len(right.parameters):
        return False
    return all(map(_is_equal_or_less_specific, left.parameters, right.parameters))
