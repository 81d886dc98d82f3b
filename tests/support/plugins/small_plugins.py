"""Plugins of a few lines with fixed answers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from stowage.api.config.loading import KubeSchedulerProfile, PluginSet, PluginSets, PluginSetting
from stowage.api.status import SUCCESS, Status
from stowage.framework import (
    CycleState,
    Diagnosis,
    FilterVerdict,
    Framework,
    PluginFactory,
    PluginTraits,
    PreFilterResult,
    Registry,
    Rejection,
    build_profile,
)
from stowage.framework.extension_points import BindPlugin, Plugin
from stowage.framework.profile.registry import NoArgs
from stowage.framework.verdict import Int64Array
from stowage.plugins.default_binder import DefaultBinder
from stowage.plugins.priority_sort import PrioritySort
from stowage.state import NodeView, PodInfo, Snapshot

NO_TRAITS = PluginTraits()


def _check(state: CycleState, pod: PodInfo) -> None:
    """Fail if the framework hands over anything else: the answers depend on neither."""
    assert isinstance(state, CycleState)
    assert isinstance(pod, PodInfo)


@dataclass
class Refuses:
    """Rejects the named nodes for one reason; records the number of filtered nodes."""

    name: str
    nodes: Collection[str]
    reason: str = "not here"
    unresolvable: bool = False
    traits: PluginTraits = NO_TRAITS
    asked: list[int] = field(default_factory=list)

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> FilterVerdict:
        _check(state, pod)
        self.asked.append(len(nodes))
        mask = np.array([name in self.nodes for name in nodes.names], dtype=np.bool_)
        return FilterVerdict((Rejection(self.reason, mask, self.unresolvable),))


@dataclass
class Raises:
    """Raises an exception in Filter and Score."""

    name: str = "Raises"
    traits: PluginTraits = NO_TRAITS

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> FilterVerdict:
        raise RuntimeError("the disk is on fire")

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        raise RuntimeError("the disk is on fire")


@dataclass
class Rates:
    """Scores nodes by name; other nodes get 0."""

    name: str
    scores: Mapping[str, int]
    traits: PluginTraits = NO_TRAITS
    asked: list[int] = field(default_factory=list)

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        _check(state, pod)
        self.asked.append(len(nodes))
        return np.array([self.scores.get(name, 0) for name in nodes.names], dtype=np.int64)


@dataclass
class FixedPreFilter:
    """A PreFilter plugin with a fixed answer."""

    name: str
    result: PreFilterResult = field(default_factory=PreFilterResult)
    asked: int = 0
    traits: PluginTraits = NO_TRAITS

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        _check(state, pod)
        self.asked += 1
        return self.result


@dataclass
class FixedPostFilter:
    """A PostFilter plugin with a fixed answer."""

    name: str
    status: Status = SUCCESS
    node_name: str | None = None
    traits: PluginTraits = NO_TRAITS

    def post_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, diagnosis: Diagnosis
    ) -> tuple[Status, str | None]:
        _check(state, pod)
        assert isinstance(snapshot, Snapshot)
        assert isinstance(diagnosis, Diagnosis)
        return self.status, self.node_name


def framework_of(
    *plugins: Plugin, weights: Mapping[str, int] | None = None, class_cache_size: int = 16
) -> Framework:
    """A framework with only these plugins, in this order."""
    factories = [_factory(plugin) for plugin in plugins]
    registry = Registry(
        PluginFactory("PrioritySort", PrioritySort),
        PluginFactory("DefaultBinder", DefaultBinder),
        *factories,
    )
    settings = [PluginSetting(plugin.name, (weights or {}).get(plugin.name)) for plugin in plugins]
    binds = any(isinstance(plugin, BindPlugin) for plugin in plugins)
    disabled = (PluginSetting("DefaultBinder"),) if binds else ()
    sets = PluginSets(multi_point=PluginSet(enabled=tuple(settings), disabled=disabled))
    profile = build_profile(KubeSchedulerProfile(scheduler_name="test", plugins=sets), registry)
    return Framework(profile, class_cache_size=class_cache_size)


def _factory(plugin: Plugin) -> PluginFactory:
    def construct(args: NoArgs) -> Plugin:
        return plugin

    return PluginFactory(plugin.name, construct)
