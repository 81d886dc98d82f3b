"""One Score plugin with its weight, watched for what it must not answer."""

from __future__ import annotations

import numpy as np

from stowage.framework.cycle_state import CycleState
from stowage.framework.extension_points import NormalizeScorePlugin, ScorePlugin
from stowage.framework.failure import PluginFailed, failed
from stowage.framework.scores import MAX_NODE_SCORE, any_out_of_range, out_of_range
from stowage.framework.verdict import Int64Array
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView


class WeightedPlugin:
    """Calls one Score plugin.

    Attributes:
        name: The plugin's name.
        weight: Its weight in the profile.
        traits: The plugin's traits.
        normalizes: Whether it has a NormalizeScore.
    """

    __slots__ = (
        "_normalize",
        "_plugin",
        "name",
        "normalizes",
        "traits",
        "weight",
    )

    def __init__(self, plugin: ScorePlugin, weight: int) -> None:
        self._plugin = plugin
        self.name = plugin.name
        self.weight = weight
        self.traits = plugin.traits
        # Asking whether a plugin has a method is dear: once is enough.
        self._normalize = (
            plugin.normalize_score if isinstance(plugin, NormalizeScorePlugin) else None
        )
        self.normalizes = self._normalize is not None

    def raw(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        """What the plugin's Score returns, ``int64[len(nodes)]``.

        Raises:
            PluginFailed: It raised, or returned something else.
        """
        ask, timings = self._plugin.score, state.timings
        if timings is not None:
            ask = timings.of_plugin(self.name, "Score", ask)
        try:
            scores = ask(state, pod, nodes)
        except Exception as error:
            raise self._failed(error) from error
        if len(scores) != len(nodes) or scores.dtype != np.int64:
            text = f"scores are {scores.dtype}{scores.shape}, expected int64({len(nodes)},)"
            raise self._failed(ValueError(text))
        return scores

    def normalized(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, raw: Int64Array
    ) -> Int64Array:
        """The raw scores of the feasible `nodes` brought to 0..100, checked.

        Raises:
            PluginFailed: The plugin raised, or a score is not in 0..100.
        """
        scores = raw
        if self._normalize is not None:
            try:
                scores = self._normalize(state, pod, nodes, raw)
            except Exception as error:
                raise self._failed(error) from error
        if any_out_of_range(scores):
            raise self.invalid(int(scores[out_of_range(scores)][0]))
        return scores

    def invalid(self, score: int) -> PluginFailed:
        """The failure to stay in 0..100."""
        text = f"plugin returned an invalid score {score}, it should be in [0, {MAX_NODE_SCORE}]"
        return self._failed(ValueError(text))

    def _failed(self, error: Exception) -> PluginFailed:
        return failed(f'plugin "{self.name}" failed with', self.name, error)
