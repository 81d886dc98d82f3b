"""Nominations as columns, kept up to date change by change."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Protocol

import numpy as np

from stowage.framework.verdict import Int64Array
from stowage.state.arrays import extended
from stowage.state.change_log import ChangeLog
from stowage.state.pods.pod_info import PodInfo
from stowage.state.pods.pod_variants import PodVariant, PodVariants
from stowage.state.snapshot import Snapshot
from stowage.state.what_if.added_pods import NO_ADDED_PODS, AddedPods

_NOWHERE = -1
_FEWEST_SLOTS = 64


class Nominations(Protocol):
    """Which pods count on a node although they are not placed there yet."""

    def __len__(self) -> int: ...

    @property
    def generation(self) -> int:
        """Grows with every change."""
        ...

    def changed_since(self, generation: int) -> Collection[str] | None:
        """The UIDs of pods nominated, or not any more, after `generation`; None if it is too old.

        A pod may be named more than once.
        """
        ...

    def uids(self) -> Collection[str]:
        """All nominated pods."""
        ...

    def node_of(self, uid: str) -> str | None:
        """The node a pod is nominated to."""
        ...

    def pod(self, uid: str) -> PodInfo | None:
        """A nominated pod."""
        ...


class NoNominations:
    """There are none."""

    generation = 0

    def __len__(self) -> int:
        return 0

    def changed_since(self, generation: int) -> Collection[str] | None:
        """None."""
        del generation
        return ()

    def uids(self) -> Collection[str]:
        """None."""
        return ()

    def node_of(self, uid: str) -> str | None:
        """Nowhere."""
        del uid
        return None

    def pod(self, uid: str) -> PodInfo | None:
        """Nobody."""
        del uid
        return None


NO_NOMINATIONS = NoNominations()


class NominatedPods:
    """The nominations as columns; what changed since the last look is brought up to date.

    Nominations may be many and are looked at in every cycle, by several parts of it.
    """

    __slots__ = ("_columns",)

    def __init__(self) -> None:
        self._columns: NominatedColumns | None = None

    def beside(self, pod: PodInfo, nominated: Nominations, snapshot: Snapshot) -> AddedPods:
        """The other pods of equal or higher priority, by the row they are nominated to."""
        if not len(nominated):
            # What went with the last one is not kept.
            self._columns = None
            return NO_ADDED_PODS
        return self._up_to_date(nominated, snapshot).beside(pod)

    def problems(self, nominated: Nominations, snapshot: Snapshot) -> Iterator[str]:
        """Where what is kept differs from the nominations as they are; nothing if all is well."""
        if len(nominated):
            kept = self._up_to_date(nominated, snapshot).content()
            anew = NominatedColumns(nominated, snapshot).content()
            if kept != anew:
                yield f"nominated pods are kept as {kept}, expected {anew}"

    def _up_to_date(self, nominated: Nominations, snapshot: Snapshot) -> NominatedColumns:
        columns = self._columns
        if columns is None or not columns.follow(nominated, snapshot):
            columns = self._columns = NominatedColumns(nominated, snapshot)
        return columns


class NominatedColumns:
    """A slot per nominated pod: the row of its node, its priority and its sort.

    A change of a nomination or of a node costs the slots concerned.
    """

    __slots__ = (
        "_codes",
        "_free",
        "_generation",
        "_names",
        "_node_generation",
        "_node_log",
        "_nominations",
        "_places",
        "_pods",
        "_priority",
        "_slot_of",
        "_slots_on",
        "_sorts",
    )

    def __init__(self, nominated: Nominations, snapshot: Snapshot) -> None:
        self._nominations = nominated
        self._generation = nominated.generation
        self._node_log: ChangeLog = snapshot.node_changes
        self._node_generation = snapshot.node_changes.generation
        self._sorts = PodVariants(snapshot.resources)
        self._places: Int64Array = np.full(_FEWEST_SLOTS, _NOWHERE, dtype=np.int64)
        self._priority: Int64Array = np.zeros(_FEWEST_SLOTS, dtype=np.int64)
        self._codes: Int64Array = np.zeros(_FEWEST_SLOTS, dtype=np.int64)
        self._pods: list[PodInfo] = []
        self._names: list[str] = []
        self._free: list[int] = []
        self._slot_of: dict[str, int] = {}
        self._slots_on: dict[str, set[int]] = {}
        for uid in nominated.uids():
            self._take_in(uid, snapshot)

    def beside(self, pod: PodInfo) -> AddedPods:
        """See `NominatedPods.beside`."""
        counts = (self._places != _NOWHERE) & (self._priority >= pod.priority)
        own = self._slot_of.get(pod.uid)
        if own is not None:
            counts[own] = False
        slots = np.flatnonzero(counts)
        return AddedPods(self._places[slots], self._codes[slots], self._sorts, self._pods, slots)

    def follow(self, nominated: Nominations, snapshot: Snapshot) -> bool:
        """Bring the slots up to date; False if these are others, or too much changed to tell."""
        if self._nominations is not nominated or self._node_log is not snapshot.node_changes:
            return False
        if self._node_generation != snapshot.node_changes.generation:
            self._follow_nodes(snapshot)
        if self._generation != nominated.generation:
            uids = nominated.changed_since(self._generation)
            if uids is None:
                return False
            for uid in uids:
                self._take_in(uid, snapshot)
            self._generation = nominated.generation
        return True

    def content(self) -> dict[str, tuple[PodInfo, int, int, PodVariant | None]]:
        """By UID the pod, its row or -1, its priority and its sort; for comparisons."""
        return {
            uid: (
                self._pods[slot],
                int(self._places[slot]),
                int(self._priority[slot]),
                self._sorts.values[int(self._codes[slot])],
            )
            for uid, slot in self._slot_of.items()
        }

    def _follow_nodes(self, snapshot: Snapshot) -> None:
        """Find the rows of nominated nodes that came, went or moved."""
        rows = self._node_log.since(self._node_generation)
        self._node_generation = self._node_log.generation
        names: Iterable[str]
        if rows is None:
            names = self._slots_on
        else:
            gone = np.flatnonzero(np.isin(self._places, rows)).tolist()
            names = {self._names[slot] for slot in gone}
            names.update(snapshot.node_names[row] for row in rows.tolist())
        for name in names:
            slots = self._slots_on.get(name)
            if slots:
                self._places[list(slots)] = _row_of(name, snapshot)

    def _take_in(self, uid: str, snapshot: Snapshot) -> None:
        """Bring one pod's slot up to date."""
        slot = self._slot_of.pop(uid, None)
        if slot is not None:
            self._give_back(slot)
        name, pod = self._nominations.node_of(uid), self._nominations.pod(uid)
        if name is None or pod is None:
            return
        slot = self._free.pop() if self._free else self._new_slot(pod)
        self._slot_of[uid] = slot
        self._slots_on.setdefault(name, set()).add(slot)
        self._pods[slot], self._names[slot] = pod, name
        self._codes[slot] = self._sorts.acquire(pod)
        self._priority[slot] = pod.priority
        self._places[slot] = _row_of(name, snapshot)

    def _new_slot(self, pod: PodInfo) -> int:
        slot = len(self._pods)
        self._pods.append(pod)
        self._names.append("")
        if slot == len(self._places):
            self._places = extended(self._places, 2 * slot, _NOWHERE)
            self._priority = extended(self._priority, 2 * slot)
            self._codes = extended(self._codes, 2 * slot)
        return slot

    def _give_back(self, slot: int) -> None:
        self._free.append(slot)
        self._sorts.release(int(self._codes[slot]))
        self._places[slot] = _NOWHERE
        on_node = self._slots_on[self._names[slot]]
        on_node.discard(slot)
        if not on_node:
            del self._slots_on[self._names[slot]]


def _row_of(name: str, snapshot: Snapshot) -> int:
    row = snapshot.row_of(name)
    return _NOWHERE if row is None else row
