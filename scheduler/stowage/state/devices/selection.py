"""CEL selectors of classes and requests, evaluated once per signature of devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stowage.state.devices.device_columns import DeviceColumns
from stowage.state.devices.device_info import Signature

if TYPE_CHECKING:
    from stowage.state.devices.expressions import Expressions

_MAX_EXPRESSIONS = 4096

#: Verdicts of `SelectionTable`.
NO, YES, FAILS = 0, 1, 2


class SelectionError(ValueError):
    """A selector cannot be compiled, or not be evaluated for a device.

    Attributes:
        index: The position of the selector.
    """

    def __init__(self, index: int, text: str) -> None:
        super().__init__(f"selector #{index}: {text}")
        self.index = index


class Selectors:
    """Results of expressions; the least recently used are dropped first.

    Args:
        undeclared: Fields of devices that expressions cannot name.
    """

    def __init__(self, undeclared: frozenset[str] = frozenset()) -> None:
        self._undeclared = undeclared
        self._expressions: Expressions | None = None

    def matches(self, expressions: Sequence[str], signature: Signature) -> bool:
        """Whether all expressions are true for devices of a signature, up to the first that is not.

        Raises:
            SelectionError: An expression fails before one is false.
        """
        return all(self._matches(index, text, signature) for index, text in enumerate(expressions))

    def _matches(self, index: int, text: str, signature: Signature) -> bool:
        if self._expressions is None:
            self._expressions = _no_expressions(self._undeclared)
        result = self._expressions.result(text, signature)
        if isinstance(result, str):
            raise SelectionError(index, result)
        return result


class SelectionTable:
    """Which devices some selectors select, as a table over the codes of signatures.

    Args:
        selectors: Evaluates expressions.
        expressions: The expressions that have to be true, those of the class first.
    """

    def __init__(self, selectors: Selectors, expressions: Sequence[str]) -> None:
        self._selectors = selectors
        self._expressions = tuple(expressions)
        self._version = -1
        self._verdicts: dict[int, int] = {}
        self._table: NDArray[np.int8] = np.zeros(0, dtype=np.int8)

    def verdicts(self, columns: DeviceColumns) -> NDArray[np.int8]:
        """``int8[signatures]``: `NO`, `YES` or `FAILS` by the code of a signature."""
        if self._version != columns.signatures.version:
            found = [0 if it is None else self._verdict(it) for it in columns.signatures.values]
            self._table = np.array(found, dtype=np.int8)
            self._version = columns.signatures.version
        return self._table

    def _verdict(self, signature: Signature) -> int:
        known = self._verdicts.get(signature.id)
        if known is None:
            try:
                known = YES if self._selectors.matches(self._expressions, signature) else NO
            except SelectionError:
                known = FAILS
            self._verdicts[signature.id] = known
        return known


def _no_expressions(undeclared: frozenset[str]) -> Expressions:
    # Imported late: the first selector imports CEL.
    from stowage.state.devices.expressions import Expressions  # noqa: PLC0415

    return Expressions(undeclared, _MAX_EXPRESSIONS)
