"""Running Filter plugins over all nodes at once, and only over changed rows where possible."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from stowage.framework.cycle_state import CycleState
from stowage.framework.extension_points import FilterPlugin
from stowage.framework.failure import failed
from stowage.framework.filter_result import FilterResult
from stowage.framework.node_verdicts import NodeVerdicts, PluginVerdict
from stowage.framework.plugin_traits import Reads
from stowage.framework.runtime.class_cache import Changes, ClassCache, FilterAnswers, Seen, id_of
from stowage.framework.verdict import BoolArray, FilterVerdict, Int64Array
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView, Snapshot

_KEPT = (Reads.NODE, Reads.USAGE)
#: A search narrowed to less than this share of the rows is not worth the cache.
_NARROW = 4


class KeptFilters(msgspec.Struct, frozen=True, eq=False):
    """Filter plugins whose answers are kept; for the same plugins it is the same object.

    Attributes:
        node: Those that read nodes.
        usage: Those that read usage as well.
        per_demand: Whether classes of one demand get the same answers.
        by_amounts: Whether the latter go by amounts only.
    """

    node: tuple[FilterPlugin, ...]
    usage: tuple[FilterPlugin, ...]
    per_demand: bool
    by_amounts: bool


class ActiveFilters(msgspec.Struct, frozen=True, eq=False):
    """The Filter plugins that run for a pod, in order, and by what their answers depend on."""

    all: tuple[FilterPlugin, ...]
    kept: KeptFilters
    cluster: tuple[FilterPlugin, ...]


class FilterRun:
    """Runs the Filter plugins of one profile.

    Args:
        plugins: In order.
        cache: Answers per class; shared with nobody.
    """

    def __init__(self, plugins: Sequence[FilterPlugin], cache: ClassCache[FilterAnswers]) -> None:
        self._plugins = tuple(plugins)
        self._names = frozenset(plugin.name for plugin in plugins)
        self._cache = cache
        self._by_skip: dict[frozenset[str], ActiveFilters] = {}
        self._kept: dict[tuple[str, ...], KeptFilters] = {}

    def run(
        self,
        state: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        node_names: frozenset[str] | None = None,
    ) -> FilterResult:
        """Judge all nodes, or those of `node_names` that exist, without nominated pods.

        Raises:
            PluginFailed: A plugin raised or answered masks of a wrong length.
        """
        active = self.active(state)
        if node_names is not None:
            rows = rows_of(node_names, snapshot)
            if len(rows) * _NARROW < snapshot.num_rows or not self._cache.serves(snapshot):
                return self._run_on(active, state, pod, snapshot.view(rows))
        elif not self._cache.serves(snapshot):
            return self._run_on(active, state, pod, snapshot.all_nodes)
        accepted = self._accepted(active.kept, state, pod, snapshot)
        feasible = accepted.feasible
        asked = snapshot.all_nodes
        if node_names is not None:
            feasible = feasible & _mask(rows, snapshot.num_rows)
            asked = snapshot.view(rows)
        feasible = _narrow(active.cluster, state, pod, snapshot, feasible)
        return FilterResult(
            feasible,
            asked,
            lambda: NodeVerdicts(asked, self.judge(active.all, state, pod, asked)),
            rows=accepted.feasible_rows() if feasible is accepted.feasible else None,
        )

    def active(self, state: CycleState) -> ActiveFilters:
        """The plugins that PreFilter did not skip."""
        skipped = self._names.intersection(state.skip_filter)
        active = self._by_skip.get(skipped)
        if active is None:
            running = tuple(plugin for plugin in self._plugins if plugin.name not in skipped)
            active = ActiveFilters(
                running,
                self._keep([p for p in running if p.traits.filter_reads in _KEPT]),
                tuple(p for p in running if p.traits.filter_reads not in _KEPT),
            )
            self._by_skip[skipped] = active
        return active

    def _keep(self, plugins: Sequence[FilterPlugin]) -> KeptFilters:
        names = tuple(plugin.name for plugin in plugins)
        kept = self._kept.get(names)
        if kept is None:
            usage = tuple(p for p in plugins if p.traits.filter_reads is Reads.USAGE)
            kept = self._kept[names] = KeptFilters(
                tuple(p for p in plugins if p.traits.filter_reads is Reads.NODE),
                usage,
                per_demand=all(p.traits.reads_only_node_demand for p in plugins),
                by_amounts=all(p.traits.reads_only_amounts for p in usage),
            )
        return kept

    def judge(
        self, plugins: Iterable[FilterPlugin], state: CycleState, pod: PodInfo, view: NodeView
    ) -> list[PluginVerdict]:
        """Every plugin's full answer about the nodes of `view`."""
        return [
            PluginVerdict(plugin.name, verdict_of(plugin, state, pod, view)) for plugin in plugins
        ]

    def _run_on(
        self, active: ActiveFilters, state: CycleState, pod: PodInfo, view: NodeView
    ) -> FilterResult:
        verdicts = NodeVerdicts(view, self.judge(active.all, state, pod, view))
        accepted = verdicts.feasible()
        feasible = np.zeros(view.snapshot.num_rows, dtype=np.bool_)
        feasible[view.rows] = accepted
        return FilterResult(feasible, view, lambda: verdicts)

    def _accepted(
        self, kept: KeptFilters, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> FilterAnswers:
        """The class's answers, brought up to date; the cache's own: not to be written."""
        key = id_of(pod, per_demand=kept.per_demand)
        answers = self._cache.get(key)
        if answers is not None and answers.active is kept:
            changes = answers.seen.advance(snapshot)
            if changes is not None:
                try:
                    _judge_again(answers, kept, state, pod, snapshot, changes)
                except Exception:
                    self._cache.drop(key)
                    raise
                return answers
        seen = Seen.now(snapshot)
        view = snapshot.all_nodes
        node_accepts = view.exists & _accept(kept.node, state, pod, view)
        usage_accepts = _accept(kept.usage, state, pod, view)
        answers = FilterAnswers(
            kept, seen, node_accepts, usage_accepts, node_accepts & usage_accepts
        )
        self._cache.put(key, answers)
        return answers


def rows_of(node_names: Iterable[str], snapshot: Snapshot) -> Int64Array:
    """The rows of those nodes that exist, ascending."""
    rows = [row for name in node_names if (row := snapshot.row_of(name)) is not None]
    return np.array(sorted(rows), dtype=np.int64)


def _narrow(
    plugins: Sequence[FilterPlugin],
    state: CycleState,
    pod: PodInfo,
    snapshot: Snapshot,
    feasible: BoolArray,
) -> BoolArray:
    """The nodes of `feasible` that these plugins accept; `feasible` itself if that is all."""
    for plugin in plugins:
        verdict = verdict_of(plugin, state, pod, snapshot.all_nodes)
        if not verdict.accepts_all:
            feasible = feasible & ~verdict.rejected(len(feasible))
    return feasible


def _judge_again(
    answers: FilterAnswers,
    kept: KeptFilters,
    state: CycleState,
    pod: PodInfo,
    snapshot: Snapshot,
    changes: Changes,
) -> None:
    rows = changes.nodes
    if len(rows):
        view = snapshot.view(rows)
        answers.node_accepts[rows] = view.exists & _accept(kept.node, state, pod, view)
    rows = changes.usage
    if kept.by_amounts:
        rows = answers.by_amounts.recall(snapshot, rows, answers.note_usage)
    if len(rows):
        accepts = _accept(kept.usage, state, pod, snapshot.view(rows))
        answers.usage_accepts[rows] = accepts
        feasible = accepts & answers.node_accepts[rows]
        if (feasible != answers.feasible[rows]).any():
            answers.feasible[rows] = feasible
            answers.rows = None
        if kept.by_amounts:
            answers.by_amounts.learn(snapshot, rows, accepts.tolist())


def _accept(
    plugins: Sequence[FilterPlugin], state: CycleState, pod: PodInfo, view: NodeView
) -> BoolArray:
    accepts = np.ones(len(view), dtype=np.bool_)
    for plugin in plugins:
        for rejection in verdict_of(plugin, state, pod, view).rejections:
            accepts &= ~rejection.mask
    return accepts


def verdict_of(
    plugin: FilterPlugin, state: CycleState, pod: PodInfo, view: NodeView
) -> FilterVerdict:
    """One plugin's answer about the nodes of `view`.

    Raises:
        PluginFailed: It raised, or answered masks of a wrong length.
    """
    ask, timings = plugin.filter, state.timings
    if timings is not None:
        ask = timings.of_plugin(plugin.name, "Filter", ask)
    try:
        verdict = ask(state, pod, view)
    except Exception as error:
        raise failed(_doing(plugin), plugin.name, error) from error
    for rejection in verdict.rejections:
        if len(rejection.mask) != len(view) or rejection.mask.dtype != np.bool_:
            problem = ValueError(
                f"mask of {rejection.reason!r} is {rejection.mask.dtype}{rejection.mask.shape}, "
                f"expected bool({len(view)},)"
            )
            raise failed(_doing(plugin), plugin.name, problem)
    return verdict


def _doing(plugin: FilterPlugin) -> str:
    return f'running "{plugin.name}" filter plugin'


def _mask(rows: Int64Array, num_rows: int) -> BoolArray:
    mask = np.zeros(num_rows, dtype=np.bool_)
    mask[rows] = True
    return mask
