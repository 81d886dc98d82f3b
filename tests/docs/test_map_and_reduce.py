"""The plugin and the configurations in docs/how-to/score-by-map-and-reduce.md work."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from stowage.api.config.loading import load_configuration
from stowage.api.objects.node import NodeSelectorRequirement, NodeSelectorTerm
from stowage.api.objects.pod import Affinity, NodeAffinity, PreferredSchedulingTerm
from stowage.cli.policy_file import policy_builtins
from stowage.cli.profiles import make_frameworks
from stowage.framework import CycleState, plugin_factory
from stowage.framework.profile.registry import NoArgs, PluginFactory
from stowage.plugins import in_tree_registry
from tests.support.builders import make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster, existing_nodes

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/how-to/score-by-map-and-reduce.md").read_text("utf-8")
SAMPLE = ROOT / "examples/plugins/stowage_example/preferred_terms.py"


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def _factory() -> PluginFactory:
    """The plugin of the page."""
    names: dict[str, Any] = {}
    exec(_blocks("python")[0], names)
    return plugin_factory(names["PreferredTerms"])


def _preferring(*terms: tuple[int, str, str]) -> Affinity:
    preferred = tuple(
        PreferredSchedulingTerm(
            weight, NodeSelectorTerm((NodeSelectorRequirement(key, "In", (value,)),))
        )
        for weight, key, value in terms
    )
    affinity = NodeAffinity(preferred_during_scheduling_ignored_during_execution=preferred)
    return Affinity(node_affinity=affinity)


def test_the_page_shows_the_sample() -> None:
    assert _blocks("python") == [SAMPLE.read_text("utf-8")]


@pytest.mark.parametrize("name", ["PreferredTerms", "NodeAffinityPriority"])
def test_map_and_reduce_give_the_numbers_of_the_table(name: str) -> None:
    """The in-tree plugin that computes the same gives the same scores."""
    labels = {"both": {"disk": "ssd", "zone": "a"}, "fast": {"disk": "ssd"}, "near": {"zone": "a"}}
    names = (*labels, "other")
    nodes = [make_node(node, labels=labels.get(node)) for node in names]
    pod = make_pod("p", affinity=_preferring((3, "disk", "ssd"), (1, "zone", "a")))
    cluster = MirroredCluster(nodes)
    plugin: Any = in_tree_registry().merged_with(_factory())[name].construct(NoArgs())
    state, info, view = CycleState(), cluster.info(pod), existing_nodes(cluster.snapshot())
    if hasattr(plugin, "pre_score"):
        plugin.pre_score(state, info, view)
    raw = plugin.score(state, info, view)
    scores = plugin.normalize_score(state, info, view, raw)
    want = re.findall(r"^\| `(\w+)` \|.*\| (\d+) \| .* \| (\d+) \|$", TEXT, re.MULTILINE)
    assert [node for node, _, _ in want] == view.names
    assert raw.tolist() == [int(number) for _, number, _ in want]
    assert scores.tolist() == [int(score) for _, _, score in want]


def test_a_pod_without_preferences_scores_nothing_anywhere() -> None:
    cluster = MirroredCluster([make_node("a"), make_node("b")])
    plugin: Any = _factory().construct(NoArgs())
    info, view = cluster.info(make_pod("p")), existing_nodes(cluster.snapshot())
    raw = plugin.score(CycleState(), info, view)
    assert plugin.normalize_score(CycleState(), info, view, raw).tolist() == [0, 0]


def test_the_configurations_of_the_page_are_valid() -> None:
    registry = in_tree_registry().merged_with(_factory())
    own, equal = (
        make_frameworks(load_configuration(yaml.safe_load(text)), registry)[0].profile.weights
        for text in _blocks("yaml")
    )
    assert own["PreferredTerms"] == 2
    assert "NodeAffinity" not in own
    assert equal == {"EqualPriority": 1}
    policy = {"kind": "Policy", "apiVersion": "v1", "priorities": []}
    (converted,) = make_frameworks(load_configuration(policy_builtins(policy)))
    assert converted.profile.weights == equal
