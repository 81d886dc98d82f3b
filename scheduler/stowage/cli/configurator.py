"""Turns configurations into settings of the engine and content of the shell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from stowage.api.config.changes import restart_errors
from stowage.api.config.feature_gates import DEFAULT_FEATURE_GATES, FeatureGates
from stowage.api.config.loading import (
    ConfigError,
    InvalidConfiguration,
    KubeSchedulerConfiguration,
    configuration_hash,
    load_configuration,
)
from stowage.cli.effective import effective_builtins
from stowage.cli.profiles import make_frameworks, with_plugin_errors
from stowage.engine import EngineSettings
from stowage.framework import AdaptedPlugin, Framework, Registry
from stowage.operator.configuration.live_configuration import LoadedConfiguration

_TLS = "tlsConfig"


class Configurator(msgspec.Struct, frozen=True):
    """Loads configurations for one running scheduler.

    Attributes:
        registry: The plugins.
        max_in_unschedulable_s: Value of ``--pod-max-in-unschedulable-pods-duration``.
        gates: Value of ``--feature-gates``.
        prepared: The configuration that was loaded last, and its settings until they are used;
            empty if it has out-of-tree plugins: these are made in the thread that calls them.
    """

    registry: Registry
    max_in_unschedulable_s: float
    gates: FeatureGates = DEFAULT_FEATURE_GATES
    prepared: list[tuple[Mapping[str, Any], EngineSettings]] = msgspec.field(default_factory=list)

    def settings(self, configuration: KubeSchedulerConfiguration) -> EngineSettings:
        """The engine's settings, with new frameworks.

        Raises:
            InvalidConfiguration: see `make_frameworks`.
        """
        return EngineSettings(
            make_frameworks(configuration, self.registry),
            {
                "initial_backoff_s": float(configuration.pod_initial_backoff_seconds),
                "max_backoff_s": float(configuration.pod_max_backoff_seconds),
                "max_in_unschedulable_s": self.max_in_unschedulable_s,
                "pops_from_backoff": self.gates.enabled("SchedulerPopFromBackoffQ"),
            },
        )

    def configure(self, builtins: Mapping[str, Any]) -> EngineSettings:
        """The settings of a configuration in the format of its file; the engine calls it.

        Those of the configuration that was loaded last are ready: making them takes longer than
        other work of the event loop should wait.

        Raises:
            InvalidConfiguration: the configuration is invalid.
        """
        for known, settings in tuple(self.prepared):
            if known is builtins:
                self.prepared.clear()
                return settings
        return self.settings(load_configuration(builtins))

    def describe(
        self, configuration: KubeSchedulerConfiguration, settings: EngineSettings
    ) -> LoadedConfiguration:
        """The effective configuration, for the endpoints and for the engine."""
        shown = effective_builtins(configuration, settings.frameworks, self.registry)
        # The engine does not need certificates, so its events contain none.
        extenders = [
            {name: value for name, value in extender.items() if name != _TLS}
            for extender in shown["extenders"]
        ]
        return LoadedConfiguration(
            configuration_hash(shown), shown, {**shown, "extenders": extenders}
        )

    def reload(
        self,
        running: KubeSchedulerConfiguration,
        parse: Callable[[str], KubeSchedulerConfiguration],
        text: str,
    ) -> LoadedConfiguration:
        """Load a new configuration for a scheduler that was started with `running`.

        Args:
            running: The configuration at the start.
            parse: Parses the text and applies the flags.
            text: Text of the new configuration.

        Raises:
            InvalidConfiguration: with all errors, including changes that need a restart.
        """
        wanted = with_plugin_errors(lambda: parse(text), lambda: self.registry)
        errors: list[ConfigError] = restart_errors(running, wanted)
        try:
            settings = self.settings(wanted)
        except InvalidConfiguration as invalid:
            raise InvalidConfiguration([*errors, *invalid.errors]) from invalid
        if errors:
            raise InvalidConfiguration(errors)
        loaded = self.describe(wanted, settings)
        # `reload` runs in a thread. An out-of-tree plugin may open what only its thread may use.
        if not any(map(_has_out_of_tree_plugins, settings.frameworks)):
            self.prepared[:] = [(loaded.engine_part, settings)]
        return loaded


def _has_out_of_tree_plugins(framework: Framework) -> bool:
    plugins = (*framework.profile.instances.values(), *framework.profile.ties.plugins)
    return any(isinstance(each, AdaptedPlugin) for each in plugins)
