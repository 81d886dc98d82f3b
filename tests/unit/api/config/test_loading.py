"""A KubeSchedulerConfiguration is decoded strictly, and all errors are reported at once."""

import math
from typing import Any

import msgspec
import pytest

from stowage.api.config.errors import MAX_ERRORS
from stowage.api.config.loading import (
    InvalidConfiguration,
    KubeSchedulerConfiguration,
    PluginSetting,
    load_configuration,
    settings_without_effect,
    to_builtins,
)
from stowage.api.config.validation import MAX_PROFILES
from stowage.api.values.duration import Duration

HEADER = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def load(**fields: Any) -> KubeSchedulerConfiguration:
    return load_configuration({**HEADER, **fields})


def errors_of(**fields: Any) -> list[str]:
    with pytest.raises(InvalidConfiguration) as refused:
        load(**fields)
    return [str(error) for error in refused.value.errors]


def test_an_empty_configuration_is_the_default_one() -> None:
    configuration = load_configuration()
    assert configuration == load()
    assert [profile.scheduler_name for profile in configuration.profiles] == ["stowage"]
    assert configuration.leader_election.leader_elect
    assert configuration.leader_election.resource_name == "stowage"
    assert configuration.leader_election.lease_duration == Duration(15)
    assert configuration.client_connection.qps == 0
    assert (configuration.pod_initial_backoff_seconds, configuration.pod_max_backoff_seconds) == (
        1,
        10,
    )


def test_a_null_field_has_its_default() -> None:
    assert load(parallelism=None, profiles=None, leaderElection=None) == load_configuration()


def test_an_empty_text_or_zero_that_kube_scheduler_defaults_has_its_default() -> None:
    durations = dict.fromkeys(("leaseDuration", "renewDeadline", "retryPeriod"), "0s")
    names = dict.fromkeys(("resourceLock", "resourceName", "resourceNamespace"), "")
    client = {"burst": 0, "contentType": ""}
    assert load(leaderElection=durations | names, clientConnection=client) == load_configuration()


def test_nothing_is_filled_in_a_complete_configuration() -> None:
    election = {**to_builtins(load_configuration())["leaderElection"], "resourceName": ""}
    with pytest.raises(InvalidConfiguration) as refused:
        load_configuration({**HEADER, "leaderElection": election}, is_complete=True)
    assert [str(error) for error in refused.value.errors] == [
        'leaderElection.resourceName: "" (expected a name)'
    ]


def test_fields_of_all_kinds_are_read() -> None:
    configuration = load(
        percentageOfNodesToScore=50,
        leaderElection={"leaderElect": False, "leaseDuration": "1m30s"},
        clientConnection={"qps": 50, "burst": 100, "kubeconfig": "/etc/kubeconfig"},
        profiles=[
            {
                "schedulerName": "packing",
                "percentageOfNodesToScore": 100,
                "plugins": {
                    "score": {
                        "enabled": [{"name": "ImageLocality", "weight": 5}],
                        "disabled": [{"name": "NodeAffinity"}],
                    },
                    "multiPoint": {"disabled": [{"name": "VolumeZone"}]},
                },
                "pluginConfig": [
                    {"name": "NodeResourcesFit", "args": {"ignoredResources": ["example.com/a"]}}
                ],
            },
            {"schedulerName": "spreading"},
        ],
    )
    packing, spreading = configuration.profiles
    assert configuration.leader_election.lease_duration == Duration(90)
    assert configuration.client_connection.qps == 50.0
    assert packing.percentage_of_nodes_to_score == 100
    assert packing.plugins.score.enabled == (PluginSetting("ImageLocality", 5),)
    assert packing.plugins.multi_point.disabled == (PluginSetting("VolumeZone"),)
    assert packing.plugin_config[0].args == {"ignoredResources": ["example.com/a"]}
    assert spreading.percentage_of_nodes_to_score is None


@pytest.mark.parametrize(
    "endpoint",
    ["collector.monitoring:4317", "[::1]:4317", "dns:///collector:4317", "unix:///run/otlp.sock"],
)
def test_the_collector_of_traces_is_named_as_in_kube_apiserver(endpoint: str) -> None:
    tracing = load(tracing={"endpoint": endpoint, "samplingRatePerMillion": 100}).tracing
    assert (tracing.endpoint, tracing.sampling_rate_per_million) == (endpoint, 100)


def test_no_traces_are_made_by_default() -> None:
    assert load(tracing={"endpoint": "collector:4317"}).tracing.sampling_rate_per_million == 0


def test_a_profile_is_decoded_for_the_framework() -> None:
    profile = {
        "schedulerName": "a",
        "plugins": {"score": {"enabled": [{"name": "ImageLocality", "weight": 5}]}},
        "pluginConfig": [{"name": "NodeAffinity", "args": {"addedAffinity": {}}}],
    }
    (loaded,) = load(profiles=[profile]).profiles
    assert msgspec.to_builtins(loaded, builtin_types=()) == {
        **profile,
        "plugins": {"score": {"enabled": ({"name": "ImageLocality", "weight": 5},)}},
        "pluginConfig": ({"name": "NodeAffinity", "args": {"addedAffinity": {}}},),
    }


def test_the_effective_configuration_loads_to_itself_again() -> None:
    configuration = load(leaderElection={"leaseDuration": "1m30s"}, parallelism=3)
    shown = to_builtins(configuration)
    assert shown["leaderElection"]["leaseDuration"] == "1m30s"
    assert load_configuration(shown) == configuration


def test_only_several_profiles_need_names() -> None:
    assert load(profiles=[{}]).profiles[0].scheduler_name == "stowage"
    assert errors_of(profiles=[{"schedulerName": "a"}, {}]) == [
        'profiles[1].schedulerName: "" (expected a name of its own)'
    ]


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        ({"paralelism": 3}, "paralelism: 3 (expected no such field; did you mean parallelism?)"),
        ({"parallelism": "x"}, 'parallelism: "x" (expected a whole number)'),
        ({"parallelism": True}, "parallelism: true (expected a whole number)"),
        ({"parallelism": 0}, "parallelism: 0 (expected greater than 0)"),
        (
            {"percentageOfNodesToScore": 101},
            "percentageOfNodesToScore: 101 (expected 0 to 100)",
        ),
        (
            {"podInitialBackoffSeconds": 0},
            "podInitialBackoffSeconds: 0 (expected greater than 0)",
        ),
        (
            {"podInitialBackoffSeconds": 20},
            "podMaxBackoffSeconds: 10 (expected at least podInitialBackoffSeconds, 20)",
        ),
        (
            {"tracing": {"samplingRatePerMillion": -1}},
            "tracing.samplingRatePerMillion: -1 (expected 0 to 1000000)",
        ),
        (
            {"tracing": {"samplingRatePerMillion": 1_000_001}},
            "tracing.samplingRatePerMillion: 1000001 (expected 0 to 1000000)",
        ),
        (
            {"tracing": {"samplingRatePerMillion": 0.5}},
            "tracing.samplingRatePerMillion: 0.5 (expected a whole number)",
        ),
        (
            {"tracing": {"endpoint": "http://collector:4317"}},
            (
                'tracing.endpoint: "http://collector:4317" (expected HOST:PORT of a collector, '
                "or a dns://, unix:// or unix-abstract:// name)"
            ),
        ),
        ({"clientConnection": {"burst": -1}}, "clientConnection.burst: -1 (expected 0 or more)"),
        (
            {"clientConnection": {"qps": math.inf}},
            'clientConnection.qps: "inf" (expected a finite number)',
        ),
        (
            {"clientConnection": {"qps": math.nan}},
            'clientConnection.qps: "nan" (expected a finite number)',
        ),
        (
            {"leaderElection": {"leaseDuration": 15}},
            "leaderElection.leaseDuration: 15 (expected a duration such as 15s or 1m30s)",
        ),
        (
            {"leaderElection": {"leaseDuration": "5s"}},
            'leaderElection.leaseDuration: "5s" (expected longer than renewDeadline, 10s)',
        ),
        (
            {"leaderElection": {"renewDeadline": "2s"}},
            'leaderElection.renewDeadline: "2s" (expected longer than retryPeriod, 2s)',
        ),
        (
            {"leaderElection": {"renewDeadline": "12s", "retryPeriod": "10s"}},
            'leaderElection.renewDeadline: "12s" (expected longer than 1.2 times retryPeriod, 10s)',
        ),
        (
            {"leaderElection": {"renewDeadline": "3.6s", "retryPeriod": "3s"}},
            'leaderElection.renewDeadline: "3.6s" (expected longer than 1.2 times retryPeriod, 3s)',
        ),
        (
            {"leaderElection": {"retryPeriod": "-1s"}},
            'leaderElection.retryPeriod: "-1s" (expected longer than 0s)',
        ),
        (
            {"leaderElection": {"resourceLock": "endpoints"}},
            'leaderElection.resourceLock: "endpoints" (expected leases)',
        ),
        ({"profiles": {}}, "profiles: {} (expected a list)"),
        ({"profiles": [7]}, "profiles[0]: 7 (expected a mapping of fields)"),
        (
            {"profiles": [{"schedulerName": "a"}, {"schedulerName": "a"}]},
            'profiles[1].schedulerName: "a" (expected a name of its own, profiles[0] has this one)',
        ),
        (
            {"profiles": [{"percentageOfNodesToScore": -1}]},
            "profiles[0].percentageOfNodesToScore: -1 (expected 0 to 100)",
        ),
        (
            {"profiles": [{"plugins": {"filter": {"enabled": [{"name": "CinderLimits"}]}}}]},
            (
                'profiles[0].plugins.filter.enabled[0].name: "CinderLimits" '
                "(expected NodeVolumeLimits: this one was removed)"
            ),
        ),
        (
            {"profiles": [{"plugins": {"score": {"disabled": [{}]}}}]},
            'profiles[0].plugins.score.disabled[0].name: "" (expected a plugin\'s name)',
        ),
        (
            {"profiles": [{"pluginConfig": [{"name": "NodeAffinity"}, {"name": "NodeAffinity"}]}]},
            'profiles[0].pluginConfig[1].name: "NodeAffinity" (expected one entry only)',
        ),
        (
            {"profiles": [{"plugins": {"queueSort": {"enabled": [{"name": "A"}, {"name": "B"}]}}}]},
            'profiles[0].plugins.queueSort.enabled: "A, B" (expected one plugin)',
        ),
        (
            {"kind": "Pod"},
            'kind: "Pod" (expected KubeSchedulerConfiguration)',
        ),
    ],
)
def test_an_error_names_field_value_and_expectation(fields: dict[str, Any], want: str) -> None:
    assert errors_of(**fields) == [want]


def test_all_errors_are_reported_at_once() -> None:
    found = errors_of(
        parallelism=0,
        podMaxBackoffSeconds="soon",
        profiles=[{"schedulerNme": "a", "percentageOfNodesToScore": 200}],
    )
    assert [line.partition(":")[0] for line in found] == [
        "podMaxBackoffSeconds",
        "profiles[0].schedulerNme",
        "parallelism",
        "profiles[0].percentageOfNodesToScore",
    ]


def test_a_document_that_is_no_mapping_is_an_error() -> None:
    for builtins in (["a"], "text", 3):
        with pytest.raises(InvalidConfiguration, match="a mapping of fields"):
            load_configuration(builtins)


def test_api_version_and_kind_are_required() -> None:
    with pytest.raises(InvalidConfiguration) as refused:
        load_configuration({})
    assert [error.path for error in refused.value.errors] == ["apiVersion", "kind"]


def test_an_object_of_another_kind_is_refused_without_its_fields() -> None:
    found = errors_of(apiVersion="v1", kind="ConfigMap", metadata={"name": "stowage"}, data={})
    assert found == [
        'apiVersion: "v1" (expected kubescheduler.config.k8s.io/v1)',
        'kind: "ConfigMap" (expected KubeSchedulerConfiguration)',
    ]
    with pytest.raises(InvalidConfiguration) as refused:
        load_configuration({"kind": "Policy", "unknown": 1})
    assert [error.path for error in refused.value.errors] == ["apiVersion", "kind"]


def test_all_profiles_must_have_the_same_queue_sort_plugin() -> None:
    sort = {"plugins": {"queueSort": {"enabled": [{"name": "A"}], "disabled": [{"name": "*"}]}}}
    (found,) = errors_of(profiles=[{"schedulerName": "a", **sort}, {"schedulerName": "b"}])
    assert found.startswith("profiles[1].plugins.queueSort: {}")
    (found,) = errors_of(
        profiles=[
            {"schedulerName": "a", **sort},
            {"schedulerName": "b", **sort, "pluginConfig": [{"name": "A", "args": {"x": 1}}]},
        ]
    )
    assert found.startswith('profiles[1].pluginConfig: {"x":1} (expected the args A has in')


def test_a_long_value_is_shortened_in_the_error() -> None:
    (found,) = errors_of(parallelism="x" * 500)
    assert len(found) < 120


def test_fields_without_effect_are_accepted_and_listed() -> None:
    delayed = load_configuration(HEADER | {"delayCacheUntilActive": True})
    assert settings_without_effect(delayed) == (
        "delayCacheUntilActive: a standby always keeps its cache warm",
    )
    assert settings_without_effect(load_configuration()) == ()


def test_of_many_errors_a_hundred_are_listed_and_the_others_counted() -> None:
    found = errors_of(**{f"field{number}": 1 for number in range(1_000)})
    assert len(found) == MAX_ERRORS
    assert found[-1] == "<root>: 901 (expected no more errors; so many are not listed)"


def test_more_profiles_than_a_reload_has_time_for_are_refused() -> None:
    profiles = [{"schedulerName": f"s{number}"} for number in range(MAX_PROFILES + 1)]
    assert errors_of(profiles=profiles) == ["profiles: 33 (expected at most 32)"]
    assert len(load(profiles=profiles[:-1]).profiles) == MAX_PROFILES


def test_a_name_that_cannot_be_shown_is_escaped_in_its_error() -> None:
    (empty, hostile) = errors_of(**{"": 1, "\x1b[2J\n": "\u202e"})
    assert empty.startswith('"": 1 (expected no such field')
    assert hostile.startswith('\\x1b[2J\\n: "\\u202e" (expected no such field')
