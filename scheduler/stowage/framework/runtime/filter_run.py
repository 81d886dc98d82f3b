"""Runs Filter plugins over all nodes, or only over changed rows where answers are kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np

from stowage.api.status import error
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

_NONE_KNOWN: Mapping[str, FilterVerdict] = {}
_KEPT = (Reads.NODE, Reads.USAGE)
#: Filtering less than 1/4 of the rows costs less than updating the kept answers.
_NARROW = 4


class KeptFilters(msgspec.Struct, frozen=True, eq=False):
    """The Filter plugins whose answers are kept; equal sets are the same object.

    Attributes:
        node: The plugins with `Reads.NODE`.
        usage: The plugins with `Reads.USAGE`.
        per_demand: Whether all of them read only the pod's node demand.
        by_amounts: Whether all plugins of `usage` read only amounts.
    """

    node: tuple[FilterPlugin, ...]
    usage: tuple[FilterPlugin, ...]
    per_demand: bool
    by_amounts: bool


class ActiveFilters(msgspec.Struct, frozen=True, eq=False):
    """The Filter plugins that run for a pod.

    Attributes:
        all: All of them, in order.
        kept: Those whose answers are kept.
        cluster: Those that are asked in each cycle.
        per_demand: Whether all of them read only the pod's node demand.
    """

    all: tuple[FilterPlugin, ...]
    kept: KeptFilters
    cluster: tuple[FilterPlugin, ...]
    per_demand: bool


class FilterRun:
    """Runs the Filter plugins of one profile.

    Args:
        plugins: In order.
        cache: Answers per class; not shared.
        counts_all: Whether every plugin that rejects a node counts; see `NodeVerdicts`.
    """

    def __init__(
        self,
        plugins: Sequence[FilterPlugin],
        cache: ClassCache[FilterAnswers],
        *,
        counts_all: bool = False,
    ) -> None:
        self._counts_all = counts_all
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
        """Filter all nodes, or those of `node_names` that exist, without nominated pods.

        Raises:
            PluginFailed: A plugin raised.
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
        known: dict[str, FilterVerdict] = {}
        feasible, failed_somewhere = _narrow(active.cluster, state, pod, snapshot, feasible, known)
        if node_names is not None:
            known.clear()  # they are about all nodes
        if failed_somewhere:
            _raise_first(self._verdicts(active, state, pod, asked, known))
        return FilterResult(
            feasible,
            asked,
            lambda: self._verdicts(active, state, pod, asked, known),
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
                per_demand=all(p.traits.reads_only_node_demand for p in running),
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
        self,
        plugins: Iterable[FilterPlugin],
        state: CycleState,
        pod: PodInfo,
        view: NodeView,
        known: Mapping[str, FilterVerdict] = _NONE_KNOWN,
    ) -> list[PluginVerdict]:
        """Every plugin's full answer about the nodes of `view`.

        Plugins in `known` are not asked: they have answered in this cycle about the same nodes.
        """
        return [
            PluginVerdict(each.name, known.get(each.name) or verdict_of(each, state, pod, view))
            for each in plugins
        ]

    def _verdicts(
        self,
        active: ActiveFilters,
        state: CycleState,
        pod: PodInfo,
        view: NodeView,
        known: Mapping[str, FilterVerdict] = _NONE_KNOWN,
    ) -> NodeVerdicts:
        answers = self.judge(active.all, state, pod, view, known)
        return NodeVerdicts(view, answers, self._counts_all)

    def _run_on(
        self, active: ActiveFilters, state: CycleState, pod: PodInfo, view: NodeView
    ) -> FilterResult:
        verdicts = self._verdicts(active, state, pod, view)
        _raise_first(verdicts)
        accepted = verdicts.feasible()
        feasible = np.zeros(view.snapshot.num_rows, dtype=np.bool_)
        feasible[view.rows] = accepted
        return FilterResult(feasible, view, lambda: verdicts)

    def _accepted(
        self, kept: KeptFilters, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> FilterAnswers:
        """The updated answers of the pod's class; they belong to the cache and are read-only."""
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
    known: dict[str, FilterVerdict],
) -> tuple[BoolArray, bool]:
    """The nodes of `feasible` that these plugins accept, and whether one of them failed somewhere.

    The mask is `feasible` itself if they accept all. `known` receives their answers, by plugin.
    """
    failed_somewhere = False
    for plugin in plugins:
        verdict = known[plugin.name] = verdict_of(plugin, state, pod, snapshot.all_nodes)
        if not verdict.accepts_all:
            feasible = feasible & ~verdict.rejected(len(feasible))
            failed_somewhere |= verdict.errors is not None
    return feasible, failed_somewhere


def _raise_first(verdicts: NodeVerdicts) -> None:
    """Raise if a plugin failed for a node that no plugin before it rejects."""
    first = verdicts.first_error()
    if first is not None:
        plugin, text = first
        raise failed(f'running "{plugin}" filter plugin', plugin, error(text))


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
        PluginFailed: The plugin raised.
    """
    ask, timings = plugin.filter, state.timings
    if timings is not None:
        ask = timings.of_plugin(plugin.name, "Filter", ask)
    try:
        return ask(state, pod, view)
    except Exception as error:
        doing = f'running "{plugin.name}" filter plugin'
        raise failed(doing, plugin.name, error) from error


def _mask(rows: Int64Array, num_rows: int) -> BoolArray:
    mask = np.zeros(num_rows, dtype=np.bool_)
    mask[rows] = True
    return mask
