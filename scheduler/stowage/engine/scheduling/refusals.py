"""Answering a pod like the last one of its class, while nothing has changed since.

A Deployment too large for its cluster brings pods by the thousand that fit nowhere, one after
another and each for the same reason. The first of a class is judged. The others are told the same,
and leave the same traces: evaluations are counted and dice are thrown as if they had been judged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stowage.framework import Framework, Nominations, Profile
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import Snapshot

if TYPE_CHECKING:
    from stowage.engine.scheduling.scheduling_cycle import Unschedulable

#: The refusals of so many classes are kept.
MAX_CLASSES = 1024


@dataclass(frozen=True, slots=True)
class Question:
    """Where a pod may go, asked of a profile and a cluster."""

    framework: Framework
    snapshot: Snapshot
    pod: PodInfo
    nominated: Nominations


@dataclass(frozen=True, slots=True)
class _Known:
    """What the first pod of a class was told.

    Attributes:
        profile: Whose plugins told it.
        skipped: The plugins whose PreFilter said Skip.
        thrown: What was asked of chance, in order; it made no difference.
    """

    refusal: Unschedulable
    profile: Profile
    skipped: frozenset[str]
    thrown: tuple[int, ...]


class KnownRefusals:
    """The refusals of a cluster as it is now; all are forgotten as soon as it changes."""

    def __init__(self) -> None:
        self._known: dict[int, _Known] = {}
        self._snapshot: Snapshot | None = None
        self._nominated: Nominations | None = None
        self._nominations = 0

    def __len__(self) -> int:
        return len(self._known)

    def find(self, question: Question, choose: Callable[[int], int]) -> Unschedulable | None:
        """What a pod like this one was told; None if it has to be judged itself."""
        if not self._is_current(question):
            self._known.clear()
            return None
        framework, pod = question.framework, question.pod
        known = self._known.get(pod.pod_class.id)
        if known is None or known.profile is not framework.profile:
            return None
        if not framework.refuses_like_its_class(pod):
            return None
        framework.count_refusal(known.skipped, known.refusal.evaluated_nodes)
        for sides in known.thrown:
            choose(sides)
        return known.refusal

    def keep(
        self,
        question: Question,
        refusal: Unschedulable,
        skipped: frozenset[str],
        thrown: tuple[int, ...],
    ) -> None:
        """Remember what a pod was told, if the next one of its class is to be told the same.

        Args:
            question: What was asked.
            refusal: The answer.
            skipped: The plugins whose PreFilter said Skip.
            thrown: What was asked of chance, in order.
        """
        framework, pod = question.framework, question.pod
        if not _is_for_all(refusal) or not framework.refuses_like_its_class(pod):
            return
        if not self._is_current(question) or len(self._known) >= MAX_CLASSES:
            self._known.clear()
            self._snapshot, self._nominated = question.snapshot, question.nominated
            self._nominations = question.nominated.generation
        self._known[pod.pod_class.id] = _Known(refusal, framework.profile, skipped, thrown)

    def _is_current(self, question: Question) -> bool:
        """Whether all that is known was found out about this very cluster, and it is as it was."""
        nominated = question.nominated
        return (
            question.snapshot is self._snapshot
            and question.snapshot.is_current
            and nominated is self._nominated
            and nominated.generation == self._nominations
        )


def _is_for_all(refusal: Unschedulable) -> bool:
    """Whether it was Filter that left no node, and no room is made."""
    preemption = refusal.preemption
    return (
        refusal.diagnosis.pre_filter_status is None
        and refusal.post_filter_status.is_rejected
        and (preemption is None or preemption.chosen is None)
    )
