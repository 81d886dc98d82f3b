"""Runs PreFilter plugins: whether the pod can be scheduled at all, and on which nodes."""

from __future__ import annotations

from collections.abc import Sequence

from stowage.api.status import REJECTIONS, SUCCESS, Code, Status, unresolvable
from stowage.framework.cycle_state import CycleState
from stowage.framework.extension_points import PreFilterPlugin, PreFilterResult
from stowage.framework.failure import failed
from stowage.framework.filter_result import PreFilterOutcome
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import Snapshot

PASSED = PreFilterOutcome()
_SUCCESS, _SKIP = Code.SUCCESS, Code.SKIP


def run_pre_filter_plugins(
    plugins: Sequence[PreFilterPlugin], state: CycleState, pod: PodInfo, snapshot: Snapshot
) -> PreFilterOutcome:
    """Run all PreFilter plugins; ``RunPreFilterPlugins`` of v1.36.

    Unresolvable rejections and errors end the run. After Unschedulable the other plugins still run,
    because preemption may need their state. Names of plugins that return Skip are added to
    ``state.skip_filter``.
    """
    rejection = SUCCESS
    node_names: frozenset[str] | None = None
    narrowed_by: set[str] = set()
    for plugin in plugins:
        result = _run_one(plugin, state, pod, snapshot)
        code = result.status.code
        if code is _SKIP:
            state.skip_filter.add(plugin.name)
            continue
        if code is Code.UNSCHEDULABLE:
            rejection = result.status.by(plugin.name)
            continue
        if code is not _SUCCESS:
            return PreFilterOutcome(result.status.by(plugin.name))
        if result.node_names is None:
            continue
        narrowed_by.add(plugin.name)
        node_names = result.node_names if node_names is None else node_names & result.node_names
        if not node_names:
            return PreFilterOutcome(no_node_left(narrowed_by), node_names, frozenset(narrowed_by))
    if rejection is SUCCESS and node_names is None:
        return PASSED
    return PreFilterOutcome(rejection, node_names, frozenset(narrowed_by))


def _run_one(
    plugin: PreFilterPlugin, state: CycleState, pod: PodInfo, snapshot: Snapshot
) -> PreFilterResult:
    ask, timings = plugin.pre_filter, state.timings
    if timings is not None:
        ask = timings.of_plugin(plugin.name, "PreFilter", ask)
    try:
        result = ask(state, pod, snapshot)
    except Exception as error:
        doing = f'running PreFilter plugin "{plugin.name}"'
        return PreFilterResult(failed(doing, plugin.name, error).status)
    code = result.status.code
    if code is _SKIP or code is _SUCCESS or code in REJECTIONS:
        return result
    doing = f'running PreFilter plugin "{plugin.name}"'
    return PreFilterResult(failed(doing, plugin.name, result.status).status)


def no_node_left(narrowed_by: set[str]) -> Status:
    """The rejection by plugins that together leave out all the nodes that were asked about."""
    names = sorted(narrowed_by)
    if len(names) == 1:
        return unresolvable(f"node(s) didn't satisfy plugin {names[0]}")
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(names)}] simultaneously")
