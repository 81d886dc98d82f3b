"""Finds out whether and how a pod's claims can be satisfied on nodes (``FindPodVolumes``)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from stowage.api.objects.volume import PersistentVolume, PersistentVolumeClaim
from stowage.api.values.volume_claims import SELECTED_NODE, claim_class
from stowage.framework.verdict import BoolArray
from stowage.plugins.volumes.matching import NO_VOLUME, Match, match_claims
from stowage.plugins.volumes.provisioning import has_capacity, provisionable
from stowage.plugins.volumes.topology import VolumeTopology
from stowage.state.snapshot import NodeView


class Found(msgspec.Struct):
    """The findings about some nodes; all arrays are ``bool[nodes]``.

    Attributes:
        is_conflicting: Where a bound volume cannot be used.
        is_unmatched: Where a claim matches no volume and none can be provisioned.
        is_short: Where there is not enough capacity to provision a volume.
        is_lost: Where a claim is bound to a volume that does not exist.
        matches: The volumes that claims would be bound to.
        selected: Claims whose volume is being provisioned on a selected node.
    """

    is_conflicting: BoolArray
    is_unmatched: BoolArray
    is_short: BoolArray
    is_lost: BoolArray
    matches: list[Match] = msgspec.field(default_factory=list)
    selected: list[PersistentVolumeClaim] = msgspec.field(default_factory=list)

    @classmethod
    def nothing(cls, num_nodes: int) -> Found:
        """No problem on any node."""
        nowhere = np.zeros(num_nodes, dtype=np.bool_)
        return cls(nowhere, nowhere.copy(), nowhere.copy(), nowhere.copy())

    def given(self, position: int) -> list[tuple[PersistentVolume, PersistentVolumeClaim]]:
        """The volumes to bind to claims on one of the nodes."""
        return [
            (match.volumes[int(match.choice[position])], match.claim)
            for match in self.matches
            if match.choice[position] != NO_VOLUME
        ]

    def provisioned(self, position: int) -> list[PersistentVolumeClaim]:
        """The claims whose volumes are to be provisioned on one of the nodes."""
        unmatched = [match.claim for match in self.matches if match.choice[position] == NO_VOLUME]
        return [*self.selected, *unmatched]


def find_volumes(
    bound: Sequence[PersistentVolumeClaim],
    delayed: Sequence[PersistentVolumeClaim],
    nodes: NodeView,
    topology: VolumeTopology,
) -> Found:
    """Judge `nodes` for a pod with these claims.

    Args:
        bound: Claims that are bound to a volume.
        delayed: Claims that are bound when their pod has a node.
        nodes: The nodes.
        topology: Judges the node affinity of volumes.

    Raises:
        ValueError: A claim's selector is invalid, or its class does not exist any more.
    """
    found = Found.nothing(len(nodes))
    _check_bound(bound, nodes, topology, found)
    if delayed:
        _check_delayed(delayed, nodes, topology, found)
    return found


def _check_bound(
    claims: Sequence[PersistentVolumeClaim],
    nodes: NodeView,
    topology: VolumeTopology,
    found: Found,
) -> None:
    """Record the first claim that cannot be used on each node."""
    open_nodes = np.ones(len(nodes), dtype=np.bool_)
    for claim in claims:
        volume = nodes.snapshot.storage.volumes.get(claim.spec.volume_name)
        if volume is None:
            found.is_lost |= open_nodes
            return
        reachable = topology.reachable(nodes, volume)
        if reachable is not None:
            found.is_conflicting |= open_nodes & ~reachable
            open_nodes &= reachable


def _check_delayed(
    claims: Sequence[PersistentVolumeClaim],
    nodes: NodeView,
    topology: VolumeTopology,
    found: Found,
) -> None:
    selected = [claim for claim in claims if SELECTED_NODE in claim.metadata.annotations]
    open_nodes = np.ones(len(nodes), dtype=np.bool_)
    for claim in selected:
        row = nodes.snapshot.row_of(claim.metadata.annotations[SELECTED_NODE])
        open_nodes &= nodes.rows == (-1 if row is None else row)
    found.is_unmatched |= ~open_nodes
    found.selected = selected
    found.matches = match_claims(
        [claim for claim in claims if SELECTED_NODE not in claim.metadata.annotations],
        nodes,
        topology,
    )
    for claim in selected:
        open_nodes = _check_provision(claim, open_nodes, open_nodes, nodes, found)
    for match in found.matches:
        needed = open_nodes & (match.choice == NO_VOLUME)
        open_nodes = _check_provision(match.claim, needed, open_nodes, nodes, found)


def _check_provision(
    claim: PersistentVolumeClaim,
    needed: BoolArray,
    open_nodes: BoolArray,
    nodes: NodeView,
    found: Found,
) -> BoolArray:
    """Check the nodes where a claim's volume must be provisioned; the rest of `open_nodes`."""
    if not needed.any():
        return open_nodes
    class_name = claim_class(claim)
    storage_class = nodes.snapshot.storage.classes.get(class_name)
    if storage_class is None:
        raise ValueError(f'failed to find storage class "{class_name}"')
    allowed = provisionable(nodes, storage_class)
    if allowed is not None:
        found.is_unmatched |= needed & ~allowed
        open_nodes = open_nodes & (~needed | allowed)
        needed = needed & allowed
    enough = has_capacity(nodes, storage_class, claim)
    if enough is not None:
        found.is_short |= needed & ~enough
        open_nodes = open_nodes & (~needed | enough)
    return open_nodes
