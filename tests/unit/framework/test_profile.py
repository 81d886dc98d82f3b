from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from stowage.api.config.feature_gates import FeatureGates, parse_feature_gates
from stowage.api.config.loading import ConfigError, InvalidConfiguration, KubeSchedulerProfile
from stowage.api.decoding.strict_decoding import decode_struct
from stowage.engine import make_engine
from stowage.framework import (
    ACCEPT_ALL,
    CycleState,
    ExtensionPoint,
    Framework,
    PluginTraits,
    Profile,
    Registry,
    build_profile,
)
from stowage.framework.profile.points import PROTOCOLS, points_of, takes_part
from stowage.framework.profile.profile import DEFAULT_MULTI_POINT
from stowage.plugins import in_tree_registry
from tests.support.builders import make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster, existing_nodes, verdicts_by_node


def _profile(registry: Registry | None = None, **fields: Any) -> Profile:
    errors: list[ConfigError] = []
    config = decode_struct(fields, KubeSchedulerProfile, "", errors)
    assert not errors
    return build_profile(config, registry or in_tree_registry())


def _names(profile: Profile, point: ExtensionPoint) -> list[str]:
    return [plugin.name for plugin in profile.plugins[point]]


def _errors(**fields: Any) -> list[str]:
    with pytest.raises(InvalidConfiguration) as caught:
        _profile(**fields)
    return [str(error) for error in caught.value.errors]


def test_an_empty_profile_has_the_default_plugins_in_order() -> None:
    profile = _profile()
    known = [name for name, _ in DEFAULT_MULTI_POINT if name in in_tree_registry()]
    assert list(profile.instances) == known
    filters = _names(profile, ExtensionPoint.FILTER)
    assert filters == [name for name in known if name in filters]
    assert filters[:3] == ["NodeUnschedulable", "NodeName", "TaintToleration"]
    assert filters[-1] == "NodeDeclaredFeatures"
    assert _names(profile, ExtensionPoint.QUEUE_SORT) == ["PrioritySort"]
    assert _names(profile, ExtensionPoint.BIND) == ["DefaultBinder"]


def test_a_default_plugin_whose_gate_is_off_is_in_no_default_profile() -> None:
    off = in_tree_registry(parse_feature_gates(["AllBeta=false"]))
    profile = _profile(off)
    assert "NodeDeclaredFeatures" not in profile.instances
    assert _profile().instances.keys() - profile.instances.keys() == {"NodeDeclaredFeatures"}
    named = _profile(off, plugins={"multiPoint": {"enabled": [{"name": "NodeDeclaredFeatures"}]}})
    assert "NodeDeclaredFeatures" in named.instances


def test_the_engine_knows_the_gates_of_its_plugins() -> None:
    gates = parse_feature_gates(["GenericWorkload=true"])
    engine = make_engine([Framework(_profile(in_tree_registry(gates)))], lambda _ties: 0)
    assert engine.state.gates.enabled("GenericWorkload")
    assert make_engine([Framework(_profile())], lambda _ties: 0).state.gates == FeatureGates()


def test_out_of_tree_plugins_leave_the_gates_as_they_are() -> None:
    gates = parse_feature_gates(["GenericWorkload=true"])
    assert in_tree_registry(gates).merged_with().gates == gates


def test_default_weights_are_those_of_kube_scheduler() -> None:
    weights = _profile().weights
    want = {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "NodeResourcesFit": 1,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "DynamicResources": 2,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
    }
    assert weights == {name: weight for name, weight in want.items() if name in weights}
    assert len(weights) >= 6


def test_a_plugin_disabled_at_all_points_is_not_constructed() -> None:
    profile = _profile(plugins={"multiPoint": {"disabled": [{"name": "TaintToleration"}]}})
    assert "TaintToleration" not in profile.instances
    assert "TaintToleration" not in _names(profile, ExtensionPoint.FILTER)


def test_a_plugin_disabled_at_one_point_stays_enabled_at_others() -> None:
    profile = _profile(plugins={"score": {"disabled": [{"name": "TaintToleration"}]}})
    assert "TaintToleration" in _names(profile, ExtensionPoint.FILTER)
    assert "TaintToleration" not in _names(profile, ExtensionPoint.SCORE)


def test_a_star_disables_all_defaults_of_a_point() -> None:
    score = {"disabled": [{"name": "*"}], "enabled": [{"name": "ImageLocality", "weight": 9}]}
    profile = _profile(plugins={"score": score})
    assert _names(profile, ExtensionPoint.SCORE) == ["ImageLocality"]
    assert profile.weights == {"ImageLocality": 9}
    assert "TaintToleration" in _names(profile, ExtensionPoint.FILTER)


def test_a_star_at_multi_point_leaves_only_enabled_plugins() -> None:
    enabled = [{"name": "PrioritySort"}, {"name": "DefaultBinder"}, {"name": "NodeName"}]
    profile = _profile(plugins={"multiPoint": {"disabled": [{"name": "*"}], "enabled": enabled}})
    assert list(profile.instances) == ["PrioritySort", "DefaultBinder", "NodeName"]


def test_a_weight_at_score_overrides_multi_point_and_puts_the_plugin_first() -> None:
    profile = _profile(plugins={"score": {"enabled": [{"name": "NodeAffinity", "weight": 10}]}})
    assert _names(profile, ExtensionPoint.SCORE)[0] == "NodeAffinity"
    assert profile.weights["NodeAffinity"] == 10


def test_a_negative_weight_is_refused() -> None:
    entry = {"name": "NodeAffinity", "weight": -1}
    assert _errors(plugins={"multiPoint": {"enabled": [entry]}}) == [
        "profiles[0].plugins.multiPoint.enabled[0].weight: -1 (expected at least 1)"
    ]


def test_a_weight_has_32_bits() -> None:
    entry = {"name": "NodeAffinity", "weight": 2**31 - 1}
    assert _profile(plugins={"score": {"enabled": [entry]}}).weights["NodeAffinity"] == 2**31 - 1
    assert _errors(plugins={"multiPoint": {"enabled": [{**entry, "weight": 2**31}]}}) == [
        "profiles[0].plugins.multiPoint.enabled[0].weight: 2147483648 (expected at most 2147483647)"
    ]


def test_a_plugin_disabled_and_enabled_at_a_point_is_last() -> None:
    entry = [{"name": "NodeAffinity", "weight": 10}]
    profile = _profile(
        plugins={"score": {"disabled": [{"name": "NodeAffinity"}], "enabled": entry}}
    )
    assert _names(profile, ExtensionPoint.SCORE)[-1] == "NodeAffinity"
    assert profile.weights["NodeAffinity"] == 10


def test_a_default_enabled_at_multi_point_keeps_its_position_and_gets_the_weight() -> None:
    profile = _profile(
        plugins={"multiPoint": {"enabled": [{"name": "TaintToleration", "weight": 7}]}}
    )
    assert profile.weights["TaintToleration"] == 7
    assert _names(profile, ExtensionPoint.FILTER)[2] == "TaintToleration"


def test_a_weight_of_zero_counts_as_one() -> None:
    profile = _profile(plugins={"multiPoint": {"enabled": [{"name": "TaintToleration"}]}})
    assert profile.weights["TaintToleration"] == 1


def test_a_plugin_gets_its_arguments() -> None:
    meta = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "NodeResourcesFitArgs"}
    args = {**meta, "ignoredResources": ["example.com/foo"]}
    profile = _profile(pluginConfig=[{"name": "NodeResourcesFit", "args": args}])
    cluster = MirroredCluster([make_node("n")])
    pod = cluster.info(make_pod("p", requests={"example.com/foo": "1"}))
    state, snapshot = CycleState(), cluster.snapshot()
    fit: Any = profile.instances["NodeResourcesFit"]
    fit.pre_filter(state, pod, snapshot)
    nodes = existing_nodes(snapshot)
    assert verdicts_by_node(fit.filter(state, pod, nodes), nodes) == {}


def test_all_errors_are_reported_with_path_value_and_expectation() -> None:
    errors = _errors(
        plugins={
            "score": {"enabled": [{"name": "Absent"}, {"name": "NodeName"}]},
            "filter": {"enabled": [{"name": "NodeName"}, {"name": "NodeName"}]},
        },
        pluginConfig=[
            {"name": "Stranger", "args": {}},
            {
                "name": "NodeResourcesFit",
                "args": {
                    "scoringStrategy": {
                        "type": "Best",
                        "resources": [{"name": "cpu", "weight": 101}],
                    }
                },
            },
            {"name": "NodeAffinity", "args": {"addedAfinity": {}}},
            {"name": "VolumeBinding", "args": {"bindTimeoutSeconds": -1}},
        ],
    )
    strategy = "profiles[0].pluginConfig[1].args.scoringStrategy"
    for want in (
        'profiles[0].plugins.score.enabled[0].name: "Absent" (expected the name of a known plugin)',
        (
            'profiles[0].plugins.score.enabled: "NodeName" '
            "(expected a plugin that takes part in score)"
        ),
        (
            'profiles[0].plugins.filter.enabled[1].name: "NodeName" '
            "(expected a plugin not enabled here already)"
        ),
        'profiles[0].pluginConfig[0].name: "Stranger" (expected the name of a known plugin)',
        (
            f'{strategy}.type: "Best" '
            "(expected one of LeastAllocated, MostAllocated, RequestedToCapacityRatio)"
        ),
        f"{strategy}.resources[0].weight: 101 (expected 1 to 100)",
        "profiles[0].pluginConfig[3].args.bindTimeoutSeconds: -1 (expected 0 or more)",
    ):
        assert want in errors
    assert any(
        "addedAfinity" in error and "did you mean addedAffinity" in error for error in errors
    )


def test_ignored_resources_and_groups_are_checked() -> None:
    args = {
        "ignoredResources": ["example.com/a", "not a name"],
        "ignoredResourceGroups": ["example.com", "example.com/a", ""],
    }
    path = "profiles[0].pluginConfig[0].args"
    name = "a resource name such as example.com/foo"
    group = "a group such as example.com, without a slash"
    assert _errors(pluginConfig=[{"name": "NodeResourcesFit", "args": args}]) == [
        f'{path}.ignoredResources[1]: "not a name" (expected {name})',
        f'{path}.ignoredResourceGroups[1]: "example.com/a" (expected {group})',
        f'{path}.ignoredResourceGroups[2]: "" (expected {group})',
    ]


def test_a_profile_needs_a_bind_plugin_and_a_queue_sort_plugin() -> None:
    errors = _errors(plugins={"multiPoint": {"disabled": [{"name": "*"}]}})
    assert errors == [
        "profiles[0].plugins.queueSort: [] (expected exactly one queue sort plugin)",
        "profiles[0].plugins.bind: [] (expected at least one bind plugin)",
    ]


@pytest.mark.parametrize(
    ("shape", "want"),
    [
        ([], "requestedToCapacityRatio.shape: [] (expected at least one point)"),
        (
            [{"utilization": 101, "score": 1}],
            "requestedToCapacityRatio.shape[0].utilization: 101 (expected 0 to 100)",
        ),
        (
            [{"utilization": 50, "score": 1}, {"utilization": 50, "score": 2}],
            (
                "requestedToCapacityRatio.shape[1].utilization: 50 "
                "(expected more than 50, the utilization of the point before)"
            ),
        ),
        (
            [{"utilization": 0, "score": 11}],
            "requestedToCapacityRatio.shape[0].score: 11 (expected 0 to 10)",
        ),
    ],
)
def test_a_shape_must_increase_within_its_bounds(shape: list[dict[str, int]], want: str) -> None:
    strategy = {
        "type": "RequestedToCapacityRatio",
        "requestedToCapacityRatio": {"shape": shape},
    }
    config = [{"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}]
    prefix = "profiles[0].pluginConfig[0].args.scoringStrategy."
    assert _errors(pluginConfig=config) == [prefix + want]


def test_balanced_allocation_refuses_weights_and_duplicate_resources() -> None:
    resources = [{"name": "cpu", "weight": 2}, {"name": "cpu"}]
    config = [{"name": "NodeResourcesBalancedAllocation", "args": {"resources": resources}}]
    assert _errors(pluginConfig=config) == [
        (
            "profiles[0].pluginConfig[0].args.resources[0].weight: 2 "
            "(expected 1: weights have no effect)"
        ),
        (
            'profiles[0].pluginConfig[0].args.resources[1].name: "cpu" '
            "(expected a resource not listed already)"
        ),
    ]


def test_a_registry_refuses_a_second_plugin_with_the_same_name() -> None:
    registry = in_tree_registry()
    with pytest.raises(ValueError, match="a plugin named NodeName already exists"):
        registry.merged_with(registry["NodeName"])


@pytest.mark.parametrize(
    ("point", "plugin"),
    [
        ("preScore", "TaintToleration"),
        ("preScore", "NodeResourcesFit"),
        ("score", "VolumeBinding"),
    ],
)
def test_a_point_at_which_only_the_plugin_of_kube_scheduler_has_work_changes_nothing(
    point: str, plugin: str
) -> None:
    named, default = _profile(plugins={point: {"enabled": [{"name": plugin}]}}), _profile()
    for each in ExtensionPoint:
        assert _names(named, each) == _names(default, each)
    assert named.weights == default.weights


def test_volume_binding_scores_at_the_weight_of_the_profile_if_its_gate_is_on() -> None:
    registry = in_tree_registry(parse_feature_gates(["StorageCapacityScoring=true"]))
    enabled = [{"name": "VolumeBinding", "weight": 3}]
    profile = _profile(registry, plugins={"score": {"enabled": enabled}})
    assert profile.weights["VolumeBinding"] == 3


def test_a_plugin_runs_only_at_points_whose_protocol_it_implements() -> None:
    plugins = [factory.construct(factory.args()) for factory in in_tree_registry().values()]
    seen = {True: 0, False: 0}
    for plugin, point in product(plugins, ExtensionPoint):
        answer = takes_part(plugin, point)
        assert answer == isinstance(plugin, PROTOCOLS[point]), (plugin.name, point)
        seen[answer] += 1
    assert all(seen.values())


def test_a_method_of_one_object_does_not_count_for_others_of_its_class() -> None:
    class Varying:
        name = "Varying"
        traits = PluginTraits()

    plain, filtering = Varying(), Varying()
    filtering.filter = lambda *_arguments: ACCEPT_ALL  # type: ignore[attr-defined]
    for _ in range(2):
        assert points_of(plain) == frozenset()
        assert points_of(filtering) == {ExtensionPoint.FILTER}


def test_a_tie_breaking_plugin_need_not_be_in_the_profile() -> None:
    ties = {"type": "FixedOrder", "seed": 3, "scorePlugins": [{"name": "EqualPriority"}]}
    profile = _profile(tieBreaking=ties)
    assert (profile.ties.type, profile.ties.seed) == ("FixedOrder", 3)
    assert [each.name for each in profile.ties.plugins] == ["EqualPriority"]
    assert "EqualPriority" not in profile.instances


def test_a_tie_breaking_plugin_without_arguments_is_that_of_the_profile() -> None:
    ties = {
        "scorePlugins": [{"name": "NodeResourcesFit"}, {"name": "NodeResourcesFit", "args": {}}]
    }
    profile = _profile(tieBreaking=ties)
    fit = profile.instances["NodeResourcesFit"]
    assert [each is fit for each in profile.ties.plugins] == [True, False]


def test_errors_of_tie_breaking_have_their_path() -> None:
    ties = {
        "scorePlugins": [
            {"name": "NodeResourceFit"},
            {"name": "NodeName"},
            {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "Best"}}},
        ]
    }
    wrong = _errors(tieBreaking=ties)
    path = "profiles[0].tieBreaking.scorePlugins"
    known = "the name of a known plugin; did you mean NodeResourcesFit?"
    assert wrong[0] == f'{path}[0].name: "NodeResourceFit" (expected {known})'
    taking_part = "a plugin that takes part in score"
    assert wrong[1] == f'{path}[1].name: "NodeName" (expected {taking_part})'
    assert wrong[2].startswith(f'{path}[2].args.scoringStrategy.type: "Best"')
    assert len(wrong) == 3
