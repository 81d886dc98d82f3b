"""Hints for names of predicates, priorities and plugins that v1.36 does not have."""

from __future__ import annotations

import re

import pytest

from stowage.api.config.legacy_algorithms import PREDICATES, PRIORITIES
from stowage.api.config.loading import (
    InvalidConfiguration,
    KubeSchedulerProfile,
    PluginConfig,
    PluginSet,
    PluginSets,
    PluginSetting,
)
from stowage.api.config.removed_names import REPLACEMENTS, known_plugin_hint, replacement
from stowage.framework import build_profile
from stowage.plugins import in_tree_registry

GONE = sorted({*REPLACEMENTS, *PREDICATES, *PRIORITIES} - set(in_tree_registry()))


@pytest.mark.parametrize("name", GONE)
def test_a_replacement_names_plugins_that_exist(name: str) -> None:
    text = replacement(name)
    assert text is not None
    named = re.split(r", | and ", text.partition(" with ")[0])
    assert set(named) <= set(in_tree_registry())


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("SelectorSpreadPriority", "; SelectorSpreadPriority: use SelectorSpread"),
        ("CheckNodeUnschedulable", "; CheckNodeUnschedulable: use NodeUnschedulable"),
        (
            "GeneralPredicates",
            "; GeneralPredicates: use NodeResourcesFit, NodeName, NodePorts and NodeAffinity",
        ),
        (
            "NodeResourcesMostAllocated",
            (
                "; NodeResourcesMostAllocated: use NodeResourcesFit with scoringStrategy.type: "
                "MostAllocated"
            ),
        ),
        ("ImageLocalty", "; did you mean ImageLocality?"),
        ("Other", ""),
    ],
)
def test_the_hint_of_a_name(name: str, want: str) -> None:
    assert known_plugin_hint(name, in_tree_registry()) == want


def test_an_error_in_a_profile_has_the_hint() -> None:
    enabled = PluginSets(filter=PluginSet(enabled=(PluginSetting("NoDiskConflict"),)))
    args = (PluginConfig("RequestedToCapacityRatio"),)
    profile = KubeSchedulerProfile("s", plugins=enabled, plugin_config=args)
    with pytest.raises(InvalidConfiguration) as refused:
        build_profile(profile, in_tree_registry())
    assert sorted(str(error) for error in refused.value.errors) == [
        (
            'profiles[0].pluginConfig[0].name: "RequestedToCapacityRatio" (expected the name of a '
            "known plugin; RequestedToCapacityRatio: use NodeResourcesFit with "
            "scoringStrategy.type: RequestedToCapacityRatio)"
        ),
        (
            'profiles[0].plugins.filter.enabled[0].name: "NoDiskConflict" (expected the name of a '
            "known plugin; NoDiskConflict: use VolumeRestrictions)"
        ),
    ]
