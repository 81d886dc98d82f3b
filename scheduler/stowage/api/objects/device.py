"""Device classes, resource claims and resource slices of ``resource.k8s.io/v1``.

Opaque configuration is kept as the bytes that the API server sent: an allocation has to repeat it
byte by byte.
"""

from typing import TypeAlias

import msgspec
from msgspec.structs import force_setattr

from stowage.api.objects.meta import ApiStruct, Condition, Int64, ObjectMeta
from stowage.api.objects.node import NodeSelector, Taint
from stowage.api.objects.pod import Toleration

QuantityText: TypeAlias = str | Int64 | float

EXACT_COUNT = "ExactCount"
ALL = "All"
FROM_CLASS = "FromClass"
FROM_CLAIM = "FromClaim"


class CELDeviceSelector(ApiStruct, frozen=True):
    """A CEL expression that is true for the devices it selects."""

    expression: str = ""


class DeviceSelector(ApiStruct, frozen=True):
    """A selector; None for a kind of selector that this version does not know."""

    cel: CELDeviceSelector | None = None


class CapacityRequirements(ApiStruct, frozen=True):
    """The capacity that a request needs of each device."""

    requests: dict[str, QuantityText] = msgspec.field(default_factory=dict)


class ExactDeviceRequest(ApiStruct, frozen=True):
    """A request for devices of one class."""

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: Int64 = 0
    admin_access: bool | None = None
    tolerations: tuple[Toleration, ...] = ()
    capacity: CapacityRequirements | None = None


class DeviceSubRequest(ApiStruct, frozen=True):
    """One of the alternatives of a request."""

    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: Int64 = 0
    tolerations: tuple[Toleration, ...] = ()
    capacity: CapacityRequirements | None = None


class DeviceRequest(ApiStruct, frozen=True):
    """A request of a claim: exactly these devices, or the first alternative that is available."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(ApiStruct, frozen=True):
    """What the devices of some requests have to have in common, or must not have in common."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class OwnBytes(ApiStruct, frozen=True):
    """Base of structs with raw JSON: copies it, so that it does not keep a page of a list alive."""

    opaque: msgspec.Raw = msgspec.Raw(b"null")

    def __post_init__(self) -> None:
        """Copy the raw JSON out of the message it came in."""
        force_setattr(self, "opaque", self.opaque.copy())


class DeviceClassConfiguration(OwnBytes, frozen=True):
    """Configuration of the devices of a class."""


class DeviceClaimConfiguration(OwnBytes, frozen=True):
    """Configuration of the devices of some requests of a claim; of all if none is named."""

    requests: tuple[str, ...] = ()


class DeviceAllocationConfiguration(OwnBytes, frozen=True):
    """Configuration that applies to an allocation; `source` is ``FromClass`` or ``FromClaim``."""

    source: str = ""
    requests: tuple[str, ...] = ()


class DeviceClaim(ApiStruct, frozen=True):
    """The devices that a claim asks for."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(ApiStruct, frozen=True):
    """ResourceClaimSpec."""

    devices: DeviceClaim = DeviceClaim()


class DeviceRequestAllocationResult(ApiStruct, frozen=True):
    """A device that is allocated for a request."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: tuple[Toleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: dict[str, QuantityText] = msgspec.field(default_factory=dict)


class DeviceAllocationResult(ApiStruct, frozen=True):
    """The devices of an allocation and their configuration."""

    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()


class AllocationResult(ApiStruct, frozen=True):
    """What a claim got, and the nodes where it is available; no selector stands for all nodes."""

    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ResourceClaimConsumerReference(ApiStruct, frozen=True):
    """A consumer of a claim; `resource` is ``pods`` for pods."""

    resource: str = ""
    name: str = ""
    uid: str = ""
    api_group: str = ""


class AllocatedDeviceStatus(ApiStruct, frozen=True):
    """What a driver says about an allocated device."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = msgspec.field(default=None, name="shareID")
    conditions: tuple[Condition, ...] = ()


class ResourceClaimStatus(ApiStruct, frozen=True):
    """ResourceClaimStatus."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(ApiStruct, frozen=True):
    """A claim for devices."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourceClaimTemplateSpec(ApiStruct, frozen=True):
    """The claim that is made for each pod."""

    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(ApiStruct, frozen=True):
    """A template of claims; the scheduler itself reads only the claims."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


class DeviceClassSpec(ApiStruct, frozen=True):
    """DeviceClassSpec."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(ApiStruct, frozen=True):
    """A class of devices."""

    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceAttribute(ApiStruct, frozen=True):
    """An attribute of a device; exactly one field is set."""

    string_value: str | None = msgspec.field(default=None, name="string")
    int_value: Int64 | None = msgspec.field(default=None, name="int")
    bool_value: bool | None = msgspec.field(default=None, name="bool")
    version_value: str | None = msgspec.field(default=None, name="version")


class CapacityRequestPolicyRange(ApiStruct, frozen=True):
    """Valid amounts from `min` to `max`, in steps of `step`."""

    min: QuantityText | None = None
    max: QuantityText | None = None
    step: QuantityText | None = None


class CapacityRequestPolicy(ApiStruct, frozen=True):
    """How much of a capacity a request consumes."""

    default: QuantityText | None = None
    valid_values: tuple[QuantityText, ...] = ()
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(ApiStruct, frozen=True):
    """A capacity of a device."""

    value: QuantityText = 0
    request_policy: CapacityRequestPolicy | None = None


class Counter(ApiStruct, frozen=True):
    """An amount of a counter."""

    value: QuantityText = 0


class DeviceCounterConsumption(ApiStruct, frozen=True):
    """What a device consumes of a counter set while it is allocated."""

    counter_set: str = ""
    counters: dict[str, Counter] = msgspec.field(default_factory=dict)


class CounterSet(ApiStruct, frozen=True):
    """Counters that the devices of a pool share."""

    name: str = ""
    counters: dict[str, Counter] = msgspec.field(default_factory=dict)


class Device(ApiStruct, frozen=True):
    """A device of a slice."""

    name: str = ""
    attributes: dict[str, DeviceAttribute] = msgspec.field(default_factory=dict)
    capacity: dict[str, DeviceCapacity] = msgspec.field(default_factory=dict)
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[Taint, ...] = ()
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool | None = None


class ResourcePool(ApiStruct, frozen=True):
    """The pool that a slice belongs to."""

    name: str = ""
    generation: Int64 = 0
    resource_slice_count: Int64 = 0


class ResourceSliceSpec(ApiStruct, frozen=True):
    """ResourceSliceSpec."""

    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(ApiStruct, frozen=True):
    """A part of a driver's pool of devices."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceSliceSpec = ResourceSliceSpec()


DeviceObject: TypeAlias = ResourceClaim | DeviceClass | ResourceSlice
