"""The statuses of pending pods at the API server, so that no status is written twice."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from stowage.api.instructions import ClearNomination, PatchPodStatus, PodReference
from stowage.api.objects.pod import Pod

#: Status, reason and message of the PodScheduled condition.
_Condition: TypeAlias = tuple[str, str, str]


class _Status(msgspec.Struct):
    """A pod's status, as the watch last showed it and as it is once all patches are applied."""

    seen_condition: _Condition | None = None
    seen_nomination: str = ""
    condition: _Condition | None = None
    nomination: str = ""


class PodStatuses:
    """The PodScheduled condition and the nominated node of pending pods, by UID.

    The engine's own patch counts until the watch shows a change to another value; then another
    client wrote it. The end of a nomination is different: each patch of a failed attempt repeats it
    until the watch shows it. Pods without a condition and without a nomination are not kept.
    """

    def __init__(self) -> None:
        self._statuses: dict[str, _Status] = {}

    def __len__(self) -> int:
        return len(self._statuses)

    def see(self, pod: Pod) -> None:
        """The watch of pending pods shows a pod."""
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

    def nomination(self, uid: str) -> str:
        """The nominated node of a pod once all patches are applied; empty if there is none."""
        known = self._statuses.get(uid)
        return "" if known is None else known.nomination

    def clear_nomination(self, pod: PodReference) -> ClearNomination:
        """The instruction that clears a pod's nomination, also one that is still to be written."""
        known = self._statuses.get(pod.uid)
        if known is not None:
            known.nomination = ""
        return ClearNomination(pod)

    def forget(self, uid: str) -> None:
        """The pod is not pending any more."""
        self._statuses.pop(uid, None)

    def unschedulable(
        self,
        pod: PodReference,
        generation: int,
        reason_and_message: tuple[str, str],
        nominated: str | None,
    ) -> PatchPodStatus | None:
        """The patch for a pod that was not scheduled; None if the status is up to date.

        ``updatePod`` of v1.36. A condition that differs in its generation only is not patched.

        Args:
            pod: The pod.
            generation: The generation of the pod that the condition describes.
            reason_and_message: Of PodScheduled=False.
            nominated: The nominated node; None leaves it as it is, empty clears it.
        """
        known = self._statuses.setdefault(pod.uid, _Status())
        condition = ("False", *reason_and_message)
        is_transition = known.condition is None or known.condition[0] != "False"
        nomination = self._new_nomination(known, nominated)
        if condition == known.condition and nomination is None:
            return None
        known.condition = condition
        return PatchPodStatus(pod, *reason_and_message, nomination, generation, is_transition)

    def nominate(self, pod: PodReference, node_name: str) -> PatchPodStatus | None:
        """The patch that nominates a pod to a node; None if the status is up to date."""
        known = self._statuses.setdefault(pod.uid, _Status())
        nomination = self._new_nomination(known, node_name)
        if nomination is None:
            return None
        return PatchPodStatus(pod, nominated_node_name=nomination)

    @staticmethod
    def _new_nomination(known: _Status, nominated: str | None) -> str | None:
        if nominated is None:
            return None
        # A replica without the lease notes that it clears the nominations of held groups, but its
        # shell writes nothing.
        may_be_there = not nominated and known.seen_nomination
        if nominated == known.nomination and not may_be_there:
            return None
        known.nomination = nominated
        return nominated
