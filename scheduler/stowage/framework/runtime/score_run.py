"""Running Score plugins over the feasible nodes: normalise, weigh and add up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec
import numpy as np

from stowage.api.config.extenders import EXTENDER_PLUGIN
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
from stowage.framework.runtime.weighted_plugin import WeightedPlugin
from stowage.framework.scores import any_out_of_range, out_of_range, uniform_score
from stowage.framework.verdict import Int64Array
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView, Snapshot

#: Scoring so few feasible nodes anew costs less than keeping their scores.
_FEW = 32


class PluginScores(msgspec.Struct, frozen=True):
    """One plugin's scores of the feasible nodes, ``int64[rows]`` each."""

    plugin: str
    weight: int
    raw: Int64Array
    normalized: Int64Array

    @property
    def weighted(self) -> Int64Array:
        """``normalized * weight``."""
        return self.normalized * self.weight


class ScoreResult:
    """Totals of the feasible nodes and, on demand, what each plugin gave.

    Args:
        rows: The feasible rows, ascending.
        total: ``int64[rows]``, sum of the weighted scores.
        explain: Scores all plugins anew; works as long as the snapshot is current.
    """

    __slots__ = ("_explain", "_per_plugin", "rows", "total")

    def __init__(
        self, rows: Int64Array, total: Int64Array, explain: Callable[[], tuple[PluginScores, ...]]
    ) -> None:
        self.rows = rows
        self.total = total
        self._explain = explain
        self._per_plugin: tuple[PluginScores, ...] | None = None

    def per_plugin(self) -> tuple[PluginScores, ...]:
        """Every Score plugin that took part, in order.

        Raises:
            PluginFailed: A plugin failed.
        """
        if self._per_plugin is None:
            self._per_plugin = self._explain()
        return self._per_plugin

    def with_extender_scores(self, scores: Int64Array) -> ScoreResult:
        """The same with what extenders add, ``int64[rows]``, listed last among the plugins."""

        def explain() -> tuple[PluginScores, ...]:
            return (*self.per_plugin(), PluginScores(EXTENDER_PLUGIN, 1, scores, scores))

        return ScoreResult(self.rows, self.total + scores, explain)


class KeptScorers(msgspec.Struct, frozen=True, eq=False):
    """Score plugins whose raw scores are kept; for the same plugins it is the same object.

    Attributes:
        fixed: Not normalised, the same until a node changes.
        usage: Not normalised, the same until a node or its usage changes.
        normalizing: Normalised in each cycle.
        reads_all_nodes: Whether a change of one node changes the scores of others.
        per_demand: Whether classes of one demand get the same raw scores.
        by_amounts: Whether those of `usage` go by amounts only.
    """

    fixed: tuple[WeightedPlugin, ...]
    usage: tuple[WeightedPlugin, ...]
    normalizing: tuple[WeightedPlugin, ...]
    reads_all_nodes: bool
    per_demand: bool
    by_amounts: bool

    @classmethod
    def of(cls, kept: Sequence[WeightedPlugin]) -> KeptScorers:
        """Sort them."""
        plain = [each for each in kept if not each.normalizes]
        usage = tuple(each for each in plain if each.traits.score_reads is Reads.USAGE)
        return cls(
            fixed=tuple(each for each in plain if each.traits.score_reads is not Reads.USAGE),
            usage=usage,
            normalizing=tuple(each for each in kept if each.normalizes),
            reads_all_nodes=any(each.traits.score_reads is Reads.NODES for each in kept),
            per_demand=all(each.traits.reads_only_node_demand for each in kept),
            by_amounts=all(each.traits.reads_only_amounts for each in usage),
        )


class ActiveScorers(msgspec.Struct, frozen=True, eq=False):
    """The Score plugins that run for a pod.

    Attributes:
        all: In order.
        kept: Those whose raw scores are kept.
        cluster: Those that are asked in each cycle.
    """

    all: tuple[WeightedPlugin, ...]
    kept: KeptScorers
    cluster: tuple[WeightedPlugin, ...]


class ScoreRun:
    """Runs the Score plugins of one profile.

    Args:
        plugins: In order.
        weights: Per plugin.
        cache: Answers per class; shared with nobody.
    """

    def __init__(
        self,
        plugins: Sequence[ScorePlugin],
        weights: Mapping[str, int],
        cache: ClassCache[ScoreAnswers],
    ) -> None:
        self._scorers = tuple(WeightedPlugin(plugin, weights[plugin.name]) for plugin in plugins)
        self._names = frozenset(scorer.name for scorer in self._scorers)
        self._cache = cache
        self._by_skip: dict[frozenset[str], ActiveScorers] = {}
        self._kept: dict[tuple[str, ...], KeptScorers] = {}

    def run(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: Int64Array
    ) -> ScoreResult:
        """Score the nodes in `rows`, which are ascending.

        Raises:
            PluginFailed: A plugin raised, or left 0..100 after normalising.
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
            return ScoreResult(rows, total, lambda: scored)
        answers = self._answers(active.kept, state, pod, snapshot)
        _refuse_invalid(answers, active.kept, rows)
        total = view.copied(answers.total)
        for scorer in active.kept.normalizing:
            kept = answers.raw[scorer.name]
            if kept.constant is not None:
                total += kept.constant
            else:
                raw = view.take(kept.scores)
                total += scorer.normalized(state, pod, view, raw) * scorer.weight
        for scorer in active.cluster:
            total += _score(scorer, state, pod, view).weighted
        return ScoreResult(rows, total, explain)

    def _active(self, state: CycleState) -> ActiveScorers:
        skipped = self._names.intersection(state.skip_score)
        active = self._by_skip.get(skipped)
        if active is None:
            running = tuple(each for each in self._scorers if each.name not in skipped)
            kept = [each for each in running if each.traits.score_reads is not Reads.CLUSTER]
            cluster = tuple(each for each in running if each.traits.score_reads is Reads.CLUSTER)
            active = ActiveScorers(running, self._keep(kept), cluster)
            self._by_skip[skipped] = active
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
        """The class's answers about all rows, brought up to date."""
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
        answers = ScoreAnswers.empty(kept, Seen.now(snapshot))
        every_row = snapshot.all_rows
        view = snapshot.all_nodes
        answers.fixed[:] = _weighted_sum(kept.fixed, answers, state, pod, view, every_row)
        answers.total[:] = answers.fixed
        answers.total += _weighted_sum(kept.usage, answers, state, pod, view, every_row)
        for scorer in kept.normalizing:
            raw = RawScores(scorer.raw(state, pod, view).copy())
            answers.raw[scorer.name] = raw
            _note_uniform(raw, scorer, state, pod, snapshot)
        self._cache.put(key, answers)
        return answers


def _score(scorer: WeightedPlugin, state: CycleState, pod: PodInfo, view: NodeView) -> PluginScores:
    raw = scorer.raw(state, pod, view)
    return PluginScores(scorer.name, scorer.weight, raw, scorer.normalized(state, pod, view, raw))


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
            answers.by_amounts.learn(snapshot, rows, total.tolist())


def _score_fixed_again(
    answers: ScoreAnswers,
    kept: KeptScorers,
    state: CycleState,
    pod: PodInfo,
    snapshot: Snapshot,
) -> None:
    """A change of one node may change the fixed scores of all; what goes by usage stays."""
    rows, view = snapshot.all_rows, snapshot.all_nodes
    fixed = _weighted_sum(kept.fixed, answers, state, pod, view, rows)
    answers.total += fixed - answers.fixed
    answers.fixed[:] = fixed


def _weighted_sum(
    scorers: Sequence[WeightedPlugin],
    answers: ScoreAnswers,
    state: CycleState,
    pod: PodInfo,
    view: NodeView,
    rows: Int64Array,
) -> Int64Array:
    """``int64[len(view)]``; scores that are not in 0..100 are noted in `answers`."""
    total = np.zeros(len(rows), dtype=np.int64)
    for scorer in scorers:
        raw = scorer.raw(state, pod, view)
        total += raw * scorer.weight if scorer.weight != 1 else raw
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
    """If all nodes have one raw score, any feasible ones get one normalised score."""
    exists = np.flatnonzero(snapshot.exists)
    uniform = uniform_score(kept.scores[exists])
    if uniform is None or not len(exists):
        kept.constant = kept.uniform = None
        return
    one = snapshot.view(exists[:1])
    normalized = scorer.normalized(state, pod, one, np.array([uniform], dtype=np.int64))
    kept.constant, kept.uniform = int(normalized[0]) * scorer.weight, uniform


def _refuse_invalid(answers: ScoreAnswers, kept: KeptScorers, rows: Int64Array) -> None:
    """An infeasible node may have any score, a feasible one may not."""
    if not answers.invalid:
        return
    for scorer in (*kept.fixed, *kept.usage):
        invalid = answers.invalid.get(scorer.name)
        if invalid is not None and invalid[rows].any():
            raise scorer.invalid(-1)
