"""Filters row-local what-ifs: each node with its own changed pods, all other nodes unchanged."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stowage.api.status import Code, Status
from stowage.framework.cycle_state import CycleState
from stowage.framework.extension_points import FilterPlugin, PreFilterPlugin
from stowage.framework.implements import implements
from stowage.framework.node_verdicts import NodeVerdicts, PluginVerdict
from stowage.framework.plugin_traits import Reads
from stowage.framework.runtime.filter_run import verdict_of
from stowage.framework.runtime.pre_filter_run import no_node_left, run_pre_filter_plugins
from stowage.framework.verdict import BoolArray, FilterErrors, FilterVerdict, Int64Array, Rejection
from stowage.state.pods.pod_info import PodInfo
from stowage.state.what_if.added_pods import NO_ADDED_PODS, AddedPods
from stowage.state.what_if.row_local import RowWhatIf


def judges_rows(plugin: FilterPlugin) -> bool:
    """Whether a plugin can judge a row-local view; see `FilterPlugin`."""
    return plugin.traits.filters_what_ifs or not reads_pods(plugin)


def reads_pods(plugin: FilterPlugin) -> bool:
    """Whether a plugin's answer may change when placed pods change."""
    return plugin.traits.filter_reads is not Reads.NODE and plugin.traits.reads_placed_pods


class RowFilter:
    """Runs the Filter plugins of one cycle on what-ifs.

    A plugin that cannot judge a row-local view is asked about one node at a time, each in a what-if
    of the whole cluster on which its PreFilter runs again: correct, but slow.

    Args:
        plugins: The plugins that PreFilter did not skip, in order.
        state: The cycle's state.
        pod: The pod being scheduled.
        counts_all: Whether every plugin that rejects a node counts; see `NodeVerdicts`.
    """

    def __init__(
        self,
        plugins: Sequence[FilterPlugin],
        state: CycleState,
        pod: PodInfo,
        *,
        counts_all: bool = False,
    ) -> None:
        self._counts_all = counts_all
        self._plugins = plugins
        self._by_pods = [plugin for plugin in plugins if reads_pods(plugin)]
        self._state = state
        self._pod = pod

    def judge(
        self, what_if: RowWhatIf, positions: Int64Array, added: AddedPods = NO_ADDED_PODS
    ) -> NodeVerdicts:
        """Answers about these nodes; a plugin may leave out nodes that an earlier one rejected."""
        return self._judge(self._plugins, what_if, positions, added)

    def accepts(
        self, what_if: RowWhatIf, positions: Int64Array, added: AddedPods = NO_ADDED_PODS
    ) -> BoolArray:
        """``bool[positions]``: the nodes that the pod still fits.

        Only plugins that read placed pods are asked: the nodes have passed the others.
        """
        return self._judge(self._by_pods, what_if, positions, added).feasible()

    def _judge(
        self,
        plugins: Sequence[FilterPlugin],
        what_if: RowWhatIf,
        positions: Int64Array,
        added: AddedPods,
    ) -> NodeVerdicts:
        view = what_if.view(positions, added)
        answers: list[PluginVerdict] = []
        if not len(positions):
            return NodeVerdicts(view, answers, self._counts_all)
        accepted = np.ones(len(positions), dtype=np.bool_)
        for plugin in plugins:
            if judges_rows(plugin):
                verdict = verdict_of(plugin, self._state, self._pod, view)
            else:
                verdict = self._one_by_one(plugin, what_if, positions, added, accepted)
            if not verdict.accepts_all:
                answers.append(PluginVerdict(plugin.name, verdict))
                if not self._counts_all:
                    accepted &= ~verdict.rejected(len(accepted))
        return NodeVerdicts(view, answers, self._counts_all)

    def _one_by_one(
        self,
        plugin: FilterPlugin,
        what_if: RowWhatIf,
        positions: Int64Array,
        added: AddedPods,
        asked: BoolArray,
    ) -> FilterVerdict:
        statuses = {}
        for position in np.flatnonzero(asked).tolist():
            status = self._alone(plugin, what_if, int(positions[position]), added.on(position))
            if not status.is_success:
                statuses[position] = status
        return as_verdict(statuses, len(positions))

    def _alone(
        self, plugin: FilterPlugin, what_if: RowWhatIf, position: int, added: Sequence[PodInfo]
    ) -> Status:
        snapshot = what_if.snapshot_of(position, added)
        state = self._state.blank()
        view = snapshot.view(what_if.rows[position : position + 1])
        if implements(plugin, PreFilterPlugin):
            outcome = run_pre_filter_plugins((plugin,), state, self._pod, snapshot)
            if not outcome.status.is_success:
                return outcome.status
            if plugin.name in state.skip_filter:
                return Status()
            if outcome.node_names is not None and view.names[0] not in outcome.node_names:
                return no_node_left({plugin.name})
        verdict = verdict_of(plugin, state, self._pod, view)
        return PluginVerdict(plugin.name, verdict).status(0)


def as_verdict(statuses: dict[int, Status], num_nodes: int) -> FilterVerdict:
    """One verdict from rejections and errors of single nodes, by their position in a view.

    A PreFilter may reject without a reason; the name of the code stands for one.
    """
    masks: dict[tuple[str, bool], BoolArray] = {}
    failed = {at: status.message for at, status in statuses.items() if not status.is_rejected}
    for position, status in statuses.items():
        if position in failed:
            continue
        for reason in status.reasons or (status.code.title,):
            key = (reason, status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
            masks.setdefault(key, np.zeros(num_nodes, dtype=np.bool_))[position] = True
    rejections = tuple(Rejection(reason, mask, final) for (reason, final), mask in masks.items())
    if not failed:
        return FilterVerdict(rejections)
    mask = np.zeros(num_nodes, dtype=np.bool_)
    mask[list(failed)] = True
    return FilterVerdict(rejections, FilterErrors(mask, failed.__getitem__))
