"""Scheduler configurations, valid and invalid, which change while the scheduler runs."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from stowage.api.config.changes import restart_errors
from stowage.api.config.extenders import Extenders
from stowage.api.config.loading import (
    API_VERSION,
    KIND,
    ConfigError,
    InvalidConfiguration,
    KubeSchedulerConfiguration,
    load_configuration,
)
from stowage.cli.configurator import Configurator
from stowage.cli.profiles import make_extenders
from stowage.engine import Engine, EngineSettings, make_engine
from stowage.framework import Handle, PluginFactory, Registry
from stowage.framework.profile.registry import NoArgs
from stowage.operator.configuration.config_map import ConfigMapReference
from stowage.operator.configuration.live_configuration import ConfigMapOptions, LoadedConfiguration
from stowage.operator.run_options import EngineDependencies
from stowage.plugins import in_tree_registry
from tests.simulation.objects import SCHEDULER_NAME, SECOND_NAME
from tests.simulation.server import Json
from tests.simulation.slow_permit import SlowPermit

REFERENCE = ConfigMapReference("kube-system", "stowage-config")
CONFIG_MAP_KEY = (REFERENCE.namespace, REFERENCE.name)
VOLUME_TIMEOUT_S = 20
"""How long a pod waits for its volumes; provisioning may take longer."""
MAX_IN_UNSCHEDULABLE_S = 300.0
_BROKEN = (
    "profiles: [",
    '{"kind": "Pod"}',
    json.dumps({"apiVersion": API_VERSION, "kind": KIND, "parallelism": -1}),
    json.dumps(
        {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "profiles": [{"plugins": {"score": {"enabled": [{"name": "NoSuchPlugin"}]}}}],
        }
    ),
)


def first_text(extenders: Sequence[Json] = ()) -> str:
    """The first configuration of a cluster with these extenders."""
    return _text([_profile(SCHEDULER_NAME, 1)], extenders=list(extenders))


def draw_text(rng: random.Random, extenders: Sequence[Json] = ()) -> str:
    """A valid configuration with other weights, and with or without a second profile.

    The extenders stay the same: changing them takes a restart.
    """
    profiles = [_profile(SCHEDULER_NAME, rng.randint(1, 5))]
    if rng.random() < 0.6:
        profiles.append(_profile(SECOND_NAME, rng.randint(1, 5)))
    backoff_s = rng.choice((5, 10))
    return _text(profiles, podMaxBackoffSeconds=backoff_s, extenders=list(extenders))


def draw_broken_text(rng: random.Random) -> str:
    """A configuration that must be rejected."""
    return rng.choice(_BROKEN)


def config_map(text: str) -> Json:
    """The ConfigMap that holds a configuration."""
    metadata = {"namespace": REFERENCE.namespace, "name": REFERENCE.name}
    return {"metadata": metadata, "data": {REFERENCE.key: text}}


def extenders_in(text: str) -> list[Json]:
    """The extenders in a configuration text."""
    return list(json.loads(text).get("extenders", ()))


def text_in(obj: Mapping[str, Any]) -> str:
    """The configuration text in a ConfigMap."""
    text: str = obj["data"][REFERENCE.key]
    return text


class Composition:
    """The plugins and configuration of one process, composed as the command line does.

    Args:
        text: The configuration that the process starts with.

    Raises:
        InvalidConfiguration: The configuration is not valid.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._handle = Handle()
        self._configurator = Configurator(_registry(self._handle), MAX_IN_UNSCHEDULABLE_S)
        self.start = load_text(text)
        self.loaded = describe_text(text)

    @property
    def scheduler_names(self) -> tuple[str, ...]:
        """The scheduler names of the profiles at the start."""
        return tuple(profile.scheduler_name for profile in self.start.profiles)

    @property
    def config_map_options(self) -> ConfigMapOptions:
        """Options for reading later configurations."""
        running = first_text(extenders_in(self._text))
        return ConfigMapOptions(REFERENCE, lambda text: describe_text(text, running))

    @property
    def extenders(self) -> Extenders:
        """The configured extenders."""
        return make_extenders(self.start)

    def make_engine(self, parts: EngineDependencies) -> Engine:
        """The engine of the process."""
        settings: EngineSettings = self._configurator.settings(self.start)
        engine = make_engine(
            settings.frameworks,
            parts.choose,
            queue_settings=settings.queue_settings,
            extenders=self.extenders,
            journal=parts.journal,
            wall_clock=parts.wall_clock,
        )
        engine.follow_configuration(self.loaded.hash, self._configure)
        self._handle.connect(parts.post, engine.waiting_pods)
        return engine

    def _configure(self, builtins: Mapping[str, Any]) -> EngineSettings:
        """The settings of a configuration that the engine is told of."""
        return self._configurator.settings(_load_described(_Same(builtins)))


class _Same:
    """A configuration in the format of its file, equal only to itself: it is described once."""

    def __init__(self, builtins: Mapping[str, Any]) -> None:
        self.builtins = builtins

    def __hash__(self) -> int:
        return id(self.builtins)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.builtins is self.builtins


@lru_cache(maxsize=512)
def _load_described(described: _Same) -> KubeSchedulerConfiguration:
    return load_configuration(described.builtins)


@lru_cache(maxsize=512)
def load_text(text: str) -> KubeSchedulerConfiguration:
    """Read a configuration.

    Raises:
        InvalidConfiguration: The text is not a valid configuration.
    """
    try:
        builtins = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidConfiguration([ConfigError("", text, "JSON")]) from error
    return load_configuration(builtins)


@lru_cache(maxsize=512)
def _describe(text: str) -> LoadedConfiguration | InvalidConfiguration:
    """The description of a text, cached: loading is slow and the same for all processes."""
    configurator = Configurator(_registry(Handle()), MAX_IN_UNSCHEDULABLE_S)
    try:
        return configurator.reload(load_text(text), load_text, text)
    except InvalidConfiguration as invalid:
        return invalid


def describe_text(text: str, running: str = "") -> LoadedConfiguration:
    """Describe a configuration.

    Args:
        text: Of the configuration.
        running: The configuration that the reading process started with; empty for the same.

    Raises:
        InvalidConfiguration: The text is not a valid configuration.
    """
    described = _describe(text)
    if isinstance(described, InvalidConfiguration):
        raise described
    if running and running != text:
        errors = restart_errors(load_text(running), load_text(text))
        if errors:
            raise InvalidConfiguration(errors)
    return described


def _registry(handle: Handle) -> Registry:
    def construct(_args: NoArgs) -> SlowPermit:
        return SlowPermit(handle)

    return in_tree_registry().merged_with(PluginFactory(SlowPermit.name, construct))


def _profile(name: str, weight: int) -> Json:
    """A profile; with an even weight it writes claims for devices before volumes."""
    enabled = [{"name": "NodeResourcesFit", "weight": weight}, {"name": SlowPermit.name}]
    plugins: Json = {"multiPoint": {"enabled": enabled}}
    if weight % 2 == 0:
        writers = ("DynamicResources", "VolumeBinding")
        plugins["preBind"] = {"enabled": [{"name": each} for each in writers]}
    timeout = {"bindTimeoutSeconds": VOLUME_TIMEOUT_S}
    return {
        "schedulerName": name,
        "plugins": plugins,
        "pluginConfig": [{"name": "VolumeBinding", "args": timeout}],
    }


def _text(profiles: Sequence[Json], **fields: object) -> str:
    whole = {"apiVersion": API_VERSION, "kind": KIND, "profiles": list(profiles), **fields}
    return json.dumps(whole)
