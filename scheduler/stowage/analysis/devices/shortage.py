"""What a request for devices finds on nodes, and the devices of a node, as values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum

import msgspec


class Why(StrEnum):
    """The step at which too few devices are left."""

    NO_DEVICES = "NoDevices"
    POOL = "Pool"
    CLASS = "Class"
    SELECTOR = "Selector"
    TAINT = "Taint"
    CAPACITY = "Capacity"
    IN_USE = "InUse"
    COUNTER = "Counter"
    CONSTRAINT = "Constraint"
    OTHER_REQUESTS = "OtherRequests"
    ELSEWHERE = "Elsewhere"
    UNDECIDED = "Undecided"


class DeviceCounts(msgspec.Struct, frozen=True, rename="camel"):
    """How many devices of a node pass each step; a step counts those that passed the one before.

    Attributes:
        devices: In complete and valid pools.
        of_class: Selected by the class.
        selected: Selected by the request, too.
        tolerated: Without taints that the request does not tolerate.
        sufficient: With the capacity that the request needs.
        free: Not in use.
        available: With enough left of the counters that they consume.
    """

    devices: int = 0
    of_class: int = 0
    selected: int = 0
    tolerated: int = 0
    sufficient: int = 0
    free: int = 0
    available: int = 0


class DeviceShortage(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A request that finds too few devices on some nodes.

    Attributes:
        claim: ``namespace/name`` of the claim.
        why: The step at which too few devices are left.
        nodes: The nodes.
        request: The request, or ``request/subrequest``; empty if the claim is allocated elsewhere.
        device_class: The class.
        wanted: How many devices it asks for; 0 for all.
        short_by: How many more would do.
        counts: What the request finds on each of the nodes.
        details: Attributes, taints, amounts or pools that explain it.
    """

    claim: str
    why: Why
    nodes: tuple[str, ...] = ()
    request: str = ""
    device_class: str = ""
    wanted: int = 0
    short_by: int = 0
    counts: DeviceCounts = DeviceCounts()
    details: tuple[str, ...] = ()

    @property
    def subject(self) -> str:
        """The request in words."""
        if not self.request:
            return f"claim {self.claim}"
        wanted = "all devices" if not self.wanted else number_of_devices(self.wanted)
        return f"claim {self.claim}, request {self.request} ({wanted} of {self.device_class})"

    @property
    def finding(self) -> str:
        """What the request finds, in words."""
        details = f": {', '.join(self.details)}" if self.details else ""
        return f"{_FINDINGS[self.why](self.counts)}{details}"


class NodeDevice(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A device that a node can use.

    Attributes:
        device: ``driver/pool/name``.
        attributes: Name -> value.
        capacity: Name -> amount.
        taints: Its taints as ``key=value:effect``.
        claims: The claims that have it, or a share of it (``namespace/name``).
        is_free: Whether no claim has it as a whole.
        is_usable: Whether its pool is complete and valid.
    """

    device: str
    attributes: dict[str, str | int | bool] = msgspec.field(default_factory=dict)
    capacity: dict[str, str] = msgspec.field(default_factory=dict)
    taints: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    is_free: bool = False
    is_usable: bool = False


def number_of_devices(number: int) -> str:
    """The number with its noun."""
    return "1 device" if number == 1 else f"{number} devices"


_FINDINGS: Mapping[Why, Callable[[DeviceCounts], str]] = {
    Why.NO_DEVICES: lambda _: "no devices",
    Why.POOL: lambda _: "pools that cannot be used",
    Why.CLASS: lambda it: f"{it.of_class} of {it.devices} devices are of the class",
    Why.SELECTOR: lambda it: f"selector matches {it.selected} of {it.of_class}",
    Why.TAINT: lambda it: f"taints tolerated of {it.tolerated} of {it.selected} devices",
    Why.CAPACITY: lambda it: f"capacity suffices of {it.sufficient} of {it.tolerated} devices",
    Why.IN_USE: lambda it: f"{it.free} of {it.sufficient} devices are free",
    Why.COUNTER: lambda it: f"counters suffice for {it.available} of {it.free} free devices",
    Why.CONSTRAINT: lambda it: f"{it.available} free devices, but a constraint of the claim",
    Why.OTHER_REQUESTS: lambda it: f"{it.available} free devices, but other requests of the pod",
    Why.ELSEWHERE: lambda _: "allocated, and not available here",
    Why.UNDECIDED: lambda _: "the search takes too long to say",
}
