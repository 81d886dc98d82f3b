"""CEL selectors of classes and requests, once for all devices that agree in what they read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stowage.api.interruptible import Interruptible, finish
from stowage.state.arrays import Int64Array
from stowage.state.devices.device_columns import DeviceColumns
from stowage.state.devices.device_info import Signature
from stowage.state.devices.published_columns import Read, names_read

if TYPE_CHECKING:
    from stowage.state.devices.expressions import Expressions

_MAX_EXPRESSIONS = 4096
_MAX_RESULTS = 1_000_000

EVALUATIONS_PER_STEP = 1_000
"""Evaluations of a selector in one step; one takes up to some twenty microseconds."""

#: Verdicts of `select_signatures`.
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
    """Results of expressions; the least recently used are dropped first."""

    def __init__(self) -> None:
        self._expressions: Expressions | None = None

    def matches(self, expressions: Sequence[str], signature: Signature) -> bool:
        """Whether all expressions are true for devices of a signature, up to the first that is not.

        Raises:
            SelectionError: An expression fails before one is false.
        """
        return all(self._matches(index, text, signature) for index, text in enumerate(expressions))

    def is_new(self, text: str) -> bool:
        """Whether nothing has asked for an expression yet, or not for long."""
        return self._expressions is None or not self._expressions.knows(text)

    def reads(self, text: str) -> Sequence[Read] | None:
        """The attributes that an expression reads; None if it reads devices as a whole."""
        return self._known().reads(text)

    def verdicts(self, text: str, signatures: Sequence[Signature]) -> list[int]:
        """`NO`, `YES` or `FAILS` for each of these signatures."""
        results = self._known().results(text, signatures)
        return [FAILS if isinstance(each, str) else YES if each else NO for each in results]

    def _matches(self, index: int, text: str, signature: Signature) -> bool:
        result = (self._expressions or self._known()).result(text, signature)
        if isinstance(result, str):
            raise SelectionError(index, result)
        return result

    def _known(self) -> Expressions:
        if self._expressions is None:
            self._expressions = _no_expressions()
        return self._expressions


def select_signatures(
    selectors: Selectors, expressions: Sequence[str], columns: DeviceColumns
) -> NDArray[np.int8]:
    """``int8[signatures]``: `NO`, `YES` or `FAILS` by the code of a signature.

    `selection_steps` at once.
    """
    return finish(selection_steps(selectors, expressions, columns))


def selection_steps(
    selectors: Selectors, expressions: Sequence[str], columns: DeviceColumns
) -> Interruptible[NDArray[np.int8]]:
    """`select_signatures` in steps: an expression may be asked about each device of a cluster.

    Args:
        selectors: Evaluates expressions.
        expressions: The expressions that have to be true, those of the class first.
        columns: The devices.
    """
    table = np.full(len(columns.signatures), NO, dtype=np.int8)
    undecided = columns.published.codes()
    table[undecided] = YES
    for text in expressions:
        verdicts = yield from _verdict_steps(selectors, text, columns, undecided)
        table[undecided] = verdicts
        undecided = undecided[verdicts == YES]
    return table


def _verdict_steps(
    selectors: Selectors, text: str, columns: DeviceColumns, codes: Int64Array
) -> Interruptible[NDArray[np.int8]]:
    """``int8[]``: the verdict of one expression on some signatures, by groups that agree."""
    is_new = selectors.is_new(text)
    reads = selectors.reads(text)
    if is_new:
        yield  # it was compiled, and the first one has imported CEL
    yield from columns.published.build(name for read in reads or () for name in names_read(read))
    groups = None if reads is None else columns.published.group(codes, reads)
    asked = codes if groups is None else groups.firsts
    found = np.empty(len(asked), dtype=np.int8)
    for first in range(0, len(asked), EVALUATIONS_PER_STEP):
        if first > 0:
            yield
        part = slice(first, first + EVALUATIONS_PER_STEP)
        found[part] = selectors.verdicts(text, columns.signatures_of(asked[part]))
    return found if groups is None else found[groups.members]


def _no_expressions() -> Expressions:
    # Imported late: the first selector imports CEL.
    from stowage.state.devices.expressions import Expressions  # noqa: PLC0415

    return Expressions(_MAX_EXPRESSIONS, _MAX_RESULTS)
