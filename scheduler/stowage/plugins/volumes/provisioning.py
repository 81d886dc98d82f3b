"""Dynamic provisioning: finds the nodes where a volume can be made (``checkVolumeProvisions``)."""

from __future__ import annotations

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
from stowage.framework.verdict import BoolArray
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
    asked = claim.spec.resources.requests.get(STORAGE)
    if asked is None or not _publishes_capacity(nodes.snapshot.storage, storage_class.provisioner):
        return None
    size = quantity_value(asked)
    enough = np.zeros(len(nodes), dtype=np.bool_)
    for capacity in nodes.snapshot.storage.capacities_of(storage_class.metadata.name):
        limit = volume_limit(capacity)
        if limit is not None and limit >= size and capacity.node_topology is not None:
            enough |= selector_mask(nodes, _selector(capacity.node_topology))
    return enough


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
