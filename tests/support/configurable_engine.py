"""Engines whose configuration changes while they run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stowage.api.config.loading import API_VERSION, KIND, configuration_hash, load_configuration
from stowage.api.events import ConfigurationChanged
from stowage.engine import Engine, EngineSettings, Journal, make_engine
from stowage.framework import Framework, Registry, build_profile
from stowage.plugins import in_tree_registry


def configuration_of(*profiles: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """A configuration in the shape of its file."""
    kind = {"apiVersion": API_VERSION, "kind": KIND}
    return {**kind, "profiles": [dict(each) for each in profiles], **fields}


def fit_profile(
    strategy: str = "LeastAllocated", scheduler_name: str = "default-scheduler"
) -> dict[str, Any]:
    """A profile that scores by NodeResourcesFit alone, with this strategy."""
    resources = [{"name": "cpu", "weight": 1}]
    args = {"scoringStrategy": {"type": strategy, "resources": resources}}
    score = {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeResourcesFit"}]}
    return {
        "schedulerName": scheduler_name,
        "plugins": {"score": score},
        "pluginConfig": [{"name": "NodeResourcesFit", "args": args}],
    }


def change_to(*profiles: Mapping[str, Any], **fields: Any) -> ConfigurationChanged:
    """The event that brings another configuration."""
    configuration = configuration_of(*profiles, **fields)
    return ConfigurationChanged(configuration_hash(configuration), configuration)


def configurable_engine(
    *profiles: Mapping[str, Any],
    registry: Registry | None = None,
    journal: Journal | None = None,
    choose: Callable[[int], int] = lambda _num_ties: 0,
) -> Engine:
    """An engine with these profiles that takes others later."""
    plugins = registry or in_tree_registry()

    def configure(builtins: Mapping[str, Any]) -> EngineSettings:
        configuration = load_configuration(builtins)
        frameworks: Sequence[Framework] = [
            Framework(build_profile(profile, plugins)) for profile in configuration.profiles
        ]
        backoffs = {
            "initial_backoff_s": float(configuration.pod_initial_backoff_seconds),
            "max_backoff_s": float(configuration.pod_max_backoff_seconds),
        }
        return EngineSettings(frameworks, backoffs)

    start = configuration_of(*profiles)
    settings = configure(start)
    engine = make_engine(
        settings.frameworks, choose, queue_settings=settings.queue_settings, journal=journal
    )
    engine.follow_configuration(configuration_hash(start), configure)
    return engine
