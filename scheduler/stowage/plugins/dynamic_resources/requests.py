"""The requests of claims in the form that the allocator reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import msgspec

from stowage.api.objects.device import (
    ALL,
    EXACT_COUNT,
    CapacityRequirements,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaimSpec,
)
from stowage.api.objects.pod import Toleration
from stowage.api.values.device_capacity import Amount, amount
from stowage.state.devices.features import ALL_FEATURES, DeviceFeatures


class Request(msgspec.Struct, frozen=True, eq=False):
    """A request, or one alternative of a request.

    Attributes:
        name: Its own name.
        parent: The name of the request that it is an alternative of; empty if it is none.
        class_name: The device class.
        selectors: The CEL expressions; None for a selector of an unknown kind.
        mode: ``ExactCount`` or ``All``.
        count: How many devices, for ``ExactCount``.
        has_admin_access: Whether the devices may be in use.
        tolerations: The device taints that it tolerates.
        capacity: What it needs of each device.
    """

    name: str
    parent: str
    class_name: str
    selectors: tuple[str | None, ...]
    mode: str
    count: int
    has_admin_access: bool
    tolerations: tuple[Toleration, ...]
    capacity: dict[str, Amount]

    @property
    def full_name(self) -> str:
        """The name in an allocation: ``request`` or ``request/subrequest``."""
        return f"{self.parent}/{self.name}" if self.parent else self.name

    @property
    def base_name(self) -> str:
        """The name of the request that it is, or is an alternative of."""
        return self.parent or self.name

    @property
    def wants_all(self) -> bool:
        """Whether it asks for all devices."""
        return self.mode == ALL

    @property
    def is_plain(self) -> bool:
        """Whether it asks for a number of free devices and has no further conditions."""
        return self.mode == EXACT_COUNT and not self.has_admin_access and not self.parent


class ClaimRequests(msgspec.Struct, frozen=True, eq=False):
    """What a claim asks for.

    Attributes:
        spec: The spec of the claim.
        requests: For each request its alternatives; one if it has no list of them.
        has_list: For each request whether it has a list of alternatives.
        problems: For each request why it is not allocated anywhere; empty if it may be.
    """

    spec: ResourceClaimSpec
    requests: tuple[tuple[Request, ...], ...]
    has_list: tuple[bool, ...]
    problems: tuple[str, ...]

    @property
    def constraints(self) -> tuple[DeviceConstraint, ...]:
        """The constraints."""
        return self.spec.devices.constraints

    @property
    def all_requests(self) -> Iterable[Request]:
        """All requests and alternatives, in order."""
        return chain.from_iterable(self.requests)


def claim_requests(
    spec: ResourceClaimSpec, features: DeviceFeatures = ALL_FEATURES
) -> ClaimRequests:
    """The requests of a claim; a request of an unknown kind has no alternatives."""
    requests = spec.devices.requests
    return ClaimRequests(
        spec,
        tuple(tuple(_alternatives(each)) for each in requests),
        tuple(each.exactly is None for each in requests),
        tuple(_problem(each, features) for each in requests),
    )


def _problem(request: DeviceRequest, features: DeviceFeatures) -> str:
    if features.consumable_capacity:
        return ""
    text = "has capacity requests, but the DRAConsumableCapacity feature is disabled"
    if request.exactly is not None and request.exactly.capacity is not None:
        return f"request {request.name}: {text}"
    for each in request.first_available:
        if each.capacity is not None:
            return f"subrequest {each.name}: {text}"
    return ""


def _alternatives(request: DeviceRequest) -> Iterable[Request]:
    if request.exactly is not None:
        exactly = request.exactly
        return (_request(request.name, "", exactly, bool(exactly.admin_access)),)
    return (_request(each.name, request.name, each, False) for each in request.first_available)


def _request(
    name: str, parent: str, given: ExactDeviceRequest | DeviceSubRequest, has_admin_access: bool
) -> Request:
    return Request(
        name,
        parent,
        given.device_class_name,
        tuple(_expression(each) for each in given.selectors),
        given.allocation_mode,
        given.count,
        has_admin_access,
        given.tolerations,
        _capacity(given.capacity),
    )


def _capacity(requirements: CapacityRequirements | None) -> dict[str, Amount]:
    if requirements is None:
        return {}
    return {name: amount(text) for name, text in requirements.requests.items()}


def _expression(selector: DeviceSelector) -> str | None:
    return None if selector.cel is None else selector.cel.expression


def expressions_of(selectors: Sequence[DeviceSelector]) -> tuple[str, ...]:
    """The CEL expressions of a class; a selector of an unknown kind is an invalid expression."""
    return tuple(_expression(each) or "" for each in selectors)
