"""Running Filter plugins over all nodes at once, and only over changed rows where possible."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from scheduler.framework.class_cache import Changes, ClassCache, FilterAnswers, Seen
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.extension_points import FilterPlugin, Reads
from scheduler.framework.failure import failed
from scheduler.framework.filter_result import FilterResult
from scheduler.framework.node_verdicts import NodeVerdicts, PluginVerdict
from scheduler.framework.verdict import BoolArray, FilterVerdict, Int64Array
from scheduler.state.pod_info import PodInfo
from scheduler.state.snapshot import NodeView, Snapshot

#: A search narrowed to less than this share of the rows is not worth the cache.
_NARROW = 4


class ActiveFilters(msgspec.Struct, frozen=True, eq=False):
    """The Filter plugins that run for a pod, in order, and by what their answers depend on."""

    all: tuple[FilterPlugin, ...]
    node: tuple[FilterPlugin, ...]
    usage: tuple[FilterPlugin, ...]
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
        accepted = self._accepted(active, state, pod, snapshot)
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
                tuple(p for p in running if p.filter_reads is Reads.NODE),
                tuple(p for p in running if p.filter_reads is Reads.USAGE),
                tuple(p for p in running if p.filter_reads in (Reads.NODES, Reads.CLUSTER)),
            )
            self._by_skip[skipped] = active
        return active

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
        self, active: ActiveFilters, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> FilterAnswers:
        """The class's answers, brought up to date; the cache's own: not to be written."""
        class_id = pod.pod_class.id
        answers = self._cache.get(class_id)
        if answers is not None and answers.active is active:
            changes = answers.seen.advance(snapshot)
            if changes is not None:
                try:
                    _judge_again(answers, active, state, pod, snapshot, changes)
                except Exception:
                    self._cache.drop(class_id)
                    raise
                return answers
        seen = Seen.now(snapshot)
        view = snapshot.all_nodes
        node_accepts = view.exists & _accept(active.node, state, pod, view)
        usage_accepts = _accept(active.usage, state, pod, view)
        answers = FilterAnswers(
            active, seen, node_accepts, usage_accepts, node_accepts & usage_accepts
        )
        self._cache.put(class_id, answers)
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
    active: ActiveFilters,
    state: CycleState,
    pod: PodInfo,
    snapshot: Snapshot,
    changes: Changes,
) -> None:
    rows = changes.nodes
    if len(rows):
        view = snapshot.view(rows)
        answers.node_accepts[rows] = view.exists & _accept(active.node, state, pod, view)
    rows = changes.usage
    if len(rows):
        view = snapshot.view(rows)
        accepts = _accept(active.usage, state, pod, view)
        answers.usage_accepts[rows] = accepts
        feasible = accepts & answers.node_accepts[rows]
        if (feasible != answers.feasible[rows]).any():
            answers.feasible[rows] = feasible
            answers.rows = None


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
