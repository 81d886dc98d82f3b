"""Connects the configuration, the plugins, the engine and the shell.

This module imports numpy, Kopf and the Kubernetes client, so commands import it late.
"""

from __future__ import annotations

import socket
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import structlog
from kubernetes.aio.config import ConfigException

from stowage.api.config.extenders import Extenders
from stowage.api.config.loading import (
    KubeSchedulerConfiguration,
    LeaderElectionConfiguration,
    settings_without_effect,
)
from stowage.cli.configurator import Configurator
from stowage.cli.plugin_discovery import discover_plugins
from stowage.cli.profiles import make_extenders, with_plugin_errors
from stowage.cli.run_flags import LoggingFormat
from stowage.engine import Engine, EngineSettings, make_engine
from stowage.framework import Handle, Registry, Timings
from stowage.operator import (
    ConfigMapOptions,
    ConfigMapReference,
    EngineDependencies,
    LeaderElectionOptions,
    RunOptions,
    ServingOptions,
    configure_logging,
    parse_reference,
    read_config_map,
    run_blocking,
)

log = structlog.get_logger(__name__)

CANNOT_START = (ConfigException, OSError)
"""Errors of `run_scheduler`: no usable kubeconfig, address in use, unusable certificates."""


@dataclass(frozen=True, slots=True)
class ConfigMapSource:
    """The ConfigMap of the configuration.

    Attributes:
        reference: The ConfigMap and key.
        parse: Parses its text and applies the flags; raises InvalidConfiguration.
    """

    reference: ConfigMapReference
    parse: Callable[[str], KubeSchedulerConfiguration]


def config_map_source(
    configmap: str, parse: Callable[[str], KubeSchedulerConfiguration]
) -> ConfigMapSource:
    """The source that ``--configmap`` names.

    Raises:
        InvalidConfiguration: it names none.
    """
    return ConfigMapSource(parse_reference(configmap), parse)


def read_config_map_source(
    source: ConfigMapSource, kubeconfig: Path | None, master: str | None = None
) -> KubeSchedulerConfiguration:
    """Read the configuration for the start.

    Raises:
        InvalidConfiguration: the ConfigMap is missing or invalid.
        ConfigException: there is no usable kubeconfig, and the process is not in a cluster.
        OSError: the API server cannot be reached.
    """
    with _kubeconfig_explained():
        path = str(kubeconfig) if kubeconfig else None
        text = read_config_map(source.reference, path, master)
    return read_with_plugin_errors(lambda: source.parse(text))


def read_with_plugin_errors(
    read: Callable[[], KubeSchedulerConfiguration],
) -> KubeSchedulerConfiguration:
    """Read a configuration, see `with_plugin_errors`.

    Raises:
        InvalidConfiguration: with all errors, including those in plugin arguments.
    """
    return with_plugin_errors(read, discover_plugins)


def run_options(
    configuration: KubeSchedulerConfiguration,
    kubeconfig: Path | None,
    serving: ServingOptions | None,
    max_in_unschedulable_s: float,
    live: ConfigMapSource | None = None,
) -> RunOptions:
    """The options of the scheduler process.

    Args:
        configuration: The configuration at the start.
        kubeconfig: Path; None for the one of the configuration.
        serving: Options of the HTTPS endpoints; None serves none.
        max_in_unschedulable_s: Value of ``--pod-max-in-unschedulable-pods-duration``.
        live: The ConfigMap to follow; None follows none.

    Raises:
        InvalidConfiguration: see `make_frameworks`.
    """
    handle = Handle()
    registry = _plugins(handle)
    for text in settings_without_effect(configuration):
        log.warning("setting without effect", setting=text)
    configurator = Configurator(registry, max_in_unschedulable_s)
    settings = configurator.settings(configuration)
    loaded = configurator.describe(configuration, settings)
    path = str(kubeconfig) if kubeconfig else configuration.client_connection.kubeconfig or None
    election = configuration.leader_election
    extenders = make_extenders(configuration)

    def make(parts: EngineDependencies) -> Engine:
        engine = _make_engine(settings, extenders, parts)
        engine.follow_configuration(loaded.hash, configurator.configure)
        handle.connect(parts.post, engine.waiting_pods)
        return engine

    return RunOptions(
        engine_factory=make,
        scheduler_names=tuple(profile.scheduler_name for profile in configuration.profiles),
        kubeconfig=path,
        kube_api_qps=configuration.client_connection.qps,
        kube_api_burst=configuration.client_connection.burst,
        serving=serving,
        leader_election=_leader_election(election) if election.leader_elect else None,
        configuration=loaded,
        config_map=None if live is None else _config_map(live, configurator, configuration),
        extenders=extenders,
    )


def _make_engine(
    settings: EngineSettings, extenders: Extenders, parts: EngineDependencies
) -> Engine:
    engine = make_engine(
        settings.frameworks,
        parts.choose,
        queue_settings=settings.queue_settings,
        timer=parts.timer,
        extenders=extenders,
    )
    if parts.observer is not None:
        engine.take_durations(Timings(parts.timer, parts.observer))
    return engine


def _config_map(
    live: ConfigMapSource, configurator: Configurator, running: KubeSchedulerConfiguration
) -> ConfigMapOptions:
    return ConfigMapOptions(
        live.reference, lambda text: configurator.reload(running, live.parse, text)
    )


def _plugins(handle: Handle) -> Registry:
    registry = discover_plugins(handle)
    for plugin, fault in registry.faults.items():
        log.warning("plugin not loaded", plugin=plugin, fault=fault)
    return registry


def _leader_election(election: LeaderElectionConfiguration) -> LeaderElectionOptions:
    return LeaderElectionOptions(
        identity=f"{socket.gethostname()}_{uuid.uuid4()}",
        lease_name=election.resource_name,
        lease_namespace=election.resource_namespace,
        lease_duration_s=election.lease_duration,
        renew_deadline_s=election.renew_deadline,
        retry_period_s=election.retry_period,
    )


def with_api_server(
    options: RunOptions, master: str | None, qps: float | None, burst: int | None
) -> RunOptions:
    """The options with the flags about the API server; None keeps the configured value."""
    return replace(
        options,
        master=master,
        kube_api_qps=options.kube_api_qps if qps is None else qps,
        kube_api_burst=options.kube_api_burst if burst is None else burst,
    )


def set_up_logging(verbosity: int, logging_format: LoggingFormat | None) -> None:
    """Send logs to stderr; without a format as JSON, or as text on a terminal."""
    is_json = None if logging_format is None else logging_format is LoggingFormat.JSON
    configure_logging(verbosity, json=is_json)


def failure_log(
    verbosity: int, logging_format: LoggingFormat | None
) -> Callable[[str, list[str]], None] | None:
    """A function that logs why the scheduler cannot start; None unless logs are JSON."""
    if logging_format is not LoggingFormat.JSON:
        return None

    def log_failure(event: str, errors: list[str]) -> None:
        set_up_logging(verbosity, logging_format)
        log.error(event, errors=errors)

    return log_failure


def run_scheduler(options: RunOptions) -> int:
    """Run the scheduler; returns the exit status.

    Raises:
        ConfigException: there is no usable kubeconfig, and the process is not in a cluster.
        OSError: the address is in use, or a certificate is unusable.
    """
    with _kubeconfig_explained():
        return run_blocking(options)


@contextmanager
def _kubeconfig_explained() -> Iterator[None]:
    try:
        yield
    except ConfigException as error:
        text = f"no usable kubeconfig, and not inside a cluster: {error}"
        raise ConfigException(text) from error
