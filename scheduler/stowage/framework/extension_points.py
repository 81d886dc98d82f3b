"""The contract: one Protocol per extension point of kube-scheduler v1.36.

A plugin is a class whose instances have a `name` and the methods of the points it takes part in;
nothing is inherited. Vectorised is the native form of Filter and Score: one call answers for all
the nodes it is given. A plugin keeps no reference to a snapshot beyond the call, does no I/O
(PreBind excepted, which is a coroutine that the shell runs outside the cycle) and reads no clock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Protocol, TypeAlias, runtime_checkable

import msgspec

from stowage.api.events import ClusterEvent, EventResource, QueueingHint, VolumesWritten
from stowage.api.instructions import BindPod, BindVolumes
from stowage.api.status import SUCCESS, Status
from stowage.framework.cycle_state import CycleState
from stowage.framework.verdict import FilterVerdict, Int64Array
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView, Snapshot

#: (pod, old object or None, new object or None) -> opinion.
QueueingHintFn: TypeAlias = Callable[[PodInfo, Any, Any], QueueingHint]


class Reads(Enum):
    """What an answer of Filter or Score depends on, besides the pod's class.

    The runner keeps answers per equivalence class and asks again only for rows where this
    changed. Declaring too much costs time, declaring too little gives wrong answers. A plugin
    that declares anything but CLUSTER may be asked about nodes that are not feasible, or rows
    without a node; its PreFilter and PreScore state may depend on the pod's class only, and its
    `normalize_score` must give equal raw scores equal results.

    Two more declarations, true attributes of a plugin, save more. ``per_demand``: what it reads of
    the pod is in the class's `NodeDemand`, so not its namespace, labels or owner, nor its terms
    about other pods; that goes for its PreFilter and PreScore too, as far as they bear on this.
    ``by_amounts``, for USAGE: what it reads of a node is `allocatable`, `requested`,
    `nonzero_requested` and `num_pods`, so that its answer holds for whatever node has the same.
    """

    #: The node object: labels, taints, spec, images, allocatable.
    NODE = "node"
    #: The node object and what its own pods take of it: requests, ports, volumes.
    USAGE = "usage"
    #: The objects of all nodes, e.g. how many have an image: asked anew when any node changed.
    NODES = "nodes"
    #: Anything else: asked anew in every cycle, for all nodes.
    CLUSTER = "cluster"


class PreFilterResult(msgspec.Struct, frozen=True):
    """Answer of PreFilter: a status and, if the search can be narrowed, the nodes left."""

    status: Status = SUCCESS
    node_names: frozenset[str] | None = None


class PreBindProgress(msgspec.Struct, frozen=True):
    """How far a PreBind in stages has come.

    Attributes:
        status: Success ends it well, Wait goes on; anything else gives the pod back.
        awaited: While it waits: (resource, ``namespace/name`` or name) of the objects whose
            change is to be looked at.
    """

    status: Status
    awaited: frozenset[tuple[EventResource, str]] = frozenset()


class EventRegistration(msgspec.Struct, frozen=True):
    """A cluster event that may make a pod schedulable which this plugin rejected.

    Attributes:
        event: What happened; several actions in one mean any of them.
        hint: Asked whether it helps a certain pod; without one it always does.
        per_class: The hint reads nothing of the pod but its class, so that its answer for one
            pod is taken for all of that class. If another pod of the class is the very object
            the event is about, that is for the queue to see to.
    """

    event: ClusterEvent
    hint: QueueingHintFn | None = None
    per_class: bool = False


class Plugin(Protocol):
    """What all plugins have in common.

    A plugin may say by a true attribute ``refuses_per_class`` that, of a pod without volumes,
    resource claims and nomination, what it says at PreFilter, Filter and PostFilter depends on
    the cluster and the pod's class alone, and changes nothing but the cycle's state. Where all
    plugins of these points say so, a pod that fits nowhere is answered like the last one of its
    class as long as the cluster stays as it is.
    """

    @property
    def name(self) -> str:
        """The plugin's name in configuration, messages and metrics."""
        ...


@runtime_checkable
class PreEnqueuePlugin(Plugin, Protocol):
    """Decides whether a pod may enter the active or backoff queue.

    One whose answer depends on the pod's class alone may say so by a true attribute
    ``pre_enqueue_per_class``; of many pods of a class that are woken at once it sees one.
    """

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """Success lets the pod in; a rejection gates it."""
        ...


@runtime_checkable
class PreemptionGate(Plugin, Protocol):
    """Keeps preemptors out of the queue while their victims are being evicted.

    If it takes part in PreEnqueue, it refuses nobody else.
    """

    def gate_by(self, is_preempting: Callable[[str], bool]) -> None:
        """Take the engine's word, by UID, on who has evictions under way."""
        ...


@runtime_checkable
class QueueSortPlugin(Plugin, Protocol):
    """Orders the active queue; a key instead of Less, so a heap needs no callbacks."""

    def sort_key(self, pod: PodInfo, queued_at: float) -> tuple[float, ...]:
        """Numbers, no NaN; the smallest key goes first.

        `queued_at` is when the pod entered the queue, in seconds.
        """
        ...


@runtime_checkable
class PreFilterPlugin(Plugin, Protocol):
    """Looks at the pod once, before any node."""

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        """Skip drops the plugin's Filter; a rejection ends or will end the cycle."""
        ...


@runtime_checkable
class FilterPlugin(Plugin, Protocol):
    """Refuses nodes.

    Preemption and nominated pods are judged by row-local views: many nodes at once, each shown as
    it would be if pods came to it or left it and no other node changed (`RowLocalView`). Such a
    view answers `requested`, `nonzero_requested`, `num_pods` and `ports_in_conflict` for each
    node's own what-if; its `snapshot` is the cluster without any change. A plugin that reads
    anything else of pods, of its node or of others, corrects it by ``nodes.changes``, which is
    None for all other views: ``changes.sum(question, ask)`` is how much more of something each
    node itself has, ``changes.count_matching`` and ``changes.count_terms`` count like the
    pod index. PreFilter is not run again: its state is of the cluster without any change, as is
    what it skips. (These stand for ``AddPod`` and ``RemovePod`` of ``PreFilterExtensions``.)

    ``changes.sum_by_pod`` and ``changes.volumes`` are for what is not in a pod's class.

    A plugin that does so says ``row_local = True``; one with ``Reads.NODE`` need not. One that
    reads other objects, but nothing of any pod already placed, says ``reads_pods = False``: pods
    that come and go are no reason to ask it again. Any other is asked about one node at a time,
    each in a what-if snapshot of the whole cluster with its PreFilter run on it before: the same
    answer, but slow, so no plugin of this project may do without it.
    """

    @property
    def filter_reads(self) -> Reads:
        """What the answer depends on."""
        ...

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> FilterVerdict:
        """Which of `nodes` are refused, and why; masks are ``bool[len(nodes)]``."""
        ...


@runtime_checkable
class PostFilterPlugin(Plugin, Protocol):
    """Called when no node was feasible; may make room and nominate a node.

    It finds a `DryRun` in the cycle's state, and leaves a `Preemption` there for the engine, which
    evicts the victims.
    """

    def post_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, diagnosis: Any
    ) -> tuple[Status, str | None]:
        """The status and the nominated node: None leaves it alone, empty clears it."""
        ...


@runtime_checkable
class PreScorePlugin(Plugin, Protocol):
    """Looks at the pod and the feasible nodes once, before scoring."""

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Status:
        """Skip drops the plugin's Score. `nodes` are the feasible ones."""
        ...


@runtime_checkable
class ScorePlugin(Plugin, Protocol):
    """Rates nodes."""

    @property
    def score_reads(self) -> Reads:
        """What the raw score of one node depends on."""
        ...

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        """``int64[len(nodes)]``, in 0..100 unless the plugin normalises."""
        ...


@runtime_checkable
class NormalizeScorePlugin(Plugin, Protocol):
    """A Score plugin whose raw scores are brought to 0..100 over the feasible nodes."""

    def normalize_score(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, scores: Int64Array
    ) -> Int64Array:
        """``int64[len(nodes)]`` in 0..100 from the raw `scores` of the feasible `nodes`."""
        ...


@runtime_checkable
class ReservePlugin(Plugin, Protocol):
    """Keeps books about what a pod takes beyond what the cache knows."""

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Take it; a rejection ends the cycle and unreserves everything."""
        ...

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Give it back; idempotent, and called even where `reserve` was not reached."""
        ...


@runtime_checkable
class PermitPlugin(Plugin, Protocol):
    """The last word before binding: yes, no, or wait."""

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        """The status and, for Wait, the time limit in seconds (at most 15 minutes)."""
        ...


@runtime_checkable
class PreBindPlugin(Plugin, Protocol):
    """Work that has to be done before the Binding is posted; may talk to the API server."""

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Skip if there is nothing to do for this pod."""
        ...

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Do it; anything but Success gives the pod back to the queue."""
        ...


@runtime_checkable
class StagedPreBindPlugin(Plugin, Protocol):
    """A PreBind without I/O: writes that the shell makes, then waiting for what they bring about.

    Everything it learns comes by events, so a journal replays it; no task waits meanwhile.
    """

    @property
    def pre_bind_timeout_s(self) -> float:
        """How long it may take after the writes, in seconds."""
        ...

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Skip if there is nothing to do for this pod."""
        ...

    def pre_bind_writes(self, state: CycleState, pod: PodInfo, node_name: str) -> BindVolumes:
        """What is to be written first."""
        ...

    def pre_bind_written(self, state: CycleState, outcome: VolumesWritten) -> None:
        """It has been written, or a part of it before the error that `outcome` tells."""
        ...

    def pre_bind_progress(
        self, state: CycleState, pod: PodInfo, node_name: str, snapshot: Snapshot
    ) -> PreBindProgress:
        """Asked after the writes and whenever an awaited object changes."""
        ...


@runtime_checkable
class BindPlugin(Plugin, Protocol):
    """Says how the pod is bound."""

    def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> BindPod | None:
        """The instruction, or None to leave it to the next Bind plugin."""
        ...


@runtime_checkable
class PostBindPlugin(Plugin, Protocol):
    """Told that a pod was bound."""

    def post_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Informational."""
        ...


@runtime_checkable
class EnqueueExtensions(Plugin, Protocol):
    """A plugin that says which events may make the pods it rejected schedulable."""

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Without this, every event is taken to be of interest."""
        ...
