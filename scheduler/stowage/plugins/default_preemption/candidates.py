"""Finds candidate nodes for preemption, and chooses one of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import msgspec
import numpy as np

from stowage.api.interruptible import Interruptible
from stowage.framework import Candidate, DryRun, Preemption, VictimReview
from stowage.framework.verdict import BoolArray, Int64Array
from stowage.plugins.default_preemption.budgets import rows_beyond_budgets
from stowage.plugins.default_preemption.ranking import cheapest, costs, costs_of
from stowage.plugins.default_preemption.victims import (
    NO_VICTIMS,
    Stripped,
    VictimsByNode,
    select_victims,
    strip,
)
from stowage.state.snapshot import Snapshot

PROTECTED = "Preemption would violate a PodDisruptionBudget"

#: A pass over fewer nodes costs as much as one over this many.
_LEAST_NODES_AT_ONCE = 64


class Search(msgspec.Struct):
    """The result of a search for candidates.

    Attributes:
        found: Candidates, in the order of the search.
        num_found: Number of candidates.
        looked_at: The rows that were tried, without their potential victims.
        needless: Nodes that take the pod without any eviction.
        num_protected: Number of rows left out because their victims violate a budget.
        num_unwanted: Number of rows that would be candidates, where none is wanted.
        num_without_victims: Number of rows that were not tried: no pod on any row has a lower
            priority.
    """

    found: list[VictimsByNode] = msgspec.field(default_factory=list)
    num_found: int = 0
    looked_at: list[Stripped] = msgspec.field(default_factory=list)
    needless: list[str] = msgspec.field(default_factory=list)
    num_protected: int = 0
    num_unwanted: int = 0
    num_without_victims: int = 0

    def count_reasons(self) -> tuple[Counter[str], set[str]]:
        """Reasons why tried rows are no candidates, with row counts, and the rejecting plugins."""
        counts: Counter[str] = Counter()
        plugins: set[str] = set()
        for each in self.looked_at:
            more_counts, more_plugins = each.count_reasons()
            counts += more_counts
            plugins |= more_plugins
        if self.num_without_victims:
            counts[NO_VICTIMS] += self.num_without_victims
        if self.num_protected:
            counts[PROTECTED] += self.num_protected
        return counts, plugins

    def errors(self) -> list[str]:
        """Why nodes could not be judged, each text once."""
        failed = (text for each in self.looked_at for text in each.judgement.errors())
        needless = (f'expected at least one victim pod on node "{name}"' for name in self.needless)
        return list(dict.fromkeys((*failed, *needless)))


def find_candidates(
    dry_run: DryRun,
    snapshot: Snapshot,
    rows: Int64Array,
    wanted: int,
    *,
    respects_budgets: bool = False,
) -> Interruptible[Search]:
    """Try `rows`, in that order, until there are enough candidates (``DryRunPreemption``).

    In steps, between which the snapshot must not change.

    The search ends when there are `wanted` candidates and at least one of them violates no budget.
    At most `wanted` candidates that violate a budget are kept. kube-scheduler tries nodes in
    parallel and may find a few more. If it wants none, it tries all nodes and keeps none. With
    `respects_budgets` a node whose victims violate a budget is no candidate.
    """
    if not snapshot.has_pods_below(dry_run.pod.priority):
        return Search(num_without_victims=len(rows))
    search = Search()
    num_clean = start = 0
    while start < len(rows):
        missing = max(wanted - search.num_found, _LEAST_NODES_AT_ONCE)
        stripped, start = yield from _promising(dry_run, snapshot, rows, (start, missing), search)
        if stripped is None:
            break
        found = yield from select_victims(stripped)
        search.needless += found.needless
        if not wanted:
            search.num_unwanted += len(found.positions)
            continue
        if respects_budgets:
            found = _without_protected(found, search)
        kept, num_clean = _enough(found, wanted, num_clean, search.num_found - num_clean)
        found = msgspec.structs.replace(found, positions=found.positions[kept])
        search.found.append(found)
        search.num_found += len(found.positions)
        if num_clean and search.num_found >= wanted:
            break
    return search


def _without_protected(found: VictimsByNode, search: Search) -> VictimsByNode:
    """The candidates whose victims violate no budget; `search` counts the others."""
    beyond = rows_beyond_budgets(found.trial.what_if, found.victims)[found.positions]
    search.num_protected += int(np.count_nonzero(beyond))
    return msgspec.structs.replace(
        found,
        positions=found.positions[~beyond],
        num_violations=np.zeros_like(found.num_violations),
    )


def _promising(
    dry_run: DryRun,
    snapshot: Snapshot,
    rows: Int64Array,
    search_from: tuple[int, int],
    search: Search,
) -> Interruptible[tuple[Stripped | None, int]]:
    """The next rows that the pod fits once all pods of lower priority are removed.

    Rows are tried in chunks. Chunks grow while few rows fit, and are little larger than the number
    of missing rows while most fit. `select_victims` then handles all fitting rows in one pass.

    Args:
        dry_run: The pod's dry run.
        snapshot: The cluster.
        rows: All rows to try.
        search_from: The index in `rows` to start at, and the number of rows to find.
        search: Records the rows that were tried.

    Returns:
        The rows (None if none fit), and the index in `rows` to continue at.
    """
    start, wanted = search_from
    priority = dry_run.pod.priority
    parts: list[Stripped] = []
    num_found = 0
    while start < len(rows) and num_found < wanted:
        chunk = rows[start : start + _next_length(start, start - search_from[0], num_found, wanted)]
        start += len(chunk)
        yield from snapshot.ranking_steps(chunk)
        each = strip(dry_run.on(snapshot, chunk), priority)
        search.looked_at.append(each)
        num_found += len(each.positions)
        if len(each.positions):
            parts.append(each)
        yield
    if len(parts) <= 1:
        return (parts[0] if parts else None), start
    promising = [part.trial.what_if.rows[part.positions] for part in parts]
    return strip(dry_run.on(snapshot, np.concatenate(promising)), priority), start


def _next_length(start: int, num_tried: int, num_found: int, wanted: int) -> int:
    """The number of rows to try next: at most as many as so far, fewer if most of those fit.

    Args:
        start: Number of rows tried so far.
        num_tried: Number of them tried in this pass.
        num_found: Number of these that fit.
        wanted: Number of fitting rows to find in this pass.

    Examples:
        The first rows of a search; as many again; those that are missing, and a quarter more.

        >>> _next_length(0, 0, 0, 100), _next_length(200, 200, 0, 100)
        (100, 200)
        >>> _next_length(1000, 1000, 60, 100)
        833
    """
    missing = wanted - num_found
    likely = missing * num_tried * 5 // (num_found * 4) if num_found else start
    return max(missing, min(likely, start), _LEAST_NODES_AT_ONCE)


def _enough(
    found: VictimsByNode, wanted: int, num_clean: int, num_violating: int
) -> tuple[BoolArray, int]:
    """``bool[candidates]``, those to keep, and the number so far that violate no budget."""
    violates = found.num_violations[found.positions] > 0
    clean = num_clean + np.cumsum(~violates)
    violating = np.minimum(num_violating + np.cumsum(violates), wanted)
    kept: BoolArray = ~violates | (num_violating + np.cumsum(violates) <= wanted)
    ended = np.flatnonzero((clean > 0) & (clean + violating >= wanted))
    if len(ended):
        kept[ended[0] + 1 :] = False
    return kept, num_clean + int(np.count_nonzero(kept & ~violates))


def choose_candidate(search: Search, dry_run: DryRun) -> Preemption:
    """Choose the cheapest candidate; `DryRun.choose` decides between equal ones."""
    found = search.found
    cost = np.concatenate([costs(each) for each in found])
    least = np.flatnonzero(cheapest(cost))
    names = [name for each in found for name in each.node_names()]
    owners = np.repeat(np.arange(len(found)), [len(each.positions) for each in found])
    positions = np.concatenate([each.positions for each in found])
    index_of = {names[index]: index for index in least.tolist()}

    def candidate(name: str) -> Candidate:
        index = index_of[name]
        return found[int(owners[index])].candidate(int(positions[index]))

    return _chosen(index_of, candidate, dry_run, partial(_all_candidates, search))


def choose_reviewed(candidates: Sequence[Candidate], dry_run: DryRun) -> Preemption:
    """Choose the cheapest of the candidates that extenders left."""
    least = np.flatnonzero(cheapest(costs_of(candidates))).tolist()
    by_name = {candidate.node_name: candidate for candidate in candidates}
    tied = [candidates[index].node_name for index in least]
    return _chosen(tied, by_name.__getitem__, dry_run, lambda: by_name)


class ReviewInvalid(ValueError):  # noqa: N818 - it names the finding
    """An extender names a victim that is not on its node."""


def reviewed_candidates(review: VictimReview, snapshot: Snapshot) -> list[Candidate]:
    """The candidates that extenders left.

    Raises:
        ReviewInvalid: A victim is not on its node.
    """
    candidates = []
    for node_name, reviewed in sorted(review.by_node.items()):
        victims = []
        for uid in reviewed.uids:
            pod = snapshot.get_pod(uid)
            if pod is None or pod.node_name != node_name:
                text = f"extenders claim to preempt pod (UID: {uid}) on node: {node_name}"
                raise ReviewInvalid(f"{text}, but the pod is not found on that node")
            victims.append(pod)
        candidates.append(Candidate(node_name, tuple(victims), reviewed.num_violations))
    return candidates


def _chosen(
    tied: Iterable[str],
    candidate: Callable[[str], Candidate],
    dry_run: DryRun,
    find_all: Callable[[], Mapping[str, Candidate]],
) -> Preemption:
    names = tuple(sorted(tied))
    index = dry_run.choose(len(names)) if len(names) > 1 else 0
    return Preemption(candidate(names[index]), find_all, names)


def _all_candidates(search: Search) -> Mapping[str, Candidate]:
    every = (
        found.candidate(position) for found in search.found for position in found.positions.tolist()
    )
    return {candidate.node_name: candidate for candidate in every}
