"""What differs on each node of a row-local view from the snapshot."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Set

from stowage.api.values.csi_migration import AttachedVolume
from stowage.api.values.selectors import Selector
from stowage.state.arrays import BoolArray, Int64Array
from stowage.state.pods.affinity_terms import AffinityTerm, TermKind
from stowage.state.pods.pod_class import PodClass
from stowage.state.pods.pod_info import PodInfo
from stowage.state.what_if.added_pods import AddedPods, PodValue
from stowage.state.what_if.removed_pods import PodNumber, RemovedPods


class RowChanges:
    """Differences between each node of a row-local view and the snapshot.

    Results are ``int64[nodes]``: added pods minus removed pods on the node itself.

    Args:
        removed: The pods removed from the rows of the what-if.
        added: The pods added, by their place in the view.
        positions: Where in the what-if each node of the view is.
    """

    __slots__ = ("_added", "_positions", "_removed")

    def __init__(self, removed: RemovedPods, added: AddedPods, positions: Int64Array) -> None:
        self._removed = removed
        self._added = added
        self._positions = positions

    def sum(self, key: Hashable, ask: PodValue) -> Int64Array:
        """The sum of a number per pod.

        Args:
            key: Identifies `ask`: functions with equal keys must return equal numbers.
            ask: (pod class, whether the pod is terminating) -> number.
        """
        change = -self._removed.sum(self._positions, key, ask)
        if len(self._added):
            change += self._added.sum(ask, len(self._positions))
        return change

    def count_matching(
        self, selector: Selector, namespaces: frozenset[str] | None, *, skip_terminating: bool
    ) -> Int64Array:
        """The number of pods of `namespaces` (None: all) that `selector` matches."""

        def matches(pod_class: PodClass, terminating: bool) -> int:
            return (
                (namespaces is None or pod_class.namespace in namespaces)
                and not (skip_terminating and terminating)
                and selector.matches(pod_class.labels)
            )

        return self.sum(("matching", selector, namespaces, skip_terminating), matches)

    def count_terms(self, which: TermKind, term: AffinityTerm) -> Int64Array:
        """How often pods have an (anti)affinity term."""
        return self.sum(
            ("carrying", which, term), lambda pod_class, _: pod_class.terms[which].count(term)
        )

    def sum_by_pod(self, key: Hashable, ask: PodNumber, among: Int64Array) -> Int64Array:
        """The sum of a number that the variant does not determine, such as one about volumes.

        Args:
            key: Identifies `ask`.
            ask: Pod -> number.
            among: The rows that have a pod with a number other than 0 in the snapshot.
        """
        change = -self._removed.sum_by_pod(self._positions, key, ask, among)
        for place, pod in self._added.with_volumes():
            change[place] += ask(pod)
        return change

    def volumes(
        self, driver: str, wanted: Set[AttachedVolume], tight: BoolArray
    ) -> tuple[Int64Array, Int64Array]:
        """How many more volumes of a driver are attached, and how many more of `wanted` in use.

        Args:
            driver: The CSI driver.
            wanted: The volumes whose use is counted apart.
            tight: ``bool[rows]``, where it matters that volumes are detached; on other rows the
                volumes of removed pods may be counted as still attached.
        """
        detached, missing = self._removed.volumes(self._positions, driver, wanted, tight)
        attached, used = -detached, -missing
        for place in {place for place, _ in self._added.with_volumes()}:
            attached[place], used[place] = self._removed.volume_changes_on(
                int(self._positions[place]), driver, wanted, self.pods(place)
            )
        return attached, used

    def pods(self, place: int) -> Collection[PodInfo]:
        """The pods on one node of the view: those left, then those added."""
        return [*self._removed.left_on(int(self._positions[place])), *self._added.on(place)]

    def terms_added(self, which: TermKind) -> set[AffinityTerm]:
        """The (anti)affinity terms of added pods."""
        return {term for pod_class, _ in self._added.variants() for term in pod_class.terms[which]}
