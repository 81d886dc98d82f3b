"""Frameworks made from a configuration, with the ignored resources of extenders."""

from __future__ import annotations

from typing import Any

import pytest

from stowage.api.config.loading import (
    InvalidConfiguration,
    KubeSchedulerProfile,
    PluginConfig,
    load_configuration,
)
from stowage.cli.profiles import ignoring_resources, make_extenders, make_frameworks

GPU = "example.com/gpu"
CONFIGURATION = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "parallelism": 3,
    "extenders": [
        {
            "urlPrefix": "http://x",
            "filterVerb": "filter",
            "managedResources": [{"name": GPU, "ignoredByScheduler": True}],
        }
    ],
}


def _fit(args: dict[str, Any]) -> PluginConfig:
    return PluginConfig("NodeResourcesFit", args)


@pytest.mark.parametrize(
    ("written", "want"),
    [
        ((), (_fit({"ignoredResources": [GPU]}),)),
        ((_fit({}),), (_fit({"ignoredResources": [GPU]}),)),
        (
            (PluginConfig("Other"), _fit({"ignoredResources": ["a.b/c", GPU], "x": 1})),
            (PluginConfig("Other"), _fit({"ignoredResources": ["a.b/c", GPU], "x": 1})),
        ),
        (
            (_fit({"ignoredResources": ["a.b/c"]}),),
            (_fit({"ignoredResources": ["a.b/c", GPU]}),),
        ),
    ],
)
def test_resources_of_extenders_are_ignored_by_node_resources_fit(
    written: tuple[PluginConfig, ...], want: tuple[PluginConfig, ...]
) -> None:
    profile = KubeSchedulerProfile(plugin_config=written)
    assert ignoring_resources(profile, (GPU,)).plugin_config == want


def test_a_profile_is_unchanged_without_ignored_resources() -> None:
    profile = KubeSchedulerProfile(scheduler_name="s")
    assert ignoring_resources(profile, ()) is profile


def test_frameworks_ignore_the_resources_and_parallelism_limits_consultations() -> None:
    configuration = load_configuration(CONFIGURATION)
    (framework,) = make_frameworks(configuration)
    assert framework.scheduler_name == "stowage"
    assert make_extenders(configuration).max_consultations == 3


def _sorting(name: str, seconds: float | None = None) -> dict[str, Any]:
    """A profile that sorts the queue with AgedPrioritySort, which ``multiPoint`` enables."""
    args = {"secondsPerPriorityPoint": seconds}
    return {
        "schedulerName": name,
        "plugins": {
            "multiPoint": {
                "enabled": [{"name": "AgedPrioritySort"}],
                "disabled": [{"name": "PrioritySort"}],
            }
        },
        "pluginConfig": [] if seconds is None else [{"name": "AgedPrioritySort", "args": args}],
    }


@pytest.mark.parametrize(
    ("first", "second", "want"),
    [
        (_sorting("a"), _sorting("b"), None),
        (_sorting("a", 3), _sorting("b", 3), None),
        (
            _sorting("a"),
            {"schedulerName": "b"},
            (
                'profiles[1].plugins.queueSort: "PrioritySort" '
                "(expected AgedPrioritySort as in profiles[0]: there is one queue)"
            ),
        ),
        (
            _sorting("a"),
            _sorting("b", 3),
            (
                'profiles[1].pluginConfig: {"secondsPerPriorityPoint":3} '
                "(expected the args AgedPrioritySort has in profiles[0]: there is one queue)"
            ),
        ),
    ],
    ids=["the same", "the same arguments", "different plugins", "different arguments"],
)
def test_profiles_that_choose_their_queue_sort_by_multi_point_must_choose_the_same(
    first: dict[str, Any], second: dict[str, Any], want: str | None
) -> None:
    configuration = load_configuration({**CONFIGURATION, "profiles": [first, second]})
    if want is None:
        assert len(make_frameworks(configuration)) == 2
        return
    with pytest.raises(InvalidConfiguration) as refused:
        make_frameworks(configuration)
    assert [str(error) for error in refused.value.errors] == [want]
