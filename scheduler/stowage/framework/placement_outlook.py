"""What plugins know about the placements of a pod group before it is tried in any of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import msgspec
import numpy as np
from numpy.typing import NDArray

from stowage.api.objects.device import ResourceClaimSpec
from stowage.framework.extension_points import Plugin
from stowage.framework.filter_result import FilterResult
from stowage.framework.verdict import Int64Array
from stowage.state.devices.devices import Devices
from stowage.state.pods.pod_class import PodClass
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import Snapshot

_MIXING = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9)
_HALF = np.uint64(32)


class Prospects(msgspec.Struct, frozen=True):
    """The placements that a pod group may go to.

    Attributes:
        rows: ``int64[nodes]``: the rows of the nodes, placement after placement.
        starts: ``int64[placements]``: where in `rows` each placement begins; each has a node.
        members: The members that are to be placed; at least one.
        num_scheduled: Number of members that are bound or assumed already.
    """

    rows: Int64Array
    starts: Int64Array
    members: tuple[PodInfo, ...]
    num_scheduled: int

    @property
    def are_alike(self) -> bool:
        """Whether all members are of one class."""
        first = self.members[0].pod_class
        return all(each.pod_class is first for each in self.members)

    def are_filtered_alike(self, devices: Devices) -> bool:
        """Whether Filter says of all members what it says of the first.

        They have nothing beside their class but equal claims of their own without an allocation:
        PostFilter may take an allocation back, and a companion may get one for a claim that it
        shares, and then other nodes take the member.
        """
        wanted = _wanted_devices(self.members[0], devices)
        return self.are_alike and all(
            not each.volumes
            and devices.special_claim(each.uid, each.name) is None
            and wanted is not None
            and _wanted_devices(each, devices) == wanted
            for each in self.members
        )

    def sums(self, amounts: Int64Array) -> Int64Array:
        """``int64[placements]``: the sum over the nodes of each placement.

        Args:
            amounts: ``int64[nodes]``, in the order of `rows`.
        """
        return np.add.reduceat(amounts, self.starts)


class Outlook(msgspec.Struct, frozen=True):
    """What the plugins know.

    Attributes:
        most: ``int64[placements]``: no placement takes more of the members.
        least: A placement that takes fewer members is not feasible.
        known_by: The plugins that know `most` and `least`. As long as none of their events happens,
            a placement where `most` is less than `least` stays infeasible.
        highest: ``int64[placements]``: the sum of the scores of each placement if it takes `most`
            members; it is no higher with fewer.
        likeness: ``uint64[placements]``: equal where the nodes have equal amounts of everything.
    """

    most: Int64Array
    least: int
    known_by: frozenset[str]
    highest: Int64Array
    likeness: NDArray[np.uint64]


@runtime_checkable
class RoomPlugin(Plugin, Protocol):
    """A Filter plugin that knows how many pods that are alike it lets onto a node at most.

    Only the events that it registers make room for more.
    """

    def room(self, snapshot: Snapshot, rows: Int64Array, pod_class: PodClass) -> Int64Array:
        """``int64[nodes]``: how many more pods of a class it lets onto each of some nodes."""
        ...


@runtime_checkable
class QuorumPlugin(Plugin, Protocol):
    """A Permit plugin that lets no member of a pod group pass in too small a company."""

    def least_members(self, snapshot: Snapshot, prospects: Prospects) -> int:
        """How many of the members have to be placed before one passes."""
        ...


@runtime_checkable
class PlacementBoundPlugin(Plugin, Protocol):
    """A plugin that scores placements, and knows beforehand what they score at most."""

    def highest_scores(
        self, snapshot: Snapshot, prospects: Prospects, most: Int64Array
    ) -> Int64Array | None:
        """``int64[placements]``: the scores if each placement takes `most` members.

        None if that is not the most that they can score. With fewer members in a placement its
        score is no higher, provided that one with the greatest `most` takes all of these. If `most`
        is 0, any number will do.
        """
        ...


def most_members(
    plugins: Sequence[RoomPlugin],
    snapshot: Snapshot,
    prospects: Prospects,
    filtered: FilterResult | None,
) -> Int64Array:
    """``int64[placements]``: how many of the members each takes at most.

    Members that are not alike are not counted.

    Args:
        plugins: They know how many fit on a node.
        snapshot: The cluster.
        prospects: The placements.
        filtered: The result of Filter about the first member, if nodes that it rejects take none of
            the others, either.
    """
    num_members, rows = len(prospects.members), prospects.rows
    if not prospects.are_alike:
        return np.full(len(prospects.starts), num_members, dtype=np.int64)
    room = np.full(len(rows), num_members, dtype=np.int64)
    for plugin in plugins:
        room = np.minimum(room, plugin.room(snapshot, rows, prospects.members[0].pod_class))
    if filtered is not None:
        room[~filtered.feasible[rows]] = 0
    return np.minimum(prospects.sums(room), num_members)


def _wanted_devices(pod: PodInfo, devices: Devices) -> list[ResourceClaimSpec] | None:
    """What the claims made for a pod ask for; None if one is missing, allocated or shared."""
    if any(each.resource_claim_name is not None for each in pod.spec.resource_claims):
        return None
    made = (each.resource_claim_name for each in pod.resource_claim_statuses)
    names = [name for name in made if name is not None]
    claims = [devices.claims.get(f"{pod.namespace}/{name}") for name in names]
    specs = [each.spec for each in claims if each is not None and each.status.allocation is None]
    return specs if len(specs) == len(names) else None


def likeness(snapshot: Snapshot, prospects: Prospects) -> NDArray[np.uint64]:
    """``uint64[placements]``: a number for what the nodes have, and for what pods request of it.

    The order of the nodes does not matter. Different placements have equal numbers only by chance,
    of about one in 2**64.
    """
    rows = prospects.rows
    columns = (snapshot.allocatable[rows], snapshot.requested[rows], snapshot.num_pods[rows, None])
    amounts = np.concatenate(columns, axis=1).view(np.uint64)
    factors = [pow(_MIXING[0], power, 2**64) for power in range(1, amounts.shape[1] + 1)]
    # All of this overflows on purpose.
    of_nodes = amounts @ np.array(factors, dtype=np.uint64)
    for factor in _MIXING:
        of_nodes *= np.uint64(factor)
        of_nodes ^= of_nodes >> _HALF
    return np.add.reduceat(of_nodes, prospects.starts)
