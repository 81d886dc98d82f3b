"""Makes frameworks and extenders from a configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from stowage.api.config.extenders import Extenders
from stowage.api.config.loading import (
    ConfigError,
    InvalidConfiguration,
    InvalidFields,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    PluginConfig,
)
from stowage.api.config.validation import MAX_PROFILES
from stowage.framework import ExtensionPoint, Framework, Registry, build_profile
from stowage.plugins import in_tree_registry

_FIT = "NodeResourcesFit"
_IGNORED = "ignoredResources"


def make_extenders(configuration: KubeSchedulerConfiguration) -> Extenders:
    """The extenders of all profiles."""
    return Extenders(configuration.extenders, configuration.parallelism)


def ignoring_resources(
    profile: KubeSchedulerProfile, resources: Sequence[str]
) -> KubeSchedulerProfile:
    """The profile with these resources added to NodeResourcesFit's ``ignoredResources``.

    In kube-scheduler, extenders' resources replace those of the profile; here both are ignored.
    """
    if not resources:
        return profile
    entries = list(profile.plugin_config)
    places = [index for index, entry in enumerate(entries) if entry.name == _FIT]
    if not places:
        entries.append(PluginConfig(_FIT, {_IGNORED: list(resources)}))
    for index in places:
        args = entries[index].args
        both = dict.fromkeys([*(args.get(_IGNORED) or ()), *resources])
        entries[index] = PluginConfig(_FIT, {**args, _IGNORED: list(both)})
    return msgspec.structs.replace(profile, plugin_config=tuple(entries))


def with_plugin_errors(
    read: Callable[[], KubeSchedulerConfiguration], registry: Callable[[], Registry]
) -> KubeSchedulerConfiguration:
    """Read a configuration; if it is invalid, report the errors in plugin arguments as well.

    Args:
        read: Reads the configuration; raises InvalidConfiguration.
        registry: Returns the plugins; called only if there are errors.

    Raises:
        InvalidConfiguration: with all errors, each field once.
    """
    try:
        return read()
    except InvalidFields as invalid:
        more: tuple[ConfigError, ...] = ()
        try:
            if len(invalid.decoded.profiles) <= MAX_PROFILES:  # more would take long
                make_frameworks(invalid.decoded, registry())
        except InvalidConfiguration as others:
            more = others.errors
        known = tuple(error.path for error in invalid.errors)
        new = [error for error in more if not error.path.startswith(known)]
        raise InvalidConfiguration([*invalid.errors, *new]) from invalid


def make_frameworks(
    configuration: KubeSchedulerConfiguration, registry: Registry | None = None
) -> list[Framework]:
    """One framework a profile, in the configuration's order.

    Args:
        configuration: The configuration with the profiles.
        registry: The plugins; None for the in-tree plugins.

    Raises:
        InvalidConfiguration: plugins are unknown or their arguments invalid, or the profiles sort
            the one queue differently; with all errors of all profiles.
    """
    plugins = in_tree_registry() if registry is None else registry
    frameworks = []
    errors: list[ConfigError] = []
    ignored = make_extenders(configuration).ignored_resources()
    for index, written in enumerate(configuration.profiles):
        profile = ignoring_resources(written, ignored)
        if written.percentage_of_nodes_to_score is None:
            percentage = configuration.percentage_of_nodes_to_score
            profile = msgspec.structs.replace(profile, percentage_of_nodes_to_score=percentage)
        try:
            resolved = build_profile(profile, plugins, f"profiles[{index}]")
        except InvalidConfiguration as invalid:
            errors += invalid.errors
        else:
            frameworks.append(Framework(resolved))
    if not errors:
        errors += _queue_sort_errors(frameworks, configuration.profiles)
    if errors:
        raise InvalidConfiguration(errors)
    return frameworks


def _queue_sort_errors(
    frameworks: Sequence[Framework], profiles: Sequence[KubeSchedulerProfile]
) -> Iterator[ConfigError]:
    """Profiles that sort the queue differently, through ``multiPoint`` too (``profile.NewMap``)."""
    names = [each.profile.plugins[ExtensionPoint.QUEUE_SORT][0].name for each in frameworks]
    args = [
        next((entry.args for entry in profile.plugin_config if entry.name == name), None)
        for name, profile in zip(names, profiles, strict=True)
    ]
    for index in range(1, len(names)):
        if names[index] != names[0]:
            expectation = f"{names[0]} as in profiles[0]: there is one queue"
            yield ConfigError(f"profiles[{index}].plugins.queueSort", names[index], expectation)
        elif (args[index] or {}) != (args[0] or {}):
            expectation = f"the args {names[0]} has in profiles[0]: there is one queue"
            yield ConfigError(f"profiles[{index}].pluginConfig", args[index], expectation)
