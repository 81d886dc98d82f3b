"""The effective configuration: every plugin, weight and argument written out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from stowage.api.config.loading import (
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    to_builtins,
    without_private_keys,
)
from stowage.framework import Framework, Registry
from stowage.framework.profile.profile import ExtensionPoint, Profile, decode_args

_NONE_BY_DEFAULT = {"disabled": [{"name": "*"}]}


def effective_builtins(
    configuration: KubeSchedulerConfiguration,
    frameworks: Sequence[Framework],
    registry: Registry,
) -> dict[str, Any]:
    """The effective configuration in the format of its file, without private keys.

    Loading it makes the same frameworks, and its effective configuration is itself.

    Args:
        configuration: The loaded configuration.
        frameworks: The frameworks of its profiles, in their order.
        registry: The plugins of the frameworks.
    """
    shown = to_builtins(without_private_keys(configuration))
    shown["profiles"] = [
        _effective_profile(framework.profile, written, registry)
        for framework, written in zip(frameworks, configuration.profiles, strict=True)
    ]
    plain: dict[str, Any] = msgspec.to_builtins(shown, enc_hook=str)
    return plain


def _effective_profile(
    profile: Profile, written: KubeSchedulerProfile, registry: Registry
) -> dict[str, Any]:
    plugins: dict[str, Any] = {"multiPoint": _NONE_BY_DEFAULT}
    for point in ExtensionPoint:
        names = [plugin.name for plugin in profile.plugins[point]]
        if names:
            weights = profile.weights if point is ExtensionPoint.SCORE else {}
            plugins[point.value] = {"enabled": [_setting(name, weights) for name in names]}
    return {
        "schedulerName": profile.scheduler_name,
        "percentageOfNodesToScore": profile.percentage_of_nodes_to_score,
        "plugins": plugins,
        "pluginConfig": _plugin_config(profile, written, registry),
    }


def _setting(name: str, weights: Mapping[str, int]) -> dict[str, Any]:
    return {"name": name, "weight": weights[name]} if name in weights else {"name": name}


def _plugin_config(
    profile: Profile, written: KubeSchedulerProfile, registry: Registry
) -> list[dict[str, Any]]:
    """The arguments of all plugins that have arguments, sorted by name."""
    given = {entry.name: entry.args for entry in written.plugin_config}
    used = {plugin.name for plugins in profile.plugins.values() for plugin in plugins}
    entries = []
    for name in sorted(used):
        kind = registry[name].args
        if msgspec.structs.fields(kind):
            args, _ = decode_args(kind, given.get(name, {}), name)
            entries.append({"name": name, "args": msgspec.to_builtins(args, enc_hook=str)})
    return entries
