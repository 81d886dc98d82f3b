"""CEL selectors of classes and requests, evaluated once per signature of devices."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from stowage.api.objects.device import DeviceAttribute
from stowage.api.values.quantity import parse_quantity
from stowage.cel import AttributeValue as CelValue
from stowage.cel import (
    CelCompileError,
    CelRuntimeError,
    Device,
    Selector,
    Version,
    compile_selector,
)
from stowage.state.devices.device_columns import DeviceColumns
from stowage.state.devices.device_info import Signature

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


class _Expression(msgspec.Struct):
    """A compiled expression, or why it cannot be compiled, and its results by signature ID."""

    selector: Selector | None
    problem: str
    results: dict[int, bool | str] = msgspec.field(default_factory=dict)


class Selectors:
    """Compiled expressions and their results; the least recently used are dropped first.

    Args:
        undeclared: Fields of devices that expressions cannot name.
    """

    def __init__(self, undeclared: frozenset[str] = frozenset()) -> None:
        self._undeclared = undeclared
        self._expressions: LRUCache[str, _Expression] = LRUCache(_MAX_EXPRESSIONS)
        self._devices: LRUCache[int, Device] = LRUCache(_MAX_EXPRESSIONS)

    def matches(self, expressions: Sequence[str], signature: Signature) -> bool:
        """Whether all expressions are true for devices of a signature, up to the first that is not.

        Raises:
            SelectionError: An expression fails before one is false.
        """
        return all(self._matches(index, text, signature) for index, text in enumerate(expressions))

    def _matches(self, index: int, text: str, signature: Signature) -> bool:
        known = self._expressions.get(text)
        if known is None:
            known = self._expressions[text] = _compile(text, self._undeclared)
        if known.selector is None:
            raise SelectionError(index, f"CEL compile error: {known.problem}")
        result = known.results.get(signature.id)
        if result is None:
            result = known.results[signature.id] = self._evaluate(known.selector, signature)
        if isinstance(result, str):
            raise SelectionError(index, f"CEL runtime error: {result}")
        return result

    def _evaluate(self, selector: Selector, signature: Signature) -> bool | str:
        device = self._devices.get(signature.id)
        if device is None:
            device = self._devices[signature.id] = _cel_device(signature)
        try:
            return selector.matches(device)
        except CelRuntimeError as error:
            return str(error)


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


def _compile(text: str, undeclared: frozenset[str]) -> _Expression:
    try:
        return _Expression(compile_selector(text, undeclared), "")
    except CelCompileError as error:
        return _Expression(None, str(error))


def _cel_device(signature: Signature) -> Device:
    published = signature.device
    return Device(
        signature.driver,
        {name: _cel_value(each) for name, each in published.attributes.items()},
        {name: str(parse_quantity(it.value)) for name, it in published.capacity.items()},
        signature.allows_multiple,
    )


def _cel_value(attribute: DeviceAttribute) -> CelValue:
    if attribute.version_value is not None:
        return Version(attribute.version_value)
    for value in (attribute.string_value, attribute.int_value, attribute.bool_value):
        if value is not None:
            return value
    return None
