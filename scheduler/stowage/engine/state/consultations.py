"""Pods that wait for extenders.

    ask ---> asked ---(answered)---> ready --+
     |                                       +---> taken, and attempted again
     +-----> waiting for capacity -----------+

The pods here are in flight. The number of pods that are asked about at a time is limited. When
there is capacity again, the waiting pod that the queue would have returned first goes first.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator

import msgspec

from stowage.api.events import ExtendersAnswered, VictimsReviewed
from stowage.queue.queued_pod import QueuedPod
from stowage.state.pods.pod_info import PodInfo


class Consultation(msgspec.Struct, eq=False):
    """The extenders' part in one scheduling attempt.

    Attributes:
        queued: The pod as the queue returned it.
        info: The pod as last seen; the watch may have shown an update since.
        number: Tells this consultation from earlier ones of the same pod.
        started: The engine's timer at the beginning of the attempt.
        asked: The nodes in the request; None while the pod waits for capacity.
        answer: The extenders' answer about nodes; None before they have answered.
        reviews: Whether the extenders were asked to review victims.
        review: The extenders' answer about victims; None before they have answered.
    """

    queued: QueuedPod
    info: PodInfo
    number: int
    started: float
    asked: tuple[str, ...] | None = None
    answer: ExtendersAnswered | None = None
    reviews: bool = False
    review: VictimsReviewed | None = None

    @property
    def is_unanswered(self) -> bool:
        """Whether the extenders were asked and have not answered."""
        if self.reviews:
            return self.review is None
        return self.asked is not None and self.answer is None

    @property
    def was_asked(self) -> bool:
        """Whether the extenders have answered at least once in this attempt."""
        return self.reviews or self.answer is not None


class Consultations:
    """The consultations by pod UID.

    Args:
        max_unanswered: How many pods may be asked about at a time.
    """

    def __init__(self, max_unanswered: int) -> None:
        self._max_unanswered = max_unanswered
        self._all: dict[str, Consultation] = {}
        self._num_unanswered = 0
        self._last_number = 0
        self._answered: deque[Consultation] = deque()
        self._waiting: list[tuple[tuple[float, ...], int, Consultation]] = []

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Consultation]:
        return iter(self._all.values())

    @property
    def uids(self) -> list[str]:
        """All pods that wait for extenders."""
        return list(self._all)

    @property
    def has_capacity(self) -> bool:
        """Whether the extenders may be asked about one more pod."""
        return self._num_unanswered < self._max_unanswered

    @property
    def has_ready(self) -> bool:
        """Whether `take_ready` would return a pod."""
        if not self._answered and not self._waiting:
            return False
        self._drop_removed()
        return bool(self._answered) or (bool(self._waiting) and self.has_capacity)

    def get(self, uid: str) -> Consultation | None:
        """The pod's consultation, if it has one."""
        return self._all.get(uid)

    def ask(
        self, queued: QueuedPod, info: PodInfo, started: float, asked: tuple[str, ...]
    ) -> Consultation:
        """Start a consultation about nodes; there has to be capacity."""
        consultation = self._add(queued, info, started)
        consultation.asked = asked
        self._num_unanswered += 1
        return consultation

    def ask_review(
        self, queued: QueuedPod, info: PodInfo, started: float, before: Consultation | None
    ) -> Consultation:
        """Start a consultation about victims; it keeps the answer about nodes in `before`."""
        consultation = self._add(queued, info, started)
        consultation.reviews = True
        if before is not None:
            consultation.asked, consultation.answer = before.asked, before.answer
        self._num_unanswered += 1
        return consultation

    def wait(
        self, queued: QueuedPod, info: PodInfo, started: float, sort_key: tuple[float, ...]
    ) -> None:
        """Let a pod wait for capacity; it is then attempted again."""
        consultation = self._add(queued, info, started)
        heapq.heappush(self._waiting, (sort_key, consultation.number, consultation))

    def answer(self, answer: ExtendersAnswered | VictimsReviewed) -> None:
        """Take an answer; one to a consultation that has been removed is dropped."""
        consultation = self._all.get(answer.uid)
        if (
            consultation is None
            or consultation.number != answer.number
            or not consultation.is_unanswered
        ):
            return
        if isinstance(answer, VictimsReviewed):
            consultation.review = answer
        else:
            consultation.answer = answer
        self._num_unanswered -= 1
        self._answered.append(consultation)

    def take_ready(self) -> Consultation | None:
        """Remove and return a consultation that is answered or for which there is capacity."""
        if not self.has_ready:
            return None
        ready = self._answered.popleft() if self._answered else heapq.heappop(self._waiting)[2]
        del self._all[ready.queued.uid]
        return ready

    def remove(self, uid: str) -> bool:
        """Forget a pod's consultation; False if it has none."""
        removed = self._all.pop(uid, None)
        if removed is not None and removed.is_unanswered:
            self._num_unanswered -= 1
        return removed is not None

    def inconsistencies(self) -> Iterator[str]:
        """Inconsistencies; none if all is well."""
        num_unanswered = sum(consultation.is_unanswered for consultation in self)
        if num_unanswered != self._num_unanswered:
            yield f"{num_unanswered} pods are unanswered, {self._num_unanswered} were counted"
        if num_unanswered > self._max_unanswered:
            yield f"{num_unanswered} pods are unanswered, {self._max_unanswered} may be"
        listed = {id(each) for each in self._answered} | {id(each[2]) for each in self._waiting}
        for consultation in self:
            if not consultation.is_unanswered and id(consultation) not in listed:
                yield f"pod {consultation.info.key} is neither unanswered nor ready nor waiting"

    def _add(self, queued: QueuedPod, info: PodInfo, started: float) -> Consultation:
        self._last_number += 1
        consultation = Consultation(queued, info, self._last_number, started)
        self._all[queued.uid] = consultation
        return consultation

    def _drop_removed(self) -> None:
        """Drop removed consultations from the front of both lines."""
        while self._answered and not self._is_current(self._answered[0]):
            self._answered.popleft()
        while self._waiting and not self._is_current(self._waiting[0][2]):
            heapq.heappop(self._waiting)

    def _is_current(self, consultation: Consultation) -> bool:
        return self._all.get(consultation.queued.uid) is consultation
