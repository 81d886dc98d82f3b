"""Preemptions in progress, and the pods that wait for victims to leave."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import msgspec

from stowage.api.instructions import PodReference
from stowage.state.pods.pod_info import PodInfo


class OngoingPreemption(msgspec.Struct):
    """The evictions for one preemptor.

    Attributes:
        preemptor: The pod that the victims are evicted for.
        scheduler_name: The preemptor's profile.
        node_name: The node the preemptor is nominated to.
        started_at: When the first eviction began, in seconds.
        last_victim: The victim that is evicted after all others.
        is_evicting_last: Whether the other victims' evictions have been answered.
        unanswered: UIDs of victims whose eviction the API server has not answered.
        failed: Whether an eviction failed.
        is_answered: Whether all evictions have been answered with success. The preemption then ends
            when the watch shows the last victim leave.
    """

    preemptor: PodReference
    scheduler_name: str
    node_name: str
    started_at: float
    last_victim: PodInfo
    is_evicting_last: bool = False
    unanswered: set[str] = msgspec.field(default_factory=set)
    failed: bool = False
    is_answered: bool = False


class Preemptions:
    """Preemptions by the UID of their preemptor.

    All collections keep the order of insertion, so that a replay is exact.
    """

    def __init__(self) -> None:
        self._ongoing: dict[str, OngoingPreemption] = {}
        # UID of a last victim -> UIDs of its preemptors.
        self._preemptors_by_last_victim: dict[str, dict[str, None]] = {}
        # UIDs of preemptors whose last victim leaves, and that may still be gated.
        self._released: dict[str, None] = {}
        # UID of a victim -> UIDs of the pods that are retried when it is gone.
        self._retries: dict[str, dict[str, None]] = {}

    def __len__(self) -> int:
        return len(self._ongoing)

    def __iter__(self) -> Iterator[OngoingPreemption]:
        return iter(self._ongoing.values())

    @property
    def uids(self) -> Collection[str]:
        """The preemptors."""
        return self._ongoing.keys()

    @property
    def released(self) -> Collection[str]:
        """The preemptors that need not wait for evictions any more; some are still gated."""
        return self._released.keys()

    def get(self, uid: str) -> OngoingPreemption | None:
        """The preemptor's preemption, if one is in progress."""
        return self._ongoing.get(uid)

    def start(self, preemption: OngoingPreemption) -> None:
        """Add a preemption; it replaces an earlier one of the same preemptor."""
        uid = preemption.preemptor.uid
        before = self._ongoing.get(uid)
        if before is not None:
            self._forget_last_victim(before)
        self._ongoing[uid] = preemption
        self.retry_after(preemption.last_victim.uid, uid)

    def start_last_eviction(self, preemption: OngoingPreemption) -> None:
        """All other victims are leaving; the preemptor waits for the last one."""
        preemption.is_evicting_last = True
        preemptors = self._preemptors_by_last_victim.setdefault(preemption.last_victim.uid, {})
        preemptors[preemption.preemptor.uid] = None

    def end(self, preemption: OngoingPreemption) -> None:
        """A preemption is over."""
        del self._ongoing[preemption.preemptor.uid]
        self._forget_last_victim(preemption)

    def victim_leaves(self, uid: str) -> None:
        """A placed pod is deleted, terminating or given back: release its preemptors."""
        preemptors = self._preemptors_by_last_victim.get(uid)
        if preemptors is None:
            return
        self._released.update(preemptors)
        for preemptor in [each for each in preemptors if self._ongoing[each].is_answered]:
            del self._ongoing[preemptor], preemptors[preemptor]
        if not preemptors:
            del self._preemptors_by_last_victim[uid]

    def release(self, uid: str) -> None:
        """A preemptor need not wait for evictions any more."""
        self._released[uid] = None

    def keep_released(self, uids: Iterable[str]) -> None:
        """Forget the released preemptors except these."""
        self._released = dict.fromkeys(uids)

    def retry_after(self, victim_uid: str, uid: str) -> None:
        """Retry a pod when a victim is gone."""
        self._retries.setdefault(victim_uid, {})[uid] = None

    def take_retries(self, victim_uid: str) -> Collection[str]:
        """The pods to retry now that a victim is gone."""
        return self._retries.pop(victim_uid, ())

    def inconsistencies(self) -> Iterator[str]:
        """Inconsistencies; none if all is well."""
        for uid, preemption in self._ongoing.items():
            preemptors = self._preemptors_by_last_victim.get(preemption.last_victim.uid, ())
            if preemption.is_evicting_last and uid not in preemptors:
                yield f"preemptor {preemption.preemptor.key} is not listed under its last victim"
        for victim_uid, listed in self._preemptors_by_last_victim.items():
            for uid in listed:
                known = self._ongoing.get(uid)
                if known is None or known.last_victim.uid != victim_uid:
                    yield f"preemptor {uid} is listed under {victim_uid}, not its last victim"

    def _forget_last_victim(self, preemption: OngoingPreemption) -> None:
        victim_uid = preemption.last_victim.uid
        preemptors = self._preemptors_by_last_victim.get(victim_uid)
        if preemptors is not None:
            preemptors.pop(preemption.preemptor.uid, None)
            if not preemptors:
                del self._preemptors_by_last_victim[victim_uid]
