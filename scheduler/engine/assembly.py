"""An engine from profiles: frameworks, and the queue that asks them for order, gates and hints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from scheduler.api.extenders import NO_EXTENDERS, Extenders
from scheduler.api.status import Status, error
from scheduler.engine.engine import Engine
from scheduler.engine.journal import Journal
from scheduler.framework import Framework
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.state.pod_info import PodInfo


def make_engine(
    frameworks: Sequence[Framework],
    choose: Callable[[int], int],
    *,
    queue_settings: Mapping[str, float] | None = None,
    timer: Callable[[], float] = lambda: 0.0,
    journal: Journal | None = None,
    extenders: Extenders = NO_EXTENDERS,
) -> Engine:
    """Put an engine together around an empty cache.

    Args:
        frameworks: At least one; the first one's QueueSort orders the pods of all.
        choose: ``choose(n)`` gives an index below n; breaks ties.
        queue_settings: ``initial_backoff_s``, ``max_backoff_s``, ``max_in_unschedulable_s``.
        timer: A clock for durations in results.
        journal: Where calls are recorded.
        extenders: Who has a say besides the plugins.
    """
    by_name = {framework.scheduler_name: framework for framework in frameworks}
    queue = SchedulingQueue(
        frameworks[0].sort_key,
        lambda pod: _pre_enqueue(by_name, pod),
        _registrations(frameworks),
        **(queue_settings or {}),
    )
    return Engine(by_name, queue, choose, timer=timer, journal=journal, extenders=extenders)


def _pre_enqueue(frameworks: Mapping[str, Framework], pod: PodInfo) -> Status:
    framework = frameworks.get(pod.scheduler_name)
    if framework is None:
        return error(f"no profile has the scheduler name {pod.scheduler_name!r}")
    return framework.run_pre_enqueue(pod)


def _registrations(frameworks: Sequence[Framework]) -> dict[tuple[str, str], list[Any]]:
    """What each plugin of each profile waits for, in the queue's terms."""
    return {
        (framework.scheduler_name, plugin): [(each.event, each.hint) for each in registered]
        for framework in frameworks
        for plugin, registered in framework.events_by_plugin.items()
    }
