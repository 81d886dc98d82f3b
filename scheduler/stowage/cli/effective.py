"""The effective configuration: every plugin, weight and argument written out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml

from stowage.api.config.loading import (
    ConfigError,
    InvalidConfiguration,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    to_builtins,
    without_private_keys,
)
from stowage.api.config.types import TieBreaking
from stowage.framework import Framework, Registry
from stowage.framework.profile.points import ExtensionPoint, points_of
from stowage.framework.profile.profile import Profile, decode_args

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
    multi_point = dict[str, Any](_NONE_BY_DEFAULT)
    if elsewhere := _at_no_point(profile):
        multi_point = {"enabled": [{"name": name} for name in elsewhere], **multi_point}
    plugins: dict[str, Any] = {"multiPoint": multi_point}
    for point in ExtensionPoint:
        names = [plugin.name for plugin in profile.plugins[point]]
        if names:
            weights = profile.weights if point is ExtensionPoint.SCORE else {}
            plugins[point.value] = {"enabled": [_setting(name, weights) for name in names]}
    return {
        "schedulerName": profile.scheduler_name,
        "percentageOfNodesToScore": profile.percentage_of_nodes_to_score,
        "tieBreaking": _tie_breaking(written.tie_breaking, written, registry),
        "alwaysCheckAllPredicates": profile.always_check_all_predicates,
        "disablePreemption": written.disable_preemption,
        "plugins": plugins,
        "pluginConfig": _plugin_config(profile, written, registry),
    }


def _at_no_point(profile: Profile) -> list[str]:
    """The plugins that rank placements of pod groups, which is no extension point of a profile."""
    return [name for name, plugin in profile.instances.items() if not points_of(plugin)]


def _tie_breaking(
    ties: TieBreaking, written: KubeSchedulerProfile, registry: Registry
) -> dict[str, Any]:
    """The policy for ties, each plugin with its arguments."""
    of_profile = {entry.name: entry.args for entry in written.plugin_config}
    plugins = []
    for setting in ties.score_plugins:
        given = of_profile.get(setting.name, {}) if setting.args is None else setting.args
        args, _ = decode_args(registry[setting.name].args, given, setting.name)
        plugins.append({"name": setting.name, "args": msgspec.to_builtins(args, enc_hook=str)})
    return {"type": ties.type, "seed": ties.seed, "scorePlugins": plugins}


def _setting(name: str, weights: Mapping[str, int]) -> dict[str, Any]:
    return {"name": name, "weight": weights[name]} if name in weights else {"name": name}


def _plugin_config(
    profile: Profile, written: KubeSchedulerProfile, registry: Registry
) -> list[dict[str, Any]]:
    """The arguments of all plugins that have arguments, sorted by name."""
    given = {entry.name: entry.args for entry in written.plugin_config}
    used = {plugin.name for plugins in profile.plugins.values() for plugin in plugins}
    entries = []
    for name in sorted(used.union(_at_no_point(profile))):
        kind = registry[name].args
        if kind.__struct_fields__:
            args, _ = decode_args(kind, given.get(name, {}), name)
            entries.append({"name": name, "args": msgspec.to_builtins(args, enc_hook=str)})
    return entries


def as_yaml(builtins: Mapping[str, Any]) -> str:
    """A configuration as the text of its file."""
    return yaml.safe_dump(_plain(builtins), sort_keys=False)


def write_new_file(flag: str, path: Path, builtins: Mapping[str, Any]) -> None:
    """Write a configuration to a file that does not exist yet.

    Raises:
        InvalidConfiguration: the file exists, or cannot be written.
    """
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(as_yaml(builtins))
    except OSError as error:
        expectation = f"a new file that can be written; {error.strerror}"
        raise InvalidConfiguration([ConfigError(flag, str(path), expectation)]) from error


def _plain(value: object) -> object:
    """The value with lists instead of tuples, for YAML."""
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
