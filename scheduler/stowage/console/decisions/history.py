"""The last decisions, with their counts and latencies."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import dropwhile, islice

import msgspec

from stowage.api.decisions import Decision, DecisionQuery
from stowage.console.answers.answer import Answer, unix_seconds
from stowage.console.decisions.rates import BucketColumns, DecisionRates, LastBucket, Latencies
from stowage.console.decisions.row import DecisionRow, row_of

MAX_DECISIONS = 10_000

OBSERVED = "observed"
SERVER = "server"
RECORDING = "recording"
NONE = "none"


class DecisionsAnswer(Answer, frozen=True):
    """Some decisions, newest first.

    Attributes:
        source: Where they come from: `OBSERVED`, `SERVER`, `RECORDING` or `NONE`.
        last: The id of the newest decision of all.
        more: Whether there are older ones that the query wants.
    """

    version: int
    source: str
    last: str
    more: bool
    decisions: list[DecisionRow]


class DecisionStats(Answer, frozen=True, omit_defaults=True):
    """Numbers about the decisions.

    Attributes:
        latency_of: ``algorithm``, or ``pod`` for the time from creation to binding.
        total: Result -> number of decisions.
        rate: Decisions a second over the last minute.
        latency_s: Percentiles over the buckets.
        buckets: The decisions over time.
        last: The last complete bucket.
    """

    version: int
    source: str
    latency_of: str
    total: dict[str, int]
    rate: float
    latency_s: Latencies
    buckets: BucketColumns | None = None
    last: LastBucket | None = None


class _Kept(msgspec.Struct, frozen=True):
    """A decision: its row, and the record as JSON, empty if there is none."""

    row: DecisionRow
    record: bytes


_DECODER = msgspec.json.Decoder(Decision)


class DecisionHistory:
    """Keeps the last decisions.

    Args:
        source: Where they come from.
        rates: Counts them.
        max_decisions: The number of decisions that are kept.
    """

    def __init__(
        self,
        source: str,
        rates: DecisionRates | None = None,
        max_decisions: int = MAX_DECISIONS,
    ) -> None:
        self.source = source
        self.rates = rates or DecisionRates()
        self._kept: deque[_Kept] = deque(maxlen=max_decisions)

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, decision: Decision) -> DecisionRow:
        """Keep the record of a decision."""
        row = row_of(decision)
        self._keep(_Kept(row, msgspec.json.encode(decision)))
        return row

    def add_row(self, row: DecisionRow) -> None:
        """Keep a decision of which there is no record."""
        self._keep(_Kept(row, b""))

    def find(self, decision_id: str) -> tuple[DecisionRow, Decision | None] | None:
        """The row and, if there is one, the record; None if it is unknown or was dropped."""
        for kept in reversed(self._kept):
            if kept.row.id == decision_id:
                return kept.row, _DECODER.decode(kept.record) if kept.record else None
        return None

    def newest(self, limit: int, *, node: str = "") -> list[DecisionRow]:
        """The newest decisions, or those for a node."""
        query = DecisionQuery(node=node)
        return list(islice(self._wanted(query, ""), limit))

    def refused(self) -> dict[str, str]:
        """UID of each pod whose last decision is no node -> its message."""
        last = {kept.row.uid: kept.row for kept in self._kept}
        return {uid: row.message for uid, row in last.items() if row.result != "scheduled"}

    def answer(self, query: DecisionQuery, before: str, version: int) -> DecisionsAnswer:
        """The newest decisions that a query wants.

        Args:
            query: The filters and the limit.
            before: Only decisions that are older than the one with this id; empty for all.
            version: The version of the cluster.
        """
        wanted = self._wanted(query, before)
        rows = list(islice(wanted, query.limit + 1))
        last = self._kept[-1].row.id if self._kept else ""
        more = len(rows) > query.limit
        return DecisionsAnswer(version, self.source, last, more, rows[: query.limit])

    def stats(self, now_s: float, version: int, *, only_last: bool = False) -> DecisionStats:
        """The numbers at a time; with `only_last` the last bucket in place of all."""
        rates = self.rates
        return DecisionStats(
            version,
            self.source,
            "pod" if self.source == OBSERVED else "algorithm",
            {name: rates.totals[name] for name in ("scheduled", "unschedulable", "error")},
            rates.rate(now_s),
            rates.latencies(),
            None if only_last else rates.columns(now_s),
            rates.last_bucket(now_s) if only_last else None,
        )

    def until(self, unix_s: float, step_s: float) -> DecisionHistory:
        """The decisions up to a time, counted in buckets of `step_s`."""
        history = DecisionHistory(self.source, DecisionRates(step_s), self._kept.maxlen or 0)
        for kept in self._kept:
            at = unix_seconds(kept.row.time)
            if at is None or at <= unix_s:
                history._keep(kept)
        return history

    def _keep(self, kept: _Kept) -> None:
        self._kept.append(kept)
        row = kept.row
        at = unix_seconds(row.time)
        if at is not None:
            self.rates.add(at, row.result, row.latency_s)

    def _wanted(self, query: DecisionQuery, before: str) -> Iterator[DecisionRow]:
        rows: Iterator[DecisionRow] = (kept.row for kept in reversed(self._kept))
        if before:
            rows = dropwhile(lambda row: row.id != before, rows)
            next(rows, None)
        for row in rows:
            namespace, _, name = row.pod.partition("/")
            nodes = (row.node, row.nominated_node)
            if query.accepts(namespace, name, nodes, row.result):
                yield row
