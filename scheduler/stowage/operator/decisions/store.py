"""The last decisions, in memory."""

from __future__ import annotations

from collections import deque
from sys import getsizeof

from stowage.api.decisions import BestNodes, DecisionQuery
from stowage.api.instructions import AttemptResult
from stowage.operator.decisions.records import DecisionIds, RecordedAttempt

MAX_DECISIONS = 10_000
MAX_BYTES = 64 * 2**20

#: An attempt without strings, nodes and reasons: structs, tuples, numbers, and its place.
_ATTEMPT_BYTES = 700
#: Two tuples of ten scores, and the numbers in them that Python does not share.
_SCORES_BYTES = 1_100
_POINTER_BYTES = 8
_TOTAL_BYTES = 40


class DecisionStore:
    """Keeps the last decisions: at most `MAX_DECISIONS`, and at most `MAX_BYTES`.

    Args:
        ids: Makes the ids.
        max_decisions: The number of decisions to keep.
        max_bytes: The memory that they may take, as `size_of` estimates it.

    Attributes:
        ids: Makes the ids.
        num_bytes: The memory that they take.
    """

    def __init__(
        self,
        ids: DecisionIds,
        max_decisions: int = MAX_DECISIONS,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self.ids = ids
        self.num_bytes = 0
        self._max_decisions = max_decisions
        self._max_bytes = max_bytes
        self._kept: deque[tuple[RecordedAttempt, int]] = deque()
        self._last_number = 0

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, recorded: RecordedAttempt) -> None:
        """Keep an attempt, and drop the oldest ones beyond the limits."""
        size = size_of(recorded.attempt)
        self._last_number = recorded.attempt.decision
        self._kept.append((recorded, size))
        self.num_bytes += size
        while self.num_bytes > self._max_bytes or len(self._kept) > self._max_decisions:
            _, dropped = self._kept.popleft()
            self.num_bytes -= dropped

    def find(self, query: DecisionQuery) -> tuple[list[RecordedAttempt], str]:
        """The attempts that a query wants, oldest first, and the id to continue after."""
        after = self.ids.number_of(query.after)
        wanted = [
            each for each, _ in self._kept if each.attempt.decision > after and _wants(query, each)
        ]
        last = self._last_number
        if not query.after:
            wanted = wanted[-query.limit :]
        elif len(wanted) > query.limit:
            wanted = wanted[: query.limit]
            last = wanted[-1].attempt.decision
        return wanted, f"{self.ids.prefix}-{last}"


def _wants(query: DecisionQuery, recorded: RecordedAttempt) -> bool:
    attempt = recorded.attempt
    pod, nodes = attempt.pod, (attempt.node_name, attempt.nominated_node_name)
    return query.accepts(pod.namespace, pod.name, nodes, attempt.result)


def size_of(attempt: AttemptResult) -> int:
    """An upper estimate of the memory of an attempt, in bytes.

    Names of nodes count as if each attempt had its own.
    """
    pod = attempt.pod
    size = _ATTEMPT_BYTES + getsizeof(attempt.message)
    size += getsizeof(pod.name) + getsizeof(pod.namespace) + getsizeof(pod.uid)
    if attempt.best is not None:
        size += _size_of_best(attempt.best)
    if attempt.reason_counts:
        size += getsizeof(attempt.reason_counts) + sum(map(getsizeof, attempt.reason_counts))
    for plugin in attempt.unschedulable_plugins:
        size += _POINTER_BYTES + getsizeof(plugin)
    return size


def _size_of_best(best: BestNodes) -> int:
    names = sum(map(getsizeof, best.names))
    per_node = (2 * _POINTER_BYTES + _TOTAL_BYTES) * len(best.names)
    return names + per_node + getsizeof(best.plain) + _SCORES_BYTES * len(best.others)
