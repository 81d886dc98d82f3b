"""Static binding: chooses an available volume for each claim of a pod, for many nodes at once.

Each claim gets the smallest volume that fits on the node (``FindMatchingVolume``); smaller claims
choose first, and no volume is chosen twice. Checks that do not depend on the node run once per
volume. Of volumes with equal node affinity, as many are considered as the pod has claims.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from stowage.api.decoding.errors import SelectorError
from stowage.api.objects.volume import PersistentVolume, PersistentVolumeClaim, VolumeNodeAffinity
from stowage.api.values.quantity import quantity_nano_value
from stowage.api.values.selectors import EVERYTHING, Selector, compile_label_selector
from stowage.api.values.volume_claims import (
    STORAGE,
    is_bound_to,
    same_attributes_class,
    same_volume_mode,
    volume_capacity,
)
from stowage.framework.verdict import Int64Array
from stowage.plugins.volumes.topology import VolumeTopology
from stowage.state.snapshot import NodeView
from stowage.state.storage.objects import Storage

NO_VOLUME = -1
_AVAILABLE = "Available"


class Match(msgspec.Struct, frozen=True):
    """The volumes that a claim would get.

    Attributes:
        claim: The claim.
        choice: ``int64[nodes]``: indexes in `volumes`; `NO_VOLUME` where none fits.
        volumes: All volumes that any claim of the pod may get.
    """

    claim: PersistentVolumeClaim
    choice: Int64Array
    volumes: Sequence[PersistentVolume]


def match_claims(
    claims: Sequence[PersistentVolumeClaim], nodes: NodeView, topology: VolumeTopology
) -> list[Match]:
    """The choice of each claim on each node, in the order in which claims choose.

    Raises:
        ValueError: A claim's selector is invalid.
    """
    matches: list[Match] = []
    numbers: dict[str, int] = {}
    volumes: list[PersistentVolume] = []
    for claim in sorted(claims, key=_request):
        candidates = list(_fewest(_candidates(claim, nodes.snapshot.storage), len(claims)))
        for volume in candidates:
            if numbers.setdefault(volume.metadata.name, len(volumes)) == len(volumes):
                volumes.append(volume)
        ranked = [numbers[volume.metadata.name] for volume in candidates]
        affinities = [volume.spec.node_affinity for volume in candidates]
        reached = topology.all_positions(nodes, affinities)
        choice = _choose(len(nodes), ranked, reached, [match.choice for match in matches])
        matches.append(Match(claim, choice, volumes))
    return matches


def fits(volume: PersistentVolume, claim: PersistentVolumeClaim, selector: Selector) -> bool:
    """Whether an unclaimed volume may be bound to a claim, on any node."""
    return (
        volume.status.phase == _AVAILABLE
        and selector.matches(volume.metadata.labels)
        and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
    )


def _candidates(claim: PersistentVolumeClaim, storage: Storage) -> list[PersistentVolume]:
    """The volumes that a claim may get, best first: one prebound to it, or by size."""
    usable = [
        volume
        for volume in storage.volumes_for(claim, _request(claim))
        if same_volume_mode(volume, claim)
        and same_attributes_class(volume, claim)
        and volume.metadata.deletion_timestamp is None
    ]
    given = [volume for volume in usable if is_bound_to(volume, claim)]
    if given:
        return [min(given, key=lambda volume: volume.metadata.name)]
    selector = _selector(claim)
    free = [
        volume
        for volume in usable
        if volume.spec.claim_ref is None and fits(volume, claim, selector)
    ]
    return sorted(free, key=_size_and_name)


def _fewest(candidates: Sequence[PersistentVolume], enough: int) -> Iterator[PersistentVolume]:
    """The first `enough` candidates of each distinct affinity: claims cannot use up more."""
    taken: dict[VolumeNodeAffinity | None, int] = {}
    for volume in candidates:
        affinity = volume.spec.node_affinity
        number = taken[affinity] = taken.get(affinity, 0) + 1
        if number <= enough:
            yield volume


def _choose(
    num_nodes: int,
    ranked: Sequence[int],
    reached: Sequence[Int64Array],
    earlier: Sequence[Int64Array],
) -> Int64Array:
    """``int64[nodes]``: the first of `ranked` that reaches a node and was not chosen `earlier`."""
    choice = np.full(num_nodes, NO_VOLUME, dtype=np.int64)
    if not ranked:
        return choice
    where = np.concatenate(reached)
    which = np.repeat(np.array(ranked, dtype=np.int64), [len(each) for each in reached])
    for chosen in earlier:
        is_free = chosen[where] != which
        where, which = where[is_free], which[is_free]
    # numpy keeps the last of several values for an index, so the best volume comes last.
    choice[where[::-1]] = which[::-1]
    return choice


def _selector(claim: PersistentVolumeClaim) -> Selector:
    if claim.spec.selector is None:
        return EVERYTHING
    try:
        return compile_label_selector(claim.spec.selector)
    except SelectorError as problem:
        key = claim.metadata.namespaced_name
        text = f"error creating internal label selector for claim: {key}: {problem}"
        raise ValueError(text) from problem


def _request(claim: PersistentVolumeClaim) -> int:
    """The exact request, in billionths of a byte."""
    return quantity_nano_value(claim.spec.resources.requests.get(STORAGE, 0))


def _size_and_name(volume: PersistentVolume) -> tuple[int, str]:
    return quantity_nano_value(volume_capacity(volume)), volume.metadata.name
