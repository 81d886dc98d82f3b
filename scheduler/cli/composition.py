"""From a configuration to frameworks, an engine and the shell's options.

The one place where core, plugins and shell are put together; heavy to import.
"""

from __future__ import annotations

import socket
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

import structlog
from kubernetes.aio.config import ConfigException

from scheduler.api.config import (
    KubeSchedulerConfiguration,
    LeaderElectionConfiguration,
    to_builtins,
    without_private_keys,
)
from scheduler.cli.plugin_discovery import discover_plugins
from scheduler.cli.profiles import make_extenders, make_frameworks
from scheduler.cli.run_flags import LoggingFormat
from scheduler.engine import Engine, make_engine
from scheduler.framework import Framework, Handle
from scheduler.operator import (
    EngineFactory,
    EngineParts,
    LeaderElectionOptions,
    RunOptions,
    ServingOptions,
    configure_logging,
    run_blocking,
)

log = structlog.get_logger(__name__)

CANNOT_START = (ConfigException, OSError)
"""What `run_until_told` raises: no usable kubeconfig, serving address taken, bad certificates."""


def run_options(
    configuration: KubeSchedulerConfiguration,
    kubeconfig: Path | None,
    serving: ServingOptions | None,
    max_in_unschedulable_s: float,
) -> RunOptions:
    """What the shell needs, from the configuration.

    Raises:
        InvalidConfiguration: see `make_frameworks`.
    """
    handle = Handle()
    frameworks = _frameworks(configuration, handle)
    if configuration.client_connection.qps > 0:
        qps = configuration.client_connection.qps
        log.warning("clientConnection.qps is not enforced, requests are not limited", qps=qps)
    path = str(kubeconfig) if kubeconfig else configuration.client_connection.kubeconfig or None
    election = configuration.leader_election
    return RunOptions(
        engine_factory=_engine_factory(frameworks, handle, configuration, max_in_unschedulable_s),
        scheduler_names=tuple(profile.scheduler_name for profile in configuration.profiles),
        kubeconfig=path,
        serving=serving,
        leader_election=_leader_election(election) if election.leader_elect else None,
        configz=lambda: to_builtins(without_private_keys(configuration)),
        extenders=make_extenders(configuration),
    )


def _frameworks(configuration: KubeSchedulerConfiguration, handle: Handle) -> list[Framework]:
    registry = discover_plugins(handle)
    for plugin, fault in registry.faults.items():
        log.warning("plugin not loaded", plugin=plugin, fault=fault)
    return make_frameworks(configuration, registry)


def _engine_factory(
    frameworks: Sequence[Framework],
    handle: Handle,
    configuration: KubeSchedulerConfiguration,
    max_in_unschedulable_s: float,
) -> EngineFactory:
    queue_settings: Mapping[str, float] = {
        "initial_backoff_s": configuration.pod_initial_backoff_seconds,
        "max_backoff_s": configuration.pod_max_backoff_seconds,
        "max_in_unschedulable_s": max_in_unschedulable_s,
    }

    def make(parts: EngineParts) -> Engine:
        engine = make_engine(
            frameworks,
            parts.choose,
            queue_settings=queue_settings,
            timer=parts.timer,
            extenders=make_extenders(configuration),
        )
        handle.connect(parts.post, engine.waiting_pods)
        return engine

    return make


def _leader_election(election: LeaderElectionConfiguration) -> LeaderElectionOptions:
    return LeaderElectionOptions(
        identity=f"{socket.gethostname()}_{uuid.uuid4()}",
        lease_name=election.resource_name,
        lease_namespace=election.resource_namespace,
        lease_duration_s=election.lease_duration,
        renew_deadline_s=election.renew_deadline,
        retry_period_s=election.retry_period,
    )


def serving_options(
    bind_address: str, port: int, cert_file: Path | None, key_file: Path | None
) -> ServingOptions | None:
    """Where to serve health and metrics; None for port 0."""
    if port == 0:
        return None
    return ServingOptions(
        bind_address=bind_address,
        port=port,
        tls_cert_file=str(cert_file) if cert_file else None,
        tls_private_key_file=str(key_file) if key_file else None,
    )


def set_up_logging(verbosity: int, logging_format: LoggingFormat | None) -> None:
    """Send logs to stderr; without a format, as JSON unless that is a terminal."""
    is_json = None if logging_format is None else logging_format is LoggingFormat.JSON
    configure_logging(verbosity, json=is_json)


def run_until_told(options: RunOptions) -> int:
    """Run the scheduler; its exit status.

    Raises:
        ConfigException, OSError: it cannot start.
    """
    try:
        return run_blocking(options)
    except ConfigException as error:
        text = f"no usable kubeconfig, and not inside a cluster: {error}"
        raise ConfigException(text) from error
