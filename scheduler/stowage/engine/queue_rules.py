"""The rules of the scheduling queue, made from the frameworks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stowage.api.status import Status, error
from stowage.framework import Framework
from stowage.queue import PluginKey, QueueRules, Registration
from stowage.state.pods.pod_info import PodInfo


def queue_rules(frameworks: Sequence[Framework], settings: Mapping[str, Any]) -> QueueRules:
    """Sort order, PreEnqueue and queueing hints for the queue.

    Args:
        frameworks: At least one; the first one's QueueSort orders the pods of all profiles.
        settings: ``initial_backoff_s``, ``max_backoff_s``, ``max_in_unschedulable_s``,
            ``pops_from_backoff``; a missing one takes its default.
    """
    by_name = {framework.scheduler_name: framework for framework in frameworks}
    return QueueRules(
        frameworks[0].sort_key,
        lambda pod: _pre_enqueue(by_name, pod),
        _registrations(frameworks),
        pre_enqueue_again=lambda pod: by_name[pod.scheduler_name].gating.run_again(pod),
        gates_per_pod=lambda pod: by_name[pod.scheduler_name].gating.may_differ_in_class(pod),
        released=lambda plugin: (
            by_name[plugin[0]].gating.released(plugin[1]) if plugin[0] in by_name else None
        ),
        reports=lambda plugin: (
            plugin[0] in by_name and by_name[plugin[0]].gating.reports(plugin[1])
        ),
        keeps=lambda pod: pod.scheduler_name in by_name,
        **settings,
    )


def _pre_enqueue(frameworks: Mapping[str, Framework], pod: PodInfo) -> Status:
    framework = frameworks.get(pod.scheduler_name)
    if framework is None:
        return error(f"no profile has the scheduler name {pod.scheduler_name!r}")
    return framework.run_pre_enqueue(pod)


def _registrations(frameworks: Sequence[Framework]) -> dict[PluginKey, list[Registration]]:
    """The events that each plugin of each profile registers for."""
    return {
        (framework.scheduler_name, plugin): [
            Registration(each.event, each.hint, each.per_class, each.per_demand)
            for each in registered
        ]
        for framework in frameworks
        for plugin, registered in framework.events_by_plugin.items()
    }
