"""Constraints over the devices of a claim, as the allocator adds and removes devices.

They follow ``matchAttributeConstraint`` and ``distinctAttributeConstraint`` of v1.36 to the letter,
oddities included: the order of additions and removals matters.
"""

from __future__ import annotations

from typing import Protocol

from stowage.api.objects.device import DeviceConstraint
from stowage.plugins.dynamic_resources.requests import Request
from stowage.state.devices.device_info import UNKNOWN_VALUE, AttributeValue, Signature


class Constraint(Protocol):
    """Tracks the devices that are taken for a claim."""

    def add(self, request: Request, device: Signature) -> bool:
        """Take a device if the constraint allows it."""
        ...

    def remove(self, request: Request) -> None:
        """Undo one successful `add` for a request."""
        ...


class MatchAttribute:
    """All devices have the same value of an attribute."""

    __slots__ = ("_num_devices", "_requests", "_value", "attribute")

    def __init__(self, attribute: str, requests: frozenset[str]) -> None:
        self.attribute = attribute
        self._requests = requests
        self._num_devices = 0
        self._value: AttributeValue | None = None

    def concerns(self, request: Request) -> bool:
        """Whether the devices of a request are compared."""
        return _concerns(self._requests, request)

    def add(self, request: Request, device: Signature) -> bool:
        """Take a device with the value of the others; the first sets the value.

        Values of unknown types are not equal to each other.
        """
        if not self.concerns(request):
            return True
        value = device.attribute(self.attribute)
        if value is None or (
            self._num_devices and (value != self._value or value == UNKNOWN_VALUE)
        ):
            return False
        self._value = value
        self._num_devices += 1
        return True

    def remove(self, request: Request) -> None:
        """Undo one successful `add` for a request."""
        if self.concerns(request):
            self._num_devices -= 1


class DistinctAttribute:
    """Devices have different values of an attribute.

    One value is remembered per request: among the devices of one request, only the last counts.
    """

    __slots__ = ("_attribute", "_requests", "_values")

    def __init__(self, attribute: str, requests: frozenset[str]) -> None:
        self._attribute = attribute
        self._requests = requests
        self._values: dict[str, AttributeValue] = {}

    def add(self, request: Request, device: Signature) -> bool:
        """Take a device whose value no remembered one equals.

        A value of an unknown type is not known to be different from any.
        """
        if not _concerns(self._requests, request):
            return True
        value = device.attribute(self._attribute)
        if value is None or value in self._values.values():
            return False
        if value == UNKNOWN_VALUE and self._values:
            return False
        self._values[request.base_name] = value
        return True

    def remove(self, request: Request) -> None:
        """Forget the value of a request."""
        if _concerns(self._requests, request):
            self._values.pop(request.base_name, None)


def make_constraint(given: DeviceConstraint) -> Constraint | None:
    """The constraint; None if it is of an unknown kind."""
    requests = frozenset(given.requests)
    if given.match_attribute is not None:
        return MatchAttribute(given.match_attribute, requests)
    if given.distinct_attribute is not None:
        return DistinctAttribute(given.distinct_attribute, requests)
    return None


def _concerns(requests: frozenset[str], request: Request) -> bool:
    return not requests or request.base_name in requests or request.full_name in requests
