"""``stowage run``: runs the scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import typer
from rich.console import Console
from rich.markup import escape

from stowage.api.config.loading import (
    ConfigError,
    InvalidConfiguration,
    KubeSchedulerConfiguration,
    load_configuration,
    to_builtins,
)
from stowage.cli import run_flags, serving_flags
from stowage.cli.config_file import parse_configuration, print_errors, read_configuration
from stowage.cli.go_flags import GoBool, GoFlagsCommand
from stowage.cli.imports import garbage_collection_paused
from stowage.cli.lazy_commands import single_command_app

_FIVE_MINUTES_S = 300.0


def run(
    kubeconfig: run_flags.Kubeconfig = None,
    master: run_flags.Master = None,
    kube_api_qps: run_flags.KubeApiQps = None,
    kube_api_burst: run_flags.KubeApiBurst = None,
    config: run_flags.ConfigFile = None,
    configmap: run_flags.ConfigMap = None,
    scheduler_name: run_flags.SchedulerName = None,
    pod_max_in_unschedulable_pods_duration: run_flags.MaxInUnschedulable = None,
    secure_port: serving_flags.SecurePort = 10259,
    bind_address: serving_flags.BindAddress = "0.0.0.0",  # noqa: S104 - as kube-scheduler
    tls_cert_file: serving_flags.TlsCertFile = None,
    tls_private_key_file: serving_flags.TlsPrivateKeyFile = None,
    cert_dir: serving_flags.CertDir = None,
    tls_min_version: serving_flags.TlsMinVersion = "VersionTLS12",
    tls_cipher_suites: serving_flags.TlsCipherSuites = "",
    client_ca_file: serving_flags.ClientCaFile = None,
    authentication_kubeconfig: serving_flags.AuthenticationKubeconfig = None,
    authorization_kubeconfig: serving_flags.AuthorizationKubeconfig = None,
    authorization_always_allow_paths: serving_flags.AlwaysAllowPaths = "/healthz,/readyz,/livez",
    authentication_token_webhook_cache_ttl: serving_flags.TokenTtl = None,
    authorization_webhook_cache_authorized_ttl: serving_flags.AuthorizedTtl = None,
    authorization_webhook_cache_unauthorized_ttl: serving_flags.UnauthorizedTtl = None,
    leader_elect: run_flags.LeaderElect = None,
    leader_elect_lease_duration: run_flags.LeaseDuration = None,
    leader_elect_renew_deadline: run_flags.RenewDeadline = None,
    leader_elect_retry_period: run_flags.RetryPeriod = None,
    leader_elect_resource_name: run_flags.LeaseName = None,
    leader_elect_resource_namespace: run_flags.LeaseNamespace = None,
    verbosity: run_flags.Verbosity = 0,
    logging_format: run_flags.Format = None,
) -> None:
    """Schedule the pods of a cluster until SIGTERM or Ctrl-C.

    Flags have the same names and meanings as in kube-scheduler. A flag overrides the file of
    --config or the ConfigMap of --configmap, which overrides the defaults. The command exits with
    status 1 when it loses the Lease.
    """
    # Imported late: --help does not need Kopf and the Kubernetes client.
    with garbage_collection_paused():
        from stowage.cli import composition  # noqa: PLC0415
        from stowage.cli.serving_options import (  # noqa: PLC0415
            ServingFlags,
            make_serving_options,
        )

    election = {
        "leader_elect": None if leader_elect is None else leader_elect is GoBool.TRUE,
        "lease_duration": leader_elect_lease_duration,
        "renew_deadline": leader_elect_renew_deadline,
        "retry_period": leader_elect_retry_period,
        "resource_name": leader_elect_resource_name,
        "resource_namespace": leader_elect_resource_namespace,
    }
    log_failure = composition.failure_log(verbosity, logging_format)
    with _failures_reported(composition.CANNOT_START, log_failure):
        live = None
        if configmap is None:
            configuration = composition.read_with_plugin_errors(
                lambda: effective_configuration(config, scheduler_name, election)
            )
        else:
            _refuse_conflicts(
                "--configmap", configmap, config=config, scheduler_name=scheduler_name
            )
            live = composition.config_map_source(
                configmap, lambda text: in_config_map(text, election)
            )
            configuration = composition.read_config_map_source(live, kubeconfig, master)
        composition.set_up_logging(verbosity, logging_format)
        endpoints = ServingFlags(
            bind_address=bind_address,
            secure_port=secure_port,
            tls_cert_file=tls_cert_file,
            tls_private_key_file=tls_private_key_file,
            cert_dir=cert_dir,
            tls_min_version=tls_min_version,
            tls_cipher_suites=tls_cipher_suites,
            client_ca_file=client_ca_file,
            authentication_kubeconfig=authentication_kubeconfig,
            authorization_kubeconfig=authorization_kubeconfig,
            authorization_always_allow_paths=authorization_always_allow_paths,
            authentication_token_webhook_cache_ttl=authentication_token_webhook_cache_ttl,
            authorization_webhook_cache_authorized_ttl=authorization_webhook_cache_authorized_ttl,
            authorization_webhook_cache_unauthorized_ttl=authorization_webhook_cache_unauthorized_ttl,
        )
        options = composition.run_options(
            configuration,
            kubeconfig,
            make_serving_options(endpoints),
            pod_max_in_unschedulable_pods_duration or _FIVE_MINUTES_S,
            live,
        )
        options = composition.with_api_server(options, master, kube_api_qps, kube_api_burst)
        exit_status = composition.run_scheduler(options)
    raise typer.Exit(exit_status)


@contextmanager
def _failures_reported(
    cannot_start: tuple[type[Exception], ...],
    log_failure: Callable[[str, list[str]], None] | None,
) -> Iterator[None]:
    """Report why the scheduler cannot start, in the log or on the terminal, and exit with 1."""
    console = Console(stderr=True, highlight=False)
    try:
        yield
    except InvalidConfiguration as invalid:
        if log_failure is not None:
            log_failure("configuration refused", [str(each) for each in invalid.errors])
        else:
            print_errors(console, invalid)
        raise typer.Exit(1) from invalid
    except cannot_start as error:
        if log_failure is not None:
            log_failure("cannot run", [str(error) or repr(error)])
        else:
            console.print(f"[red]cannot run:[/red] {escape(str(error))}")
        raise typer.Exit(1) from error


def effective_configuration(
    path: Path | None, scheduler_name: str | None, election_flags: dict[str, Any]
) -> KubeSchedulerConfiguration:
    """The configuration of the file, or the defaults, overridden by the flags.

    Raises:
        InvalidConfiguration: the file or the flags are invalid, or contradict each other.
    """
    configuration = with_flags(read_configuration(path), election_flags)
    if scheduler_name is None:
        return configuration
    _refuse_conflicts("--scheduler-name", scheduler_name, config=path)
    return load_configuration(
        {**to_builtins(configuration), "profiles": [{"schedulerName": scheduler_name}]}
    )


def in_config_map(text: str, election_flags: dict[str, Any]) -> KubeSchedulerConfiguration:
    """The configuration in a ConfigMap's text, overridden by the flags.

    Raises:
        InvalidConfiguration: the text or the flags are invalid, or contradict each other.
    """
    configuration = parse_configuration(text, "--configmap", f"{text[:40]}...")
    kubeconfig = configuration.client_connection.kubeconfig
    if kubeconfig:
        expectation = "nothing: --kubeconfig is used, also to read the ConfigMap"
        raise InvalidConfiguration(
            [ConfigError("clientConnection.kubeconfig", kubeconfig, expectation)]
        )
    return with_flags(configuration, election_flags)


def with_flags(
    configuration: KubeSchedulerConfiguration, election_flags: dict[str, Any]
) -> KubeSchedulerConfiguration:
    """The configuration, overridden by the flags that were given.

    Raises:
        InvalidConfiguration: the flags contradict the configuration.
    """
    given = {name: value for name, value in election_flags.items() if value is not None}
    election = msgspec.structs.replace(configuration.leader_election, **given)
    merged = msgspec.structs.replace(configuration, leader_election=election)
    return load_configuration(to_builtins(merged))


def _refuse_conflicts(flag: str, value: str, **others: object) -> None:
    given = [f"--{name.replace('_', '-')}" for name, other in others.items() if other is not None]
    if given:
        expectation = f"no {' and no '.join(given)}, because both set the profiles"
        raise InvalidConfiguration([ConfigError(flag, value, expectation)])


app = single_command_app(run, GoFlagsCommand)
