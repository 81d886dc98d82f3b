"""Runs PostFilter plugins when no node is feasible."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from stowage.api.interruptible import Interruptible
from stowage.api.status import SUCCESS, Code, Status
from stowage.framework.cycle_state import CycleState
from stowage.framework.diagnosis import Diagnosis
from stowage.framework.extension_points import (
    PodGroupPostFilterPlugin,
    PostFilterPlugin,
    SteppedPostFilterPlugin,
)
from stowage.framework.failure import failed
from stowage.framework.implements import implements
from stowage.framework.timings import timed_plugin, timed_steps
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import Snapshot


class PostFilterOutcome(msgspec.Struct, frozen=True):
    """The outcome of all PostFilter plugins.

    Attributes:
        status: Success if a plugin nominated a node.
        nominated_node_name: The nominated node; empty clears the nomination, None keeps it.
    """

    status: Status
    nominated_node_name: str | None = None


def run_post_filter_plugins(
    plugins: Sequence[PostFilterPlugin],
    state: CycleState,
    pod: PodInfo,
    snapshot: Snapshot,
    diagnosis: Diagnosis,
) -> Interruptible[PostFilterOutcome]:
    """Run PostFilter plugins until one succeeds, fails or returns an unresolvable rejection.

    The status joins the reasons of all rejections and names the first rejecting plugin. Without
    plugins a nomination is cleared. (``RunPostFilterPlugins``)
    """
    reasons: list[str] = []
    rejector = ""
    nominated: str | None = None if plugins else ""
    for plugin in plugins:
        doing = f'running PostFilter plugin "{plugin.name}"'
        try:
            status, node_name = yield from _run_one(plugin, state, pod, snapshot, diagnosis)
        except Exception as problem:
            return PostFilterOutcome(failed(doing, plugin.name, problem).status)
        if status.is_success or status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return PostFilterOutcome(status.by(plugin.name), node_name)
        if not status.is_rejected:
            return PostFilterOutcome(status.by(plugin.name))
        nominated = node_name if node_name is not None else nominated
        reasons += status.reasons
        rejector = rejector or plugin.name
    return PostFilterOutcome(Status(Code.UNSCHEDULABLE, tuple(reasons), rejector), nominated)


def _run_one(
    plugin: PostFilterPlugin,
    state: CycleState,
    pod: PodInfo,
    snapshot: Snapshot,
    diagnosis: Diagnosis,
) -> Interruptible[tuple[Status, str | None]]:
    if not implements(plugin, SteppedPostFilterPlugin):
        ask = timed_plugin(state.timings, plugin.name, "PostFilter", plugin.post_filter)
        return ask(state, pod, snapshot, diagnosis)
    timings = state.timings
    stopwatch = None if timings is None else timings.plugin_stopwatch(plugin.name, "PostFilter")
    steps = plugin.post_filter_in_steps(state, pod, snapshot, diagnosis)
    return (yield from timed_steps(stopwatch, steps))


def run_pod_group_post_filter_plugins(
    plugins: Sequence[PodGroupPostFilterPlugin], victims: Sequence[PodInfo], snapshot: Snapshot
) -> Status:
    """Ask all plugins whether a pod group may evict these pods; the first that refuses is named."""
    for plugin in plugins:
        try:
            status = plugin.pod_group_post_filter(victims, snapshot)
        except Exception as problem:
            doing = f'running PodGroupPostFilter plugin "{plugin.name}"'
            return failed(doing, plugin.name, problem).status
        if not status.is_success:
            return status.by(plugin.name)
    return SUCCESS
