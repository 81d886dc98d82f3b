"""Storage pools of limited size per segment, published as CSIStorageCapacity objects.

The parameter ``stowage/capacity`` of a StorageClass gives every segment (zone, or whatever its
driver's topology keys are) a pool of that size. The free capacity of each is published, as by the
external-provisioner, and a claim that does not fit is refused with ``ResourceExhausted``.
"""

from simcluster.controllers.storage.provisioning_topology import Segment, Topology, node_topology
from simcluster.controllers.storage.volume_fit import capacity_of, class_of
from simcluster.controllers.workloads.template_revision import content_hash
from simcluster.kinds.resources import (
    CSI_STORAGE_CAPACITIES,
    NODES,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
)
from simcluster.store.deletion import DeleteOptions
from simcluster.store.registry import Registry, editable
from simcluster.store.store import Change, Stored
from simcluster.values import Json
from stowage.api import QuantityError, quantity_value

CAPACITY = "stowage/capacity"
_NAMESPACE = "kube-system"
_SegmentKey = tuple[tuple[str, str], ...]


class StoragePools:
    """The pools of every class with the parameter.

    Args:
        registry: where classes, volumes and CSIStorageCapacity objects are.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._used: dict[tuple[str, _SegmentKey], int] = {}
        self._segments: dict[str, list[Segment]] = {}
        for volume in registry.store.collection(PERSISTENT_VOLUMES.stored_in):
            self._count(volume, +1)

    def see_volume(self, change: Change) -> None:
        """Take capacity for a new volume from its segment's pool, or give it back."""
        if change.type == "ADDED":
            self._count(change.current, +1)
        elif change.type == "DELETED":
            self._count(change.current, -1)

    def _count(self, volume: Stored, sign: int) -> None:
        class_name = class_of(volume.obj)
        for segment in _segments_of(volume):
            key = (class_name, _key(segment))
            self._used[key] = self._used.get(key, 0) + sign * capacity_of(volume)
            storage_class = self._registry.store.get(STORAGE_CLASSES.stored_in, "", class_name)
            if storage_class is not None and class_name in self._segments:
                self._publish(storage_class, segment)

    def open(self, storage_class: Stored) -> None:
        """Publish the pools of a class, if it has any, in the segments of the existing nodes."""
        size = _size(storage_class)
        if size is None or storage_class.name in self._segments:
            return
        driver = storage_class.obj["provisioner"]
        store = self._registry.store
        segments = {
            _key(node_topology(store, node.name, driver)): None
            for node in store.collection(NODES.stored_in)
        }
        self._segments[storage_class.name] = [dict(key) for key in segments if key]
        for segment in self._segments[storage_class.name]:
            self._publish(storage_class, segment)

    def close(self, storage_class: Stored) -> None:
        """Delete the published pools of a deleted class."""
        for segment in self._segments.pop(storage_class.name, ()):
            name = _object_name(storage_class, segment)
            collection = CSI_STORAGE_CAPACITIES.stored_in
            if self._registry.store.get(collection, _NAMESPACE, name) is not None:
                self._registry.delete(CSI_STORAGE_CAPACITIES, _NAMESPACE, name, DeleteOptions())

    def has_room(self, storage_class: Stored, topology: Topology | None, size: int) -> bool:
        """Whether one of the segments has the free capacity; a class without pools is unlimited."""
        total = _size(storage_class)
        if total is None or not topology:
            return True
        return any(self._left(storage_class, segment, total) >= size for segment in topology)

    def freest(self, storage_class: Stored, allowed: Topology) -> Topology:
        """The segment with the most free capacity, for a volume without a selected node."""
        total = _size(storage_class)
        known = self._segments.get(storage_class.name, [])
        choice = [
            found
            for found in known
            if not allowed or any(segment.items() <= found.items() for segment in allowed)
        ]
        if total is None or not choice:
            return allowed[:1]
        return [max(choice, key=lambda found: self._left(storage_class, found, total))]

    def _left(self, storage_class: Stored, segment: Segment, total: int) -> int:
        return total - self._used.get((storage_class.name, _key(segment)), 0)

    def _publish(self, storage_class: Stored, segment: Segment) -> None:
        total = _size(storage_class)
        if total is None:
            return
        name = _object_name(storage_class, segment)
        left = _quantity(max(0, self._left(storage_class, segment, total)))
        known = self._registry.store.get(CSI_STORAGE_CAPACITIES.stored_in, _NAMESPACE, name)
        if known is not None:
            obj = editable(known)
            obj["capacity"] = left
            self._registry.replace(CSI_STORAGE_CAPACITIES, known, obj)
            return
        capacity: Json = {
            "metadata": {"name": name},
            "storageClassName": storage_class.name,
            "nodeTopology": {"matchLabels": segment},
            "capacity": left,
        }
        self._registry.create(CSI_STORAGE_CAPACITIES, _NAMESPACE, capacity)


def _key(segment: Segment) -> _SegmentKey:
    return tuple(sorted(segment.items()))


def _object_name(storage_class: Stored, segment: Segment) -> str:
    return f"csisc-{content_hash({'class': storage_class.name, 'segment': segment})}"


def _quantity(num_bytes: int) -> str:
    """The shortest exact quantity of bytes."""
    for suffix, power in (("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10)):
        if num_bytes and num_bytes % 2**power == 0:
            return f"{num_bytes // 2**power}{suffix}"
    return str(num_bytes)


def _size(storage_class: Stored) -> int | None:
    text = (storage_class.obj.get("parameters") or {}).get(CAPACITY)
    try:
        return quantity_value(text) if text is not None else None
    except QuantityError:
        return None


def _segments_of(volume: Stored) -> Topology:
    required = (volume.spec.get("nodeAffinity") or {}).get("required") or {}
    return [
        {
            expression["key"]: expression["values"][0]
            for expression in term.get("matchExpressions") or ()
            if expression.get("values")
        }
        for term in required.get("nodeSelectorTerms") or ()
    ]
