"""Runs Score plugins over the feasible nodes: normalises, weighs and adds scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import msgspec
import numpy as np

from stowage.framework.cycle_state import CycleState
from stowage.framework.extension_points import ScorePlugin
from stowage.framework.failure import PluginFailed
from stowage.framework.plugin_traits import Reads
from stowage.framework.runtime.class_cache import (
    Changes,
    ClassCache,
    RawScores,
    ScoreAnswers,
    Seen,
    id_of,
)
from stowage.framework.runtime.score_result import NodeScores, PluginScores, ScoreResult
from stowage.framework.runtime.weighted_plugin import WeightedPlugin
from stowage.framework.scores import (
    MAX_NODE_SCORE,
    any_out_of_range,
    narrowest_type,
    out_of_range,
    uniform_score,
)
from stowage.framework.shared_scores import Picked, SharedScores
from stowage.framework.verdict import Int64Array, UInt8Array
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView, Snapshot

#: Scoring at most this many feasible nodes costs less than keeping scores.
_FEW = 32
_NO_SCORES: UInt8Array = np.empty((0, 0), dtype=np.uint8)


class KeptScorers(msgspec.Struct, frozen=True, eq=False):
    """The Score plugins whose raw scores are kept; equal sets are the same object.

    Attributes:
        fixed: Plugins that neither normalise nor read usage.
        usage: Plugins with `Reads.USAGE` that do not normalise.
        normalizing: Plugins that normalise, in each cycle.
        reads_all_nodes: Whether a changed node may change the scores of other nodes.
        per_demand: Whether all of them read only the pod's node demand.
        by_amounts: Whether all plugins of `usage` read only amounts.
        plain_names: The plugins of `fixed` and `usage`; the rows of `ScoreAnswers.plain`.
    """

    fixed: tuple[WeightedPlugin, ...]
    usage: tuple[WeightedPlugin, ...]
    normalizing: tuple[WeightedPlugin, ...]
    reads_all_nodes: bool
    per_demand: bool
    by_amounts: bool
    plain_names: tuple[str, ...]

    @classmethod
    def of(cls, kept: Sequence[WeightedPlugin]) -> KeptScorers:
        """Group the plugins `kept`."""
        plain = [each for each in kept if not each.normalizes]
        usage = tuple(each for each in plain if each.traits.score_reads is Reads.USAGE)
        fixed = tuple(each for each in plain if each.traits.score_reads is not Reads.USAGE)
        return cls(
            fixed=fixed,
            usage=usage,
            normalizing=tuple(each for each in kept if each.normalizes),
            reads_all_nodes=any(each.traits.score_reads is Reads.NODES for each in kept),
            per_demand=all(each.traits.reads_only_node_demand for each in kept),
            by_amounts=all(each.traits.reads_only_amounts for each in usage),
            plain_names=tuple(each.name for each in (*fixed, *usage)),
        )


class ActiveScorers(msgspec.Struct, frozen=True, eq=False):
    """The Score plugins that run for a pod.

    Attributes:
        all: All of them, in order.
        kept: Those whose raw scores are kept.
        cluster: Those that are asked in each cycle.
        weights: Name and weight of all of them, in order.
    """

    all: tuple[WeightedPlugin, ...]
    kept: KeptScorers
    cluster: tuple[WeightedPlugin, ...]
    weights: tuple[tuple[str, int], ...]


class _Shared(NamedTuple):
    """One plugin's scores of the feasible nodes, and its distinct scores normalised."""

    raw: SharedScores
    normalized: Int64Array

    def picked(self, positions: Int64Array) -> Picked:
        """Raw and normalised scores of the nodes at some positions."""
        return self.raw.picked(positions, self.normalized)


class ScoreRun:
    """Runs the Score plugins of one profile.

    Args:
        plugins: In order.
        weights: Weight by plugin name.
        cache: Answers per class; not shared.
    """

    def __init__(
        self,
        plugins: Sequence[ScorePlugin],
        weights: Mapping[str, int],
        cache: ClassCache[ScoreAnswers],
    ) -> None:
        self._scorers = tuple(WeightedPlugin(plugin, weights[plugin.name]) for plugin in plugins)
        self._names = frozenset(scorer.name for scorer in self._scorers)
        self._total_type = narrowest_type(
            MAX_NODE_SCORE * sum(scorer.weight for scorer in self._scorers)
        )
        self._cache = cache
        self._by_skip: dict[tuple[frozenset[str], frozenset[str]], ActiveScorers] = {}
        self._kept: dict[tuple[str, ...], KeptScorers] = {}

    def run(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: Int64Array
    ) -> ScoreResult:
        """Score the nodes in `rows`, which are ascending.

        Raises:
            PluginFailed: A plugin raised, or a normalised score is not in 0..100.
        """
        active = self._active(state)
        view = snapshot.ascending_view(rows)

        def explain() -> tuple[PluginScores, ...]:
            return tuple(_score(scorer, state, pod, view) for scorer in active.all)

        if len(rows) <= _FEW or not self._cache.serves(snapshot):
            scored = explain()
            total = np.zeros(len(rows), dtype=np.int64)
            for scores in scored:
                total += scores.weighted
            by_name = {each.plugin: each for each in scored}
            pick = partial(_pick, active, by_name, None, rows)
            return ScoreResult(rows, total, lambda: scored, pick)
        answers = self._answers(active.kept, state, pod, snapshot)
        _refuse_invalid(answers, active.kept, state, pod, snapshot.all_nodes, rows)
        total = view.copied(answers.total)
        computed: dict[str, PluginScores | _Shared] = {}
        for scorer in active.kept.normalizing:
            kept = answers.raw[scorer.name]
            if kept.constant is None:
                raw = view.take(kept.scores)
                computed[scorer.name] = scores = _normalized(scorer, state, pod, view, raw)
                total += scores.weighted.astype(total.dtype)
            elif kept.constant:
                total += kept.constant
        for scorer in active.cluster:
            shared = scorer.shared(state, pod, view)
            if isinstance(shared, np.ndarray):
                scores = _normalized(scorer, state, pod, view, shared)
                computed[scorer.name] = scores
                total += scores.weighted.astype(total.dtype)
            else:
                normalized = scorer.normalized(state, pod, view, shared.distinct)
                shared.add_to(total, normalized * scorer.weight)
                computed[scorer.name] = _Shared(shared, normalized)
        return ScoreResult(rows, total, explain, partial(_pick, active, computed, answers, rows))

    def _active(self, state: CycleState) -> ActiveScorers:
        skipped = self._names.intersection(state.skip_score)
        asked = state.uncached_scores & self._names
        active = self._by_skip.get((skipped, asked))
        if active is None:
            running = tuple(each for each in self._scorers if each.name not in skipped)
            cluster = tuple(
                each
                for each in running
                if each.traits.score_reads is Reads.CLUSTER or each.name in asked
            )
            kept = [each for each in running if each not in cluster]
            weights = tuple((each.name, each.weight) for each in running)
            active = ActiveScorers(running, self._keep(kept), cluster, weights)
            self._by_skip[skipped, asked] = active
        return active

    def _keep(self, scorers: Sequence[WeightedPlugin]) -> KeptScorers:
        names = tuple(each.name for each in scorers)
        kept = self._kept.get(names)
        if kept is None:
            kept = self._kept[names] = KeptScorers.of(scorers)
        return kept

    def _answers(
        self, kept: KeptScorers, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> ScoreAnswers:
        """The updated answers of the pod's class about all rows."""
        key = id_of(pod, per_demand=kept.per_demand)
        answers = self._cache.get(key)
        if answers is not None and answers.active is kept:
            changes = answers.seen.advance(snapshot)
            if changes is not None:
                try:
                    _score_again(answers, kept, state, pod, snapshot, changes)
                except PluginFailed:
                    self._cache.drop(key)
                    raise
                return answers
        answers = ScoreAnswers.empty(
            kept, Seen.now(snapshot), kept.plain_names, len(kept.fixed), self._total_type
        )
        every_row = snapshot.all_rows
        view = snapshot.all_nodes
        answers.fixed[:] = _weighted_sum(kept.fixed, answers, state, pod, view, every_row)
        usage = _weighted_sum(kept.usage, answers, state, pod, view, every_row)
        answers.total[:] = answers.fixed + usage
        for scorer in kept.normalizing:
            raw = RawScores(scorer.raw(state, pod, view).copy())
            answers.raw[scorer.name] = raw
            _note_uniform(raw, scorer, state, pod, snapshot)
        self._cache.put(key, answers)
        return answers


def _score(scorer: WeightedPlugin, state: CycleState, pod: PodInfo, view: NodeView) -> PluginScores:
    return _normalized(scorer, state, pod, view, scorer.raw(state, pod, view))


def _normalized(
    scorer: WeightedPlugin, state: CycleState, pod: PodInfo, view: NodeView, raw: Int64Array
) -> PluginScores:
    return PluginScores(scorer.name, scorer.weight, raw, scorer.normalized(state, pod, view, raw))


def _pick(
    active: ActiveScorers,
    computed: Mapping[str, PluginScores | _Shared],
    answers: ScoreAnswers | None,
    rows: Int64Array,
    positions: Int64Array,
) -> NodeScores:
    """The scores of a few of the feasible nodes, without asking a plugin again.

    Args:
        active: The plugins.
        computed: The scores of all feasible nodes that this cycle computed.
        answers: The answers that have the scores of the other plugins; None if there are none.
        rows: The feasible rows.
        positions: The nodes, as indices in `rows`.
    """
    others = {name: scores.picked(positions) for name, scores in computed.items()}
    if answers is None:
        return NodeScores(active.weights, (), _NO_SCORES, others)
    for name, kept in answers.raw.items():
        if name not in others:
            others[name] = ((int(kept.scores[rows[positions[0]]]),), (kept.normalized,))
    plain = answers.plain.take(rows.take(positions), axis=1)
    return NodeScores(active.weights, active.kept.plain_names, plain, others)


def _score_again(
    answers: ScoreAnswers,
    kept: KeptScorers,
    state: CycleState,
    pod: PodInfo,
    snapshot: Snapshot,
    changes: Changes,
) -> None:
    rows = changes.nodes
    any_node_changed = len(rows) > 0
    if any_node_changed and kept.reads_all_nodes:
        _score_fixed_again(answers, kept, state, pod, snapshot)
    elif any_node_changed:
        view = snapshot.view(rows)
        answers.fixed[rows] = _weighted_sum(kept.fixed, answers, state, pod, view, rows)
    for scorer in kept.normalizing:
        rows = changes.nodes if scorer.traits.score_reads is Reads.NODE else changes.usage
        if any_node_changed and scorer.traits.score_reads is Reads.NODES:
            rows = snapshot.all_rows
        if len(rows):
            raw = answers.raw[scorer.name]
            raw.scores[rows] = scorer.raw(state, pod, snapshot.view(rows))
            if not raw.stays_uniform(rows):
                _note_uniform(raw, scorer, state, pod, snapshot)
    rows = changes.usage
    if kept.by_amounts and not answers.invalid:
        rows = answers.by_amounts.recall(snapshot, rows, answers.note_usage)
    if len(rows):
        view = snapshot.view(rows)
        total = _weighted_sum(kept.usage, answers, state, pod, view, rows)
        answers.total[rows] = total + answers.fixed[rows]
        if kept.by_amounts and not answers.invalid:
            answers.by_amounts.learn(snapshot, rows, answers.usage_of(rows, total))


def _score_fixed_again(
    answers: ScoreAnswers,
    kept: KeptScorers,
    state: CycleState,
    pod: PodInfo,
    snapshot: Snapshot,
) -> None:
    """Compute the fixed scores of all rows anew; the scores by usage stay."""
    rows, view = snapshot.all_rows, snapshot.all_nodes
    fixed = _weighted_sum(kept.fixed, answers, state, pod, view, rows)
    answers.total += (fixed - answers.fixed).astype(answers.total.dtype)
    answers.fixed[:] = fixed


def _weighted_sum(
    scorers: Sequence[WeightedPlugin],
    answers: ScoreAnswers,
    state: CycleState,
    pod: PodInfo,
    view: NodeView,
    rows: Int64Array,
) -> Int64Array:
    """``int64[len(view)]``; rows with a score outside 0..100 are recorded in `answers`."""
    total = np.zeros(len(rows), dtype=np.int64)
    for scorer in scorers:
        raw = scorer.raw(state, pod, view)
        total += raw * scorer.weight if scorer.weight != 1 else raw
        answers.plain_of[scorer.name][rows] = raw
        if any_out_of_range(raw) or scorer.name in answers.invalid:
            known = answers.invalid.setdefault(
                scorer.name, np.zeros(len(answers.total), dtype=np.bool_)
            )
            known[rows] = out_of_range(raw)
    return total


def _note_uniform(
    kept: RawScores,
    scorer: WeightedPlugin,
    state: CycleState,
    pod: PodInfo,
    snapshot: Snapshot,
) -> None:
    """If all nodes have one raw score, keep the normalised score that any feasible node gets."""
    exists = np.flatnonzero(snapshot.exists)
    uniform = uniform_score(kept.scores[exists])
    if uniform is None or not len(exists):
        kept.constant = kept.uniform = None
        return
    one = snapshot.view(exists[:1])
    normalized = scorer.normalized(state, pod, one, np.array([uniform], dtype=np.int64))
    kept.normalized, kept.uniform = int(normalized[0]), uniform
    kept.constant = kept.normalized * scorer.weight


def _refuse_invalid(
    answers: ScoreAnswers,
    kept: KeptScorers,
    state: CycleState,
    pod: PodInfo,
    all_nodes: NodeView,
    rows: Int64Array,
) -> None:
    """Raise if a feasible node has a score outside 0..100; an infeasible node may have one."""
    if not answers.invalid:
        return
    for scorer in (*kept.fixed, *kept.usage):
        invalid = answers.invalid.get(scorer.name)
        if invalid is not None and invalid[rows].any():
            # Only a byte of the score was kept, and the error names the score.
            raw = scorer.raw(state, pod, all_nodes)
            raise scorer.invalid(int(raw[rows[invalid[rows]][0]]))
