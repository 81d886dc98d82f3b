"""The settings of a profile that a search tries, and configurations made of them."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import msgspec

Choice: TypeAlias = int | str
"""The value of one setting."""

FIT = "NodeResourcesFit"
_STRATEGIES = ("LeastAllocated", "MostAllocated")
_RESOURCES = ("cpu", "memory")
_MAX_RESOURCE_WEIGHT = 5
_WEIGHT = "weight"


class Setting(msgspec.Struct, frozen=True):
    """One setting that is tried.

    Attributes:
        name: ``PLUGIN.weight``, or ``PLUGIN.argument``.
        values: The values, ascending if they are numbers.
    """

    name: str
    values: tuple[Choice, ...]


def search_space(
    score_plugins: Iterable[str], max_weight: int, extended_resources: Iterable[str] = ()
) -> list[Setting]:
    """The settings of a profile.

    Args:
        score_plugins: The plugins that score in it.
        max_weight: The largest weight; 0 leaves a plugin out of the scoring.
        extended_resources: Those that NodeResourcesFit may look at beside cpu and memory; 0 leaves
            one out.
    """
    plugins = list(score_plugins)
    space = [Setting(f"{name}.{_WEIGHT}", tuple(range(max_weight + 1))) for name in plugins]
    if FIT in plugins:
        weights = tuple(range(1, _MAX_RESOURCE_WEIGHT + 1))
        space.append(Setting(f"{FIT}.type", _STRATEGIES))
        space += [Setting(f"{FIT}.{resource}", weights) for resource in _RESOURCES]
        space += [Setting(f"{FIT}.{resource}", (0, *weights)) for resource in extended_resources]
    return space


def configuration_with(written: Mapping[str, Any], chosen: Mapping[str, Choice]) -> dict[str, Any]:
    """A configuration file with other settings in its first profile.

    Args:
        written: A KubeSchedulerConfiguration as mappings and lists; stays as it is.
        chosen: Name of a setting -> its value.
    """
    document = copy.deepcopy(dict(written))
    profiles = document.setdefault("profiles", [])
    if not profiles:
        profiles.append({})
    profile = profiles[0]
    weights = {
        name.partition(".")[0]: int(value)
        for name, value in chosen.items()
        if name.endswith(f".{_WEIGHT}")
    }
    plugins = profile.get("plugins") or {}
    profile["plugins"] = {**plugins, "score": _score_plugins(weights)}
    if f"{FIT}.type" in chosen:
        args = _args_of(profile, FIT)
        args["scoringStrategy"] = {
            "type": chosen[f"{FIT}.type"],
            "resources": _resources(chosen),
        }
    return document


def _score_plugins(weights: Mapping[str, int]) -> dict[str, Any]:
    """All score plugins are named, so what ``multiPoint`` or a default says does not matter."""
    plugins: dict[str, Any] = {"disabled": [{"name": "*"}]}
    enabled = [{"name": name, "weight": weight} for name, weight in weights.items() if weight]
    return {"enabled": enabled, **plugins} if enabled else plugins


def _resources(chosen: Mapping[str, Choice]) -> list[dict[str, Any]]:
    """The resources of a strategy, cpu and memory first."""
    names = [name.removeprefix(f"{FIT}.") for name in chosen if name.startswith(f"{FIT}.")]
    extended = sorted(name for name in names if "/" in name)
    weights = [(name, chosen[f"{FIT}.{name}"]) for name in (*_RESOURCES, *extended)]
    return [{"name": name, "weight": weight} for name, weight in weights if weight]


def _args_of(profile: dict[str, Any], plugin: str) -> dict[str, Any]:
    """The arguments of a plugin, added if there are none."""
    entries = profile["pluginConfig"] = list(profile.get("pluginConfig") or ())
    for index, entry in enumerate(entries):
        if entry.get("name") == plugin:
            entries[index] = {**entry, "args": dict(entry.get("args") or {})}
            args: dict[str, Any] = entries[index]["args"]
            return args
    entries.append({"name": plugin, "args": {}})
    added: dict[str, Any] = entries[-1]["args"]
    return added
