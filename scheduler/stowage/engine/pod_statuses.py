"""What the API server says of pending pods, so that nothing is written that it says already."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from stowage.api.instructions import PatchPodStatus, PodReference
from stowage.api.objects.pod import Pod

#: Status, reason and message of the PodScheduled condition.
_Said: TypeAlias = tuple[str, str, str]


class _Status(msgspec.Struct):
    """A pod's status: as the watch last showed it, and as it is once all is written."""

    seen_condition: _Said | None = None
    seen_nomination: str = ""
    condition: _Said | None = None
    nomination: str = ""


class KnownStatuses:
    """The PodScheduled condition and the nominated node of pending pods, by UID.

    What was written here counts until the watch shows a change to something else: then somebody
    else wrote. A pod without either is not kept.
    """

    def __init__(self) -> None:
        self._statuses: dict[str, _Status] = {}

    def __len__(self) -> int:
        return len(self._statuses)

    def saw(self, pod: Pod) -> None:
        """The watch of pending pods showed a pod."""
        status, uid = pod.status, pod.metadata.uid
        condition = next(
            (
                (each.status, each.reason, each.message)
                for each in status.conditions
                if each.type == "PodScheduled"
            ),
            None,
        )
        known = self._statuses.get(uid)
        if known is None:
            if condition is None and not status.nominated_node_name:
                return
            known = self._statuses[uid] = _Status()
        if condition != known.seen_condition:
            known.seen_condition = known.condition = condition
        if status.nominated_node_name != known.seen_nomination:
            known.seen_nomination = known.nomination = status.nominated_node_name

    def forget(self, uid: str) -> None:
        """The pod is pending no longer."""
        self._statuses.pop(uid, None)

    def change(
        self, pod: PodReference, generation: int, said: tuple[str, str], nominated: str | None
    ) -> PatchPodStatus | None:
        """What to write of a pod that was not scheduled; None if it says so already.

        ``updatePod`` of v1.36: a condition that differs by its generation only stays.

        Args:
            pod: Which one.
            generation: What the condition is about.
            said: Reason and message of PodScheduled=False.
            nominated: The nominated node; None leaves it alone, empty clears it.
        """
        known = self._statuses.setdefault(pod.uid, _Status())
        condition = ("False", *said)
        is_transition = known.condition is None or known.condition[0] != "False"
        nomination = self._new_nomination(known, nominated)
        if condition == known.condition and nomination is None:
            return None
        known.condition = condition
        return PatchPodStatus(pod, *said, nomination, generation, is_transition)

    def nominate(self, pod: PodReference, node_name: str) -> PatchPodStatus | None:
        """What to write of a pod that is expected on a node; None if it says so already."""
        known = self._statuses.setdefault(pod.uid, _Status())
        nomination = self._new_nomination(known, node_name)
        if nomination is None:
            return None
        return PatchPodStatus(pod, nominated_node_name=nomination)

    @staticmethod
    def _new_nomination(known: _Status, wanted: str | None) -> str | None:
        if wanted is None or wanted == known.nomination:
            return None
        known.nomination = wanted
        return wanted
