"""Maps, optional values and types as values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from stowage.cel.errors import CelRuntimeError

Value = Any
"""A value of CEL, see the package."""


class _Missing:
    """What a map returns for a key that it does not have."""

    __slots__ = ()


MISSING: Final = _Missing()


class _BoolKey:
    """True or False as a key; Python takes True for 1."""

    __slots__ = ("value",)

    def __init__(self, value: bool) -> None:
        self.value = value


_BOOL_KEYS = {True: _BoolKey(True), False: _BoolKey(False)}


class CelMap:
    """A map.

    Attributes:
        entries: values by key. Strings and numbers are keys as they are; numbers of different types
            are equal here as in CEL.
        default: what the selection of a key that is missing returns; MISSING to fail.
    """

    __slots__ = ("default", "entries")

    def __init__(self, entries: dict[Any, Value], default: Any = MISSING) -> None:
        self.entries = entries
        self.default = default

    @classmethod
    def of(cls, pairs: Iterable[tuple[Value, Value]]) -> CelMap:
        """Make a map of keys and values; the last value of a key counts."""
        return cls({hashable_key(key): value for key, value in pairs})

    def find(self, key: Value) -> Value:
        """Return the value of `key`, else the default."""
        return self.entries.get(_lookup_key(key), self.default)

    def __contains__(self, key: Value) -> bool:
        return _lookup_key(key) in self.entries

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Value]:
        return (key.value if type(key) is _BoolKey else key for key in self.entries)

    def items(self) -> Iterator[tuple[Value, Value]]:
        """Iterate over keys and values."""
        return zip(self, self.entries.values(), strict=True)


def hashable_key(key: Value) -> Any:
    """Return `key` as a key of `CelMap.entries`.

    Raises:
        CelRuntimeError: it is of a type that cannot be a key.
    """
    if isinstance(key, bool):
        return _BOOL_KEYS[key]
    if isinstance(key, str | int):
        return key
    raise CelRuntimeError("unsupported key type")


def _lookup_key(key: Value) -> Any:
    if isinstance(key, str | int | float):
        return _BOOL_KEYS[key] if isinstance(key, bool) else key
    return MISSING


@dataclass(frozen=True, slots=True)
class Optional:
    """A value that may be absent: MISSING."""

    content: Value = MISSING

    @property
    def present(self) -> bool:
        """Whether there is a value."""
        return self.content is not MISSING

    def value(self) -> Value:
        """Return the value.

        Raises:
            CelRuntimeError: there is none.
        """
        if self.content is MISSING:
            raise CelRuntimeError("optional.none() dereference")
        return self.content


NONE: Final = Optional()


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type as a value, the result of ``type(x)``."""

    name: str
