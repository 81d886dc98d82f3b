"""Connects the configuration, the plugins, the engine and the shell.

This module imports numpy, Kopf and the Kubernetes client, so commands import it late.
"""

from __future__ import annotations

import socket
import sys
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
import structlog
from kubernetes.aio.config import ConfigException

from stowage.api.config.extenders import Extenders
from stowage.api.config.feature_gates import DEFAULT_FEATURE_GATES, FeatureGates
from stowage.api.config.loading import (
    ConfigError,
    InvalidConfiguration,
    KubeSchedulerConfiguration,
    LeaderElectionConfiguration,
    TracingConfiguration,
)
from stowage.cli.configurator import Configurator
from stowage.cli.flag_overrides import (
    FlagOverrides,
    in_config_map,
    refuse_conflicts,
    start_configuration,
)
from stowage.cli.max_volumes import with_max_volumes
from stowage.cli.plugin_discovery import discover_plugins
from stowage.cli.profiles import make_extenders, with_plugin_errors
from stowage.cli.run_flags import (
    ApiServerFlags,
    DecisionLogFlags,
    LoggingFormat,
    RecordingFlags,
    SchedulingFlags,
)
from stowage.engine import Engine, EngineSettings, make_engine
from stowage.framework import Handle, Registry, Timings
from stowage.operator.app import run_blocking
from stowage.operator.configuration.config_map import (
    ConfigMapReference,
    parse_reference,
    read_config_map,
)
from stowage.operator.configuration.live_configuration import ConfigMapOptions
from stowage.operator.decisions.log_files import DecisionLogOptions
from stowage.operator.lease import LeaderElectionOptions
from stowage.operator.logging.plugin_exceptions import PluginExceptionLog
from stowage.operator.logging.setup import configure_logging
from stowage.operator.run_options import EngineDependencies, RecordingOptions, RunOptions
from stowage.operator.serving.server import ServingOptions
from stowage.operator.tracing.options import TracingOptions, is_opentelemetry_installed
from stowage.recording.limits import RecordingLimits

log = structlog.get_logger(__name__)

CANNOT_START = (ConfigException, OSError)
"""Errors of `run_scheduler`: no usable kubeconfig, address in use, unusable certificates."""


class ConfigMapSource(msgspec.Struct, frozen=True):
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
    path = str(kubeconfig) if kubeconfig else None
    text = read_config_map(source.reference, path, master)
    return read_with_plugin_errors(lambda: source.parse(text))


def read_start_configuration(
    flags: SchedulingFlags,
    overrides: FlagOverrides,
    limit: int | None,
    api_server: ApiServerFlags,
) -> tuple[KubeSchedulerConfiguration, ConfigMapSource | None]:
    """The configuration for the start, and the ConfigMap to follow if it comes from one.

    Args:
        flags: The flags about the configuration.
        overrides: The flags that override fields.
        limit: The limit of volumes in the environment, see `with_max_volumes`.
        api_server: The flags about the API server that has the ConfigMap.

    Raises:
        InvalidConfiguration: it is invalid, or flags contradict each other.
        ConfigException: there is no usable kubeconfig, and the process is not in a cluster.
        OSError: the API server cannot be reached.
    """
    configmap = flags.configmap
    if configmap is None:
        configuration = read_with_plugin_errors(lambda: start_configuration(flags, overrides))
        return with_max_volumes(configuration, limit), None
    refuse_conflicts(
        "--configmap",
        configmap,
        config=flags.config,
        policy_config_file=flags.policy_config_file,
        algorithm_provider=flags.algorithm_provider,
        scheduler_name=flags.scheduler_name,
    )
    source = config_map_source(
        configmap, lambda text: with_max_volumes(in_config_map(text, overrides), limit)
    )
    return read_config_map_source(source, api_server.kubeconfig, api_server.master), source


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
    gates: FeatureGates = DEFAULT_FEATURE_GATES,
) -> RunOptions:
    """The options of the scheduler process.

    Args:
        configuration: The configuration at the start.
        kubeconfig: Path; None for the one of the configuration.
        serving: Options of the HTTPS endpoints; None serves none.
        max_in_unschedulable_s: Value of ``--pod-max-in-unschedulable-pods-duration``.
        live: The ConfigMap to follow; None follows none.
        gates: Value of ``--feature-gates``.

    Raises:
        InvalidConfiguration: see `make_frameworks`; or traces are asked for without OpenTelemetry.
    """
    handle = Handle()
    handle.report_exceptions_to(PluginExceptionLog().report)
    registry = _plugins(handle, gates)
    configurator = Configurator(registry, max_in_unschedulable_s, gates)
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
        tracing=_tracing(configuration.tracing),
        feature_gates=gates,
    )


def recording_options(
    flags: RecordingFlags, max_in_unschedulable_s: float, gates: FeatureGates
) -> RecordingOptions | None:
    """The options of ``--record``; None without a folder."""
    if flags.record is None:
        return None
    limits = RecordingLimits.of(flags.record_max_size, flags.record_max_age)
    return RecordingOptions(
        flags.record, limits, max_in_unschedulable_s, flags.anonymise, gates.written
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
        wall_clock=parts.wall_clock,
        journal=parts.journal,
    )
    if parts.observer is not None:
        engine.take_durations(Timings(parts.timer, parts.observer, trace_cycle=parts.trace_cycle))
    return engine


def _config_map(
    live: ConfigMapSource, configurator: Configurator, running: KubeSchedulerConfiguration
) -> ConfigMapOptions:
    return ConfigMapOptions(
        live.reference, lambda text: configurator.reload(running, live.parse, text)
    )


def _plugins(handle: Handle, gates: FeatureGates) -> Registry:
    registry = discover_plugins(handle, gates=gates)
    for plugin, fault in registry.faults.items():
        log.warning("plugin not loaded", plugin=plugin, fault=fault)
    return registry


def _tracing(tracing: TracingConfiguration) -> TracingOptions | None:
    rate = tracing.sampling_rate_per_million
    if not rate:
        return None
    if not is_opentelemetry_installed():
        expectation = "0, as OpenTelemetry is not installed; Stowage's extra tracing has it"
        raise InvalidConfiguration(
            [ConfigError("tracing.samplingRatePerMillion", rate, expectation)]
        )
    return TracingOptions(tracing.endpoint, rate)


def _leader_election(election: LeaderElectionConfiguration) -> LeaderElectionOptions:
    return LeaderElectionOptions(
        identity=f"{socket.gethostname()}_{uuid.uuid4()}",
        lease_name=election.resource_name,
        lease_namespace=election.resource_namespace,
        lease_duration_s=election.lease_duration,
        renew_deadline_s=election.renew_deadline,
        retry_period_s=election.retry_period,
    )


def log_settings_without_effect(texts: Iterable[str]) -> None:
    """Log the settings that were accepted and have no effect, in one line."""
    settings = list(texts)
    if settings:
        log.warning("setting without effect", settings=settings)


def decision_log_options(flags: DecisionLogFlags) -> DecisionLogOptions | None:
    """The options of ``--decision-log``; None without a directory."""
    if flags.decision_log is None:
        return None
    return DecisionLogOptions(
        directory=flags.decision_log,
        max_file_bytes=flags.decision_log_file_size * 2**20,
        max_file_age_s=flags.max_file_age_s,
        max_files=flags.decision_log_files,
    )


def set_up_logging(verbosity: int, logging_format: LoggingFormat | None) -> None:
    """Send logs to stderr; without a format as JSON, or as text on a terminal."""
    configure_logging(verbosity, json=logs_are_json(logging_format))


def logs_are_json(logging_format: LoggingFormat | None) -> bool:
    """Whether the logs are JSON, because the format or a stderr that is no terminal asks for it."""
    if logging_format is None:
        return not sys.stderr.isatty()
    return logging_format is LoggingFormat.JSON


def failure_log(
    verbosity: int, logging_format: LoggingFormat | None
) -> Callable[[str, list[str]], None] | None:
    """A function that logs why the scheduler cannot start; None unless logs are JSON."""
    if not logs_are_json(logging_format):
        return None

    def log_failure(event: str, errors: list[str]) -> None:
        set_up_logging(verbosity, logging_format)
        structlog.get_logger(__name__).error(event, errors=errors)

    return log_failure


def run_scheduler(options: RunOptions) -> int:
    """Run the scheduler; returns the exit status.

    Raises:
        ConfigException: there is no usable kubeconfig, and the process is not in a cluster.
        OSError: the address is in use, or a certificate is unusable.
    """
    return run_blocking(options)
