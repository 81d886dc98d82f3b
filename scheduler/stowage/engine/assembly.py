"""Making an engine from the frameworks of its profiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stowage.api.config.extenders import NO_EXTENDERS, Extenders
from stowage.engine.engine import Engine
from stowage.engine.journal import CallRecorder
from stowage.engine.queue_rules import queue_rules
from stowage.framework import Framework
from stowage.queue.scheduling_queue import SchedulingQueue


def make_engine(
    frameworks: Sequence[Framework],
    choose: Callable[[int], int],
    *,
    queue_settings: Mapping[str, Any] | None = None,
    timer: Callable[[], float] = lambda: 0.0,
    journal: CallRecorder | None = None,
    extenders: Extenders = NO_EXTENDERS,
    wall_clock: Callable[[], float] = lambda: 0.0,
) -> Engine:
    """Make an engine with an empty cache.

    Args:
        frameworks: At least one; the first one's QueueSort orders the pods of all profiles.
        choose: ``choose(n)`` returns an index below n; breaks ties between best nodes.
        queue_settings: ``initial_backoff_s``, ``max_backoff_s``, ``max_in_unschedulable_s``,
            ``pops_from_backoff``.
        timer: A clock for durations in results.
        journal: Records the calls; None records nothing.
        extenders: The configured extenders.
        wall_clock: Returns the seconds since the epoch.
    """
    by_name = {framework.scheduler_name: framework for framework in frameworks}
    queue = SchedulingQueue(queue_rules(frameworks, queue_settings or {}))
    return Engine(
        by_name,
        queue,
        choose,
        timer=timer,
        journal=journal,
        extenders=extenders,
        wall_clock=wall_clock,
    )
