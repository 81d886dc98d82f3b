"""The configuration of a start: a file, a ConfigMap, a Policy, a provider or the defaults.

Flags override it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from stowage.api.config.loading import (
    ConfigError,
    InvalidConfiguration,
    KubeSchedulerConfiguration,
    load_configuration,
    to_builtins,
)
from stowage.cli.config_file import parse_configuration, read_configuration
from stowage.cli.go_flags import is_true
from stowage.cli.policy_file import (
    POLICY_FLAG,
    PROVIDER_FLAG,
    provider_configuration,
    read_policy,
)
from stowage.cli.run_flags import (
    ApiServerFlags,
    LeaderElectionFlags,
    OtherFlags,
    SchedulingFlags,
)

FlagOverrides: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Section of the configuration ("" for its top) -> field -> value; None for flags not given."""


def overrides_of(
    api_server: ApiServerFlags, election: LeaderElectionFlags, other: OtherFlags
) -> FlagOverrides:
    """The fields of the configuration that the flags override."""
    return {
        "": {
            "enable_profiling": is_true(other.profiling),
            "enable_contention_profiling": is_true(other.contention_profiling),
        },
        "client_connection": {
            "qps": api_server.kube_api_qps,
            "burst": api_server.kube_api_burst,
            "content_type": api_server.kube_api_content_type,
        },
        "leader_election": {
            "leader_elect": is_true(election.leader_elect),
            "lease_duration": election.leader_elect_lease_duration,
            "renew_deadline": election.leader_elect_renew_deadline,
            "retry_period": election.leader_elect_retry_period,
            "resource_lock": election.leader_elect_resource_lock,
            "resource_name": election.leader_elect_resource_name,
            "resource_namespace": election.leader_elect_resource_namespace,
        },
    }


def start_configuration(
    flags: SchedulingFlags, overrides: FlagOverrides
) -> KubeSchedulerConfiguration:
    """The configuration of a start without a ConfigMap, overridden by the flags.

    Raises:
        InvalidConfiguration: the file or the flags are invalid, or contradict each other.
    """
    policy, provider = flags.policy_config_file, flags.algorithm_provider
    if policy is None and provider is None:
        return effective_configuration(flags.config, flags.scheduler_name, overrides)
    if policy is not None:
        refuse_conflicts(POLICY_FLAG, str(policy), config=flags.config, algorithm_provider=provider)
        configuration = read_policy(policy)
    if provider is not None:
        refuse_conflicts(PROVIDER_FLAG, provider, config=flags.config)
        configuration = provider_configuration(provider)
    if flags.scheduler_name is not None:
        named = msgspec.structs.replace(
            configuration.profiles[0], scheduler_name=flags.scheduler_name
        )
        configuration = msgspec.structs.replace(configuration, profiles=(named,))
    return with_flags(configuration, overrides)


def effective_configuration(
    path: Path | None, scheduler_name: str | None, flags: FlagOverrides
) -> KubeSchedulerConfiguration:
    """The configuration of the file, or the defaults, overridden by the flags.

    Raises:
        InvalidConfiguration: the file or the flags are invalid, or contradict each other.
    """
    configuration = with_flags(read_configuration(path), flags)
    if scheduler_name is None:
        return configuration
    refuse_conflicts("--scheduler-name", scheduler_name, config=path)
    return load_configuration(
        {**to_builtins(configuration), "profiles": [{"schedulerName": scheduler_name}]}
    )


def in_config_map(text: str, flags: FlagOverrides) -> KubeSchedulerConfiguration:
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
    return with_flags(configuration, flags)


def with_flags(
    configuration: KubeSchedulerConfiguration, flags: FlagOverrides
) -> KubeSchedulerConfiguration:
    """The configuration, overridden by the flags that were given.

    Raises:
        InvalidConfiguration: the flags contradict the configuration.
    """
    merged = configuration
    for section, fields in flags.items():
        given = {name: value for name, value in fields.items() if value is not None}
        if section:
            given = {section: msgspec.structs.replace(getattr(merged, section), **given)}
        merged = msgspec.structs.replace(merged, **given)
    return load_configuration(to_builtins(merged), is_complete=True)


def refuse_conflicts(flag: str, value: str, **others: object) -> None:
    """Refuse a flag if one of the others is given, too.

    Raises:
        InvalidConfiguration: another one is given.
    """
    given = [f"--{name.replace('_', '-')}" for name, other in others.items() if other is not None]
    if given:
        expectation = f"no {' and no '.join(given)}, because both set the profiles"
        raise InvalidConfiguration([ConfigError(flag, value, expectation)])
