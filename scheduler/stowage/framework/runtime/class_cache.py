"""Answers of plugins kept per equivalence class of pods.

The answers of a class are arrays over all rows, and correct for the generations of two change logs.
The next cycle of the class updates them: it asks again about the rows in the logs since then, or
about all rows if these are too many, the arrays grew, or another set of plugins takes part. Answers
belong to the live snapshots of one cluster; what-if snapshots are never served from them.

Two traits of plugins save more. With `reads_only_node_demand`, classes with equal `NodeDemand`
share one set of answers. With `reads_only_amounts`, an answer about a row is looked up by the
amounts of its node: nodes that are alike pass through the same amounts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableMapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np
from cachetools import LRUCache

from stowage.framework.shared_scores import TotalsArray
from stowage.framework.verdict import BoolArray, Int64Array, UInt8Array
from stowage.state.arrays import Rows
from stowage.state.change_log import ChangeLog
from stowage.state.nodes.node_columns import Amounts
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import Snapshot

_NONE: Int64Array = np.empty(0, dtype=np.int64)
#: Updating 1/4 of the rows costs as much as computing all rows.
_TOO_MANY = 4
#: More rows than these are computed faster in one call than looked up one by one.
_FEW = 16
#: Number of amounts whose answers are kept.
_MAX_AMOUNTS = 512

AnswerT = TypeVar("AnswerT")
AnswersT = TypeVar("AnswersT")


class Seen(msgspec.Struct):
    """The positions in the change logs up to which some answers are correct."""

    num_rows: int
    node_generation: int
    usage_generation: int

    @classmethod
    def now(cls, snapshot: Snapshot) -> Seen:
        """The current positions."""
        return cls(
            snapshot.num_rows,
            snapshot.node_changes.generation,
            snapshot.usage_changes.generation,
        )

    def advance(self, snapshot: Snapshot) -> Changes | None:
        """The rows changed since the last call; None if all answers must be computed anew."""
        if self.num_rows != snapshot.num_rows:
            return None
        node_log, usage_log = snapshot.node_changes, snapshot.usage_changes
        node_generation, usage_generation = node_log.generation, usage_log.generation
        nodes: Int64Array | None = _NONE
        if node_generation != self.node_generation:
            nodes = node_log.since(self.node_generation)
        usage: Int64Array | None = _NONE
        if usage_generation != self.usage_generation:
            usage = usage_log.since(self.usage_generation)
        if nodes is None or usage is None:
            return None
        if (len(nodes) + len(usage)) * _TOO_MANY > self.num_rows:
            return None
        self.node_generation = node_generation
        self.usage_generation = usage_generation
        if len(nodes):
            usage = snapshot.union(nodes, usage) if len(usage) else nodes
        return Changes(nodes, usage)


class Changes(msgspec.Struct, frozen=True):
    """Rows whose node changed, and rows whose node or usage changed."""

    nodes: Int64Array
    usage: Int64Array


class AnswersByAmounts(Generic[AnswerT]):
    """Answers about single nodes, by the amounts of the node."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[Amounts, AnswerT] = {}

    def recall(
        self, snapshot: Snapshot, rows: Int64Array, use: Callable[[int, AnswerT], None]
    ) -> Int64Array:
        """Call `use` for each row with a known answer; returns the rows without one."""
        if len(rows) > _FEW:
            return rows
        unknown = []
        for row in rows.tolist():
            answer = self._known.get(snapshot.amounts(row))
            if answer is None:
                unknown.append(row)
            else:
                use(row, answer)
        if not unknown:
            return _NONE
        return rows if len(unknown) == len(rows) else np.array(unknown, dtype=np.int64)

    def learn(self, snapshot: Snapshot, rows: Int64Array, answers: Iterable[AnswerT]) -> None:
        """Keep the answers about these rows, unless there are many."""
        if len(rows) > _FEW:
            return
        if len(self._known) >= _MAX_AMOUNTS:
            self._known.clear()
        self._known.update(zip(map(snapshot.amounts, rows.tolist()), answers, strict=True))


class FilterAnswers(msgspec.Struct):
    """Kept answers of the Filter plugins of a class.

    Attributes:
        active: The plugins that took part, compared by identity.
        seen: The positions in the change logs.
        node_accepts: ``bool[rows]``: existing rows that the plugins with `Reads.NODE` accept.
        usage_accepts: ``bool[rows]``: rows that the plugins with `Reads.USAGE` accept.
        feasible: Both.
        by_amounts: Answers of the plugins with `Reads.USAGE`, if all read only amounts.
        rows: The feasible rows; None if they changed since the last use.
    """

    active: object
    seen: Seen
    node_accepts: BoolArray
    usage_accepts: BoolArray
    feasible: BoolArray
    by_amounts: AnswersByAmounts[bool] = msgspec.field(default_factory=AnswersByAmounts)
    rows: Rows | None = None

    def feasible_rows(self) -> Rows:
        """The feasible rows, ascending."""
        if self.rows is None:
            self.rows = Rows.where(self.feasible)
        return self.rows

    def note_usage(self, row: int, accepts: bool) -> None:
        """Set the answer of the plugins with `Reads.USAGE` about one row."""
        self.usage_accepts[row] = accepts
        feasible = accepts and bool(self.node_accepts[row])
        if self.feasible[row] != feasible:
            self.feasible[row] = feasible
            self.rows = None


class RawScores(msgspec.Struct):
    """Kept raw scores of one plugin that normalises.

    Attributes:
        scores: ``int64[rows]``.
        constant: The weighted, normalised score if all existing nodes have one raw score.
        uniform: That raw score; None if the raw scores differ.
        normalized: The normalised score of `uniform`, if there is one.
    """

    scores: Int64Array
    constant: int | None = None
    uniform: int | None = None
    normalized: int = 0

    def stays_uniform(self, changed: Int64Array) -> bool:
        """Whether all nodes still have one raw score after the scores of some rows changed."""
        return self.uniform is not None and bool((self.scores[changed] == self.uniform).all())


class ScoreAnswers(msgspec.Struct):
    """Kept answers of the Score plugins of a class.

    Attributes:
        active: The plugins that took part, compared by identity.
        seen: The positions in the change logs.
        fixed: ``int[rows]``: weighted sum of the plugins that neither normalise nor read usage. The
            sum wraps around on rows with an invalid score.
        total: `fixed` plus the weighted sum of the plugins that read usage and do not normalise.
        raw: Raw scores of each plugin that normalises.
        plain: ``uint8[plugins, rows]``: scores of the plugins that do not normalise, those that
            read usage last. Of an invalid score the lowest byte is kept.
        plain_of: Plugin -> its row of `plain`.
        num_fixed: The number of plugins in `plain` that do not read usage.
        by_amounts: Weighted sum and scores of the plugins that read usage; only if these read only
            amounts.
        invalid: Per plugin, the rows with a score outside 0..100; an error if one is feasible.
    """

    active: object
    seen: Seen
    fixed: TotalsArray
    total: TotalsArray
    plain: UInt8Array
    plain_of: dict[str, UInt8Array]
    num_fixed: int
    raw: dict[str, RawScores] = msgspec.field(default_factory=dict)
    by_amounts: AnswersByAmounts[tuple[int, list[int]]] = msgspec.field(
        default_factory=AnswersByAmounts
    )
    invalid: dict[str, BoolArray] = msgspec.field(default_factory=dict)

    @classmethod
    def empty(
        cls,
        active: object,
        seen: Seen,
        plain_names: Sequence[str],
        num_fixed: int,
        total_type: np.dtype[Any],
    ) -> ScoreAnswers:
        """Answers before the first computation."""
        fixed, total = np.zeros((2, seen.num_rows), dtype=total_type)
        plain = np.zeros((len(plain_names), seen.num_rows), dtype=np.uint8)
        by_name = dict(zip(plain_names, plain, strict=True))
        return cls(active, seen, fixed, total, plain, by_name, num_fixed)

    def note_usage(self, row: int, known: tuple[int, list[int]]) -> None:
        """Set the weighted sum and the scores of the plugins that read usage for one row."""
        weighted, scores = known
        self.total[row] = self.fixed[row] + weighted
        self.plain[self.num_fixed :, row] = scores

    def usage_of(self, rows: Int64Array, weighted: Int64Array) -> Iterable[tuple[int, list[int]]]:
        """Weighted sum and scores of some rows, as `note_usage` takes them."""
        scores = self.plain[self.num_fixed :].take(rows, axis=1).T
        return zip(weighted.tolist(), scores.tolist(), strict=True)


def id_of(pod: PodInfo, *, per_demand: bool) -> int:
    """The key of the answers about a pod: the id of its demand, or of its class."""
    return pod.pod_class.demand.id if per_demand else pod.pod_class.id


class ClassCache(Generic[AnswersT]):
    """Answers by the id of a class or demand; the least recently used are dropped first.

    Args:
        size: Number of classes to keep; 0 keeps none.
    """

    def __init__(self, size: int) -> None:
        self._answers: MutableMapping[int, AnswersT] = LRUCache(max(size, 1))
        # The last class is served without touching the LRU order.
        self._last: tuple[int, AnswersT | None] = (-1, None)
        self._enabled = size > 0
        self._log: ChangeLog | None = None

    def serves(self, snapshot: Snapshot) -> bool:
        """Whether answers about `snapshot` may be kept; drops those of another cluster."""
        if not self._enabled or snapshot.is_what_if:
            return False
        if snapshot.node_changes is not self._log:
            self._answers.clear()
            self._last = (-1, None)
            self._log = snapshot.node_changes
        return True

    def get(self, class_id: int) -> AnswersT | None:
        """The answers of a class, not updated yet."""
        if self._last[0] != class_id:
            self._last = (class_id, self._answers.get(class_id))
        return self._last[1]

    def put(self, class_id: int, answers: AnswersT) -> None:
        """Keep the answers of a class."""
        self._answers[class_id] = answers
        self._last = (class_id, answers)

    def drop(self, class_id: int) -> None:
        """Drop a class whose update failed half-way."""
        self._answers.pop(class_id, None)
        self._last = (-1, None)

    def __len__(self) -> int:
        return len(self._answers)
