"""Plugins that cannot be built, and arguments that they do not take, are errors of the profile."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta, field

from stowage.api.config.loading import (
    InvalidConfiguration,
    KubeSchedulerProfile,
    PluginConfig,
    PluginSet,
    PluginSets,
    PluginSetting,
)
from stowage.framework import PluginFactory, build_profile, plugin_factory
from stowage.framework.authoring import ConfigError, PluginArgs
from stowage.plugins import in_tree_registry
from tests.unit.framework.sample_plugins import Blocking, Bounded, PreferSsd


def _build(*factories: PluginFactory, faults: dict[str, str] | None = None, **args: Any) -> None:
    names = [factory.name for factory in factories] + list(faults or {})
    build_profile(
        KubeSchedulerProfile(
            scheduler_name="mine",
            plugins=PluginSets(
                multi_point=PluginSet(enabled=tuple(PluginSetting(name) for name in names))
            ),
            plugin_config=tuple(PluginConfig(name, value) for name, value in args.items()),
        ),
        in_tree_registry().merged_with(*factories, faults=faults),
    )


@pytest.mark.parametrize(
    ("args", "mistake"),
    [
        ({"maxPods": 0}, "args.maxPods: 0 (expected at least 1)"),
        ({"maxPods": "many"}, 'args.maxPods: "many" (expected a whole number)'),
        ({"maxPod": 2}, "args.maxPod: 2 (expected no such field; did you mean maxPods?)"),
    ],
)
def test_args_are_validated_like_those_of_in_tree_plugins(
    args: dict[str, Any], mistake: str
) -> None:
    with pytest.raises(InvalidConfiguration) as raised:
        _build(plugin_factory(Bounded), Bounded=args)
    assert str(raised.value) == f"profiles[0].pluginConfig[0].{mistake}"


class _Level(Enum):
    LOW = "low"
    HIGH = "high"


class _Typed(PreferSsd):
    class Args(PluginArgs):
        share: Annotated[int, Meta(ge=1, le=9)] = 1
        mode: Literal["pack", "spread"] = "pack"
        level: _Level = _Level.LOW
        weights: dict[str, int] = field(default_factory=dict)

    def __init__(self, args: Args) -> None:
        self.args = args


@pytest.mark.parametrize(
    ("args", "expectation"),
    [
        ({"share": 0}, "int >= 1"),
        ({"share": 10}, "int <= 9"),
        ({"mode": "heap"}, "one of pack, spread"),
        ({"level": "mid"}, "one of low, high"),
        ({"weights": 3}, "a mapping of fields"),
    ],
)
def test_the_error_for_an_invalid_argument_names_the_expected_type(
    args: dict[str, Any], expectation: str
) -> None:
    with pytest.raises(InvalidConfiguration) as raised:
        _build(plugin_factory(_Typed), PreferSsd=args)
    assert [error.expectation for error in raised.value.errors] == [expectation]


def test_an_argument_may_be_named_kind() -> None:
    class Kinds(PreferSsd):
        class Args(PluginArgs):
            kind: str = "ssd"

            def validate(self) -> Iterator[ConfigError]:
                if self.kind == "tape":
                    yield ConfigError("kind", self.kind, "ssd or hdd")

        def __init__(self, args: Args) -> None:
            self.args = args

    with pytest.raises(InvalidConfiguration, match=r'args\.kind: "tape" \(expected ssd or hdd\)'):
        _build(plugin_factory(Kinds), PreferSsd={"kind": "tape", "apiVersion": "example.com/v1"})


def test_a_plugin_that_cannot_be_constructed_is_an_error_of_its_profile() -> None:
    with pytest.raises(InvalidConfiguration) as raised:
        _build(plugin_factory(PreferSsd), plugin_factory(Blocking))
    (mistake,) = raised.value.errors
    assert mistake.path == "profiles[0].plugins.multiPoint.enabled[1].name"
    assert mistake.value == "Blocking"
    assert mistake.expectation.startswith("a plugin that works, but its pre_bind")


def test_a_plugin_that_was_not_loaded_is_refused_with_its_error() -> None:
    with pytest.raises(InvalidConfiguration) as raised:
        _build(faults={"Gone": "its package is broken"}, Gone={"any": "args"})
    (mistake,) = raised.value.errors
    assert mistake.path == "profiles[0].plugins.multiPoint.enabled[0].name"
    assert mistake.expectation == "a plugin that works, but its package is broken"
    assert mistake.value == "Gone"


def test_a_plugin_that_was_not_loaded_does_not_affect_profiles_without_it() -> None:
    registry = in_tree_registry().merged_with(faults={"Gone": "its package is broken"})
    config = KubeSchedulerProfile(plugin_config=(PluginConfig("Gone", {"any": "args"}),))
    assert "Gone" not in build_profile(config, registry).instances


KIND = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "NodeAffinityArgs"}


@pytest.mark.parametrize("given", [KIND, {"kind": "NodeAffinityArgs"}, {"kind": None}])
def test_args_may_say_their_kind(given: dict[str, Any]) -> None:
    _build(NodeAffinity=given)


@pytest.mark.parametrize(
    ("field", "value"),
    [("kind", "InterPodAffinityArgs"), ("apiVersion", "kubescheduler.config.k8s.io/v1beta3")],
)
def test_args_of_another_kind_or_version_are_refused(field: str, value: str) -> None:
    with pytest.raises(InvalidConfiguration) as raised:
        _build(NodeAffinity={**KIND, field: value})
    path = f"profiles[0].pluginConfig[0].args.{field}"
    assert str(raised.value) == f'{path}: "{value}" (expected {KIND[field]})'


def test_args_of_out_of_tree_plugins_may_have_a_kind_of_their_own() -> None:
    _build(plugin_factory(Bounded), Bounded={"apiVersion": "example.com/v1", "kind": "Anything"})
