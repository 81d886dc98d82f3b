"""Many nodes at once, each as it would be if pods came to it or left it and no other node changed.

This is what a dry run of preemption asks: not one cluster in which pods vanish from many nodes,
but as many clusters as there are nodes, each different in one of them. Amounts of a node are
columns and change in place; what a node sees of others is what the snapshot shows, corrected by
what changed on the node itself (`RowChanges`).

Host ports are the one exception to plain sums. ``HostPortInfo`` of v1.36 is a set, so a dry run
that takes one of two pods with the same port off a node finds the port free, and putting one back
makes it taken. A decision equal to kube-scheduler's needs the same; the live columns count.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence, Set
from functools import cached_property, partial

import numpy as np

from stowage.api.values.csi_migration import AttachedVolume
from stowage.api.values.selectors import Selector
from stowage.state.arrays import BoolArray, Int64Array, extended
from stowage.state.nodes.node_view import NodeView
from stowage.state.pods.affinity_terms import AffinityTerm, TermKind
from stowage.state.pods.pod_class import ANY_IP, HostPort, PodClass
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import Snapshot
from stowage.state.what_if.added_pods import NOBODY, AddedPods, PodValue
from stowage.state.what_if.ranked_pods import RankedRows
from stowage.state.what_if.row_volumes import RowVolumes

PodNumber = Callable[[PodInfo], int]
"""A number for a pod that its class does not tell."""


class SortAnswers:
    """What has been asked of sorts of pods, kept for all what-ifs of one cycle."""

    __slots__ = ("_known", "_numbering")

    def __init__(self) -> None:
        self._numbering = -1
        self._known: dict[Hashable, tuple[Int64Array, BoolArray]] = {}

    def about(
        self, question: Hashable, ask: PodValue, snapshot: Snapshot, present: BoolArray
    ) -> Int64Array:
        """``int64[sorts + 1]``: the answer for each sort that is `present`; 0 for no pod."""
        if snapshot.pod_sorts_numbering != self._numbering:
            self._known.clear()
            self._numbering = snapshot.pod_sorts_numbering
        sorts = snapshot.pod_sorts
        table, known = self._known.get(question, (_NO_ANSWERS, _NOTHING_KNOWN))
        if len(known) < len(sorts):
            known = extended(known, len(sorts))
            table = np.append(extended(table[:-1], len(sorts)), 0)
            self._known[question] = table, known
        for code in np.flatnonzero(present & ~known).tolist():
            sort = sorts[code]
            if sort is not None:
                table[code] = ask(*sort)
            known[code] = True
        return table


_NO_ANSWERS: Int64Array = np.zeros(1, dtype=np.int64)
_NOTHING_KNOWN: BoolArray = np.zeros(0, dtype=np.bool_)


class RowWhatIf:
    """Some rows with pods taken off, each for itself.

    Args:
        snapshot: The cluster as it is.
        rows: Of nodes.
        ports: The host ports the pod in question wants; only these are kept apart.
        answers: Of other what-ifs of the same snapshot; answers are added.

    Attributes:
        used: ``int64[rows, resources + 3]``, what is taken of each; columns as in
            `PodSorts.requests`.
        ports: Host ports in use, as far as they matter.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        rows: Int64Array,
        ports: Iterable[HostPort] = (),
        answers: SortAnswers | None = None,
    ) -> None:
        self.snapshot = snapshot
        self._answers = answers or SortAnswers()
        self.rows = rows
        self.used = _usage(snapshot, rows)
        self.ports = RowPorts(snapshot, rows, ports)
        self._sums: dict[Hashable, tuple[Int64Array, Int64Array]] = {}
        self._tables: dict[Hashable, Int64Array] = {}
        self._volumes: dict[str, RowVolumes] = {}
        self._removed: BoolArray | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def ranked(self) -> RankedRows:
        """The pods on the rows."""
        return self.snapshot.ranked_pods(self.rows)

    @cached_property
    def _requests(self) -> Int64Array:
        return self.snapshot.requests_by_sort()

    @property
    def removed(self) -> BoolArray:
        """``bool[rows, slots]``: who is taken off now."""
        if self._removed is None:
            self._removed = np.zeros(self.ranked.sorts.shape, dtype=np.bool_)
        return self._removed

    def remove(self, pods: BoolArray) -> None:
        """Take off all pods of ``bool[rows, slots]``, none of which is off already."""
        removed = self.removed
        self._sums.clear()
        kept = self.ranked.present & ~pods & ~removed
        removed |= pods
        going: BoolArray = np.logical_or.reduce(pods, axis=0)
        staying: BoolArray = np.logical_or.reduce(kept, axis=0)
        if np.count_nonzero(staying) < np.count_nonzero(going):
            self.used[:] = 0
            self._add_requests(kept, staying, 1)
        else:
            self._add_requests(pods, going, -1)
        for number, table in enumerate(self._port_table):
            self.ports.taken[number] &= ~(pods & table[self.ranked.sorts]).any(axis=1)

    def _add_requests(self, pods: BoolArray, slots: BoolArray, sign: int) -> None:
        sorts = np.where(pods, self.ranked.sorts, -1)
        for slot in np.flatnonzero(slots).tolist():
            self.used += sign * self._requests[sorts[:, slot]]

    def put_back(self, positions: Int64Array, slots: Int64Array) -> None:
        """Put one pod back on each of these rows."""
        self.removed[positions, slots] = False
        sorts = self.ranked.sorts[positions, slots]
        self.used[positions] += self._requests[sorts]
        for values, sums in self._sums.values():
            sums[positions] -= values[sorts]
        for number, table in enumerate(self._port_table):
            self.ports.taken[number][positions] |= table[sorts]

    def take_off_again(self, positions: Int64Array, slots: Int64Array) -> None:
        """Undo `put_back`; a host port is free from then on, whoever else has it."""
        self.removed[positions, slots] = True
        sorts = self.ranked.sorts[positions, slots]
        self.used[positions] -= self._requests[sorts]
        for values, sums in self._sums.values():
            sums[positions] += values[sorts]
        for number, table in enumerate(self._port_table):
            self.ports.taken[number][positions] &= ~table[sorts]

    def view(self, positions: Int64Array, added: AddedPods = NOBODY) -> RowLocalView:
        """Some of the rows, with pods added to them if given, as plugins are shown them."""
        return RowLocalView(self, positions, added)

    def alone(self, position: int, added: Sequence[PodInfo] = ()) -> Snapshot:
        """The whole cluster as it would be for one of the rows; slow."""
        row = int(self.rows[position])
        off = []
        if self._removed is not None:
            pods = self.ranked.pods_at(position)
            off = [pods[slot] for slot in np.flatnonzero(self._removed[position]).tolist()]
        return self.snapshot.with_changes(off, added, row)

    def pods_left(self, position: int) -> list[PodInfo]:
        """The pods on a row that are not taken off."""
        pods = self.ranked.pods_at(position)
        if self._removed is None:
            return list(pods)
        removed = self._removed[position].tolist()
        return [pod for pod, is_off in zip(pods, removed, strict=False) if not is_off]

    def removed_values(
        self, positions: Int64Array, question: Hashable, ask: PodValue
    ) -> Int64Array:
        """``int64[positions]``: the sum over the pods that are off; `question` names `ask`.

        Kept from question to question as pods are put back and taken off again.
        """
        if self._removed is None:
            return np.zeros(len(positions), dtype=np.int64)
        known = self._sums.get(question)
        if known is None:
            table = self._tabulate(question, ask)
            values = table[self.ranked.sorts] * self._removed
            known = self._sums[question] = (table, values.sum(axis=1))
        return known[1][positions]

    def removed_numbers(
        self, positions: Int64Array, question: Hashable, ask: PodNumber, among: Int64Array
    ) -> Int64Array:
        """``int64[positions]``: as `removed_values`, asked of each pod on the rows `among`."""
        if self._removed is None:
            return np.zeros(len(positions), dtype=np.int64)
        table = self._tables.get(question)
        if table is None:
            table = np.zeros(self.ranked.sorts.shape, dtype=np.int64)
            for position in np.flatnonzero(np.isin(self.rows, among)).tolist():
                numbers = [ask(pod) for pod in self.ranked.pods_at(position)]
                table[position, : len(numbers)] = numbers
            self._tables[question] = table
        sums: Int64Array = (table[positions] * self._removed[positions]).sum(axis=1)
        return sums

    def removed_volumes(
        self, positions: Int64Array, driver: str, wanted: Set[AttachedVolume], tight: BoolArray
    ) -> tuple[Int64Array, Int64Array]:
        """Twice ``int64[positions]``: how many fewer are attached; how many fewer of `wanted`."""
        if self._removed is None:
            nothing: Int64Array = np.zeros(len(positions), dtype=np.int64)
            return nothing, nothing
        volumes = self._volumes.get(driver)
        if volumes is None:
            places = np.flatnonzero(tight[self.rows])
            pods = [(place, self.ranked.pods_at(place)) for place in places.tolist()]
            volumes = RowVolumes(self.snapshot, self.rows, driver, pods)
            self._volumes[driver] = volumes
        detached, missing = volumes.gone(self._removed, wanted)
        return detached[positions], missing[positions]

    def _tabulate(self, question: Hashable, ask: PodValue) -> Int64Array:
        """``int64[sorts + 1]``: the answer for each sort on these rows."""
        return self._answers.about(question, ask, self.snapshot, self._present_sorts)

    @cached_property
    def _present_sorts(self) -> BoolArray:
        """``bool[sorts]``: which there are on these rows."""
        present: BoolArray = np.zeros(len(self.snapshot.pod_sorts) + 1, dtype=np.bool_)
        present[self.ranked.sorts] = True
        return present[:-1]

    @cached_property
    def _port_table(self) -> list[BoolArray]:
        """Per port kept apart ``bool[sorts + 1]``: who has it."""
        return [
            self._tabulate(("port", port), partial(_has_port, port)) != 0
            for port in self.ports.ports
        ]


class RowPorts:
    """Host ports in use that collide with those wanted, as a set per row.

    Attributes:
        ports: The ports.
        taken: Per port ``bool[rows]``.
    """

    def __init__(self, snapshot: Snapshot, rows: Int64Array, wanted: Iterable[HostPort]) -> None:
        found = snapshot.colliding_ports(wanted)
        self.ports: list[HostPort] = list(found)
        self.taken: list[BoolArray] = [counts[rows] > 0 for counts in found.values()]


class RowLocalView(NodeView):
    """Some rows of a `RowWhatIf`; what is asked of a node is answered by its own what-if.

    `snapshot` is the cluster without any change; what depends on other nodes is corrected by
    `changes`.
    """

    __slots__ = ("_used", "added", "positions", "what_if")

    def __init__(
        self,
        what_if: RowWhatIf,
        positions: Int64Array,
        added: AddedPods = NOBODY,
    ) -> None:
        super().__init__(what_if.snapshot, what_if.rows[positions])
        self.what_if = what_if
        self.positions = positions
        self.added = added
        used = what_if.used[positions]
        if len(added):
            added.add_requests(used)
        self._used = used
        self.changes = RowChanges(self)

    @property
    def requested(self) -> Int64Array:
        """``int64[nodes, resources]``: what the pods left on each node request."""
        return self._used[:, :-3]

    @property
    def nonzero_requested(self) -> Int64Array:
        """``int64[nodes, 2]``: the same with defaults."""
        return self._used[:, -3:-1]

    @property
    def num_pods(self) -> Int64Array:
        """``int64[nodes]``."""
        return self._used[:, -1]

    def ports_in_conflict(self, ports: Iterable[HostPort]) -> BoolArray:
        """``bool[nodes]``: where one of these host ports collides with one in use."""
        wanted = list(ports)
        conflicts: BoolArray = np.zeros(len(self), dtype=np.bool_)
        for port, taken in zip(self.what_if.ports.ports, self.what_if.ports.taken, strict=True):
            if any(collide(port, other) for other in wanted):
                conflicts |= taken[self.positions]
        if len(self.added):
            conflicts |= self.added.sum(partial(_has_one_of, wanted), len(self)) > 0
        return conflicts


class RowChanges:
    """How much more or less of something each node of a row-local view has than in the snapshot.

    All answers are ``int64[nodes]``: pods added less pods taken off, on the node itself.
    """

    __slots__ = ("_view",)

    def __init__(self, view: RowLocalView) -> None:
        self._view = view

    def sum(self, question: Hashable, ask: PodValue) -> Int64Array:
        """The sum of a number per pod.

        Args:
            question: Names `ask`: for equal questions it has to give equal answers.
            ask: The number, from a pod's class and whether it is being deleted.
        """
        view = self._view
        change = -view.what_if.removed_values(view.positions, question, ask)
        if len(view.added):
            change += view.added.sum(ask, len(view))
        return change

    def count_matching(
        self, selector: Selector, namespaces: frozenset[str] | None, *, skip_terminating: bool
    ) -> Int64Array:
        """The pods of `namespaces` (None: all) that `selector` matches."""

        def is_meant(pod_class: PodClass, terminating: bool) -> int:
            return (
                (namespaces is None or pod_class.namespace in namespaces)
                and not (skip_terminating and terminating)
                and selector.matches(pod_class.labels)
            )

        return self.sum(("matching", selector, namespaces, skip_terminating), is_meant)

    def count_carrying(self, which: TermKind, term: AffinityTerm) -> Int64Array:
        """How often pods carry an (anti)affinity term."""
        return self.sum(
            ("carrying", which, term), lambda pod_class, _: pod_class.terms[which].count(term)
        )

    def sum_by_pod(self, question: Hashable, ask: PodNumber, among: Int64Array) -> Int64Array:
        """The sum of a number that a pod's class does not tell, such as one about its volumes.

        Args:
            question: Names `ask`.
            ask: The number.
            among: The rows on which some pod has another number than 0 in the snapshot.
        """
        view = self._view
        change = -view.what_if.removed_numbers(view.positions, question, ask, among)
        for place, pod in view.added.with_volumes():
            change[place] += ask(pod)
        return change

    def volumes(
        self, driver: str, wanted: Set[AttachedVolume], tight: BoolArray
    ) -> tuple[Int64Array, Int64Array]:
        """How many more volumes of a driver are attached, and how many more of some in use.

        Args:
            driver: Whose.
            wanted: Which of them are those in use that are asked about.
            tight: ``bool[rows]``, where it matters that volumes are detached; elsewhere those of
                pods taken off may be told as still there.
        """
        view = self._view
        detached, missing = view.what_if.removed_volumes(view.positions, driver, wanted, tight)
        attached, used = -detached, -missing
        for place in {place for place, _ in view.added.with_volumes()}:
            attached[place], used[place] = self._volumes_of(place, driver, wanted)
        return attached, used

    def _volumes_of(self, place: int, driver: str, wanted: Set[AttachedVolume]) -> tuple[int, int]:
        """The same of one node, pod by pod."""
        view = self._view
        row, use = int(view.rows[place]), view.snapshot.volume_use
        pods = view.what_if.ranked.pods_at(int(view.positions[place]))
        now = {volume for pod in self.pods(place) for volume in use.volumes_of(pod)}
        before = {volume for pod in pods for volume in use.volumes_of(pod)}
        come = [each for each in now - before if each.driver == driver]
        gone = [each for each in before - now if each.driver == driver]
        attached = sum(not use.is_attached(each, row) for each in come)
        attached -= sum(not use.is_attached(each, row) for each in gone)
        return attached, sum(each in wanted for each in come) - sum(each in wanted for each in gone)

    def pods(self, place: int) -> Collection[PodInfo]:
        """The pods on one node of the view, with those that came and without those that left."""
        view = self._view
        return [*view.what_if.pods_left(int(view.positions[place])), *view.added.on(place)]

    def terms_added(self, which: TermKind) -> set[AffinityTerm]:
        """The (anti)affinity terms of pods that came."""
        sorts = self._view.added.sorts()
        return {term for pod_class, _ in sorts for term in pod_class.terms[which]}


def _has_port(port: HostPort, pod_class: PodClass, _terminating: bool) -> int:
    return port in pod_class.host_ports


def _has_one_of(wanted: Sequence[HostPort], pod_class: PodClass, _terminating: bool) -> int:
    return any(collide(port, other) for port in pod_class.host_ports for other in wanted)


def collide(one: HostPort, other: HostPort) -> bool:
    """Whether two host ports cannot be on one node (``HostPortInfo.CheckConflict``)."""
    return one[1:] == other[1:] and (one[0] == other[0] or ANY_IP in (one[0], other[0]))


def _usage(snapshot: Snapshot, rows: Int64Array) -> Int64Array:
    """``int64[rows, resources + 3]``, columns as in `PodSorts.requests`."""
    snapshot.requests_by_sort()
    parts = (
        snapshot.requested[rows],
        snapshot.nonzero_requested[rows],
        snapshot.num_pods[rows][:, None],
    )
    return np.concatenate(parts, axis=1)
