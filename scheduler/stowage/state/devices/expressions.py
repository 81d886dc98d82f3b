"""CEL expressions of device selectors, compiled, and their results by signature of devices.

The one module that imports `stowage.cel`: a cluster without such selectors does not need it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from cachetools import LRUCache

from stowage.api.objects.device import DeviceAttribute
from stowage.api.values.quantity import parse_quantity
from stowage.cel import (
    AttributeRead,
    CelCompileError,
    CelRuntimeError,
    Device,
    Selector,
    Version,
    compile_selector,
)
from stowage.cel import AttributeValue as CelValue
from stowage.state.devices.device_info import Signature
from stowage.state.devices.published_columns import MAX_READS


class Expression(msgspec.Struct):
    """A compiled expression, or why it cannot be compiled, and its results by signature ID.

    Attributes:
        selector: The compiled expression, or None.
        problem: Why there is none.
        results: Whether it selects the devices of a signature, or why that is unknown.
    """

    selector: Selector | None
    problem: str
    results: dict[int, bool | str] = msgspec.field(default_factory=dict)


class Expressions:
    """Compiled expressions and their results; the least recently used are dropped first.

    Args:
        size: How many expressions, and how many devices, are kept.
        max_results: How many results are kept; at one more, all are forgotten.
    """

    def __init__(self, size: int, max_results: int) -> None:
        self._max_results = max_results
        self._num_results = 0
        self._expressions: LRUCache[str, Expression] = LRUCache(size)
        self._devices: LRUCache[int, Device] = LRUCache(size)

    def result(self, text: str, signature: Signature) -> bool | str:
        """Whether an expression is true for devices of a signature, or why that is unknown."""
        return self._result(self._expressions.get(text) or self._compiled(text), signature)

    def results(self, text: str, signatures: Sequence[Signature]) -> list[bool | str]:
        """`result` for each of these signatures."""
        known = self._compiled(text)
        return [self._result(known, each) for each in signatures]

    def knows(self, text: str) -> bool:
        """Whether an expression is compiled."""
        return text in self._expressions

    def reads(self, text: str) -> Sequence[AttributeRead] | None:
        """The attributes that an expression reads; None if it reads devices as a whole."""
        selector = self._compiled(text).selector
        reads = () if selector is None else selector.reads
        return None if reads is None or len(reads) > MAX_READS else reads

    def _result(self, known: Expression, signature: Signature) -> bool | str:
        result = known.results.get(signature.id)
        if result is not None:
            return result
        if known.selector is None:
            return f"CEL compile error: {known.problem}"
        result = self._evaluate(known.selector, signature)
        if self._num_results == self._max_results:
            # Mostly of devices that are gone, or have other attributes now.
            for each in self._expressions.values():
                each.results.clear()
            self._num_results = 0
        known.results[signature.id] = result
        self._num_results += 1
        return result

    def _compiled(self, text: str) -> Expression:
        known = self._expressions.get(text)
        if known is None:
            known = self._expressions[text] = _compile(text)
        return known

    def _evaluate(self, selector: Selector, signature: Signature) -> bool | str:
        device = self._devices.get(signature.id)
        if device is None:
            device = self._devices[signature.id] = cel_device(signature)
        try:
            return selector.matches(device)
        except CelRuntimeError as error:
            return f"CEL runtime error: {error}"


def _compile(text: str) -> Expression:
    try:
        return Expression(compile_selector(text), "")
    except CelCompileError as error:
        return Expression(None, str(error))


def cel_device(signature: Signature) -> Device:
    """A device as expressions see it."""
    published = signature.device
    return Device(
        signature.driver,
        {name: _cel_value(each) for name, each in published.attributes.items()},
        {name: str(parse_quantity(it.value)) for name, it in published.capacity.items()},
        bool(published.allow_multiple_allocations),
    )


def _cel_value(attribute: DeviceAttribute) -> CelValue:
    if attribute.version_value is not None:
        return Version(attribute.version_value)
    for value in (attribute.string_value, attribute.int_value, attribute.bool_value):
        if value is not None:
            return value
    return None
