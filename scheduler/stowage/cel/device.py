"""The input of a selector: one device, as a ResourceSlice describes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from stowage.cel.errors import CelRuntimeError
from stowage.cel.values.containers import CelMap
from stowage.cel.values.quantity import Quantity, parse_quantity
from stowage.cel.values.semver import parse_semver


@dataclass(frozen=True, slots=True)
class Version:
    """The text of an attribute of type version. It is parsed when a selector is evaluated."""

    text: str


AttributeValue = bool | int | str | Version | None
"""The value of an attribute. None is a value of no supported type; every evaluation fails on it."""


@dataclass(frozen=True)
class Device:
    """One device, the variable ``device`` of an expression.

    Attributes:
        driver: ``spec.driver`` of the ResourceSlice. Names without a domain are in its domain.
        attributes: values by name, ``name`` or ``domain/name``.
        capacity: quantities as text (``"80Gi"``) by name, ``name`` or ``domain/name``.
        allow_multiple_allocations: the field of that name; False if it is not set.
    """

    driver: str
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    capacity: Mapping[str, str] = field(default_factory=dict)
    allow_multiple_allocations: bool = False

    @property
    def variable(self) -> CelMap:
        """The value of the variable ``device``.

        It is made once, unless an evaluation may change it: a capacity that is a big decimal.

        Raises:
            CelRuntimeError: a value is of no supported type, or its text is not valid.
        """
        return self._make_variable() if self._has_wide_capacity else self._variable

    @cached_property
    def _variable(self) -> CelMap:
        return self._make_variable()

    @cached_property
    def _has_wide_capacity(self) -> bool:
        domains = self._variable.entries["capacity"].entries.values()
        return any(each.wide for domain in domains for each in domain.entries.values())

    def _make_variable(self) -> CelMap:
        return CelMap(
            {
                "driver": self.driver,
                "allowMultipleAllocations": self.allow_multiple_allocations,
                "attributes": self._by_domain(self.attributes, _attribute),
                "capacity": self._by_domain(self.capacity, _quantity),
            }
        )

    def _by_domain(self, values: Mapping[str, Any], convert: Callable[[str, Any], Any]) -> CelMap:
        domains: dict[str, CelMap] = {}
        for name, value in values.items():
            domain, slash, rest = name.partition("/")
            if not slash:
                domain, rest = self.driver, name
            entries = domains.setdefault(domain, CelMap({})).entries
            entries[rest] = convert(name, value)
        return CelMap(domains, default=CelMap({}))


def _attribute(name: str, value: AttributeValue) -> Any:
    if isinstance(value, Version):
        try:
            return parse_semver(value.text)
        except CelRuntimeError as error:
            raise CelRuntimeError(f"attribute {name}: parse semantic version: {error}") from None
    if value is None:
        raise CelRuntimeError(f"attribute {name}: unsupported attribute value")
    return value


def _quantity(name: str, text: str) -> Quantity:
    try:
        return parse_quantity(text).fresh()
    except CelRuntimeError as error:
        raise CelRuntimeError(f"capacity {name}: {error}") from None
