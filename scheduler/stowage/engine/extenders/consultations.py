"""Pods that extenders have a say about: who is asked, who has been answered, who waits for a turn.

    ask ---> out ---(answered)---> ready --+
     |                                     +---> taken, to be attempted again
     +-----> waiting for a free place -----+

A pod here is in flight. The number of pods out is limited; of those that wait for a place, the one
that the queue would have handed out first goes first.
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
    """A pod on its way to the extenders and back.

    Attributes:
        queued: The pod as the queue handed it out.
        info: The pod as last seen; an update may have arrived since.
        number: Tells this consultation of the pod from earlier ones.
        started: What the engine's timer showed when the pod's attempt began.
        asked: The nodes the extenders were asked about; None while the pod waits for a place.
        answer: What they said; None while they think.
        reviews: Whether they have been asked about the victims of a preemption.
        review: What they said about them; None while they think.
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
    def is_out(self) -> bool:
        """Whether the extenders are at it."""
        if self.reviews:
            return self.review is None
        return self.asked is not None and self.answer is None


class Consultations:
    """All of them, by UID.

    Args:
        max_out: How many pods may be with the extenders at a time.
    """

    def __init__(self, max_out: int) -> None:
        self._max_out = max_out
        self._all: dict[str, Consultation] = {}
        self._num_out = 0
        self._numbers = 0
        self._answered: deque[Consultation] = deque()
        self._waiting: list[tuple[tuple[float, ...], int, Consultation]] = []

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Consultation]:
        return iter(self._all.values())

    @property
    def uids(self) -> list[str]:
        """Of all pods here."""
        return list(self._all)

    @property
    def has_place(self) -> bool:
        """Whether one more pod may be sent to the extenders."""
        return self._num_out < self._max_out

    @property
    def has_ready(self) -> bool:
        """Whether `take_ready` would find a pod."""
        self._drop_removed()
        return bool(self._answered) or (bool(self._waiting) and self.has_place)

    def get(self, uid: str) -> Consultation | None:
        """The pod's consultation, if there is one."""
        return self._all.get(uid)

    def ask(
        self, queued: QueuedPod, info: PodInfo, started: float, asked: tuple[str, ...]
    ) -> Consultation:
        """Send a pod to the extenders; there has to be a place."""
        consultation = self._add(queued, info, started)
        consultation.asked = asked
        self._num_out += 1
        return consultation

    def ask_review(
        self, queued: QueuedPod, info: PodInfo, started: float, before: Consultation | None
    ) -> Consultation:
        """The same about victims; what the extenders said `before` about nodes is kept."""
        consultation = self._add(queued, info, started)
        consultation.reviews = True
        if before is not None:
            consultation.asked, consultation.answer = before.asked, before.answer
        self._num_out += 1
        return consultation

    def wait(
        self, queued: QueuedPod, info: PodInfo, started: float, sort_key: tuple[float, ...]
    ) -> None:
        """Let a pod wait for a place; it is attempted anew when it gets one."""
        consultation = self._add(queued, info, started)
        heapq.heappush(self._waiting, (sort_key, consultation.number, consultation))

    def answer(self, answer: ExtendersAnswered | VictimsReviewed) -> bool:
        """Take an answer; False if nobody waits for it any more."""
        consultation = self._all.get(answer.uid)
        if consultation is None or consultation.number != answer.number or not consultation.is_out:
            return False
        if isinstance(answer, VictimsReviewed):
            consultation.review = answer
        else:
            consultation.answer = answer
        self._num_out -= 1
        self._answered.append(consultation)
        return True

    def take_ready(self) -> Consultation | None:
        """A pod that has been answered, or that gets a place; it is no longer here then."""
        if not self.has_ready:
            return None
        ready = self._answered.popleft() if self._answered else heapq.heappop(self._waiting)[2]
        del self._all[ready.queued.uid]
        return ready

    def remove(self, uid: str) -> bool:
        """The pod is gone: forget it, whatever the extenders will say; whether it was here."""
        removed = self._all.pop(uid, None)
        if removed is not None and removed.is_out:
            self._num_out -= 1
        return removed is not None

    def problems(self) -> Iterator[str]:
        """What is inconsistent; nothing when all is well."""
        num_out = sum(consultation.is_out for consultation in self)
        if num_out != self._num_out:
            yield f"{num_out} pods are with extenders, {self._num_out} were counted"
        if num_out > self._max_out:
            yield f"{num_out} pods are with extenders, {self._max_out} may be"
        entered = {id(each) for each in self._answered} | {id(each[2]) for each in self._waiting}
        for consultation in self:
            if not consultation.is_out and id(consultation) not in entered:
                yield f"pod {consultation.info.key} is neither out nor ready nor waiting"

    def _add(self, queued: QueuedPod, info: PodInfo, started: float) -> Consultation:
        self._numbers += 1
        consultation = Consultation(queued, info, self._numbers, started)
        self._all[queued.uid] = consultation
        return consultation

    def _drop_removed(self) -> None:
        """Removed pods leave the two lines when they come to stand first."""
        while self._answered and not self._is_here(self._answered[0]):
            self._answered.popleft()
        while self._waiting and not self._is_here(self._waiting[0][2]):
            heapq.heappop(self._waiting)

    def _is_here(self, consultation: Consultation) -> bool:
        return self._all.get(consultation.queued.uid) is consultation
