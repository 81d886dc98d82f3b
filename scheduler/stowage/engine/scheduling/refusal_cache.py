"""Refusals by equivalence class: pods of one class get the same answer until the cluster changes.

So do classes that differ only in what no plugin reads that takes part, such as the labels that a
StatefulSet or an indexed Job gives to each of its pods. For those PreFilter runs: it decides which
plugins take part.

A Deployment that is too large for its cluster creates thousands of pods that fit on no node, all
for the same reason. The first pod of a class is evaluated. The other pods of the class get its
refusal, with the same side effects: plugin evaluations are counted and ties are broken as if the
plugins had run.
"""

from __future__ import annotations

from collections.abc import Hashable

import msgspec

from stowage.engine.scheduling.outcome import Unschedulable
from stowage.engine.scheduling.request import SchedulingRequest
from stowage.framework import Nominations, Profile
from stowage.state.snapshot import Snapshot

#: The cache holds the refusals of this many equivalence classes.
MAX_CLASSES = 1024


class _Refusal(msgspec.Struct, frozen=True):
    """The refusal of the first pod of a class.

    Attributes:
        profile: The profile whose plugins refused the pod.
        skipped: The plugins whose PreFilter returned Skip.
        tie_sizes: The sizes of the ties that were broken, in order; they did not change the answer.
    """

    outcome: Unschedulable
    profile: Profile
    skipped: frozenset[str]
    tie_sizes: tuple[int, ...]

    def repeat(self, request: SchedulingRequest) -> Unschedulable:
        """The outcome for another pod, after breaking the same ties."""
        for num_candidates in self.tie_sizes:
            request.ties(num_candidates)
        return self.outcome


class RefusalCache:
    """The refusals that hold for the current cluster; a change of the cluster drops them all."""

    def __init__(self) -> None:
        self._refusals: dict[int, _Refusal] = {}
        self._of_others: dict[Hashable, _Refusal] = {}
        self._snapshot: Snapshot | None = None
        self._nominated: Nominations | None = None
        self._nominations = 0

    def __len__(self) -> int:
        return len(self._refusals)

    def find(self, request: SchedulingRequest) -> Unschedulable | None:
        """The refusal of an earlier pod of this class; None if the pod has to be evaluated."""
        if not self._is_current(request):
            self._clear()
            return None
        framework, pod = request.framework, request.pod
        known = self._refusals.get(pod.pod_class.id)
        if known is None or known.profile is not framework.profile:
            return None
        if not framework.refuses_like_its_class(pod, request.snapshot):
            return None
        framework.count_refusal(known.skipped, known.outcome.evaluated_nodes)
        return known.repeat(request)

    def find_alike(self, request: SchedulingRequest) -> Unschedulable | None:
        """The refusal of an earlier pod of any class for which the same plugins decide alike.

        PreFilter has run for the request's pod.
        """
        if not self._of_others or not self._is_current(request):
            return None
        framework = request.framework
        key = framework.refusal_key(request.cycle_state, request.pod, request.snapshot)
        known = None if key is None else self._of_others.get(key)
        if known is None or known.profile is not framework.profile:
            return None
        num_nodes = known.outcome.evaluated_nodes
        framework.count_refusal(known.skipped, num_nodes, ran_pre_filter=True)
        return known.repeat(request)

    def keep(
        self, request: SchedulingRequest, outcome: Unschedulable, tie_sizes: tuple[int, ...]
    ) -> None:
        """Keep a refusal if it holds for all pods of the class.

        Args:
            request: The request that was refused.
            outcome: The refusal.
            tie_sizes: The sizes of the ties that were broken on the way, in order.
        """
        framework, pod = request.framework, request.pod
        alike = framework.refuses_like_its_class(pod, request.snapshot)
        if not alike or not _holds_for_class(outcome):
            return
        if not self._is_current(request) or len(self._refusals) >= MAX_CLASSES:
            self._clear()
            self._snapshot, self._nominated = request.snapshot, request.nominated
            self._nominations = request.nominated.generation
        skipped = frozenset(request.cycle_state.skip_filter)
        refusal = _Refusal(outcome, framework.profile, skipped, tie_sizes)
        self._refusals[pod.pod_class.id] = refusal
        key = framework.refusal_key(request.cycle_state, pod, request.snapshot)
        if key is not None:
            self._of_others[key] = refusal

    def _clear(self) -> None:
        self._refusals.clear()
        self._of_others.clear()

    def _is_current(self, request: SchedulingRequest) -> bool:
        """Whether the refusals were found in the request's cluster, which has not changed since."""
        nominated = request.nominated
        return (
            request.snapshot is self._snapshot
            and request.snapshot.is_current
            and nominated is self._nominated
            and nominated.generation == self._nominations
        )


def _holds_for_class(outcome: Unschedulable) -> bool:
    """Whether Filter refused the pod on all nodes, and preemption does not help."""
    preemption = outcome.preemption
    return (
        outcome.diagnosis.pre_filter_status is None
        and outcome.post_filter_status.is_rejected
        and (preemption is None or preemption.chosen is None)
    )
