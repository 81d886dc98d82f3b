"""Policy files and algorithm providers of kube-scheduler 1.12."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from stowage.api.config.legacy_algorithms import (
    DEFAULT_FILTERS,
    DEFAULT_PREDICATES,
    LATER_FILTERS,
    MANDATORY_PREDICATES,
    PREDICATES,
    PRIORITIES,
    PROVIDERS,
)
from stowage.api.config.loading import (
    InvalidConfiguration,
    KubeSchedulerConfiguration,
    load_configuration,
    to_builtins,
)
from stowage.cli.config_file import read_configuration
from stowage.cli.main import app
from stowage.cli.policy_file import policy_builtins, provider_configuration, read_policy
from stowage.cli.profiles import make_extenders, make_frameworks
from stowage.framework.profile.points import ExtensionPoint
from stowage.framework.profile.profile import DEFAULT_MULTI_POINT, Profile
from stowage.plugins import in_tree_registry

HEADER: Mapping[str, Any] = {"kind": "Policy", "apiVersion": "v1"}


def converted(**fields: Any) -> KubeSchedulerConfiguration:
    """The configuration of a Policy."""
    return load_configuration(policy_builtins({**HEADER, **fields}))


def profile_of(**fields: Any) -> Profile:
    """The profile of a Policy."""
    (framework,) = make_frameworks(converted(**fields))
    return framework.profile


def filters(profile: Profile) -> list[str]:
    """The Filter plugins, in their order."""
    return [plugin.name for plugin in profile.plugins[ExtensionPoint.FILTER]]


def refusals(**fields: Any) -> list[str]:
    """The errors of a Policy."""
    with pytest.raises(InvalidConfiguration) as refused:
        policy_builtins({**HEADER, **fields})
    return [str(error) for error in refused.value.errors]


def test_a_policy_without_lists_is_the_default_provider() -> None:
    assert converted() == provider_configuration("DefaultProvider")
    assert converted(predicates=None, priorities=None) == converted()


def test_the_default_provider_has_the_predicates_of_1_12_in_their_order() -> None:
    assert filters(profile_of()) == [
        "CheckNodeCondition",
        "NodeUnschedulable",
        "NodeResourcesFit",
        "NodeName",
        "NodePorts",
        "NodeAffinity",
        "VolumeRestrictions",
        "TaintToleration",
        "MaxEBSVolumeCount",
        "MaxGCEPDVolumeCount",
        "MaxCSIVolumeCount",
        "MaxAzureDiskVolumeCount",
        "VolumeBinding",
        "VolumeZone",
        "CheckNodeMemoryPressure",
        "CheckNodePIDPressure",
        "CheckNodeDiskPressure",
        "InterPodAffinity",
        *LATER_FILTERS,
    ]


def test_the_providers_differ_in_one_priority() -> None:
    default, autoscaler = (
        make_frameworks(provider_configuration(name))[0].profile for name in PROVIDERS
    )
    assert default.weights == {
        "SelectorSpread": 1,
        "InterPodAffinityPriority": 1,
        "LeastRequestedPriority": 1,
        "BalancedResourceAllocation": 1,
        "NodePreferAvoidPods": 10000,
        "NodeAffinityPriority": 1,
        "TaintTolerationPriority": 1,
        "ImageLocalityPriority": 1,
    }
    assert default.weights.keys() ^ autoscaler.weights.keys() == {
        "LeastRequestedPriority",
        "MostRequestedPriority",
    }
    assert filters(default) == filters(autoscaler)
    assert default.percentage_of_nodes_to_score == autoscaler.percentage_of_nodes_to_score == 50


def test_empty_lists_leave_the_mandatory_predicates_and_equal_scores() -> None:
    profile = profile_of(predicates=[], priorities=[])
    assert filters(profile) == ["NodeUnschedulable", "TaintToleration", *LATER_FILTERS]
    pre_filters = {plugin.name for plugin in profile.plugins[ExtensionPoint.PRE_FILTER]}
    assert pre_filters == set(LATER_FILTERS)
    assert profile.weights == {"EqualPriority": 1}


@pytest.mark.parametrize("predicate", PREDICATES)
def test_each_predicate_enables_its_plugins(predicate: str) -> None:
    arguments = {
        "CheckNodeLabelPresence": {"labelsPresence": {"labels": ["a"], "presence": True}},
        "CheckServiceAffinity": {"serviceAffinity": {"labels": ["a"]}},
    }
    entry = {"name": predicate, "argument": arguments.get(predicate)}
    always = ("NodeUnschedulable", "TaintToleration", *LATER_FILTERS)
    profile = profile_of(predicates=[entry])
    assert set(filters(profile)) == {*always, *PREDICATES[predicate]}


@pytest.mark.parametrize("priority", PRIORITIES)
def test_each_priority_is_a_plugin_with_its_weight(priority: str) -> None:
    profile = profile_of(priorities=[{"name": priority, "weight": 7}])
    assert profile.weights == {PRIORITIES[priority]: 7}
    pre_scores = [plugin.name for plugin in profile.plugins[ExtensionPoint.PRE_SCORE]]
    takes_part = priority in ("InterPodAffinityPriority", "NodeAffinityPriority")
    assert pre_scores == ([priority] if takes_part else [])


def test_labels_of_several_entries_become_one_plugin() -> None:
    profile = converted(
        predicates=[
            {"name": "A", "argument": {"labelsPresence": {"labels": ["a", "b"], "presence": True}}},
            {"name": "B", "argument": {"labelsPresence": {"labels": ["c"]}}},
            {"name": "C", "argument": {"serviceAffinity": {"labels": ["rack"]}}},
            {"name": "D", "argument": {"serviceAffinity": {"labels": ["room"]}}},
        ],
        priorities=[
            {"name": "E", "weight": 2, "argument": {"labelPreference": {"label": "ssd"}}},
            {
                "name": "F",
                "weight": 2,
                "argument": {"labelPreference": {"label": "gpu", "presence": True}},
            },
            {"name": "G", "weight": 3, "argument": {"serviceAntiAffinity": {"label": "zone"}}},
        ],
    ).profiles[0]
    assert {entry.name: entry.args for entry in profile.plugin_config} == {
        "NodeLabel": {
            "presentLabels": ["a", "b"],
            "absentLabels": ["c"],
            "absentLabelsPreference": ["ssd"],
            "presentLabelsPreference": ["gpu"],
        },
        "ServiceAffinity": {
            "affinityLabels": ["rack", "room"],
            "antiAffinityLabelsPreference": ["zone"],
        },
    }
    weights = {setting.name: setting.weight for setting in profile.plugins.score.enabled}
    assert weights == {"NodeLabel": 4, "ServiceAffinity": 3}


def test_settings_and_arguments_of_priorities() -> None:
    shape = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
    ratio = {"requestedToCapacityRatioArguments": {"shape": shape}}
    (profile,) = converted(
        priorities=[
            {"name": "InterPodAffinityPriority", "weight": 1},
            {"name": "ServiceSpreadingPriority", "weight": 1},
            {"name": "Fill", "weight": 1, "argument": ratio},
        ],
        hardPodAffinitySymmetricWeight=10,
        alwaysCheckAllPredicates=True,
    ).profiles
    assert {entry.name: entry.args for entry in profile.plugin_config} == {
        "InterPodAffinityPriority": {"hardPodAffinityWeight": 10},
        "SelectorSpread": {"servicesOnly": True},
        "RequestedToCapacityRatioPriority": {"shape": shape},
    }
    assert profile.always_check_all_predicates
    assert profile.tie_breaking.type == "RoundRobin"
    assert not converted().profiles[0].always_check_all_predicates


def test_extenders_have_field_names_in_any_case_and_timeouts_in_nanoseconds() -> None:
    configuration = converted(
        extenders=[
            {
                "urlPrefix": "https://extender",
                "BindVerb": "bind",
                "enableHttps": True,
                "TLSConfig": {"Insecure": True, "ServerName": "other"},
                "httpTimeout": 1_500_000_000,
                "managedResources": [{"name": "example.com/foo", "ignoredByScheduler": True}],
            }
        ]
    )
    (extender,) = make_extenders(configuration).configured
    assert (extender.bind_verb, extender.enable_https, extender.http_timeout) == ("bind", True, 1.5)
    assert extender.tls_config is not None
    assert (extender.tls_config.insecure, extender.tls_config.server_name) == (True, "other")
    assert extender.managed_resources[0].ignored_by_scheduler


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        ({"kind": "Polici"}, ['kind: "Polici" (expected Policy)']),
        ({"apiVersion": None}, ['apiVersion: "" (expected v1)']),
        (
            {"predicate": []},
            ["predicate: [] (expected no such field; did you mean predicates?)"],
        ),
        (
            {"predicates": [{"name": "GeneralPredicate"}]},
            [
                (
                    'predicates[0].name: "GeneralPredicate" (expected a predicate of '
                    "kube-scheduler 1.12; did you mean GeneralPredicates?)"
                )
            ],
        ),
        (
            {"predicates": [{"name": "HostName"}, {"name": "HostName"}, {}]},
            [
                (
                    'predicates[1].name: "HostName" (expected one entry only, predicates[0] has '
                    "this name)"
                ),
                'predicates[2].name: "" (expected a name)',
            ],
        ),
        (
            {"predicates": [{"name": "CheckServiceAffinity"}, {"name": "x", "argument": {}}]},
            [
                "predicates[0].argument: null (expected serviceAffinity)",
                (
                    "predicates[1].argument: [] (expected exactly one of serviceAffinity, "
                    "labelsPresence)"
                ),
            ],
        ),
        (
            {"predicates": [{"name": "x", "argument": {"labelsPresence": {"labels": ["a b"]}}}]},
            [
                (
                    'predicates[0].argument.labelsPresence.labels[0]: "a b" (expected the key of a '
                    "label)"
                )
            ],
        ),
        (
            {"priorities": [{"name": "EqualPriority"}, {"name": "Own", "weight": 1}]},
            [
                "priorities[0].weight: 0 (expected 1 to 2147483647)",
                'priorities[1].name: "Own" (expected a priority of kube-scheduler 1.12)',
            ],
        ),
        (
            {"priorities": [{"name": "EqualPriority", "weight": "one"}]},
            ['priorities[0].weight: "one" (expected a whole number)'],
        ),
        (
            {
                "priorities": [
                    {"name": "a", "weight": 1, "argument": {"labelPreference": {"label": "x"}}},
                    {"name": "b", "weight": 2, "argument": {"labelPreference": {"label": "y"}}},
                ]
            },
            [
                (
                    "priorities[1].weight: 2 (expected 1 as that of priorities[0]: both are the "
                    "plugin NodeLabel)"
                )
            ],
        ),
        (
            {
                "priorities": [
                    {"name": "SelectorSpreadPriority", "weight": 1},
                    {"name": "ServiceSpreadingPriority", "weight": 1},
                ]
            },
            [
                (
                    'priorities[1].name: "SelectorSpread" (expected one priority only, as '
                    "priorities[0] is the same plugin)"
                )
            ],
        ),
        (
            {
                "priorities": [
                    {
                        "name": "Fill",
                        "weight": 1,
                        "argument": {
                            "requestedToCapacityRatioArguments": {
                                "shape": [{"utilization": 50, "score": 11}]
                            }
                        },
                    }
                ]
            },
            [
                (
                    "priorities[0].argument.requestedToCapacityRatioArguments.shape[0].score: 11 "
                    "(expected 0 to 10)"
                )
            ],
        ),
        (
            {"hardPodAffinitySymmetricWeight": 101},
            ["hardPodAffinitySymmetricWeight: 101 (expected 0 to 100)"],
        ),
        (
            {"extenders": [{"urlPrefix": "ftp://x", "filter": "f"}]},
            [
                'extenders[0].filter: "f" (expected no such field; did you mean filterVerb?)',
            ],
        ),
        (
            {"extenders": [{"urlPrefix": "ftp://x"}]},
            [
                (
                    'extenders[0].urlPrefix: "ftp://x" (expected an http:// or https:// URL with a '
                    "host and without a query)"
                )
            ],
        ),
    ],
)
def test_an_invalid_policy_is_refused_with_its_fields(
    fields: dict[str, Any], want: list[str]
) -> None:
    assert refusals(**fields) == want


def test_what_is_not_a_mapping_is_no_policy() -> None:
    with pytest.raises(InvalidConfiguration, match="a mapping of fields"):
        policy_builtins([])


def test_the_tables_name_plugins_that_exist() -> None:
    registry = in_tree_registry()
    plugins = {name for names in PREDICATES.values() for name in names} | set(PRIORITIES.values())
    assert plugins <= set(registry)
    assert set(DEFAULT_PREDICATES) | set(MANDATORY_PREDICATES) <= set(PREDICATES)


def test_each_default_filter_of_v1_36_is_a_predicate_or_later_than_1_12() -> None:
    registry = in_tree_registry()
    defaults = {
        name
        for name, _ in DEFAULT_MULTI_POINT
        if hasattr(registry[name].construct(registry[name].args()), "filter")
    }
    mandatory = {plugin for name in MANDATORY_PREDICATES for plugin in PREDICATES[name]}
    assert defaults == {*DEFAULT_FILTERS, *LATER_FILTERS} | mandatory


# -- commands -------------------------------------------------------------------------------------


def stowage(*arguments: str, text: str = "") -> tuple[int, str, str]:
    """The exit status, stdout and stderr of a command."""
    result = CliRunner().invoke(app, arguments, input=text, env={"COLUMNS": "80"})
    return result.exit_code, result.stdout, result.stderr


def test_convert_writes_a_configuration_that_is_equal_to_the_policy(tmp_path: Path) -> None:
    policy, output = tmp_path / "policy.json", tmp_path / "config.yaml"
    fields = {"priorities": [{"name": "MostRequestedPriority", "weight": 2}]}
    policy.write_text(json.dumps({**HEADER, **fields}, indent="\t"))
    assert stowage("config", "convert", str(policy), "-o", str(output)) == (0, "", "")
    assert read_configuration(output) == converted(**fields) == read_policy(policy)
    exit_status, printed, _ = stowage("config", "convert", "-", text=policy.read_text())
    assert (exit_status, yaml.safe_load(printed)) == (0, yaml.safe_load(output.read_text()))
    exit_status, _, errors = stowage("config", "convert", str(policy), "-o", str(output))
    assert exit_status == 1
    assert "expected a new file that can be written; File exists" in errors


def test_convert_names_the_lines_of_errors() -> None:
    text = "kind: Policy\napiVersion: v1\npriorities:\n- {name: EqualPriority, weight: 0}\n"
    assert stowage("config", "convert", "-", text=text) == (
        1,
        "",
        "standard input:4: priorities[0].weight: 0 (expected 1 to 2147483647)\n",
    )


def test_check_and_show_take_a_policy() -> None:
    text = "kind: Policy\napiVersion: v1\n"
    exit_status, printed, errors = stowage("config", "check", "-", text=text)
    assert (exit_status, errors) == (0, "")
    assert printed.startswith("ok: standard input (profiles: stowage; ")
    exit_status, printed, _ = stowage("config", "show", "-", text=text)
    assert load_configuration(yaml.safe_load(printed)) == converted()
    assert yaml.safe_load(printed) == yaml.safe_load(yaml.safe_dump(_plain(converted())))


def _plain(configuration: KubeSchedulerConfiguration) -> Any:
    return json.loads(json.dumps(to_builtins(configuration)))


def test_a_policy_is_no_configuration(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("kind: Policy\napiVersion: v1\n")
    want = "use --policy-config-file, or stowage config convert"
    with pytest.raises(InvalidConfiguration, match=want):
        read_configuration(file)
