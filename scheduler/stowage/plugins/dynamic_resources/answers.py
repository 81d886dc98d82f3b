"""On which nodes claims can be allocated, kept per template.

The answers of a template are arrays over all rows. The next pod of the template updates them: it
searches again only on nodes whose devices changed since. Where many nodes are asked, plain requests
are decided for all at once. Nodes with the same devices are searched once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec
import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from stowage.api.decoding.errors import SelectorError
from stowage.api.interruptible import Interruptible, finish
from stowage.framework.verdict import Int64Array
from stowage.plugins.dynamic_resources.allocator import (
    AllocationError,
    NodeSearch,
    OutOfTime,
    Solution,
)
from stowage.plugins.dynamic_resources.counters import Counters
from stowage.plugins.dynamic_resources.plain_requests import (
    has_enough_devices,
    have_selected,
    may_select,
)
from stowage.plugins.dynamic_resources.templates import Template
from stowage.state.devices.device_info import PoolId
from stowage.state.snapshot import Snapshot

FITS, DOES_NOT_FIT, HAS_INVALID_POOL, FAILED = range(4)

MAX_ALTERNATIVES = 8
_MAX_TEMPLATES = 256
_MAX_SOLUTIONS = 16_384
#: Searching on 1/4 of the nodes costs as much as deciding all of them at once.
_TOO_MANY = 4
#: Searching on 1/500 of the nodes costs as much as finding out which own devices are selected.
_MANY = 500
SEARCHES_PER_STEP = 50
"""Searches in one step; most take 50 to 300 microseconds."""


class Answers(msgspec.Struct, eq=False):
    """The answers about all rows.

    Attributes:
        codes: ``int8[rows]``: `FITS`, `DOES_NOT_FIT`, `HAS_INVALID_POOL` or `FAILED`.
        scores: ``int64[rows]``: what the chosen alternatives are worth; None without alternatives.
        errors: The error of rows that failed.
        first: ``int64[rows]``: the row whose solution is that of a row, too.
        shares: Whether a solution may be that of several rows.
        available: The free counters of pools; shared by all searches of an attempt.
        depends_on: Whether the answers depend on the devices of a pool that no node has for itself;
            for the pools of which devices were allocated or freed since the answers were made.
        devices_seen: The position in the log of changed devices.
        uses_seen: The position in the log of the use of such pools.
        nodes_seen: The position in the log of changed nodes.
    """

    codes: NDArray[np.int8]
    scores: Int64Array | None
    errors: dict[int, str]
    first: Int64Array
    available: Counters
    shares: bool = False
    depends_on: dict[PoolId, bool] = msgspec.field(default_factory=dict)
    devices_seen: int = 0
    uses_seen: int = 0
    nodes_seen: int = 0


class Attempt(msgspec.Struct, frozen=True, eq=False):
    """One attempt to allocate the claims of a pod.

    Attributes:
        snapshot: The cluster.
        template: What to allocate.
        names: ``namespace/name`` of the claims.
        start_clock: Starts the clock for one node; the result says whether the time limit passed.
    """

    snapshot: Snapshot
    template: Template
    names: tuple[str, ...]
    start_clock: Callable[[], Callable[[], bool]]

    def search(self, row: int, available: Counters) -> Solution | None:
        """The exact search on the node of a row.

        Raises:
            AllocationError: A claim cannot be allocated at all, or a selector fails.
            OutOfTime: The time limit has passed.
        """
        node, devices = self.snapshot.node(row), self.snapshot.devices
        labels = {} if node is None else node.metadata.labels
        try:
            pools = devices.slices.pools_of(row)
            search = NodeSearch(
                devices, self.template.claims, self.names, available, self.start_clock()
            )
            return search.run(pools, self.snapshot.node_names[row], labels)
        except SelectorError as error:
            raise AllocationError(f"gather pool information: {error}") from error


#: (key of a template, row) -> the answers that they belong to, and the devices.
Solutions: TypeAlias = LRUCache[tuple[tuple[bytes, ...], int], tuple[Answers, Solution]]


class AnswerCache:
    """The answers of templates, and the latest solutions; the least recently used go first."""

    def __init__(self) -> None:
        self._answers: LRUCache[tuple[bytes, ...], Answers] = LRUCache(_MAX_TEMPLATES)
        self._solutions: Solutions = LRUCache(_MAX_SOLUTIONS)
        self._devices: object = None
        # What `preparing_steps` has found with errors, for the attempt that follows: answers with
        # errors are not kept, for the time limit may not pass again.
        self._failed: tuple[tuple[tuple[bytes, ...], tuple[str, ...]], Answers] | None = None

    def find(self, attempt: Attempt) -> Answers:
        """The answers for an attempt, brought up to date."""
        failed, self._failed = self._failed, None
        if failed is not None and failed[0] == (attempt.template.key, attempt.names):
            answers = failed[1]
            if self._is_current(answers, attempt.snapshot):
                return answers
        return finish(self._finding_steps(attempt))

    def are_nearly_current(self, template: Template, snapshot: Snapshot) -> bool:
        """Whether so little has changed that `find` takes one step at most."""
        known, slices = self._known(template, snapshot), snapshot.devices.slices
        if known is None or known.uses_seen != slices.shared_uses.generation:
            return False
        num_devices = slices.changes.num_since(known.devices_seen)
        num_nodes = snapshot.node_changes.num_since(known.nodes_seen)
        if num_devices is None or num_nodes is None:
            return False
        limit = min(SEARCHES_PER_STEP, snapshot.num_rows // _TOO_MANY)
        return num_devices + num_nodes <= limit

    def preparing_steps(self, attempt: Attempt) -> Interruptible[None]:
        """What the next call of `find` does for this attempt, in steps, unless it is short."""
        known = self._known(attempt.template, attempt.snapshot)
        rows = None if known is None else _changed_rows(known, attempt)
        if rows is None or len(rows) > SEARCHES_PER_STEP:
            answers = yield from self._finding_steps(attempt)
            if answers.errors:
                self._failed = (attempt.template.key, attempt.names), answers

    def _finding_steps(self, attempt: Attempt) -> Interruptible[Answers]:
        snapshot, key = attempt.snapshot, attempt.template.key
        slices, known = snapshot.devices.slices, self._known(attempt.template, snapshot)
        rows = None if known is None else _changed_rows(known, attempt)
        if known is None or rows is None or slices.has_ambiguous_counters:
            answers = yield from _compute(attempt, self._solutions)
        else:
            answers = known
            answers.available.clear()
            if answers.shares:
                _hand_over(answers, rows, key, self._solutions)
            yield from _search_on(attempt, answers, rows, self._solutions)
        answers.devices_seen = slices.changes.generation
        answers.uses_seen = slices.shared_uses.generation
        answers.nodes_seen = snapshot.node_changes.generation
        if answers.errors:
            self._answers.pop(key, None)
        else:
            self._answers[key] = answers
        return answers

    def _is_current(self, answers: Answers, snapshot: Snapshot) -> bool:
        """Whether nothing has changed since the answers were found."""
        return (
            self._devices is snapshot.devices
            and answers.devices_seen == snapshot.devices.slices.changes.generation
            and answers.uses_seen == snapshot.devices.slices.shared_uses.generation
            and answers.nodes_seen == snapshot.node_changes.generation
        )

    def _known(self, template: Template, snapshot: Snapshot) -> Answers | None:
        """The answers about the rows that there are now, which may be out of date."""
        if self._devices is not snapshot.devices:
            self._answers.clear()
            self._devices = snapshot.devices
        known = self._answers.get(template.key)
        has_all = known is not None and len(known.codes) == snapshot.num_rows
        return known if has_all else None

    def solve(self, attempt: Attempt, answers: Answers, row: int) -> Solution | None:
        """The devices on the node of a row: those that `find` found there, if nothing has changed.

        Between the two, other members of a pod group may have reserved devices.

        Raises:
            AllocationError: A claim cannot be allocated at all, or a selector fails.
            OutOfTime: The time limit has passed.
        """
        if not self._is_current(answers, attempt.snapshot):
            return attempt.search(row, {})
        key = attempt.template.key, int(answers.first[row])
        known, solution = self._solutions.get(key, (None, None))
        return solution if known is answers else attempt.search(row, answers.available)


def _changed_rows(known: Answers, attempt: Attempt) -> Int64Array | None:
    """The rows to search again; None for all."""
    snapshot, slices = attempt.snapshot, attempt.snapshot.devices.slices
    by_devices = slices.changes.since(known.devices_seen)
    by_nodes = snapshot.node_changes.since(known.nodes_seen)
    by_pools = slices.shared_uses.tail(known.uses_seen)
    if by_devices is None or by_nodes is None or by_pools is None:
        return None
    rows = np.union1d(by_devices, by_nodes) if len(by_nodes) else by_devices
    pools = [each for each in dict.fromkeys(by_pools) if _depends_on(each, known, attempt)]
    if pools:
        rows = np.union1d(rows, np.flatnonzero(slices.users_of(pools)))
    return None if len(rows) * _TOO_MANY > snapshot.num_rows else rows


def _depends_on(pool: PoolId, known: Answers, attempt: Attempt) -> bool:
    if pool not in known.depends_on:
        known.depends_on[pool] = may_select(attempt.template, attempt.snapshot.devices, pool)
    return known.depends_on[pool]


def _compute(attempt: Attempt, solutions: Solutions) -> Interruptible[Answers]:
    num_rows = attempt.snapshot.num_rows
    answers = Answers(
        np.full(num_rows, DOES_NOT_FIT, dtype=np.int8),
        np.zeros(num_rows, dtype=np.int64) if attempt.template.has_lists else None,
        {},
        np.arange(num_rows),
        {},
    )
    plain = has_enough_devices(attempt.template, attempt.snapshot.devices, num_rows)
    is_open = attempt.snapshot.exists
    if plain is not None:
        answers.codes[plain.has_enough] = FITS
        is_open = is_open & plain.is_open
    yield from _search_on(attempt, answers, np.flatnonzero(is_open), solutions)
    return answers


def _hand_over(
    answers: Answers, rows: Int64Array, key: tuple[bytes, ...], solutions: Solutions
) -> None:
    """Before some rows are searched again: others with their solutions keep these."""
    is_again = np.zeros(len(answers.first), dtype=np.bool_)
    is_again[rows] = True
    others = np.flatnonzero(is_again[answers.first] & ~is_again)
    for before in set(answers.first[others].tolist()):
        part = others[answers.first[others] == before]
        answers.first[part] = part[0]
        solution = solutions.get((key, before))
        if solution is not None:
            solutions[key, int(part[0])] = solution


def _search_on(
    attempt: Attempt, answers: Answers, rows: Int64Array, solutions: Solutions
) -> Interruptible[None]:
    """Search on some rows in steps; nodes with the same devices are searched once."""
    slices, key, is_late = attempt.snapshot.devices.slices, attempt.template.key, False
    keeps = not slices.has_ambiguous_counters
    for number, part in enumerate(_parts(attempt, rows) if keeps else rows[:, np.newaxis], 1):
        if number % SEARCHES_PER_STEP == 0:
            yield
        if is_late:
            _fail(attempt, answers, part)
            continue
        row = int(part[0])
        answers.first[part] = row
        answers.shares |= len(part) > 1
        solutions.pop((key, row), None)
        try:
            decided = _decide(attempt, answers, row)
        except AllocationError as error:
            answers.codes[part] = FAILED
            answers.errors.update(dict.fromkeys(part.tolist(), str(error)))
            continue
        except OutOfTime:
            is_late = True
            _fail(attempt, answers, part)
            continue
        if isinstance(decided, int):
            answers.codes[part] = decided
            continue
        answers.codes[part] = FITS
        if answers.scores is not None:
            answers.scores[part] = _score(attempt.template, decided.chosen)
        if keeps:
            solutions[key, row] = answers, decided


def _parts(attempt: Attempt, rows: Int64Array) -> Sequence[Int64Array]:
    """The rows in parts: on the nodes of a part, a search has the same outcome."""
    devices, has_selected = attempt.snapshot.devices, None
    if devices.slices.has_shared and len(rows) * _MANY > attempt.snapshot.num_rows:
        has_selected = have_selected(attempt.template, devices)
    return devices.slices.alike(rows, has_selected)


def _decide(attempt: Attempt, answers: Answers, row: int) -> Solution | int:
    """The devices on the node of a row, or the code that says why there are none.

    Raises:
        AllocationError: A claim cannot be allocated at all, or a selector fails.
        OutOfTime: The time limit has passed.
    """
    solution = attempt.search(row, answers.available)
    if solution is not None:
        return solution
    pools = attempt.snapshot.devices.slices.pools_of(row)
    return HAS_INVALID_POOL if any(pool.is_invalid for pool in pools) else DOES_NOT_FIT


def _fail(attempt: Attempt, answers: Answers, rows: Int64Array) -> None:
    """A search has used up its time: the attempt ends, so the other nodes are not searched."""
    answers.codes[rows] = FAILED
    for row in rows.tolist():
        name = attempt.snapshot.node_names[row]
        answers.errors[row] = f"node {name}: timed out trying to allocate devices"


def _score(template: Template, chosen: Sequence[Sequence[int]]) -> int:
    """The earlier the chosen alternatives of requests, the more."""
    return sum(
        MAX_ALTERNATIVES - index
        for claim, indices in zip(template.claims, chosen, strict=True)
        for has_list, index in zip(claim.has_list, indices, strict=True)
        if has_list
    )
