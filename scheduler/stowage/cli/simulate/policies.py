"""The policies of ``stowage simulate``: configurations, and the same with other weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from stowage.analysis.changed_weights import with_weights
from stowage.analysis.loaded_cluster import stand_ins_for
from stowage.api.config.feature_gates import parse_feature_gates
from stowage.api.config.loading import (
    ConfigError,
    InvalidConfiguration,
    KubeSchedulerConfiguration,
    load_configuration,
)
from stowage.api.events import Event
from stowage.cli.ask.flags import split_lists
from stowage.cli.ask.weights import parse_weights
from stowage.cli.config_file import read_configuration
from stowage.cli.configurator import Configurator
from stowage.cli.plugin_discovery import discover_plugins
from stowage.cli.profiles import make_extenders
from stowage.engine import Engine, make_engine
from stowage.framework import Handle

DEFAULT = "default"
MAX_IN_UNSCHEDULABLE_S = 300.0


class ConfiguredPolicy(msgspec.Struct, frozen=True):
    """A configuration under a name; it can be pickled, and makes its plugins anew each time.

    Attributes:
        name: Its name in results.
        configuration: The configuration.
        weights: Plugin -> its weight instead of the configured one, in all profiles.
        feature_gates: Values of ``--feature-gates``.
    """

    name: str
    configuration: KubeSchedulerConfiguration
    weights: Mapping[str, int] = {}
    feature_gates: tuple[str, ...] = ()

    def make_engine(
        self,
        scheduler_names: Iterable[str],
        choose: Callable[[int], int],
        post: Callable[[Event], None],
    ) -> Engine:
        """See `Policy`.

        Raises:
            InvalidConfiguration: A plugin is unknown, or its arguments or its weight are invalid.
        """
        handle = Handle()
        gates = parse_feature_gates(self.feature_gates)
        registry = discover_plugins(handle, gates=gates)
        configurator = Configurator(registry, MAX_IN_UNSCHEDULABLE_S, gates)
        settings = configurator.settings(self.configuration)
        frameworks = [with_weights(each, self.weights) for each in settings.frameworks]
        engine = make_engine(
            [*frameworks, *stand_ins_for(scheduler_names, frameworks)],
            choose,
            queue_settings=settings.queue_settings,
            extenders=make_extenders(self.configuration),
        )
        handle.connect(post, engine.waiting_pods)
        return engine


def read_policies(
    configs: Sequence[Path], variations: Sequence[str], feature_gates: Sequence[str]
) -> list[ConfiguredPolicy]:
    """The policies that flags name: one a file, and one a variation of the first file.

    Args:
        configs: Files of ``--config``, or ``default`` for the default configuration; without any,
            the default configuration.
        variations: Values of ``--weights``: ``[NAME:]PLUGIN=WEIGHT,...``.
        feature_gates: Values of ``--feature-gates``.

    Raises:
        InvalidConfiguration: A file or a variation is invalid, or a plugin does not load.
    """
    gates = tuple(feature_gates)
    bases = [ConfiguredPolicy(DEFAULT, load_configuration(), feature_gates=gates)]
    if configs:
        bases = [_read(file, gates) for file in configs]
    policies = [*bases, *(_varied(bases[0], each) for each in variations)]
    seen: set[str] = set()
    for policy in policies:
        if policy.name in seen:
            expected = "policies with different names: files, or --weights NAME:..."
            raise InvalidConfiguration([ConfigError("--config", policy.name, expected)])
        seen.add(policy.name)
        policy.make_engine((), lambda _num_ties: 0, lambda _event: None)
    return policies


def _read(file: Path, gates: tuple[str, ...]) -> ConfiguredPolicy:
    try:
        if str(file) == DEFAULT:
            return ConfiguredPolicy(DEFAULT, load_configuration(), feature_gates=gates)
        return ConfiguredPolicy(file.stem, read_configuration(file), feature_gates=gates)
    except InvalidConfiguration as invalid:
        raise _of_file(invalid, file) from invalid


def _of_file(invalid: InvalidConfiguration, file: Path) -> InvalidConfiguration:
    return InvalidConfiguration(
        each if each.path.startswith("--") else each.under(str(file)) for each in invalid.errors
    )


def _varied(base: ConfiguredPolicy, variation: str) -> ConfiguredPolicy:
    name, colon, weights = variation.rpartition(":")
    parsed = parse_weights(split_lists([weights]))
    return msgspec.structs.replace(base, name=name if colon else weights, weights=parsed)
