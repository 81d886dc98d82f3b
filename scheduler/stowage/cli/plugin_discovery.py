"""Finds plugins of installed packages through their entry points.

A package declares its plugins in its ``pyproject.toml``::

    [project.entry-points."stowage.plugins"]
    PreferLabel = "my_package:PreferLabel"

A profile enables a plugin by name; installing a package enables none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from msgspec.structs import replace

from stowage.api.config.feature_gates import DEFAULT_FEATURE_GATES, FeatureGates
from stowage.framework import Handle, PluginFactory, PluginUnusable, Registry, plugin_factory
from stowage.framework.extension_points import Plugin
from stowage.plugins import in_tree_registry

GROUP = "stowage.plugins"


def discover_plugins(
    handle: Handle | None = None,
    *,
    gates: FeatureGates = DEFAULT_FEATURE_GATES,
    offered: Iterable[EntryPoint] | None = None,
) -> Registry:
    """All plugins: the in-tree plugins and those of installed packages.

    An unusable entry point is in the registry's ``faults`` with its package. Only a profile that
    enables it is refused.

    Args:
        handle: Gives plugins access to the running scheduler.
        gates: The feature gates that the in-tree plugins obey.
        offered: Entry points; None looks up the installed ones.
    """
    in_tree = in_tree_registry(gates)
    found = tuple(entry_points(group=GROUP)) if offered is None else tuple(offered)
    times = Counter(entry_point.name for entry_point in found)
    factories: list[PluginFactory] = []
    faults: dict[str, str] = {}
    for entry_point in sorted(found, key=lambda each: (each.name, _origin(each))):
        name = entry_point.name
        try:
            if name in in_tree:
                raise PluginUnusable("its name is that of a plugin of the scheduler itself")
            if times[name] > 1:
                raise PluginUnusable(f"{times[name]} packages offer a plugin of that name")
            factories.append(_load(entry_point, handle or Handle()))
        except PluginUnusable as fault:
            text = f"{_origin(entry_point)}: {fault}"
            faults[name] = f"{faults[name]}; {text}" if name in faults else text
    return in_tree.merged_with(*factories, faults=faults)


def _load(entry_point: EntryPoint, handle: Handle) -> PluginFactory:
    try:
        made_by = entry_point.load()
    except (Exception, SystemExit) as problem:
        # An out-of-tree module may raise any exception while it is imported.
        raise PluginUnusable(f"{type(problem).__name__}: {problem}") from problem
    factory = plugin_factory(made_by, name=entry_point.name, handle=handle)
    return replace(factory, construct=_naming_origin(factory.construct, _origin(entry_point)))


def _naming_origin(construct: Callable[[Any], Plugin], origin: str) -> Callable[[Any], Plugin]:
    def construct_with_origin(args: Any) -> Plugin:
        try:
            return construct(args)
        except PluginUnusable as fault:
            raise PluginUnusable(f"{origin}: {fault}") from fault

    return construct_with_origin


def _origin(entry_point: EntryPoint) -> str:
    package = entry_point.dist
    known = "an unknown package" if package is None else f"{package.name} {package.version}"
    return f"entry point {entry_point.name} = {entry_point.value} of {known}"
