"""Interning: values as small integers, so that columns hold codes and tables map codes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

ABSENT = -1
"""The code of an absent value."""

T = TypeVar("T", bound=Hashable)


class Interner(Generic[T]):
    """Distinct values and their codes; a code is reused when its value has no holders.

    Attributes:
        values: ``code -> value``; None for a free code.
        version: Grows when a code gets or loses its value: tables over codes are outdated then.
    """

    __slots__ = ("_codes", "_free", "_references", "values", "version")

    def __init__(self) -> None:
        self.values: list[T | None] = []
        self.version = 0
        self._codes: dict[T, int] = {}
        self._references: list[int] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        """Number of codes, including free ones: the length of a table over the codes."""
        return len(self.values)

    def __iter__(self) -> Iterator[T]:
        return iter(self._codes)

    @property
    def free(self) -> Sequence[int]:
        """The codes without a value, in no order."""
        return self._free

    def get(self, value: T) -> int:
        """The code of `value`, or `ABSENT`."""
        return self._codes.get(value, ABSENT)

    def acquire(self, value: T, holders: int = 1) -> int:
        """The code of `value`; adds holders."""
        code = self._codes.get(value)
        if code is None:
            code = self._add(value)
        self._references[code] += holders
        return code

    def acquire_all(self, values: Iterable[T | None]) -> list[int]:
        """The code of each value, `ABSENT` for None; adds a holder for each value.

        For many values, in half the time of `acquire`.
        """
        known, references, codes = self._codes, self._references, []
        for value in values:
            if value is None:
                codes.append(ABSENT)
                continue
            code = known.get(value)
            if code is None:
                code = self._add(value)
            references[code] += 1
            codes.append(code)
        return codes

    def release(self, code: int, holders: int = 1) -> None:
        """Remove holders of the value of `code`; the last one frees the code."""
        self._references[code] -= holders
        if self._references[code]:
            return
        value = self.values[code]
        assert value is not None  # noqa: S101 - a code with references has a value
        del self._codes[value]
        self.values[code] = None
        self._free.append(code)
        self.version += 1

    def _add(self, value: T) -> int:
        if self._free:
            code = self._free.pop()
            self.values[code] = value
            self._references[code] = 0
        else:
            code = len(self.values)
            self.values.append(value)
            self._references.append(0)
        self._codes[value] = code
        self.version += 1
        return code
