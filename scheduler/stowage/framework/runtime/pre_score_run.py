"""Runs PreScore plugins on the feasible nodes of a pod."""

from __future__ import annotations

from collections.abc import Sequence

from stowage.api.status import SUCCESS, Code, Status
from stowage.framework.cycle_state import CycleState
from stowage.framework.extension_points import PreScorePlugin
from stowage.framework.failure import failed
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView


def run_pre_score_plugins(
    plugins: Sequence[PreScorePlugin], state: CycleState, pod: PodInfo, nodes: NodeView
) -> Status:
    """Run all PreScore plugins until one fails; ``RunPreScorePlugins`` of v1.36.

    Names of plugins that return Skip are added to ``state.skip_score``.
    """
    for plugin in plugins:
        ask, timings = plugin.pre_score, state.timings
        if timings is not None:
            ask = timings.of_plugin(plugin.name, "PreScore", ask)
        try:
            status = ask(state, pod, nodes)
        except Exception as problem:
            doing = f'running PreScore plugin "{plugin.name}"'
            return failed(doing, plugin.name, problem).status
        if status.code is Code.SKIP:
            state.skip_score.add(plugin.name)
        elif status.code is not Code.SUCCESS:
            doing = f'running PreScore plugin "{plugin.name}"'
            return failed(doing, plugin.name, status).status
    return SUCCESS
