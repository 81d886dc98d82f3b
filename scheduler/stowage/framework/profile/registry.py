"""The registry of plugins: how each is constructed from its arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from stowage.api.config.feature_gates import DEFAULT_FEATURE_GATES, FeatureGates
from stowage.framework.extension_points import Plugin


class PluginUnusable(ValueError):  # noqa: N818 - it names the finding
    """A plugin that cannot be constructed or run; the text continues "..., but it ..."."""


class NoArgs(msgspec.Struct, frozen=True):
    """Arguments of a plugin that takes none."""


class PluginFactory(msgspec.Struct, frozen=True):
    """Constructs a plugin.

    Attributes:
        name: The plugin's name in the configuration.
        construct: Returns the plugin for a value of type `args`.
        args: The struct into which its ``pluginConfig`` entry is decoded; all fields have defaults.
            It may have a method ``validate()`` that yields a `ConfigError` for each value out of
            bounds, with the path below the args.
    """

    name: str
    construct: Callable[[Any], Plugin]
    args: type[msgspec.Struct] = NoArgs


class Registry(Mapping[str, PluginFactory]):
    """Plugin factories by name.

    Args:
        factories: The plugins.
        faults: Name -> error of a plugin that could not be loaded. Only a profile that names the
            plugin is rejected, with this error.
        gates: The feature gates that the in-tree plugins were made with.

    Attributes:
        gates: See above; they also decide which plugins are in the default profile.

    Raises:
        ValueError: Two factories have the same name.
    """

    def __init__(
        self,
        *factories: PluginFactory,
        faults: Mapping[str, str] | None = None,
        gates: FeatureGates = DEFAULT_FEATURE_GATES,
    ) -> None:
        self.faults: Mapping[str, str] = dict(faults or {})
        self.gates = gates
        self._factories: dict[str, PluginFactory] = {}
        for factory in factories:
            self._add(factory)

    def merged_with(
        self, *factories: PluginFactory, faults: Mapping[str, str] | None = None
    ) -> Registry:
        """A registry with these out-of-tree plugins added.

        Raises:
            ValueError: A plugin of that name exists.
        """
        known = {**self.faults, **(faults or {})}
        return Registry(*self._factories.values(), *factories, faults=known, gates=self.gates)

    def _add(self, factory: PluginFactory) -> None:
        if factory.name in self._factories:
            raise ValueError(f"a plugin named {factory.name} already exists")
        self._factories[factory.name] = factory

    def __getitem__(self, name: str) -> PluginFactory:
        return self._factories[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._factories)

    def __len__(self) -> int:
        return len(self._factories)
