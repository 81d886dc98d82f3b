"""The devices of a node, as a simulated driver publishes them in ResourceSlices.

The annotation ``stowage/devices`` of a node holds a JSON list of groups, as does the field
``devices`` of a node file.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import msgspec

from simcluster.kinds.resources import NODES, RESOURCE_SLICES
from simcluster.schema import DecodingError, Struct, conform, struct_of
from simcluster.store.deletion import DeleteOptions
from simcluster.store.registry import Registry
from simcluster.store.store import Stored
from simcluster.validation.device_slices import DEVICE_SLICES
from simcluster.values import Json
from stowage.api import QuantityError, parse_quantity

DEVICES = "stowage/devices"
_PER_SLICE = 64
_SETS_PER_SLICE = 8
_STRUCT = struct_of("ResourceSlice") or Struct("ResourceSlice")
_VALIDATE = DEVICE_SLICES["resourceslices.resource.k8s.io"].new

_Count = Annotated[int, msgspec.Meta(ge=0)]


class _Taint(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    key: str
    effect: str
    value: str = ""


class _Partition(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A way to use a part of a device.

    Args:
        name: appended to the device's name, with a number if ``count`` is not 1.
        counters: what it takes of the device's counters.
        count: such partitions of each device.
        attributes: besides those of the device.
        capacity: besides that of the device.
    """

    name: str
    counters: dict[str, str | int]
    count: _Count = 1
    attributes: dict[str, Any] = {}
    capacity: dict[str, Any] = {}


class DeviceGroup(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, rename="camel"):
    """Devices of one driver that are alike.

    Args:
        driver: its name.
        count: devices.
        name: followed by the device's number.
        pool: of the devices; the node's name if empty.
        attributes: text, number, boolean, or ``{version: 1.2.3}``.
        capacity: quantities, or ``{value: ..., requestPolicy: ...}``.
        taints: of each device.
        allow_multiple_allocations: claims share a device and consume its capacity.
        counters: of each device; its partitions share them.
        partitions: published instead of the device.
    """

    driver: str
    count: _Count
    name: str = "device"
    pool: str = ""
    attributes: dict[str, Any] = {}
    capacity: dict[str, Any] = {}
    taints: list[_Taint] = []
    allow_multiple_allocations: bool = False
    counters: dict[str, str | int] = {}
    partitions: list[_Partition] = []


def read_groups(text: str) -> list[DeviceGroup]:
    """The groups in an annotation.

    Raises:
        ValueError: it is no list of groups; the text names the field and the expected value.
    """
    try:
        return msgspec.json.decode(text, type=list[DeviceGroup])
    except msgspec.DecodeError as error:
        raise ValueError(f"{DEVICES}: {error}") from error


def problems_of(groups: Sequence[DeviceGroup]) -> list[str]:
    """Mistakes in groups: those for which an API server would refuse the slices, too."""
    found = [problem for number, group in enumerate(groups) for problem in _mistakes(number, group)]
    if found:
        return found
    try:
        errors = [error for made in _slices(groups, "node", ()) for error in _VALIDATE(made)]
    except DecodingError as error:
        return [f": {error}"]
    return [f": {error.field}: {error.message}" for error in errors]


def _mistakes(number: int, group: DeviceGroup) -> Iterable[str]:
    yield from _bad_amounts(f"[{number}]", group)
    for position, partition in enumerate(group.partitions):
        place = f"[{number}].partitions[{position}]"
        yield from _bad_amounts(place, partition)
        for name in partition.counters.keys() - group.counters.keys():
            yield f"{place}.counters.{name}: the devices have no such counter"


def _bad_amounts(place: str, holder: DeviceGroup | _Partition) -> Iterable[str]:
    for field, amounts in (("counters", holder.counters), ("capacity", holder.capacity)):
        for name, amount in amounts.items():
            try:
                if not isinstance(amount, dict):
                    parse_quantity(str(amount))
            except QuantityError as error:
                yield f"{place}.{field}.{name}: {error}"


class DevicePublisher:
    """Keeps the ResourceSlices of nodes equal to their annotations, as drivers do.

    Args:
        registry: where slices are written.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._published: dict[str, str] = {}
        """The annotation of each node that was read last."""

    def publish(self, node: Stored) -> None:
        """Publish the devices of a node if its annotation is new or has changed.

        The slices of a driver are replaced together, as the next generation of its pools.

        Raises:
            ValueError: the annotation is malformed.
        """
        text, before = node.annotations.get(DEVICES, "[]"), self._published.get(node.name, "[]")
        if text == before:
            return
        self._published[node.name] = text
        groups = read_groups(text)
        if problems := problems_of(groups):
            raise ValueError(f"{DEVICES}{problems[0]}")
        owner = {"apiVersion": "v1", "kind": NODES.kind, "name": node.name, "uid": node.uid}
        wanted: dict[str, list[Json]] = {group.driver: [] for group in read_groups(before)}
        for made in _slices(groups, node.name, [owner]):
            wanted.setdefault(made["spec"]["driver"], []).append(made)
        for driver, slices in wanted.items():
            self._replace(self._known(node.name, driver), slices)

    def forget(self, node_name: str) -> None:
        """Forget a deleted node; the garbage collector removes its slices."""
        self._published.pop(node_name, None)

    def _known(self, node: str, driver: str) -> list[Stored]:
        """The slices of a driver on a node, which are numbered without gaps."""
        found: list[Stored] = []
        while True:
            name = _slice_name(node, driver, len(found))
            stored = self._registry.store.get(RESOURCE_SLICES.stored_in, "", name)
            if stored is None:
                return found
            found.append(stored)

    def _replace(self, known: list[Stored], wanted: list[Json]) -> None:
        if [_content(stored.spec) for stored in known] == [_content(new["spec"]) for new in wanted]:
            return
        last = max((stored.spec["pool"]["generation"] for stored in known), default=0)
        for stored in known:
            options = DeleteOptions(uid=stored.uid)
            self._registry.delete(RESOURCE_SLICES, "", stored.name, options)
        for new in wanted:
            new["spec"]["pool"]["generation"] = last + 1
            self._registry.create(RESOURCE_SLICES, "", new)


def _content(spec: Json) -> Json:
    """A slice without its generation and the times of its taints."""
    devices = [
        {**device, "taints": [{**taint, "timeAdded": None} for taint in device.get("taints", ())]}
        for device in spec.get("devices", ())
    ]
    return {**spec, "pool": {**spec["pool"], "generation": 0}, "devices": devices}


def _slice_name(node: str, driver: str, number: int) -> str:
    return f"{node}-{driver}-{number}"


def _slices(groups: Iterable[DeviceGroup], node: str, owners: Iterable[Json]) -> list[Json]:
    pools: dict[tuple[str, str], list[DeviceGroup]] = {}
    for group in groups:
        pools.setdefault((group.driver, group.pool or node), []).append(group)
    found: list[Json] = []
    numbers: dict[str, int] = {}
    for (driver, pool), members in pools.items():
        contents = _contents(members)
        for content in contents:
            number = numbers[driver] = numbers.get(driver, -1) + 1
            of_pool = {"name": pool, "generation": 1, "resourceSliceCount": len(contents)}
            spec = {"driver": driver, "nodeName": node, "pool": of_pool, **content}
            metadata: Json = {"name": _slice_name(node, driver, number)}
            if owners:
                metadata["ownerReferences"] = list(owners)
            made = {"metadata": metadata, "spec": spec}
            conform(made, _STRUCT)
            found.append(made)
    return found


def _contents(groups: list[DeviceGroup]) -> list[Json]:
    """The devices and counter sets of a pool, divided into slices."""
    devices: list[Json] = []
    sets: list[Json] = []
    numbers: dict[str, int] = {}
    for group in groups:
        for _ in range(group.count):
            number = numbers[group.name] = numbers.get(group.name, -1) + 1
            name = f"{group.name}-{number}"
            if group.partitions:
                sets.append({"name": name, "counters": _counters(group.counters)})
                devices += _partitions(group, name)
            else:
                devices.append(_device(group, name, group.attributes, group.capacity))
    shared = [{"sharedCounters": part} for part in _parts(sets, _SETS_PER_SLICE)]
    return shared + [{"devices": part} for part in _parts(devices, _PER_SLICE)]


def _parts(items: list[Json], size: int) -> list[list[Json]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


def _partitions(group: DeviceGroup, name: str) -> Iterable[Json]:
    for part in group.partitions:
        attributes = {**group.attributes, **part.attributes}
        capacity = {**group.capacity, **part.capacity}
        for number in range(part.count):
            suffix = part.name if part.count == 1 else f"{part.name}-{number}"
            device = _device(group, f"{name}-{suffix}", attributes, capacity)
            consumed = {"counterSet": name, "counters": _counters(part.counters)}
            yield {**device, "consumesCounters": [consumed]}


def _counters(amounts: dict[str, str | int]) -> Json:
    return {name: {"value": str(amount)} for name, amount in amounts.items()}


def _device(
    group: DeviceGroup, name: str, attributes: dict[str, Any], capacity: dict[str, Any]
) -> Json:
    device: Json = {"name": name}
    if attributes:
        device["attributes"] = {key: _attribute(value) for key, value in attributes.items()}
    if capacity:
        device["capacity"] = {
            key: value if isinstance(value, dict) else {"value": str(value)}
            for key, value in capacity.items()
        }
    if group.taints:
        device["taints"] = [msgspec.to_builtins(taint) for taint in group.taints]
    if group.allow_multiple_allocations:
        device["allowMultipleAllocations"] = True
    return device


def _attribute(value: object) -> Json:
    if isinstance(value, dict):
        return value
    if isinstance(value, bool):
        return {"bool": value}
    return {"int": value} if isinstance(value, int) else {"string": str(value)}
