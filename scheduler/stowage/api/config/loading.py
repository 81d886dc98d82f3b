"""Loads a KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1) from builtins.

Three defaults differ from kube-scheduler's, so that both can run in one cluster without flags: the
name of a single profile without a name is ``stowage``, the Lease is ``stowage``, and the client has
no rate limit (``qps`` 0: priority levels of the API server limit it better).
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from stowage.api.config.errors import ConfigError, InvalidConfiguration, without_credentials
from stowage.api.config.types import (
    API_VERSION,
    DEFAULT_SCHEDULER_NAME,
    KIND,
    ClientConnectionConfiguration,
    Extender,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    LeaderElectionConfiguration,
    PluginConfig,
    PluginSet,
    PluginSets,
    PluginSetting,
    TracingConfiguration,
)
from stowage.api.config.validation import configuration_errors
from stowage.api.decoding.strict_decoding import decode_struct

__all__ = [
    "API_VERSION",
    "DEFAULT_SCHEDULER_NAME",
    "KIND",
    "ClientConnectionConfiguration",
    "ConfigError",
    "Extender",
    "InvalidConfiguration",
    "InvalidFields",
    "KubeSchedulerConfiguration",
    "KubeSchedulerProfile",
    "LeaderElectionConfiguration",
    "PluginConfig",
    "PluginSet",
    "PluginSets",
    "PluginSetting",
    "TracingConfiguration",
    "configuration_hash",
    "load_configuration",
    "settings_without_effect",
    "to_builtins",
    "without_private_keys",
]

HASH_DIGITS = 12
JSON_CONTENT_TYPE = "application/json"

SectionT = TypeVar("SectionT", LeaderElectionConfiguration, ClientConnectionConfiguration)


class InvalidFields(InvalidConfiguration):
    """A configuration with errors; `decoded` has defaults instead of the invalid fields."""

    def __init__(self, errors: Iterable[ConfigError], decoded: KubeSchedulerConfiguration) -> None:
        super().__init__(errors)
        self.decoded = decoded


def load_configuration(
    builtins: object = None, *, is_complete: bool = False
) -> KubeSchedulerConfiguration:
    """Read, default and validate a KubeSchedulerConfiguration.

    Args:
        builtins: A parsed YAML document; None is the default configuration.
        is_complete: Whether the defaults of empty texts and zeros are set already, so that one that
            is left is meant as it is.

    Raises:
        InvalidFields: It lists every unknown field, wrong type and value out of range; for an
            object of another kind only this.
    """
    if builtins is None:
        return KubeSchedulerConfiguration()
    errors: list[ConfigError] = []
    if isinstance(builtins, Mapping):
        errors += [
            ConfigError(name, None, wanted)
            for name, wanted in (("apiVersion", API_VERSION), ("kind", KIND))
            if not builtins.get(name)
        ]
        if (builtins.get("kind") or KIND) != KIND:
            # Another object, such as a ConfigMap: what it is says more than each of its fields.
            builtins = {name: builtins[name] for name in ("apiVersion", "kind") if name in builtins}
    configuration = decode_struct(builtins, KubeSchedulerConfiguration, "", errors)
    if not is_complete:
        configuration = _with_empty_fields_filled(configuration)
    configuration = _with_profile_defaults(configuration)
    # Fields that were not decoded hold defaults: errors about these would be misleading.
    undecoded = tuple(error.path for error in errors)
    errors += [
        error
        for error in configuration_errors(configuration)
        if not error.path.startswith(undecoded)
    ]
    if errors:
        raise InvalidFields(errors, configuration)
    return configuration


def settings_without_effect(
    configuration: KubeSchedulerConfiguration, written: Mapping[str, Any] | None = None
) -> tuple[str, ...]:
    """Fields that ask for something that is not done, with the reason: ``field: reason``.

    Args:
        configuration: The configuration.
        written: The document that it was loaded from, to name defaults that are written out, too.
    """
    texts = []
    if written and written.get("enableContentionProfiling"):
        texts.append("enableContentionProfiling: there are no locks to profile")
    if configuration.delay_cache_until_active:
        texts.append("delayCacheUntilActive: a standby always keeps its cache warm")
    client = configuration.client_connection
    types = {"contentType": client.content_type, "acceptContentTypes": client.accept_content_types}
    for field, value in types.items():
        if value and JSON_CONTENT_TYPE not in value:
            texts.append(f"clientConnection.{field}: requests to the API server are in JSON")
    return tuple(texts)


def to_builtins(configuration: KubeSchedulerConfiguration) -> dict[str, Any]:
    """The effective configuration in the shape of its file, for printing and ``/configz``."""
    builtins: dict[str, Any] = msgspec.to_builtins(configuration, enc_hook=str)
    return builtins


def without_private_keys(configuration: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
    """The configuration without ``keyData`` of extenders and passwords in their URLs.

    The result may be published.
    """
    extenders = tuple(_without_secrets(extender) for extender in configuration.extenders)
    return msgspec.structs.replace(configuration, extenders=extenders)


def _without_secrets(extender: Extender) -> Extender:
    tls = extender.tls_config
    return msgspec.structs.replace(
        extender,
        url_prefix=without_credentials(extender.url_prefix),
        tls_config=None if tls is None else msgspec.structs.replace(tls, key_data=b""),
    )


def configuration_hash(builtins: Mapping[str, Any]) -> str:
    """The hash of a configuration: the first digits of the SHA-256 of its canonical JSON.

    Canonical JSON is sorted by key and has no white space; the order of lists counts.

    Args:
        builtins: The configuration in the shape of its file.
    """
    canonical = msgspec.json.encode(builtins, order="sorted", enc_hook=str)
    return hashlib.sha256(canonical).hexdigest()[:HASH_DIGITS]


def _with_profile_defaults(configuration: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
    """Set the defaults of profiles (``SetDefaults_KubeSchedulerConfiguration``)."""
    profiles = configuration.profiles or (KubeSchedulerProfile(),)
    if len(profiles) == 1 and not profiles[0].scheduler_name:
        named = msgspec.structs.replace(profiles[0], scheduler_name=DEFAULT_SCHEDULER_NAME)
        profiles = (named,)
    return msgspec.structs.replace(configuration, profiles=profiles)


def _with_empty_fields_filled(
    configuration: KubeSchedulerConfiguration,
) -> KubeSchedulerConfiguration:
    """Set the defaults of fields where Go cannot tell an empty text or 0 from an absent one."""
    election = ("lease_duration", "renew_deadline", "retry_period")
    lock = ("resource_lock", "resource_name", "resource_namespace")
    return msgspec.structs.replace(
        configuration,
        leader_election=_filled(configuration.leader_election, *election, *lock),
        client_connection=_filled(configuration.client_connection, "burst", "content_type"),
    )


def _filled(section: SectionT, *names: str) -> SectionT:
    """The section, with the defaults of those of the named fields that are empty or 0."""
    defaults = type(section)()
    empty = {name: getattr(defaults, name) for name in names if not getattr(section, name)}
    return msgspec.structs.replace(section, **empty)
