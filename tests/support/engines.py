"""Engines for tests: with the default profile, or with profiles that change at run time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec import convert

from stowage.api.config.extenders import NO_EXTENDERS, Extenders
from stowage.api.config.feature_gates import DEFAULT_FEATURE_GATES, FeatureGates
from stowage.api.config.loading import (
    API_VERSION,
    KIND,
    KubeSchedulerProfile,
    configuration_hash,
    load_configuration,
)
from stowage.api.events import ConfigurationChanged
from stowage.engine import Engine, EngineSettings, Journal, make_engine
from stowage.framework import Framework, PluginFactory, build_profile, plugin_factory
from stowage.framework.extension_points import Plugin
from stowage.plugins import in_tree_registry
from tests.support.plugins.small_plugins import framework_of

T = TypeVar("T")

#: The default plugins, for pods that name no scheduler.
DEFAULT_PROFILE: Mapping[str, Any] = {"schedulerName": "default-scheduler"}


def default_engine(
    choose: Callable[[int], int] = lambda _num_ties: 0,
    wall_clock: Callable[[], float] = lambda: 0.0,
    *,
    profile: Mapping[str, Any] = DEFAULT_PROFILE,
    plugins: Sequence[Any] = (),
    journal: Journal | None = None,
    extenders: Extenders = NO_EXTENDERS,
    gates: FeatureGates = DEFAULT_FEATURE_GATES,
) -> Engine:
    """An engine with one profile around an empty cache.

    `plugins` are registered and, unless the profile names plugins itself, enabled beside the
    default ones.
    """
    enabled = {"multiPoint": {"enabled": [{"name": plugin.name} for plugin in plugins]}}
    config = convert({"plugins": enabled, **profile} if plugins else profile, KubeSchedulerProfile)
    registry = in_tree_registry(gates).merged_with(*map(_factory, plugins))
    framework = Framework(build_profile(config, registry))
    return make_engine(
        [framework], choose, journal=journal, extenders=extenders, wall_clock=wall_clock
    )


def bare_engine(
    *plugins: Plugin,
    choose: Callable[[int], int] = lambda _num_ties: 0,
    wall_clock: Callable[[], float] = lambda: 0.0,
    journal: Journal | None = None,
) -> Engine:
    """An engine with the profile of `framework_of`: these plugins and no others."""
    return make_engine([framework_of(*plugins)], choose, journal=journal, wall_clock=wall_clock)


def _factory(plugin: Any) -> PluginFactory:
    def construct() -> Any:
        return plugin

    return plugin_factory(construct, name=plugin.name)


def of_type(kind: type[T], instructions: Iterable[object]) -> list[T]:
    """The instructions of one kind, in order."""
    return [each for each in instructions if isinstance(each, kind)]


def configuration_of(*profiles: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """A KubeSchedulerConfiguration as a dict."""
    kind = {"apiVersion": API_VERSION, "kind": KIND}
    return {**kind, "profiles": [dict(each) for each in profiles], **fields}


def fit_profile(
    strategy: str = "LeastAllocated", scheduler_name: str = "default-scheduler"
) -> dict[str, Any]:
    """A profile that scores with NodeResourcesFit only, with this strategy."""
    resources = [{"name": "cpu", "weight": 1}]
    args = {"scoringStrategy": {"type": strategy, "resources": resources}}
    score = {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeResourcesFit"}]}
    return {
        "schedulerName": scheduler_name,
        "plugins": {"score": score},
        "pluginConfig": [{"name": "NodeResourcesFit", "args": args}],
    }


def change_to(*profiles: Mapping[str, Any], **fields: Any) -> ConfigurationChanged:
    """The event of a changed configuration."""
    configuration = configuration_of(*profiles, **fields)
    return ConfigurationChanged(configuration_hash(configuration), configuration)


def configurable_engine(
    *profiles: Mapping[str, Any],
    plugins: Sequence[Any] = (),
    journal: Journal | None = None,
    choose: Callable[[int], int] = lambda _num_ties: 0,
    wall_clock: Callable[[], float] = lambda: 0.0,
    extenders: Extenders = NO_EXTENDERS,
) -> Engine:
    """An engine with these profiles that accepts later configurations.

    `plugins` are registered; profiles enable them by name.
    """
    registry = in_tree_registry().merged_with(*map(_factory, plugins))

    def configure(builtins: Mapping[str, Any]) -> EngineSettings:
        configuration = load_configuration(builtins)
        frameworks = [
            Framework(build_profile(profile, registry)) for profile in configuration.profiles
        ]
        backoffs = {
            "initial_backoff_s": float(configuration.pod_initial_backoff_seconds),
            "max_backoff_s": float(configuration.pod_max_backoff_seconds),
        }
        return EngineSettings(frameworks, backoffs)

    start = configuration_of(*profiles)
    settings = configure(start)
    engine = make_engine(
        settings.frameworks,
        choose,
        queue_settings=settings.queue_settings,
        journal=journal,
        extenders=extenders,
        wall_clock=wall_clock,
    )
    engine.follow_configuration(configuration_hash(start), configure)
    return engine
