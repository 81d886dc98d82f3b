"""Profiles: the plugins at each extension point, in order, with weights and arguments.

A profile is built from the default plugins of v1.36 and one entry of ``profiles`` in a
KubeSchedulerConfiguration, by the rules of ``mergePluginSet`` and ``expandMultiPointPlugins``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, TypeAlias, cast

import msgspec

from stowage.api.config.feature_gates import DEFAULT_FEATURE_GATES, FeatureGates
from stowage.api.config.loading import (
    API_VERSION,
    ConfigError,
    InvalidConfiguration,
    KubeSchedulerProfile,
    PluginSet,
    PluginSetting,
)
from stowage.api.config.removed_names import known_plugin_hint
from stowage.api.config.types import INT32_MAX, Percentage, TieBreaking, TieBreakingPlugin
from stowage.api.decoding.strict_decoding import decode_struct, struct_fields
from stowage.framework.extension_points import Plugin, ScorePlugin
from stowage.framework.profile.points import (
    IDLE_POINTS,
    ExtensionPoint,
    points_of,
    takes_part,
)
from stowage.framework.profile.registry import PluginFactory, PluginUnusable, Registry
from stowage.framework.tie_policy import TiePolicy

ALL = "*"
#: The plugin that ``disablePreemption`` takes out of a profile.
PREEMPTION_PLUGIN = "DefaultPreemption"
_TYPE_META = ("apiVersion", "kind")
#: The arguments that are a kind of `API_VERSION`, and may say so.
_KINDS_OF_ARGS = frozenset(
    {
        "DefaultPreemptionArgs",
        "DynamicResourcesArgs",
        "InterPodAffinityArgs",
        "NodeAffinityArgs",
        "NodeResourcesBalancedAllocationArgs",
        "NodeResourcesFitArgs",
        "PodTopologySpreadArgs",
        "VolumeBindingArgs",
    }
)


#: The default plugins of v1.36 in order, with their score weights (0: none).
DEFAULT_MULTI_POINT: tuple[tuple[str, int], ...] = (
    ("SchedulingGates", 0),
    ("PrioritySort", 0),
    ("NodeUnschedulable", 0),
    ("NodeName", 0),
    ("TaintToleration", 3),
    ("NodeAffinity", 2),
    ("NodePorts", 0),
    ("NodeResourcesFit", 1),
    ("VolumeRestrictions", 0),
    ("NodeVolumeLimits", 0),
    ("VolumeBinding", 0),
    ("VolumeZone", 0),
    ("PodTopologySpread", 2),
    ("InterPodAffinity", 2),
    ("DynamicResources", 2),
    ("DefaultPreemption", 0),
    ("NodeResourcesBalancedAllocation", 1),
    ("ImageLocality", 1),
    ("DefaultBinder", 0),
    ("NodeDeclaredFeatures", 0),
    ("GangScheduling", 0),
    ("PodGroupPodsCount", 0),
    ("PlacementFragmentation", 0),
)

#: Default plugin -> the feature gate without which it is in no default profile
#: (``applyFeatureGates`` of apis/config/v1/default_plugins.go).
GATES_OF_DEFAULT_PLUGINS: Mapping[str, str] = {"NodeDeclaredFeatures": "NodeDeclaredFeatures"}


#: Default plugin -> the feature gates of which none may be set to false by name. They are off by
#: default in kube-scheduler; here pod groups are honoured wherever the API server serves them.
GATES_OF_GROUP_PLUGINS: Mapping[str, tuple[str, ...]] = {
    "GangScheduling": ("GenericWorkload", "GangScheduling"),
    "PodGroupPodsCount": ("GenericWorkload", "TopologyAwareWorkloadScheduling"),
    "PlacementFragmentation": ("GenericWorkload", "TopologyAwareWorkloadScheduling"),
}


_GATED = GATES_OF_DEFAULT_PLUGINS.keys() | GATES_OF_GROUP_PLUGINS.keys()


class Profile(msgspec.Struct, frozen=True):
    """A resolved profile.

    Attributes:
        scheduler_name: The ``schedulerName`` of its pods.
        instances: Every plugin of the profile, by name.
        plugins: The plugins of each extension point, in the order in which they run.
        weights: Weights of the Score plugins, by name.
        percentage_of_nodes_to_score: None if the profile does not set it.
        always_check_all_predicates: Whether each plugin that rejects a node counts in messages and
            for requeueing, not the first one only.
        ties: Which of several nodes with the highest total a pod goes to.
        gates: The feature gates of the process.
    """

    scheduler_name: str
    instances: Mapping[str, Plugin]
    plugins: Mapping[ExtensionPoint, tuple[Plugin, ...]]
    weights: Mapping[str, int]
    percentage_of_nodes_to_score: Percentage | None = None
    always_check_all_predicates: bool = False
    ties: TiePolicy = TiePolicy()
    gates: FeatureGates = DEFAULT_FEATURE_GATES


Enabled: TypeAlias = tuple[PluginSetting, ...]


class _Merged(msgspec.Struct):
    """The merged configuration: ``multiPoint``, the sets of each extension point, and errors."""

    path: str
    multi_point: Enabled
    points: dict[ExtensionPoint, PluginSet]
    errors: list[ConfigError] = msgspec.field(default_factory=list)

    def disable(self, plugin: str) -> None:
        """Take a plugin out of all extension points, even if the profile enables it."""
        self.multi_point = _without(self.multi_point, plugin)
        for point, own in self.points.items():
            enabled = _without(own.enabled, plugin)
            self.points[point] = msgspec.structs.replace(own, enabled=enabled)

    def wrong(self, path: str, value: object, expectation: str) -> None:
        """Record an error at `path` below the profile."""
        self.errors.append(ConfigError(f"{self.path}.{path}", value, expectation))


def _without(enabled: Enabled, plugin: str) -> Enabled:
    return tuple(setting for setting in enabled if setting.name != plugin)


def default_plugins(registry: Registry) -> Enabled:
    """The default ``multiPoint`` plugins that `registry` has and whose feature gates are on."""
    return tuple(
        PluginSetting(name, weight or None)
        for name, weight in DEFAULT_MULTI_POINT
        if name in registry and (name not in _GATED or _gate_is_on(name, registry.gates))
    )


def _gate_is_on(plugin: str, gates: FeatureGates) -> bool:
    if any(gates.set_to(gate) is False for gate in GATES_OF_GROUP_PLUGINS.get(plugin, ())):
        return False
    gate = GATES_OF_DEFAULT_PLUGINS.get(plugin)
    return gate is None or gates.enabled(gate)


def build_profile(
    config: KubeSchedulerProfile, registry: Registry, path: str = "profiles[0]"
) -> Profile:
    """Resolve one entry of ``profiles``; an empty one gives the default profile.

    Args:
        config: The entry.
        registry: The known plugins.
        path: The path of the entry, for errors.

    Raises:
        InvalidConfiguration: The entry is invalid; it names all errors that were found.
    """
    merged = _merge(config, registry, path)
    args = _decode_all(config, registry, merged)
    instances = _construct(config, merged, registry, args)
    ties = _tie_policy(config.tie_breaking, merged, registry, instances, args)
    plugins = {}
    points = {name: points_of(plugin) for name, plugin in instances.items()}
    for point, own in merged.points.items():
        names = _expand(point, own, merged, points)
        plugins[point] = tuple(instances[name] for name in names)
    _check_points(plugins, merged)
    if merged.errors:
        raise InvalidConfiguration(tuple(merged.errors))
    return Profile(
        config.scheduler_name,
        instances,
        plugins,
        _weights(plugins[ExtensionPoint.SCORE], merged),
        config.percentage_of_nodes_to_score,
        config.always_check_all_predicates,
        ties,
        registry.gates,
    )


def merge_plugin_set(defaults: Enabled, changes: PluginSet) -> Enabled:
    """Defaults with a profile's changes; a plugin enabled again replaces the default entry.

    ``mergePluginSet`` of apis/config/v1/default_plugins.go.
    """
    disabled = {setting.name for setting in changes.disabled}
    again = {setting.name: setting for setting in changes.enabled}
    kept: list[PluginSetting] = []
    replaced = set()
    for setting in () if ALL in disabled else defaults:
        if setting.name in disabled:
            continue
        if setting.name in again:
            replaced.add(setting.name)
        kept.append(again.get(setting.name, setting))
    return (*kept, *(setting for setting in changes.enabled if setting.name not in replaced))


def _merge(config: KubeSchedulerProfile, registry: Registry, path: str) -> _Merged:
    sets = {
        name: getattr(config.plugins, field.name)
        for name, field in struct_fields(type(config.plugins)).items()
    }
    merged = _Merged(
        path,
        merge_plugin_set(default_plugins(registry), config.plugins.multi_point),
        {point: sets[point] for point in ExtensionPoint},
    )
    if config.disable_preemption:
        merged.disable(PREEMPTION_PLUGIN)
    for name, plugins in sets.items():
        for error in _check_set(f"{path}.plugins.{name}", plugins, registry):
            merged.errors.append(error)
    return merged


def _check_set(path: str, plugins: PluginSet, registry: Registry) -> Iterator[ConfigError]:
    seen = set()
    for index, setting in enumerate(plugins.enabled):
        where = f"{path}.enabled[{index}]"
        if setting.name in registry.faults:
            expectation = f"a plugin that works, but {registry.faults[setting.name]}"
            yield ConfigError(f"{where}.name", setting.name, expectation)
        elif setting.name not in registry:
            expectation = f"the name of a known plugin{known_plugin_hint(setting.name, registry)}"
            yield ConfigError(f"{where}.name", setting.name, expectation)
        if setting.name in seen:
            yield ConfigError(f"{where}.name", setting.name, "a plugin not enabled here already")
        if (setting.weight or 0) < 0:
            yield ConfigError(f"{where}.weight", setting.weight, "at least 1")
        elif (setting.weight or 0) > INT32_MAX:
            # Sums of weighted scores must fit an int64.
            yield ConfigError(f"{where}.weight", setting.weight, f"at most {INT32_MAX}")
        seen.add(setting.name)


def _construct(
    config: KubeSchedulerProfile,
    merged: _Merged,
    registry: Registry,
    args: Mapping[str, msgspec.Struct],
) -> dict[str, Plugin]:
    names = [setting.name for setting in merged.multi_point]
    for own in merged.points.values():
        names += [setting.name for setting in own.enabled]
    instances: dict[str, Plugin] = {}
    for name in dict.fromkeys(names):
        factory = registry.get(name)
        if factory is None:
            continue
        plugin = _constructed(
            factory,
            args.get(name) or factory.args(),
            merged,
            partial(_where_enabled, merged.path, config, name),
        )
        if plugin is not None:
            instances[name] = plugin
    return instances


def _tie_policy(
    config: TieBreaking,
    merged: _Merged,
    registry: Registry,
    instances: Mapping[str, Plugin],
    args: Mapping[str, msgspec.Struct],
) -> TiePolicy:
    """The policy of ``tieBreaking``; a plugin without arguments there is that of the profile."""
    plugins: list[ScorePlugin] = []
    for index, setting in enumerate(config.score_plugins):
        path, name = f"tieBreaking.scorePlugins[{index}]", setting.name
        plugin = instances.get(name)
        if plugin is None or setting.args is not None:
            plugin = _tie_plugin(setting, f"{merged.path}.{path}", merged, registry, args)
        if plugin is not None and not takes_part(plugin, ExtensionPoint.SCORE):
            merged.wrong(f"{path}.name", name, "a plugin that takes part in score")
        plugins.append(cast("ScorePlugin", plugin))
    return TiePolicy(config.type, config.seed, tuple(plugins))


def _tie_plugin(
    setting: TieBreakingPlugin,
    path: str,
    merged: _Merged,
    registry: Registry,
    args: Mapping[str, msgspec.Struct],
) -> Plugin | None:
    """A plugin with arguments of its own, or that the profile does not have; None if invalid."""
    factory = registry.get(setting.name)
    if factory is None:
        expectation = f"the name of a known plugin{known_plugin_hint(setting.name, registry)}"
        merged.errors.append(ConfigError(f"{path}.name", setting.name, expectation))
        return None
    if setting.args is None:
        own = args.get(setting.name) or factory.args()
        return _constructed(factory, own, merged, lambda: path)
    own, errors = decode_args(factory.args, setting.args, f"{path}.args")
    merged.errors += errors
    return None if errors else _constructed(factory, own, merged, lambda: path)


def _constructed(
    factory: PluginFactory, args: msgspec.Struct, merged: _Merged, where: Callable[[], str]
) -> Plugin | None:
    """The plugin; None if it cannot be constructed, which is recorded with its path."""
    try:
        return factory.construct(args)
    except PluginUnusable as fault:
        expectation = f"a plugin that works, but {fault}"
        merged.errors.append(ConfigError(where(), factory.name, expectation))
        return None


def _where_enabled(path: str, config: KubeSchedulerProfile, name: str) -> str:
    """The path of the entry that enables a plugin; of all entries if it is on by default."""
    for point, field in struct_fields(type(config.plugins)).items():
        plugins: PluginSet = getattr(config.plugins, field.name)
        for index, setting in enumerate(plugins.enabled):
            if setting.name == name:
                return f"{path}.plugins.{point}.enabled[{index}].name"
    return f"{path}.plugins"


def _decode_all(
    config: KubeSchedulerProfile, registry: Registry, merged: _Merged
) -> dict[str, msgspec.Struct]:
    decoded: dict[str, msgspec.Struct] = {}
    for index, entry in enumerate(config.plugin_config):
        kind = _args_of(entry.name, registry)
        if kind is None:
            if entry.name not in registry.faults:
                expectation = f"the name of a known plugin{known_plugin_hint(entry.name, registry)}"
                merged.wrong(f"pluginConfig[{index}].name", entry.name, expectation)
            continue
        path = f"{merged.path}.pluginConfig[{index}].args"
        args, errors = decode_args(kind, entry.args, path)
        merged.errors += [*_type_meta_errors(kind.__name__, entry.args, path), *errors]
        if not errors:
            decoded[entry.name] = args
    return decoded


def _type_meta_errors(kind: str, args: Mapping[str, Any], path: str) -> Iterator[ConfigError]:
    """Arguments of another kind or version, which may have fields of the same names."""
    if kind in _KINDS_OF_ARGS:
        for key, wanted in zip(_TYPE_META, (API_VERSION, kind), strict=True):
            if args.get(key) not in (None, "", wanted):
                yield ConfigError(f"{path}.{key}", args[key], wanted)


def _args_of(name: str, registry: Registry) -> type[msgspec.Struct] | None:
    factory = registry.get(name)
    return None if factory is None else factory.args


def decode_args(
    kind: type[msgspec.Struct], args: Mapping[str, Any], path: str
) -> tuple[msgspec.Struct, list[ConfigError]]:
    """Turn the ``args`` of a ``pluginConfig`` entry into the plugin's own struct.

    Args:
        kind: The struct to decode into; its ``validate()``, if any, runs after decoding.
        args: As read from the file; ``apiVersion`` and ``kind`` are dropped unless the struct has
            fields with these names.
        path: The path of `args`, for errors.

    Returns:
        The struct, and the errors found.
    """
    errors: list[ConfigError] = []
    own = struct_fields(kind)
    plain = {key: args[key] for key in args if key in own or key not in _TYPE_META}
    decoded = decode_struct(plain, kind, path, errors)
    validate = getattr(decoded, "validate", None)
    if validate is not None and not errors:
        errors += [error.under(path) for error in validate()]
    return decoded, errors


def _expand(
    point: ExtensionPoint,
    own: PluginSet,
    merged: _Merged,
    points: Mapping[str, frozenset[ExtensionPoint]],
) -> list[str]:
    """Names at `point`: overridden defaults first, then multiPoint, then the rest.

    Args:
        point: The extension point.
        own: The settings at this point.
        merged: The settings at all points; errors are added to it.
        points: The points at which each plugin takes part, by name.
    """
    enabled = []
    for name in (setting.name for setting in own.enabled if setting.name in points):
        if point in points[name]:
            enabled.append(name)
        elif point not in IDLE_POINTS.get(name, ()):
            merged.wrong(f"plugins.{point}.enabled", name, f"a plugin that takes part in {point}")
    disabled = {setting.name for setting in own.disabled}
    if ALL in disabled:
        return enabled
    multi = [
        setting.name
        for setting in merged.multi_point
        if setting.name in points and setting.name not in disabled and point in points[setting.name]
    ]
    overridden = [name for name in enabled if name in multi]
    rest = [name for name in enabled if name not in multi]
    return [*overridden, *(name for name in multi if name not in enabled), *rest]


def _check_points(plugins: Mapping[ExtensionPoint, tuple[Plugin, ...]], merged: _Merged) -> None:
    sorters = [plugin.name for plugin in plugins[ExtensionPoint.QUEUE_SORT]]
    if len(sorters) != 1:
        merged.wrong("plugins.queueSort", sorters, "exactly one queue sort plugin")
    if not plugins[ExtensionPoint.BIND]:
        merged.wrong("plugins.bind", [], "at least one bind plugin")


def _weights(scorers: Iterable[Plugin], merged: _Merged) -> dict[str, int]:
    weights: dict[str, int] = {}
    for setting in (*merged.points[ExtensionPoint.SCORE].enabled, *merged.multi_point):
        weights.setdefault(setting.name, setting.weight or 1)
    return {plugin.name: weights[plugin.name] for plugin in scorers}
