"""Reads Policy files and algorithm providers of kube-scheduler 1.12 as configurations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stowage.api.config.errors import ConfigError, InvalidConfiguration
from stowage.api.config.legacy_algorithms import PROVIDERS
from stowage.api.config.loading import KubeSchedulerConfiguration, load_configuration
from stowage.api.config.policy import convert_policy, convert_provider
from stowage.cli.config_file import parse_document, read_text
from stowage.cli.profiles import make_frameworks

POLICY_FLAG = "--policy-config-file"
PROVIDER_FLAG = "--algorithm-provider"


def read_policy(path: Path) -> KubeSchedulerConfiguration:
    """The configuration that is equal to a Policy file.

    Raises:
        InvalidConfiguration: the file cannot be read, or is no valid Policy.
    """
    document = parse_document(read_text(path, POLICY_FLAG), POLICY_FLAG, str(path))
    return load_configuration(policy_builtins(document.builtins))


def policy_builtins(builtins: object) -> dict[str, Any]:
    """The configuration that is equal to a Policy, in the shape of its file.

    Raises:
        InvalidConfiguration: the Policy is invalid; the errors name its fields.
    """
    converted = convert_policy(builtins)
    try:
        make_frameworks(load_configuration(converted.builtins))
    except InvalidConfiguration as invalid:
        raise InvalidConfiguration(map(converted.at_origin, invalid.errors)) from invalid
    return converted.builtins


def provider_configuration(name: str) -> KubeSchedulerConfiguration:
    """The configuration that is equal to an algorithm provider.

    Raises:
        InvalidConfiguration: there is no such provider.
    """
    if name not in PROVIDERS:
        expectation = f"one of {', '.join(PROVIDERS)}"
        raise InvalidConfiguration([ConfigError(PROVIDER_FLAG, name, expectation)])
    return load_configuration(convert_provider(name).builtins)
