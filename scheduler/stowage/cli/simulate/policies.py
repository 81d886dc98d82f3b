"""The policies of ``stowage simulate``: configurations, and the same with other weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from stowage.analysis.changed_weights import with_weights
from stowage.analysis.loaded_cluster import stand_ins_for
from stowage.analysis.simulation.timeline import PolicyChanges, Workload
from stowage.api.config.changes import restart_errors
from stowage.api.config.feature_gates import parse_feature_gates
from stowage.api.config.loading import (
    DEFAULT_SCHEDULER_NAME,
    ConfigError,
    InvalidConfiguration,
    KubeSchedulerConfiguration,
    load_configuration,
)
from stowage.api.events import ConfigurationChanged, Event
from stowage.api.values.duration import parse_duration
from stowage.cli.ask.flags import split_lists
from stowage.cli.ask.weights import parse_weights
from stowage.cli.config_file import read_configuration
from stowage.cli.configurator import Configurator
from stowage.cli.plugin_discovery import discover_plugins
from stowage.cli.profiles import make_extenders
from stowage.engine import Engine, make_engine
from stowage.framework import Handle

DEFAULT = "default"
HASH_AT_START = "start"
_RECONFIGURE = "--reconfigure"
_FLAGS = ("--config", "--weights")
MAX_IN_UNSCHEDULABLE_S = 300.0


class Reconfiguration(msgspec.Struct, frozen=True):
    """Another configuration from a time on.

    Attributes:
        at_s: The time.
        configuration: The configuration.
        weights: Plugin -> its weight instead of the configured one, in all profiles.
    """

    at_s: float
    configuration: KubeSchedulerConfiguration
    weights: Mapping[str, int] = {}


class ConfiguredPolicy(msgspec.Struct, frozen=True):
    """A configuration under a name; it can be pickled, and makes its plugins anew each time.

    Attributes:
        name: Its name in results.
        configuration: The configuration.
        weights: Plugin -> its weight instead of the configured one, in all profiles.
        feature_gates: Values of ``--feature-gates``.
        reconfigurations: Other configurations during the experiment, in order of time.
    """

    name: str
    configuration: KubeSchedulerConfiguration
    weights: Mapping[str, int] = {}
    feature_gates: tuple[str, ...] = ()
    reconfigurations: tuple[Reconfiguration, ...] = ()

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
        configurator = self._configurator(handle)
        settings = configurator.settings(self.configuration)
        frameworks = [with_weights(each, self.weights) for each in settings.frameworks]
        engine = make_engine(
            [*frameworks, *stand_ins_for(scheduler_names, frameworks)],
            choose,
            queue_settings=settings.queue_settings,
            extenders=make_extenders(self.configuration),
        )
        if self.reconfigurations:
            engine.follow_configuration(HASH_AT_START, configurator.configure)
        handle.connect(post, engine.waiting_pods)
        return engine

    def changes(self, scheduler_names: Iterable[str]) -> Sequence[PolicyChanges]:
        """See `Policy`.

        Raises:
            InvalidConfiguration: As `make_engine`, about another configuration.
        """
        if not self.reconfigurations:
            return ()
        configurator = self._configurator(Handle())
        return [
            PolicyChanges(each.at_s, _change(each, configurator, scheduler_names))
            for each in self.reconfigurations
        ]

    def _configurator(self, handle: Handle) -> Configurator:
        gates = parse_feature_gates(self.feature_gates)
        registry = discover_plugins(handle, gates=gates)
        return Configurator(registry, MAX_IN_UNSCHEDULABLE_S, gates)


def _change(
    wanted: Reconfiguration, configurator: Configurator, scheduler_names: Iterable[str]
) -> ConfigurationChanged:
    """The event of a reconfiguration, with a profile for each scheduler name."""
    settings = configurator.settings(wanted.configuration)
    frameworks = [with_weights(each, wanted.weights) for each in settings.frameworks]
    changed = msgspec.structs.replace(settings, frameworks=frameworks)
    loaded = configurator.describe(wanted.configuration, changed)
    profiles = with_profiles_for(scheduler_names, loaded.engine_part["profiles"])
    return ConfigurationChanged(loaded.hash, {**loaded.engine_part, "profiles": profiles})


def with_profiles_for(
    scheduler_names: Iterable[str], profiles: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The profiles, and a copy of the first one for each other scheduler name."""
    others = set(scheduler_names) - {each["schedulerName"] for each in profiles}
    return [*profiles, *({**profiles[0], "schedulerName": name} for name in sorted(others))]


def stand_in_notes(
    workloads: Iterable[Workload], policies: Sequence[ConfiguredPolicy], seed: int
) -> Iterator[str]:
    """A sentence for each workload and policy with pods whose scheduler name no profile has.

    Templates without a scheduler name have the default one, which is meant for any profile.
    """
    for workload in workloads:
        names = set(workload.timeline(seed).scheduler_names) - {DEFAULT_SCHEDULER_NAME}
        for policy in policies:
            profiles = [each.scheduler_name for each in policy.configuration.profiles]
            others = ", ".join(sorted(names.difference(profiles)))
            if others:
                yield (
                    f"{workload.name}: no profile of {policy.name} has the scheduler name {others} "
                    f"of some pods: the profile {profiles[0]} decides instead"
                )


def read_policies(
    configs: Sequence[Path],
    variations: Sequence[str],
    feature_gates: Sequence[str],
    reconfigurations: Sequence[str] = (),
) -> list[ConfiguredPolicy]:
    """The policies that flags name: one a file, and one a variation of the first file.

    Args:
        configs: Files of ``--config``, or ``default`` for the default configuration; without any,
            the default configuration.
        variations: Values of ``--weights``: ``[NAME:]PLUGIN=WEIGHT,...``.
        feature_gates: Values of ``--feature-gates``.
        reconfigurations: Values of ``--reconfigure``: ``[NAME:]TIME=FILE``, or with a variation
            instead of a file; several with a semicolon between them.

    Raises:
        InvalidConfiguration: A file or a variation is invalid, or a plugin does not load.
    """
    gates = tuple(feature_gates)
    bases = [ConfiguredPolicy(DEFAULT, load_configuration(), feature_gates=gates)]
    if configs:
        bases = [_read(file, gates) for file in configs]
    policies = [
        *bases,
        *(_varied(bases[0], each) for each in variations),
        *_reconfigured_policies(bases[0], reconfigurations),
    ]
    seen: set[str] = set()
    for policy in policies:
        if policy.name in seen:
            expected = "policies with different names: files, --weights NAME:..., or "
            expected += "--reconfigure NAME:..."
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


def _reconfigured_policies(
    base: ConfiguredPolicy, texts: Iterable[str]
) -> Iterator[ConfiguredPolicy]:
    """The policies of ``--reconfigure``.

    Raises:
        InvalidConfiguration: See `_reconfigured`; or a plugin does not load.
    """
    for text in texts:
        try:
            policy = _reconfigured(base, text)
            policy.changes(())
        except InvalidConfiguration as invalid:
            raise InvalidConfiguration(
                msgspec.structs.replace(each, path=_RECONFIGURE) if each.path in _FLAGS else each
                for each in invalid.errors
            ) from invalid
        yield policy


def _reconfigured(base: ConfiguredPolicy, text: str) -> ConfiguredPolicy:
    """The base that changes at some times.

    Raises:
        InvalidConfiguration: The text is malformed, a file is invalid, or a change needs a restart.
    """
    name, colon, _ = text.partition("=")[0].rpartition(":")
    changes: list[Reconfiguration] = []
    for part in text.removeprefix(f"{name}:" if colon else "").split(";"):
        before = changes[-1] if changes else Reconfiguration(0.0, base.configuration, base.weights)
        changes.append(_next_change(before, part, base))
    return msgspec.structs.replace(
        base, name=name if colon else text, reconfigurations=tuple(changes)
    )


def _next_change(before: Reconfiguration, text: str, base: ConfiguredPolicy) -> Reconfiguration:
    time, equals, wanted = text.partition("=")
    at_s = _seconds(time)
    if not (equals and wanted) or at_s is None or at_s < before.at_s:
        expected = "[NAME:]TIME=FILE or [NAME:]TIME=PLUGIN=WEIGHT,..., in order of time"
        raise InvalidConfiguration([ConfigError(_RECONFIGURE, text, expected)])
    if "=" in wanted:
        weights = {**before.weights, **parse_weights(split_lists([wanted]))}
        return Reconfiguration(at_s, before.configuration, weights)
    configuration = _read(Path(wanted), base.feature_gates).configuration
    errors = restart_errors(base.configuration, configuration)
    if errors:
        raise _of_file(InvalidConfiguration(errors), Path(wanted))
    return Reconfiguration(at_s, configuration)


def _seconds(text: str) -> float | None:
    """A time such as 1h30m; None if it is none."""
    try:
        seconds = float(parse_duration(text))
    except ValueError:
        return None
    return seconds if seconds >= 0 else None
