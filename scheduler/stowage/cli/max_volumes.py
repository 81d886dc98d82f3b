"""The environment variable ``KUBE_MAX_PD_VOLS`` of kube-scheduler 1.12."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from stowage.api.config.errors import ConfigError, InvalidConfiguration
from stowage.api.config.types import (
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    PluginConfig,
    PluginSet,
)

MAX_VOLUMES = "KUBE_MAX_PD_VOLS"
PLUGINS = ("MaxEBSVolumeCount", "MaxGCEPDVolumeCount", "MaxAzureDiskVolumeCount")
_ARGUMENT = "maxVolumes"


def max_volumes(environment: Mapping[str, str]) -> int | None:
    """The limit in the environment; None without one.

    Raises:
        InvalidConfiguration: it is no positive whole number.
    """
    text = environment.get(MAX_VOLUMES)
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and int(text)):
        raise InvalidConfiguration([ConfigError(MAX_VOLUMES, text, "a whole number above 0")])
    return int(text)


def with_max_volumes(
    configuration: KubeSchedulerConfiguration, limit: int | None
) -> KubeSchedulerConfiguration:
    """The configuration with the limit as an argument of the plugins that profiles enable.

    The argument of a profile comes first.
    """
    if limit is None:
        return configuration
    profiles = tuple(_limited(profile, limit) for profile in configuration.profiles)
    return msgspec.structs.replace(configuration, profiles=profiles)


def _limited(profile: KubeSchedulerProfile, limit: int) -> KubeSchedulerProfile:
    sets: list[PluginSet] = [
        getattr(profile.plugins, field.name) for field in msgspec.structs.fields(profile.plugins)
    ]
    enabled = {setting.name for plugins in sets for setting in plugins.enabled}
    entries = {entry.name: entry for entry in profile.plugin_config}
    for name in PLUGINS:
        if name in enabled:
            args = entries[name].args if name in entries else {}
            entries[name] = PluginConfig(name, {_ARGUMENT: limit, **args})
    return msgspec.structs.replace(profile, plugin_config=tuple(entries.values()))
