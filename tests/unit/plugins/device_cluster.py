"""Clusters with devices, and decisions of DynamicResources about them."""

from __future__ import annotations

from typing import Any

from stowage.api.objects.pod import Pod
from stowage.engine.scheduling import (
    SchedulingOutcome,
    SchedulingRequest,
    TieBreaker,
    Unschedulable,
    schedule_pod,
)
from stowage.framework import CycleState, Framework
from stowage.plugins.dynamic_resources import DynamicResources, DynamicResourcesArgs
from stowage.state import ClusterCache, make_pod_info
from tests.support.plugins.small_plugins import framework_of


def cluster_of(*objects: Any) -> ClusterCache:
    """A cluster of nodes, slices, classes and claims."""
    cache = ClusterCache()
    for each in objects:
        if hasattr(each.spec, "unschedulable"):
            cache.update_node(each)
        else:
            cache.update_device_object(each)
    return cache


def framework_for(cache: ClusterCache, **args: Any) -> Framework:
    """A framework with this plugin alone, given these arguments."""
    framework = framework_of(DynamicResources(DynamicResourcesArgs(**args)))
    framework.read_snapshots(cache.snapshot)
    return framework


def schedule(
    cache: ClusterCache, pod: Pod, state: CycleState | None = None, **args: Any
) -> SchedulingOutcome:
    """The decision about a pod with this plugin alone."""
    info, cycle = make_pod_info(pod, cache.classes), state or CycleState()
    ties = TieBreaker(lambda _: 0)
    return schedule_pod(
        SchedulingRequest(framework_for(cache, **args), cache.snapshot(), info, cycle, ties)
    )


def reason(outcome: SchedulingOutcome) -> str:
    """Why the pod is unschedulable."""
    assert isinstance(outcome, Unschedulable)
    return outcome.message
