"""One Score plugin with its weight; checks its answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeGuard

from stowage.framework.cycle_state import CycleState
from stowage.framework.extension_points import NormalizeScorePlugin, ScorePlugin
from stowage.framework.failure import PluginFailed, failed
from stowage.framework.implements import implements
from stowage.framework.scores import MAX_NODE_SCORE, any_out_of_range, out_of_range
from stowage.framework.shared_scores import SharedScorePlugin, SharedScores
from stowage.framework.timings import timed_plugin
from stowage.framework.verdict import Int64Array
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView


class WeightedPlugin:
    """A Score plugin of a profile.

    Attributes:
        name: The plugin's name.
        weight: Its weight in the profile.
        traits: The plugin's traits.
        normalizes: Whether it has a NormalizeScore.
    """

    __slots__ = (
        "_ask",
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
        self._normalize = (
            plugin.normalize_score if implements(plugin, NormalizeScorePlugin) else None
        )
        self.normalizes = self._normalize is not None
        self._ask = plugin.shared_scores if _shares_scores(plugin) else plugin.score

    def shared(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> SharedScores | Int64Array:
        """`raw`, or the same scores by the distinct ones.

        Raises:
            PluginFailed: The plugin raised.
        """
        ask: Callable[..., SharedScores | Int64Array] = self._ask
        if state.timings is not None:
            ask = state.timings.of_plugin(self.name, "Score", ask)
        try:
            return ask(state, pod, nodes)
        except Exception as error:
            raise self._failed("running Score plugins", error) from error

    def raw(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        """The plugin's raw scores, ``int64[len(nodes)]``.

        Raises:
            PluginFailed: The plugin raised.
        """
        ask, timings = self._plugin.score, state.timings
        if timings is not None:
            ask = timings.of_plugin(self.name, "Score", ask)
        try:
            return ask(state, pod, nodes)
        except Exception as error:
            raise self._failed("running Score plugins", error) from error

    def normalized(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, raw: Int64Array
    ) -> Int64Array:
        """The raw scores of the feasible `nodes`, normalised and checked.

        Raises:
            PluginFailed: The plugin raised, or a score is not in 0..100.
        """
        scores = raw
        if self._normalize is not None:
            ask = timed_plugin(state.timings, self.name, "ScoreExtensionNormalize", self._normalize)
            try:
                scores = ask(state, pod, nodes, raw)
            except Exception as error:
                raise self._failed("running Normalize on Score plugins", error) from error
        if any_out_of_range(scores):
            raise self.invalid(int(scores[out_of_range(scores)][0]))
        return scores

    def invalid(self, score: int) -> PluginFailed:
        """The failure for a score outside 0..100, in kube-scheduler's words."""
        text = (
            f'plugin "{self.name}" returns an invalid score {score}, it should in the range of '
            f"[0, {MAX_NODE_SCORE}] after normalizing"
        )
        doing = "applying score defaultWeights on Score plugins"
        return failed(doing, self.name, ValueError(text))

    def _failed(self, doing: str, error: Exception) -> PluginFailed:
        return failed(f'{doing}: plugin "{self.name}" failed with', self.name, error)


def _shares_scores(plugin: ScorePlugin) -> TypeGuard[SharedScorePlugin]:
    """Whether a plugin's `shared_scores` stands for its `score` and `normalize_score`.

    It does not if a class that inherits it, or the object itself, overrides one of the two: then
    the override is asked, about every node.
    """
    if not implements(plugin, SharedScorePlugin):
        return False
    for holder in (plugin, *type(plugin).__mro__):
        own = getattr(holder, "__dict__", {})
        if "shared_scores" in own:
            return True
        if "score" in own or "normalize_score" in own:
            return False
    return False
