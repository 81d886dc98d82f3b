"""``stowage run``: runs the scheduler."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from stowage.api.config.feature_gates import parse_feature_gates
from stowage.api.config.loading import InvalidConfiguration, settings_without_effect
from stowage.cli import run_flags, serving_flags
from stowage.cli.config_file import print_errors
from stowage.cli.flag_overrides import ConfigurationFlags, FlagOverrides
from stowage.cli.flag_values import flag_values
from stowage.cli.flags_without_effect import accepts_flags_without_effect, settings_of_flags
from stowage.cli.go_flags import is_true
from stowage.cli.imports import garbage_collection_paused
from stowage.cli.lazy_commands import single_command_app
from stowage.cli.lean_libraries import lean_libraries
from stowage.cli.max_volumes import max_volumes
from stowage.cli.run_command import RunCommand

if TYPE_CHECKING:
    from rich.console import Console

    from stowage.operator import RunOptions

_FIVE_MINUTES_S = 300.0
_DAY_S = 86400.0
_GIBIBYTE = 2**30


@accepts_flags_without_effect
def run(
    context: typer.Context,
    kubeconfig: run_flags.Kubeconfig = None,
    master: run_flags.Master = None,
    kube_api_qps: run_flags.KubeApiQps = None,
    kube_api_burst: run_flags.KubeApiBurst = None,
    kube_api_content_type: run_flags.KubeApiContentType = None,
    config: run_flags.ConfigFile = None,
    configmap: run_flags.ConfigMap = None,
    policy_config_file: run_flags.PolicyConfigFile = None,
    algorithm_provider: run_flags.AlgorithmProvider = None,
    scheduler_name: run_flags.SchedulerName = None,
    pod_max_in_unschedulable_pods_duration: run_flags.MaxInUnschedulable = None,
    feature_gates: run_flags.FeatureGates = None,
    write_config_to: run_flags.WriteConfigTo = None,
    secure_port: serving_flags.SecurePort = 10259,
    bind_address: serving_flags.BindAddress = "0.0.0.0",  # noqa: S104 - as kube-scheduler
    permit_port_sharing: serving_flags.PermitPortSharing = None,
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
    leader_elect_resource_lock: run_flags.ResourceLock = None,
    leader_elect_resource_name: run_flags.LeaseName = None,
    leader_elect_resource_namespace: run_flags.LeaseNamespace = None,
    disabled_metrics: run_flags.DisabledMetrics = None,
    decision_log: run_flags.DecisionLog = None,
    decision_log_file_size: run_flags.DecisionLogFileSize = 100,
    decision_log_file_age: run_flags.DecisionLogFileAge = None,
    decision_log_files: run_flags.DecisionLogFiles = 10,
    verbosity: run_flags.Verbosity = 0,
    logging_format: run_flags.Format = None,
    profiling: run_flags.Profiling = None,
    contention_profiling: run_flags.ContentionProfiling = None,
    record: run_flags.Record = None,
    record_max_size: run_flags.RecordMaxSize = None,
    record_max_age: run_flags.RecordMaxAge = None,
    anonymise: run_flags.Anonymise = False,
    version: run_flags.Version = None,
    **without_effect: list[str] | None,
) -> None:
    """Schedule the pods of a cluster until SIGTERM or Ctrl-C.

    Flags have the same names and meanings as in kube-scheduler. A flag overrides the file of
    --config or the ConfigMap of --configmap, which overrides the defaults. The environment variable
    KUBE_MAX_PD_VOLS is the limit of MaxEBSVolumeCount, MaxGCEPDVolumeCount and
    MaxAzureDiskVolumeCount. The command exits with status 1 when it loses the Lease.
    """
    # Imported late: --help does not need Kopf and the Kubernetes client.
    with garbage_collection_paused(), lean_libraries():
        from stowage.cli import composition  # noqa: PLC0415
        from stowage.cli.effective import write_new_file  # noqa: PLC0415
        from stowage.cli.serving_options import (  # noqa: PLC0415
            ServingFlags,
            make_serving_options,
        )
        from stowage.recording.limits import RecordingLimits  # noqa: PLC0415

    overrides: FlagOverrides = {
        "": {
            "enable_profiling": is_true(profiling),
            "enable_contention_profiling": is_true(contention_profiling),
        },
        "client_connection": {
            "qps": kube_api_qps,
            "burst": kube_api_burst,
            "content_type": kube_api_content_type,
        },
        "leader_election": {
            "leader_elect": is_true(leader_elect),
            "lease_duration": leader_elect_lease_duration,
            "renew_deadline": leader_elect_renew_deadline,
            "retry_period": leader_elect_retry_period,
            "resource_lock": leader_elect_resource_lock,
            "resource_name": leader_elect_resource_name,
            "resource_namespace": leader_elect_resource_namespace,
        },
    }
    endpoints = ServingFlags(
        bind_address=bind_address,
        secure_port=secure_port,
        permit_port_sharing=bool(is_true(permit_port_sharing)),
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
    flags = ConfigurationFlags(
        config, configmap, scheduler_name, overrides, policy_config_file, algorithm_provider
    )
    log_failure = composition.failure_log(verbosity, logging_format)
    with _failures_reported(composition.CANNOT_START, log_failure):
        gates = parse_feature_gates(feature_gates or [])
        limit = max_volumes(os.environ)
        configuration, live = composition.read_start_configuration(flags, limit, kubeconfig, master)
        composition.set_up_logging(verbosity, logging_format)
        options = composition.run_options(
            configuration,
            kubeconfig,
            make_serving_options(endpoints),
            pod_max_in_unschedulable_pods_duration or _FIVE_MINUTES_S,
            live,
            gates,
        )
        options = replace(
            options,
            master=master,
            flags=flag_values(context),
            disabled_metrics=run_flags.names_in(disabled_metrics),
            recording=composition.recording_options(
                record,
                RecordingLimits(record_max_size or _GIBIBYTE, record_max_age or _DAY_S),
                pod_max_in_unschedulable_pods_duration or _FIVE_MINUTES_S,
                gates,
                anonymises=anonymise,
            ),
        )
        if decision_log is not None:
            age_s = decision_log_file_age or _DAY_S
            options = composition.with_decision_log(
                options, decision_log, decision_log_file_size, age_s, decision_log_files
            )
        if write_config_to is not None:
            write_new_file("--write-config-to", write_config_to, options.configuration.shown)
            raise typer.Exit
        without_effect["version"] = [version] if version else None
        if is_true(contention_profiling):
            without_effect["contention_profiling"] = ["true"]
        composition.log_settings_without_effect(
            [
                *settings_without_effect(configuration),
                *_options_without_effect(options),
                *settings_of_flags(without_effect),
            ]
        )
        exit_status = composition.run_scheduler(options)
    raise typer.Exit(exit_status)


def _options_without_effect(options: RunOptions) -> Iterator[str]:
    for gate in options.feature_gates.without_effect():
        yield f"--feature-gates={gate}: nothing reads this gate"
    if options.serving is not None:
        yield from options.serving.tls.without_effect()


@contextmanager
def _failures_reported(
    cannot_start: tuple[type[Exception], ...],
    log_failure: Callable[[str, list[str]], None] | None,
) -> Iterator[None]:
    """Report why the scheduler cannot start, in the log or on the terminal, and exit with 1."""
    try:
        yield
    except InvalidConfiguration as invalid:
        if log_failure is not None:
            log_failure("configuration refused", [str(each) for each in invalid.errors])
        else:
            print_errors(_console(), invalid)
        raise typer.Exit(1) from invalid
    except cannot_start as error:
        if log_failure is not None:
            log_failure("cannot run", [str(error) or repr(error)])
        else:
            console = _console()
            console.print("cannot run:", style="red", end=" ")
            console.print(str(error), markup=False)
        raise typer.Exit(1) from error


def _console() -> Console:
    # Imported late: Rich is not needed to schedule.
    from stowage.cli.terminal import terminal  # noqa: PLC0415

    return terminal(stderr=True)


app = single_command_app(run, RunCommand)
