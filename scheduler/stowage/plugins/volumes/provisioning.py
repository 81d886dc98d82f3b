"""Dynamic provisioning: finds the nodes where a volume can be made (``checkVolumeProvisions``)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from stowage.api.decoding.errors import SelectorError
from stowage.api.objects.meta import LabelSelector
from stowage.api.objects.volume import (
    CSIStorageCapacity,
    PersistentVolumeClaim,
    StorageClass,
    TopologySelectorTerm,
)
from stowage.api.values.quantity import quantity_value
from stowage.api.values.selectors import (
    NOTHING,
    Operator,
    Requirement,
    Selector,
    compile_label_selector,
    valid_requirement,
)
from stowage.api.values.volume_claims import NO_PROVISIONER, STORAGE
from stowage.framework.verdict import BoolArray, Int64Array
from stowage.state.nodes.node_matching import requirement_mask, selector_mask
from stowage.state.snapshot import NodeView
from stowage.state.storage.objects import Storage


def provisionable(nodes: NodeView, storage_class: StorageClass) -> BoolArray | None:
    """``bool[nodes]``: where the class allows volumes; None means everywhere."""
    if storage_class.provisioner in ("", NO_PROVISIONER):
        return np.zeros(len(nodes), dtype=np.bool_)
    if not storage_class.allowed_topologies:
        return None
    allowed = np.zeros(len(nodes), dtype=np.bool_)
    for term in storage_class.allowed_topologies:
        requirements = _requirements(term)
        if requirements:
            inside = np.ones(len(nodes), dtype=np.bool_)
            for requirement in requirements:
                inside &= requirement_mask(nodes, requirement)
            allowed |= inside
    return allowed


def has_capacity(
    nodes: NodeView, storage_class: StorageClass, claim: PersistentVolumeClaim
) -> BoolArray | None:
    """``bool[nodes]``: where the capacity suffices for a claim's volume; None means everywhere.

    ``hasEnoughCapacity``: asked only of drivers that publish what they have left.
    """
    if not _is_limited(claim, storage_class, nodes.snapshot.storage):
        return None
    enough = np.zeros(len(nodes), dtype=np.bool_)
    for _capacity, topology in _sufficient(claim, storage_class, nodes.snapshot.storage):
        enough |= selector_mask(nodes, _selector(topology))
    return enough


def capacity_used(
    nodes: NodeView, storage_class: StorageClass, claim: PersistentVolumeClaim
) -> Int64Array:
    """``int64[nodes]``: the capacity that a claim's volume is made from; -1 if none is published.

    Of several that suffice the largest one counts; kube-scheduler takes any of them.
    """
    used = np.full(len(nodes), -1, dtype=np.int64)
    if not _is_limited(claim, storage_class, nodes.snapshot.storage):
        return used
    for capacity, topology in _sufficient(claim, storage_class, nodes.snapshot.storage):
        size = 0 if capacity.capacity is None else quantity_value(capacity.capacity)
        used = np.maximum(used, np.where(selector_mask(nodes, _selector(topology)), size, -1))
    return used


def _is_limited(claim: PersistentVolumeClaim, of_class: StorageClass, storage: Storage) -> bool:
    """Whether a claim has a size, and its driver publishes what it has left."""
    return STORAGE in claim.spec.resources.requests and _publishes_capacity(
        storage, of_class.provisioner
    )


def _sufficient(
    claim: PersistentVolumeClaim, of_class: StorageClass, storage: Storage
) -> Iterator[tuple[CSIStorageCapacity, LabelSelector]]:
    """The capacities that suffice for a claim's volume, with their nodes."""
    size = quantity_value(claim.spec.resources.requests[STORAGE])
    for capacity in storage.capacities_of(of_class.metadata.name):
        limit = volume_limit(capacity)
        if limit is not None and limit >= size and capacity.node_topology is not None:
            yield capacity, capacity.node_topology


def volume_limit(capacity: CSIStorageCapacity) -> int | None:
    """The size of the largest volume that can be made, in bytes; None if it is not known."""
    limit = capacity.maximum_volume_size
    if limit is None:
        limit = capacity.capacity
    return None if limit is None else quantity_value(limit)


def _publishes_capacity(storage: Storage, provisioner: str) -> bool:
    driver = storage.csi_drivers.get(provisioner)
    return driver is not None and driver.spec.storage_capacity is True


def _selector(topology: LabelSelector) -> Selector:
    """The compiled selector; an invalid one selects no node."""
    try:
        return compile_label_selector(topology)
    except SelectorError:
        return NOTHING


@lru_cache(maxsize=1024)
def _requirements(term: TopologySelectorTerm) -> tuple[Requirement, ...]:
    """A term's requirements; none if it is empty or invalid, so that it matches nothing."""
    try:
        return tuple(
            valid_requirement(each.key, Operator.IN, each.values)
            for each in term.match_label_expressions
        )
    except SelectorError:
        return ()
