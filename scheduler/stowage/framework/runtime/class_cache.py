"""Answers kept per equivalence class: the second pod of a class costs its changed rows only.

A class's answers are arrays over all rows, correct for the generations of the two change logs
they were brought to last. Whoever asks first brings them up to date: rows in the logs since then
are judged again, or all rows if there are too many, the arrays grew, or another set of plugins
takes part. The answers are valid for one cluster's live snapshots; what-if snapshots and other
clusters never meet them.

Two things make a changed row cheaper still. Classes that ask the same of a node (`NodeDemand`)
share their answers, if no plugin looks further. And nodes that are alike go through the same
amounts as pods alike come to them: what plugins that go by amounts said of some amounts is
remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableMapping
from typing import Generic, TypeVar

import msgspec
import numpy as np
from cachetools import LRUCache

from stowage.framework.verdict import BoolArray, Int64Array
from stowage.state.change_log import ChangeLog
from stowage.state.nodes.node_columns import Amounts
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import Snapshot

_NONE: Int64Array = np.empty(0, dtype=np.int64)
#: Judging this share of the rows one by one costs as much as judging all.
_TOO_MANY = 4
#: More rows than these are judged faster all at once than looked up one by one.
_FEW = 16
#: How many amounts an answer is remembered for.
_MAX_AMOUNTS = 512

AnswerT = TypeVar("AnswerT", bound=int)
AnswersT = TypeVar("AnswersT")


class Seen(msgspec.Struct):
    """How far some answers have followed the change logs."""

    num_rows: int
    node_generation: int
    usage_generation: int

    @classmethod
    def now(cls, snapshot: Snapshot) -> Seen:
        """Everything up to now."""
        return cls(
            snapshot.num_rows,
            snapshot.node_changes.generation,
            snapshot.usage_changes.generation,
        )

    def advance(self, snapshot: Snapshot) -> Changes | None:
        """The rows changed since the last time, or None if all must be judged anew."""
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
            usage = snapshot.either(nodes, usage) if len(usage) else nodes
        return Changes(nodes, usage)


class Changes(msgspec.Struct, frozen=True):
    """Rows whose node changed, and rows whose node or usage changed."""

    nodes: Int64Array
    usage: Int64Array


class AnswersByAmounts(Generic[AnswerT]):
    """What plugins said of single nodes, by the amounts they found there."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[Amounts, AnswerT] = {}

    def recall(
        self, snapshot: Snapshot, rows: Int64Array, use: Callable[[int, AnswerT], None]
    ) -> Int64Array:
        """Have the answers that are known used; returns the rows without one."""
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
        """Remember the answers about these rows, unless there are many."""
        if len(rows) > _FEW:
            return
        if len(self._known) >= _MAX_AMOUNTS:
            self._known.clear()
        self._known.update(zip(map(snapshot.amounts, rows.tolist()), answers, strict=True))


class FilterAnswers(msgspec.Struct):
    """Which rows the cached Filter plugins accept.

    Attributes:
        active: The plugins that took part, compared by identity.
        node_accepts: ``bool[rows]``: existing, and accepted by the plugins that read nodes.
        usage_accepts: ``bool[rows]``: accepted by the plugins that also read usage.
        feasible: Both.
        by_amounts: What the latter said, if they go by amounts.
        rows: The feasible rows, if somebody asked for them since they changed.
    """

    active: object
    seen: Seen
    node_accepts: BoolArray
    usage_accepts: BoolArray
    feasible: BoolArray
    by_amounts: AnswersByAmounts[bool] = msgspec.field(default_factory=AnswersByAmounts)
    rows: Int64Array | None = None

    def feasible_rows(self) -> Int64Array:
        """The feasible rows, ascending."""
        if self.rows is None:
            self.rows = np.flatnonzero(self.feasible)
        return self.rows

    def note_usage(self, row: int, accepts: bool) -> None:
        """The plugins that read usage judged one row again."""
        self.usage_accepts[row] = accepts
        feasible = accepts and bool(self.node_accepts[row])
        if self.feasible[row] != feasible:
            self.feasible[row] = feasible
            self.rows = None


class RawScores(msgspec.Struct):
    """Raw scores of one plugin that normalises.

    Attributes:
        scores: ``int64[rows]``.
        constant: The weighted, normalised score, if all existing nodes have the same raw one.
        uniform: That raw one; None if they differ.
    """

    scores: Int64Array
    constant: int | None = None
    uniform: int | None = None

    def stays_uniform(self, changed: Int64Array) -> bool:
        """Whether all nodes still have the same raw score now that those of some rows changed."""
        return self.uniform is not None and bool((self.scores[changed] == self.uniform).all())


class ScoreAnswers(msgspec.Struct):
    """What the cached Score plugins give each row.

    Attributes:
        active: The plugins that took part, compared by identity.
        fixed: ``int64[rows]``: weighted sum of the plugins that read nodes and do not normalise.
        total: The same, with the plugins that read usage.
        raw: Per plugin that normalises.
        by_amounts: The weighted sum of those that read usage, if they go by amounts.
        invalid: Per plugin the rows where it left 0..100; an error if such a row is feasible.
    """

    active: object
    seen: Seen
    fixed: Int64Array
    total: Int64Array
    raw: dict[str, RawScores] = msgspec.field(default_factory=dict)
    by_amounts: AnswersByAmounts[int] = msgspec.field(default_factory=AnswersByAmounts)
    invalid: dict[str, BoolArray] = msgspec.field(default_factory=dict)

    @classmethod
    def empty(cls, active: object, seen: Seen) -> ScoreAnswers:
        """Nothing answered yet."""
        fixed = np.zeros(seen.num_rows, dtype=np.int64)
        return cls(active, seen, fixed, np.zeros(seen.num_rows, dtype=np.int64))

    def note_usage(self, row: int, weighted: int) -> None:
        """The plugins that read usage scored one row again."""
        self.total[row] = self.fixed[row] + weighted


def id_of(pod: PodInfo, *, per_demand: bool) -> int:
    """What the answers about a pod are kept under: the id of its demand, or of its class."""
    return pod.pod_class.demand.id if per_demand else pod.pod_class.id


class ClassCache(Generic[AnswersT]):
    """Answers by the id of a class or demand, least recently used ones dropped first.

    Args:
        size: How many classes to keep; 0 keeps none.
    """

    def __init__(self, size: int) -> None:
        self._answers: MutableMapping[int, AnswersT] = LRUCache(max(size, 1))
        # Whoever was asked for last need not be moved to the end of the line.
        self._last: tuple[int, AnswersT | None] = (-1, None)
        self._enabled = size > 0
        self._log: ChangeLog | None = None

    def serves(self, snapshot: Snapshot) -> bool:
        """Whether answers about `snapshot` may be kept; those of another cluster are dropped."""
        if not self._enabled or snapshot.is_what_if:
            return False
        if snapshot.node_changes is not self._log:
            self._answers.clear()
            self._last = (-1, None)
            self._log = snapshot.node_changes
        return True

    def get(self, class_id: int) -> AnswersT | None:
        """The answers of a class, not yet brought up to date."""
        if self._last[0] != class_id:
            self._last = (class_id, self._answers.get(class_id))
        return self._last[1]

    def put(self, class_id: int, answers: AnswersT) -> None:
        """Keep the answers of a class."""
        self._answers[class_id] = answers
        self._last = (class_id, answers)

    def drop(self, class_id: int) -> None:
        """Forget a class: an update of its answers failed half-way."""
        self._answers.pop(class_id, None)
        self._last = (-1, None)

    def __len__(self) -> int:
        return len(self._answers)
