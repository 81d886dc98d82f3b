"""Running PostFilter plugins when no node was feasible."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from stowage.api.status import Code, Status
from stowage.framework.cycle_state import CycleState
from stowage.framework.diagnosis import Diagnosis
from stowage.framework.extension_points import PostFilterPlugin
from stowage.framework.failure import failed
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import Snapshot


class PostFilterOutcome(msgspec.Struct, frozen=True):
    """What PostFilter achieved.

    Attributes:
        status: Success if room is being made.
        nominated_node_name: The node nominated; empty clears the nomination, None leaves it.
    """

    status: Status
    nominated_node_name: str | None = None


def run_post_filter_plugins(
    plugins: Sequence[PostFilterPlugin],
    state: CycleState,
    pod: PodInfo,
    snapshot: Snapshot,
    diagnosis: Diagnosis,
) -> PostFilterOutcome:
    """Run PostFilter plugins until one succeeds, fails or finds the pod beyond help.

    ``RunPostFilterPlugins``: reasons of the rejections add up, and the first rejecting plugin
    gives the status its name. Without plugins a nomination is cleared.
    """
    reasons: list[str] = []
    rejector = ""
    nominated: str | None = None if plugins else ""
    for plugin in plugins:
        doing = f'running PostFilter plugin "{plugin.name}"'
        try:
            status, node_name = plugin.post_filter(state, pod, snapshot, diagnosis)
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
