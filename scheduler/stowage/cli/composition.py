"""From a configuration to frameworks, an engine and the shell's options.

The one place where core, plugins and shell are put together; heavy to import.
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

from stowage.api.config.loading import (
    ConfigError,
    InvalidConfiguration,
    KubeSchedulerConfiguration,
    LeaderElectionConfiguration,
    settings_without_effect,
)
from stowage.cli.configurator import Configurator
from stowage.cli.plugin_discovery import discover_plugins
from stowage.cli.profiles import make_extenders, with_plugin_errors
from stowage.cli.run_flags import LoggingFormat
from stowage.engine import Engine, make_engine
from stowage.framework import Handle, Registry, Timings
from stowage.operator import (
    AccessOptions,
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
"""What `run_scheduler` raises: no usable kubeconfig, serving address taken, bad certificates."""


DEFAULT_REVIEW_TTL_S = 10.0
"""kube-scheduler's, for all three kinds of answers about who may read what is served."""


@dataclass(frozen=True, slots=True)
class ConfigMapSource:
    """Where the configuration comes from while the scheduler runs.

    Attributes:
        reference: The ConfigMap.
        parse: Reads its text, flags put over it; raises InvalidConfiguration.
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
    """Read the configuration to start with.

    Raises:
        InvalidConfiguration: the ConfigMap is missing or wrong.
        ConfigException, OSError: there is no API server to ask.
    """
    with _kubeconfig_explained():
        path = str(kubeconfig) if kubeconfig else None
        text = read_config_map(source.reference, path, master)
    return read_with_plugin_errors(lambda: source.parse(text))


def read_with_plugin_errors(
    read: Callable[[], KubeSchedulerConfiguration],
) -> KubeSchedulerConfiguration:
    """What `read` returns.

    Raises:
        InvalidConfiguration: with all mistakes it finds, and those of plugins.
    """
    return with_plugin_errors(read, discover_plugins)


def run_options(
    configuration: KubeSchedulerConfiguration,
    kubeconfig: Path | None,
    serving: ServingOptions | None,
    max_in_unschedulable_s: float,
    live: ConfigMapSource | None = None,
) -> RunOptions:
    """What the shell needs, from the configuration.

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
        engine = make_engine(
            settings.frameworks,
            parts.choose,
            queue_settings=settings.queue_settings,
            timer=parts.timer,
            extenders=extenders,
        )
        engine.follow_configuration(loaded.hash, configurator.configure)
        if parts.observer is not None:
            engine.take_durations(Timings(parts.timer, parts.observer))
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
    """The same with the flags about the API server over it; None leaves what is configured."""
    return replace(
        options,
        master=master,
        kube_api_qps=options.kube_api_qps if qps is None else qps,
        kube_api_burst=options.kube_api_burst if burst is None else burst,
    )


def serving_options(
    bind_address: str,
    port: int,
    cert_file: Path | None,
    key_file: Path | None,
    cert_dir: Path | None = None,
) -> ServingOptions | None:
    """Where to serve health and metrics, to whoever the API server lets; None for port 0."""
    if port == 0:
        return None
    return ServingOptions(
        bind_address=bind_address,
        port=port,
        tls_cert_file=str(cert_file) if cert_file else None,
        tls_private_key_file=str(key_file) if key_file else None,
        cert_dir=str(cert_dir) if cert_dir else None,
    )


def with_access(
    serving: ServingOptions | None,
    always_allow_paths: str,
    token_ttl_s: float | None,
    authorized_ttl_s: float | None,
    unauthorized_ttl_s: float | None,
) -> ServingOptions | None:
    """The same with the flags about who may read over it; None is ten seconds.

    Raises:
        InvalidConfiguration: a path is none.
    """
    if serving is None:
        return None
    paths = tuple(path.strip() for path in always_allow_paths.split(",") if path.strip())
    ten = DEFAULT_REVIEW_TTL_S
    try:
        access = AccessOptions(
            always_allow_paths=paths,
            token_ttl_s=ten if token_ttl_s is None else token_ttl_s,
            authorized_ttl_s=ten if authorized_ttl_s is None else authorized_ttl_s,
            unauthorized_ttl_s=ten if unauthorized_ttl_s is None else unauthorized_ttl_s,
        )
    except ValueError as error:
        flag = "--authorization-always-allow-paths"
        raise InvalidConfiguration([ConfigError(flag, always_allow_paths, str(error))]) from error
    return replace(serving, access=access)


def with_tls(
    serving: ServingOptions | None,
    min_version: str,
    cipher_suites: str,
    client_ca_file: Path | None,
) -> ServingOptions | None:
    """The same with the flags about TLS over it.

    Raises:
        InvalidConfiguration: a version or a cipher suite is not known.
    """
    if serving is None:
        return None
    suites = tuple(suite.strip() for suite in cipher_suites.split(",") if suite.strip())
    for flag, given, value in (
        ("--tls-min-version", {"min_version": min_version}, min_version),
        ("--tls-cipher-suites", {"cipher_suites": suites}, cipher_suites),
    ):
        try:
            serving = replace(serving, tls=replace(serving.tls, **given))
        except ValueError as error:
            raise InvalidConfiguration([ConfigError(flag, value, str(error))]) from error
    return replace(serving, tls=replace(serving.tls, client_ca_file=client_ca_file))


def with_reviewers(
    serving: ServingOptions | None, authentication: Path | None, authorization: Path | None
) -> ServingOptions | None:
    """The same with the kubeconfigs to ask about tokens and users with."""
    if serving is None:
        return None
    access = replace(
        serving.access,
        authentication_kubeconfig=str(authentication) if authentication else None,
        authorization_kubeconfig=str(authorization) if authorization else None,
    )
    return replace(serving, access=access)


def set_up_logging(verbosity: int, logging_format: LoggingFormat | None) -> None:
    """Send logs to stderr; without a format, as JSON unless that is a terminal."""
    is_json = None if logging_format is None else logging_format is LoggingFormat.JSON
    configure_logging(verbosity, json=is_json)


def failure_log(
    verbosity: int, logging_format: LoggingFormat | None
) -> Callable[[str, list[str]], None] | None:
    """How to tell by a log line why nothing runs; None where it is told to people."""
    if logging_format is not LoggingFormat.JSON:
        return None

    def tell(event: str, errors: list[str]) -> None:
        set_up_logging(verbosity, logging_format)
        log.error(event, errors=errors)

    return tell


def run_scheduler(options: RunOptions) -> int:
    """Run the scheduler; its exit status.

    Raises:
        ConfigException, OSError: it cannot start.
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
