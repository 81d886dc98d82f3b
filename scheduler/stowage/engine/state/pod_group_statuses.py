"""The PodGroupScheduled conditions at the API server, so that none is written twice."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from stowage.api.instructions import PatchPodGroupStatus, PodGroupReference
from stowage.api.objects.pod_groups import CORE_GROUPS, PodGroup
from stowage.state.pods.pod_groups import KnownGroup

#: Status, reason and message.
Condition: TypeAlias = tuple[str, str, str]

POD_GROUP_SCHEDULED = "PodGroupScheduled"


class _Known(msgspec.Struct):
    """A condition as the watch last showed it, and as it is once all patches are applied."""

    seen: Condition | None = None
    current: Condition | None = None


class PodGroupStatuses:
    """The conditions by UID; the engine's own patch counts until the watch shows another value."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}

    def __len__(self) -> int:
        return len(self._known)

    def see(self, group: PodGroup) -> None:
        """The watch shows a group."""
        found = next(
            (
                (each.status, each.reason, each.message)
                for each in group.status.conditions
                if each.type == POD_GROUP_SCHEDULED
            ),
            None,
        )
        known = self._known.setdefault(group.metadata.uid, _Known())
        if found != known.seen:
            known.seen = known.current = found

    def forget(self, uid: str) -> None:
        """The group is deleted."""
        self._known.pop(uid, None)

    def scheduled(self, group: KnownGroup, condition: Condition) -> PatchPodGroupStatus | None:
        """The patch that sets the condition; None if it is up to date, or stays.

        ``updatePodGroupCondition`` of v1.36. A group that was scheduled once stays so. Groups of
        other sources have no such condition.
        """
        metadata = group.group.metadata
        known = self._known.setdefault(metadata.uid, _Known())
        before = known.current
        if group.source != CORE_GROUPS or before == condition:
            return None
        if before is not None and before[0] == "True" != condition[0]:
            return None
        known.current = condition
        return PatchPodGroupStatus(
            PodGroupReference(metadata.namespace, metadata.name, metadata.uid),
            *condition,
            observed_generation=metadata.generation,
            is_transition=before is None or before[0] != condition[0],
        )
