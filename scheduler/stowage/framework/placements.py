"""Placements: the topology domains that a pod group may go to, and the plugins that rank them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol, runtime_checkable

import msgspec
import numpy as np

from stowage.framework.extension_points import Plugin, PostFilterPlugin
from stowage.framework.failure import failed
from stowage.framework.filter_result import FilterResult
from stowage.framework.implements import implements
from stowage.framework.placement_outlook import (
    Outlook,
    PlacementBoundPlugin,
    Prospects,
    QuorumPlugin,
    RoomPlugin,
    likeness,
    most_members,
)
from stowage.framework.verdict import Int64Array
from stowage.state.devices.devices import ClaimAllocation
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import Snapshot


class PlacedMembers(msgspec.Struct, frozen=True):
    """A feasible placement: the members of a group on nodes of one topology domain.

    Attributes:
        rows: ``int64[nodes]``: the rows of the domain's nodes.
        placed: The members that would be placed, each with its row.
        num_scheduled: Number of members that are bound or assumed already.
    """

    rows: Int64Array
    placed: tuple[tuple[PodInfo, int], ...]
    num_scheduled: int


@runtime_checkable
class PlacementScorePlugin(Plugin, Protocol):
    """Scores the feasible placements of a pod group; ``PlacementScorePlugin`` of v1.36."""

    def score_placements(
        self, snapshot: Snapshot, placements: Sequence[PlacedMembers]
    ) -> Int64Array:
        """``int64[placements]`` in 0..100; the placed members are not in the snapshot."""
        ...


@runtime_checkable
class PlacementTieBreaker(Plugin, Protocol):
    """Chooses among placements with the highest sum of scores."""

    def rank_placements(
        self, snapshot: Snapshot, placements: Sequence[PlacedMembers]
    ) -> Int64Array:
        """``int64[placements]``: the highest rank wins; equal ranks leave it to chance."""
        ...


class PlacementRun:
    """Runs the plugins that rank placements.

    Args:
        plugins: All plugins of a profile.
        weights: Weights of Score plugins, which hold here too; 1 for others.
        filters: The Filter plugins.
        permits: The Permit plugins.

    Attributes:
        breaks_ties: Whether a plugin chooses among placements with the highest sum of scores.
    """

    def __init__(
        self,
        plugins: Sequence[Plugin],
        weights: Mapping[str, int],
        filters: Sequence[Plugin] = (),
        permits: Sequence[Plugin] = (),
    ) -> None:
        self._scorers = [
            (each, weights.get(each.name, 1))
            for each in plugins
            if implements(each, PlacementScorePlugin)
        ]
        self._tie_breakers = [each for each in plugins if implements(each, PlacementTieBreaker)]
        self._rooms = [each for each in filters if implements(each, RoomPlugin)]
        self._quorums = [each for each in permits if implements(each, QuorumPlugin)]
        self._acts_without_room = any(
            implements(each, PostFilterPlugin) and not each.traits.rejects_per_class
            for each in plugins
        )
        self.breaks_ties = bool(self._tie_breakers)

    def outlook(
        self, snapshot: Snapshot, prospects: Prospects, filtered: FilterResult | None
    ) -> Outlook | None:
        """What is known about the placements; None if a scorer knows nothing beforehand.

        None also if a PostFilter plugin may nominate members, or act, where there is no room.

        Args:
            snapshot: The cluster.
            prospects: The placements.
            filtered: The result of Filter about the first member, if nodes that it rejects take
                none of the others, either.

        Raises:
            PluginFailed: A plugin raised.
        """
        if self._acts_without_room:
            return None
        with _ranking():
            return self._outlook(snapshot, prospects, filtered)

    def best(self, snapshot: Snapshot, placements: Sequence[PlacedMembers]) -> list[int]:
        """The indices of the placements that no plugin prefers another to; at least one.

        Raises:
            PluginFailed: A plugin raised.
        """
        with _ranking():
            return self._best(snapshot, placements)

    def _outlook(
        self, snapshot: Snapshot, prospects: Prospects, filtered: FilterResult | None
    ) -> Outlook | None:
        most = most_members(self._rooms, snapshot, prospects, filtered)
        least = max([1, *(each.least_members(snapshot, prospects) for each in self._quorums)])
        is_hopeless = most < least
        hopeful = np.where(is_hopeless, 0, most)
        highest = np.zeros(len(most), dtype=np.int64)
        for scorer, weight in self._scorers:
            if not implements(scorer, PlacementBoundPlugin):
                return None
            scores = scorer.highest_scores(snapshot, prospects, hopeful)
            if scores is None:
                return None
            highest += scores * weight
        known_by = {each.name for each in (*self._rooms, *self._quorums)}
        if filtered is not None and is_hopeless.any():
            known_by |= filtered.count_reasons()[1]
        return Outlook(most, least, frozenset(known_by), highest, likeness(snapshot, prospects))

    def _best(self, snapshot: Snapshot, placements: Sequence[PlacedMembers]) -> list[int]:
        totals = np.zeros(len(placements), dtype=np.int64)
        for scorer, weight in self._scorers:
            totals += scorer.score_placements(snapshot, placements) * weight
        best = np.flatnonzero(totals == totals.max())
        for breaker in self._tie_breakers:
            if len(best) > 1:
                tied = [placements[index] for index in best.tolist()]
                ranks = breaker.rank_placements(snapshot, tied)
                best = best[ranks == ranks.max()]
        return [int(index) for index in best.tolist()]


@contextmanager
def _ranking() -> Iterator[None]:
    """What a plugin raises is a failure of the plugins that rank placements."""
    try:
        yield
    except Exception as problem:
        raise failed("running PlacementScore plugins", "", problem) from problem


class CompanionClaims(msgspec.Struct, frozen=True):
    """What the members of a pod group reserved that are tried together with this pod.

    The engine leaves this in the cycle's state if there is any.

    Attributes:
        allocations: By claim UID.
    """

    allocations: Mapping[str, ClaimAllocation]
