"""Raw scores that many nodes share, so that each is normalised once.

A plugin whose NormalizeScore maps each score by the lowest and the highest one alone may answer
with the distinct scores. The framework normalises and checks these, and adds them to the totals of
the nodes: one pass over the nodes in place of one for each step.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, runtime_checkable

import msgspec
import numpy as np
from numpy.typing import NDArray

from stowage.framework.cycle_state import CycleState
from stowage.framework.extension_points import ScorePlugin
from stowage.framework.verdict import Int64Array
from stowage.state.arrays import Int32Array
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView

TotalsArray: TypeAlias = NDArray[np.signedinteger[Any]]
"""``int16``, ``int32`` or ``int64``: the narrowest type that holds any total of a profile."""

Picked = tuple[tuple[int, ...], tuple[int, ...]]
"""Raw and normalised scores of a few nodes."""


class DomainScores(msgspec.Struct, frozen=True):
    """The scores of nodes by their value of a label.

    Attributes:
        table: ``int64[values + 1]``; the last entry is for nodes without the label.
        present: ``intp[]``: the entries that some node has.
        codes: ``int32[nodes]``: the code of each node's value, -1 without the label.
    """

    table: Int64Array
    present: NDArray[np.intp]
    codes: Int32Array

    @property
    def distinct(self) -> Int64Array:
        """The scores to normalise; the lowest and the highest of the nodes are among them."""
        return self.table[self.present]

    def add_to(self, total: TotalsArray, scores: Int64Array) -> None:
        """Add what `distinct` has become to the totals of the nodes, in place."""
        total += self._spread(scores).astype(total.dtype).take(self.codes, mode="wrap")

    def picked(self, positions: Int64Array, normalized: Int64Array) -> Picked:
        """The scores of the nodes at some positions."""
        codes = self.codes[positions]
        return _numbers(self.table[codes]), _numbers(self._spread(normalized)[codes])

    def _spread(self, scores: Int64Array) -> Int64Array:
        table = np.zeros_like(self.table)
        table[self.present] = scores
        return table


class FewScores(msgspec.Struct, frozen=True):
    """The scores of a few nodes; all other nodes, at least one, share a score.

    Attributes:
        positions: ``int64[few]``: the few nodes, distinct, as positions among all.
        scores: ``int64[few]``: their scores.
        other: The score of all other nodes.
    """

    positions: Int64Array
    scores: Int64Array
    other: int

    @property
    def distinct(self) -> Int64Array:
        """The scores to normalise; the lowest and the highest of the nodes are among them."""
        return np.append(self.scores, self.other)

    def add_to(self, total: TotalsArray, scores: Int64Array) -> None:
        """Add what `distinct` has become to the totals of the nodes, in place."""
        other = int(scores[-1])
        if other:
            total += other
        total[self.positions] += scores[:-1] - other

    def picked(self, positions: Int64Array, normalized: Int64Array) -> Picked:
        """The scores of the nodes at some positions."""
        places = {position: place for place, position in enumerate(self.positions.tolist())}
        index = [places.get(position, -1) for position in positions.tolist()]
        return _numbers(self.distinct[index]), _numbers(normalized[index])


class CloseScores(msgspec.Struct, frozen=True):
    """Scores that differ by less than the number of nodes.

    Attributes:
        lowest: The lowest.
        base: At most the lowest.
        above: ``int64[nodes]``: each score minus `base`.
        span: The highest minus the lowest.
    """

    lowest: int
    base: int
    above: Int64Array
    span: int

    @property
    def distinct(self) -> Int64Array:
        """The scores to normalise; the lowest and the highest of the nodes are among them."""
        return np.arange(self.lowest, self.lowest + self.span + 1)

    def add_to(self, total: TotalsArray, scores: Int64Array) -> None:
        """Add what `distinct` has become to the totals of the nodes, in place."""
        # The lower entries stand for scores below the lowest, which no node has.
        table = np.zeros(self.lowest - self.base + len(scores), dtype=total.dtype)
        table[self.lowest - self.base :] = scores
        total += table.take(self.above, mode="wrap")

    def picked(self, positions: Int64Array, normalized: Int64Array) -> Picked:
        """The scores of the nodes at some positions."""
        scores = self.above[positions] + self.base
        return _numbers(scores), _numbers(normalized[scores - self.lowest])


SharedScores = DomainScores | FewScores | CloseScores


@runtime_checkable
class SharedScorePlugin(ScorePlugin, Protocol):
    """A Score plugin whose NormalizeScore maps a score by the lowest and the highest one alone."""

    def shared_scores(
        self, state: CycleState, pod: PodInfo, nodes: NodeView
    ) -> SharedScores | Int64Array:
        """What `score` returns, by its distinct scores where that is a gain."""
        ...


def close_scores(scores: Int64Array) -> CloseScores | Int64Array:
    """Scores by their distinct ones, unless they differ by more than their number."""
    if not len(scores):
        return scores
    lowest = int(scores[scores.argmin()])
    span = int(scores[scores.argmax()]) - lowest
    if span >= len(scores):
        return scores
    if lowest >= 0 and lowest + span < len(scores):
        return CloseScores(lowest, 0, scores, span)
    return CloseScores(lowest, lowest, scores - lowest, span)


def _numbers(scores: Int64Array) -> tuple[int, ...]:
    return tuple(scores.tolist())
