"""Devices and slices as the allocator reads them.

Devices with the same driver, attributes and capacity share a `Signature`: CEL expressions are
evaluated once per signature.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from typing import NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace

from stowage.api.decoding.errors import (
    QUANTITY_EXPECTATION,
    InvalidObject,
    QuantityError,
    SelectorError,
)
from stowage.api.objects.device import (
    Device,
    DeviceAttribute,
    DeviceCapacity,
    ResourceSlice,
    ResourceSliceSpec,
)
from stowage.api.objects.node import NodeSelector, Taint
from stowage.api.values.device_capacity import CapacityRule, amount, capacity_rule
from stowage.api.values.node_affinity import NodeTerms, compile_node_selector
from stowage.state.devices.features import ALL_FEATURES, DeviceFeatures

_ENCODER = msgspec.msgpack.Encoder(order="deterministic")
_ids = count(1)


class DeviceId(NamedTuple):
    """The identity of a device."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


class PoolId(NamedTuple):
    """The identity of a pool."""

    driver: str
    pool: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}"


#: (type, value) of an attribute; versions are compared as text.
AttributeValue: TypeAlias = tuple[str, str | int | bool]

UNKNOWN_VALUE: AttributeValue = ("unknown", "")
"""The value of an attribute of a type that this version does not know, such as a list."""

_CONVERTED = ("version", UNKNOWN_VALUE[0])


class Signature:
    """What CEL expressions and capacity requests read of a device.

    Attributes:
        id: Unique and never reused.
        base: What every expression is taken to read: the driver, whether the device says that
            claims share it, the attributes whose conversion may fail, and the capacities.
        driver: The driver.
        device: The attributes and capacities as published.
        attributes: Name -> (type, value).
        capacity: Name -> rule.
        allows_multiple: Whether several claims may share the device.
    """

    __slots__ = (
        "_key",
        "allows_multiple",
        "attributes",
        "base",
        "capacity",
        "device",
        "driver",
        "id",
    )

    def __init__(self, driver: str, device: Device, *, may_share: bool) -> None:
        self.id = next(_ids)
        self.driver = driver
        self.device = device
        self.attributes = {name: _value(each) for name, each in device.attributes.items()}
        self.capacity: dict[str, CapacityRule] = {
            name: capacity_rule(each) for name, each in device.capacity.items()
        }
        says_shared = bool(device.allow_multiple_allocations)
        self.allows_multiple = says_shared and may_share
        self._key = _ENCODER.encode([driver, device])
        # Lists, for their order counts: it says which conversion fails first.
        delicate = [
            (name, device.attributes[name])
            for name, (kind, _) in self.attributes.items()
            if kind in _CONVERTED
        ]
        capacity = list(device.capacity.items())
        self.base = _ENCODER.encode([driver, says_shared, delicate, capacity])

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Signature) and other._key == self._key

    def attribute(self, name: str) -> AttributeValue | None:
        """An attribute by its fully qualified name (``lookupAttribute``)."""
        found = self.attributes.get(name)
        if found is None:
            domain, _, identifier = name.partition("/")
            if identifier and domain == self.driver:
                found = self.attributes.get(identifier)
        return found


class CounterUse(NamedTuple):
    """What a device consumes of a counter, in nano units."""

    counter_set: str
    counter: str
    nano: int


class NodeCondition(msgspec.Struct, frozen=True):
    """The nodes that a slice or device is for; by default none."""

    node_name: str = ""
    all_nodes: bool = False
    terms: NodeTerms | None = None
    selector: NodeSelector | None = None

    def matches(self, name: str, labels: dict[str, str]) -> bool:
        """Whether a node is one of them.

        Raises:
            SelectorError: The selector is invalid.
        """
        if self.node_name:
            return name == self.node_name
        if self.all_nodes:
            return True
        return self.terms is not None and self.terms.matches(labels, name)


class DeviceInfo(msgspec.Struct, gc=False, eq=False):
    """A device of a slice.

    Attributes:
        id: Driver, pool and name.
        signature: Attributes and capacity, shared by devices that are alike.
        taints: The taints.
        counters: What it consumes of shared counters.
        binds_to_node: Whether an allocation is for the chosen node only.
        binding_conditions: What has to be true before a pod is bound.
        binding_failure_conditions: What makes the allocation fail.
        nodes: The nodes it is for, if the slice says so per device.
        is_withheld: Whether it is never allocated: it consumes counters, but partitionable devices
            are switched off.
        is_unseen: Whether no request sees it: it has binding conditions, but those are switched
            off. What it consumes counts if it is allocated.
        row: The row in the columns of devices.
    """

    id: DeviceId
    signature: Signature
    taints: tuple[Taint, ...] = ()
    counters: tuple[CounterUse, ...] = ()
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    nodes: NodeCondition | None = None
    is_withheld: bool = False
    is_unseen: bool = False
    row: int = -1

    @property
    def is_plain(self) -> bool:
        """Whether the device consumes no counter, is not shared and says nothing of nodes."""
        if self.counters or self.is_withheld or self.is_unseen or self.nodes is not None:
            return False
        return not self.signature.allows_multiple


class SliceInfo(msgspec.Struct, eq=False):
    """A slice.

    Attributes:
        id: Unique and never reused: another version of a slice has another one.
        name: The name of the object.
        resource_version: Its version.
        uid: Its UID.
        pool: Its pool.
        generation: The generation of the pool.
        num_slices: How many slices the pool has.
        nodes: The nodes it is for; None if each device says it, or nothing does.
        is_per_device: Whether each device says its nodes.
        devices: The devices, in order.
        counter_sets: (name, counter -> nano units), in order.
        holds_row: The row of its node; -1 if it is not for one node.
    """

    id: int
    name: str
    resource_version: str
    uid: str
    pool: PoolId
    generation: int
    num_slices: int
    nodes: NodeCondition | None
    is_per_device: bool
    devices: tuple[DeviceInfo, ...]
    counter_sets: tuple[tuple[str, dict[str, int]], ...]
    holds_row: int = -1

    @property
    def node_name(self) -> str:
        """The node it is for; empty if it is not for one node."""
        return "" if self.nodes is None else self.nodes.node_name

    def is_relevant(self, name: str, labels: dict[str, str]) -> bool:
        """Whether a node may get devices of this slice, or needs its counters.

        Raises:
            SelectorError: A node selector is invalid.
        """
        if self.counter_sets:
            return True
        try:
            if self.nodes is not None:
                return self.nodes.matches(name, labels)
            return self.is_per_device and any(
                each.nodes is not None and each.nodes.matches(name, labels) for each in self.devices
            )
        except SelectorError as error:
            text = f"failed to perform node selection for slice {self.name}: {error}"
            raise SelectorError(text) from error

    @property
    def has_binding_conditions(self) -> bool:
        """Whether a device has binding conditions."""
        return any(each.binding_conditions for each in self.devices)


def compile_slice(given: ResourceSlice, features: DeviceFeatures = ALL_FEATURES) -> SliceInfo:
    """What the scheduler stores of a slice, without what is switched off.

    With partitionable devices switched off, slices with counters or with nodes per device are for
    no node; they count as parts of their pool.

    Raises:
        InvalidObject: A quantity cannot be parsed.
    """
    meta = given.metadata
    spec = given.spec if features.partitionable else _unpartitioned(given.spec)
    try:
        devices = tuple(_compile_devices(spec, features))
        counter_sets = tuple(
            (each.name, {name: amount(it.value).nano for name, it in each.counters.items()})
            for each in spec.shared_counters
        )
    except QuantityError as error:
        raise InvalidObject(
            "ResourceSlice", meta.name, "spec", str(error.text), QUANTITY_EXPECTATION, meta.uid
        ) from error
    nodes = None
    if spec.node_name or spec.all_nodes or spec.node_selector is not None:
        nodes = _condition(spec.node_name, spec.all_nodes, spec.node_selector)
    return SliceInfo(
        next(_ids),
        meta.name,
        meta.resource_version,
        meta.uid,
        PoolId(spec.driver, spec.pool.name),
        spec.pool.generation,
        spec.pool.resource_slice_count,
        nodes,
        bool(spec.per_device_node_selection),
        devices,
        counter_sets,
    )


def _compile_devices(spec: ResourceSliceSpec, features: DeviceFeatures) -> Iterator[DeviceInfo]:
    pool, is_per_device = PoolId(spec.driver, spec.pool.name), bool(spec.per_device_node_selection)
    for each in spec.devices:
        is_withheld = bool(each.consumes_counters) and not features.partitionable
        is_unseen = bool(each.binding_conditions) and not features.binding_conditions
        given = _effective(each, features)
        nodes = None
        if is_per_device:
            nodes = _condition(each.node_name, each.all_nodes, each.node_selector)
        signature = Signature(
            spec.driver, _published(given), may_share=features.consumable_capacity
        )
        yield DeviceInfo(
            DeviceId(pool.driver, pool.pool, each.name),
            signature,
            given.taints,
            tuple(_counter_uses(given)),
            bool(each.binds_to_node),
            each.binding_conditions,
            each.binding_failure_conditions,
            nodes,
            is_withheld,
            is_unseen,
        )


def _unpartitioned(spec: ResourceSliceSpec) -> ResourceSliceSpec:
    if not spec.shared_counters and spec.per_device_node_selection is None:
        return spec
    return ResourceSliceSpec(driver=spec.driver, pool=spec.pool)


def _effective(given: Device, features: DeviceFeatures) -> Device:
    """The device without what is switched off; selectors still see whether it says shared."""
    if features == ALL_FEATURES:
        return given
    capacity = given.capacity
    if not features.consumable_capacity:
        capacity = {name: DeviceCapacity(each.value) for name, each in capacity.items()}
    return replace(
        given,
        taints=given.taints if features.taints else (),
        consumes_counters=given.consumes_counters if features.partitionable else (),
        capacity=capacity,
    )


def _counter_uses(given: Device) -> Iterable[CounterUse]:
    for use in given.consumes_counters:
        for name, counter in use.counters.items():
            yield CounterUse(use.counter_set, name, amount(counter.value).nano)


def _published(given: Device) -> Device:
    return Device(
        attributes=given.attributes,
        capacity=given.capacity,
        allow_multiple_allocations=given.allow_multiple_allocations,
    )


def _condition(
    node_name: str | None, all_nodes: bool | None, selector: NodeSelector | None
) -> NodeCondition:
    terms = None if selector is None else compile_node_selector(selector)
    return NodeCondition(node_name or "", bool(all_nodes), terms, selector)


def _value(attribute: DeviceAttribute) -> AttributeValue:
    if attribute.string_value is not None:
        return "string", attribute.string_value
    if attribute.int_value is not None:
        return "int", attribute.int_value
    if attribute.bool_value is not None:
        return "bool", attribute.bool_value
    if attribute.version_value is not None:
        return "version", attribute.version_value
    return UNKNOWN_VALUE
