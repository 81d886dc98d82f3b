"""The interface of plugins: one Protocol per extension point of kube-scheduler v1.36.

A plugin is an object with a `name`, its `traits`, and the methods of the extension points it takes
part in; it inherits nothing. Filter and Score are vectorised: one call answers for all the nodes it
is given. A plugin keeps no reference to a snapshot after the call, does no I/O (except in PreBind,
a coroutine that the operator runs outside the cycle) and reads no clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import msgspec

from stowage.api.cluster_events import ClusterEvent, EventResource, QueueingHint
from stowage.api.instructions import BindClaims, BindPod, BindVolumes
from stowage.api.interruptible import Interruptible
from stowage.api.objects.volume import PersistentVolume, PersistentVolumeClaim
from stowage.api.status import SUCCESS, Status
from stowage.framework.cycle_state import CycleState, StartLimit
from stowage.framework.plugin_traits import PluginTraits
from stowage.framework.verdict import FilterVerdict, Int64Array
from stowage.state.devices.devices import ClaimAllocation
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView, Snapshot

#: Called with (pod, old object or None, new object or None).
QueueingHintFn: TypeAlias = Callable[[PodInfo, Any, Any], QueueingHint]


class PreFilterResult(msgspec.Struct, frozen=True):
    """Answer of PreFilter: a status and, if the plugin narrows the search, the nodes left."""

    status: Status = SUCCESS
    node_names: frozenset[str] | None = None


class PreBindProgress(msgspec.Struct, frozen=True):
    """The progress of a staged PreBind.

    Attributes:
        status: Success ends PreBind, Wait continues it; with any other status the pod is requeued.
        awaited: With Wait, the objects whose change the plugin waits for: (resource,
            ``namespace/name`` or name).
        within_s: With Wait, the seconds that are left if fewer than the time limit of the plugin.
    """

    status: Status
    awaited: frozenset[tuple[EventResource, str]] = frozenset()
    within_s: float | None = None


class EventRegistration(msgspec.Struct, frozen=True):
    """A cluster event that may make a pod schedulable that the plugin rejected.

    Attributes:
        event: The event; several actions mean any of them.
        hint: Decides whether the event helps a pod; without a hint it always does.
        per_class: Whether the hint reads only the pod's class, so that the queue uses its answer
            for all pods of the class. (The queue handles pods that are themselves the object of the
            event.)
        per_demand: Whether, of the class, the hint reads only what its pods require of a single
            node, so that the answer holds for all classes that require the same.
    """

    event: ClusterEvent
    hint: QueueingHintFn | None = None
    per_class: bool = False
    per_demand: bool = False


class Plugin(Protocol):
    """The members that all plugins have."""

    @property
    def name(self) -> str:
        """The plugin's name in the configuration, messages and metrics."""
        ...

    @property
    def traits(self) -> PluginTraits:
        """The plugin's promises about its answers."""
        ...


@runtime_checkable
class PreEnqueuePlugin(Plugin, Protocol):
    """Decides whether a pod may enter the active or backoff queue."""

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """Success lets the pod in; a rejection gates it."""
        ...


@runtime_checkable
class PreemptionGate(Plugin, Protocol):
    """Gates preemptors while their victims are being evicted.

    If the plugin takes part in PreEnqueue, it rejects no other pods.
    """

    def gate_by(self, is_preempting: Callable[[str], bool]) -> None:
        """Set the function that says whether evictions for a pod, by UID, are under way."""
        ...


@runtime_checkable
class SnapshotReader(Plugin, Protocol):
    """Reads the cluster outside the scheduling cycle, such as in PreEnqueue and in hints."""

    def read_snapshots(self, snapshot: Callable[[], Snapshot]) -> None:
        """Set the function that returns the cluster as it is now."""
        ...


@runtime_checkable
class QueueSortPlugin(Plugin, Protocol):
    """Orders the active queue by a key, which unlike ``Less`` needs no call per comparison."""

    def sort_key(self, pod: PodInfo, queued_at: float) -> tuple[Any, ...]:
        """Smaller goes first; `queued_at` is when the pod entered the queue, in seconds."""
        ...


@runtime_checkable
class PreparingPlugin(Plugin, Protocol):
    """A plugin in the tree whose first look at a pod may take long.

    Not an extension point of v1.36; plugins of other packages are not asked.
    """

    def prepare_in_steps(
        self, pod: PodInfo, snapshot: Snapshot, start_limit: StartLimit
    ) -> Iterator[None]:
        """Find out in steps what the cycle of the pod will ask for, and keep it.

        The cycle follows, and takes as long as it must without it. `snapshot` stays as it is.
        `start_limit` is that of the cycle's state.
        """
        ...


@runtime_checkable
class PreFilterPlugin(Plugin, Protocol):
    """Runs once per pod, before Filter."""

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        """Skip leaves out the plugin's Filter; a rejection makes the pod unschedulable."""
        ...


@runtime_checkable
class FilterPlugin(Plugin, Protocol):
    """Rejects nodes.

    With the trait `PluginTraits.filters_what_ifs`, Filter is also asked about row-local views, for
    preemption and nominated pods: many nodes at once, each as it would be if pods came to it or
    left it and no other node changed (`RowLocalView`). Such a view gives the `requested`,
    `nonzero_requested`, `num_pods` and `ports_in_conflict` of each node's own what-if; its
    `snapshot` is the cluster without any change. A plugin that reads anything else of pods, of its
    node or of others, corrects it by ``nodes.changes``, which is None for all other views:
    ``changes.sum(question, ask)`` is how much more of something each node itself has,
    ``changes.count_matching`` and ``changes.count_terms`` count like the pod index, and
    ``changes.sum_by_pod`` and ``changes.volumes`` are for what is not in a pod's class. PreFilter
    is not run again: its state, and whether it returned Skip, are of the cluster without any
    change. (Upstream: ``AddPod`` and ``RemovePod`` of ``PreFilterExtensions``.)

    Without this trait, a plugin that reads placed pods is asked about one node at a time, each in
    a what-if snapshot of the whole cluster on which its PreFilter runs first: the same answer, but
    slow, so every plugin of this project has the trait or reads no placed pods.
    """

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> FilterVerdict:
        """The rejected nodes with reasons; masks are ``bool[len(nodes)]``."""
        ...


@runtime_checkable
class PostFilterPlugin(Plugin, Protocol):
    """Runs when no node is feasible; may choose victims and nominate a node.

    The plugin finds a `DryRun` in the cycle's state and leaves a `Preemption` there. The engine
    evicts the victims.
    """

    def post_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, diagnosis: Any
    ) -> tuple[Status, str | None]:
        """The status and the nominated node: None keeps the nomination, empty clears it."""
        ...


@runtime_checkable
class SteppedPostFilterPlugin(PostFilterPlugin, Protocol):
    """A PostFilter plugin in the tree that takes long, and so runs in steps.

    Not an extension point of v1.36; PostFilter of plugins of other packages is one step.
    """

    def post_filter_in_steps(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, diagnosis: Any
    ) -> Interruptible[tuple[Status, str | None]]:
        """`post_filter` in steps; `snapshot` stays as it is between them."""
        ...


@runtime_checkable
class PodGroupPostFilterPlugin(PostFilterPlugin, Protocol):
    """A PostFilter plugin that lets a whole pod group evict; the engine chooses the victims."""

    def pod_group_post_filter(self, victims: Sequence[PodInfo], snapshot: Snapshot) -> Status:
        """Success lets the group evict these pods; with a rejection it evicts none."""
        ...


@runtime_checkable
class PreScorePlugin(Plugin, Protocol):
    """Runs once per pod with the feasible nodes, before Score."""

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Status:
        """Skip drops the plugin's Score. `nodes` are the feasible ones."""
        ...


@runtime_checkable
class ScorePlugin(Plugin, Protocol):
    """Scores nodes."""

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        """``int64[len(nodes)]``, in 0..100 unless the plugin normalises."""
        ...


@runtime_checkable
class NormalizeScorePlugin(Plugin, Protocol):
    """A Score plugin that scales its raw scores to 0..100 over the feasible nodes."""

    def normalize_score(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, scores: Int64Array
    ) -> Int64Array:
        """``int64[len(nodes)]`` in 0..100 from the raw `scores` of the feasible `nodes`."""
        ...


class ReservePlan(msgspec.Struct, frozen=True):
    """What a pod takes: volumes and claims as they are once the pod is bound, and devices.

    The engine assumes them for the pod, so that other pods do not get them, and takes the
    assumption back if the pod is not bound.

    Attributes:
        volumes: In-tree plugins only.
        claims: In-tree plugins only.
        allocations: In-tree plugins only.
        annotations: For plugins that divide a resource of a node themselves: annotations of the
            pod, their keys with the prefix ``reserved.stowage/``. `PodInfo.reserved` has them from
            now on, and the Binding writes them to the pod. (An extender that binds does not.)
    """

    volumes: tuple[PersistentVolume, ...] = ()
    claims: tuple[PersistentVolumeClaim, ...] = ()
    allocations: tuple[ClaimAllocation, ...] = ()
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


@runtime_checkable
class ReservePlugin(Plugin, Protocol):
    """Notes what a pod takes beyond what the cache counts."""

    def reserve(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> ReservePlan | Status | None:
        """Reserve for the pod. A plan and None are successes.

        A rejection or an error ends the cycle, and all Reserve plugins unreserve. The plugin does
        not change the cluster's state: it returns a plan, and the engine applies it.
        """
        ...

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Undo `reserve`; idempotent, and also called if `reserve` did not run."""
        ...


@runtime_checkable
class PermitPlugin(Plugin, Protocol):
    """Approves, rejects or delays the binding of a pod."""

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        """The status and, for Wait, the time limit in seconds (at most 15 minutes)."""
        ...


@runtime_checkable
class PreBindPlugin(Plugin, Protocol):
    """Does work that must precede the Binding; may call the API server."""

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Skip if there is no work for this pod."""
        ...

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Do the work; with any status but Success the pod is requeued.

        It is cancelled if the pod is deleted or preempted, and after the time limit. The pod's next
        `pre_bind` begins when this one has ended; one that has not 5 s after its cancellation is
        left behind.
        """
        ...


@runtime_checkable
class StagedPreBindPlugin(Plugin, Protocol):
    """A PreBind without I/O: the operator makes the writes, and the plugin waits for their effect.

    The plugin learns of the effect from events, so no task waits and a recording can be replayed.
    """

    @property
    def pre_bind_target(self) -> type[BindVolumes | BindClaims]:
        """The kind of the writes."""
        ...

    @property
    def pre_bind_timeout_s(self) -> float:
        """Time limit after the writes, in seconds."""
        ...

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Skip if there is nothing to do for this pod."""
        ...

    def pre_bind_writes(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> BindVolumes | BindClaims:
        """The writes to make first."""
        ...

    def pre_bind_written(self, state: CycleState, outcome: Any) -> None:
        """Note the outcome of the writes; on an error a part of them may have been made."""
        ...

    def pre_bind_progress(
        self, state: CycleState, pod: PodInfo, node_name: str, snapshot: Snapshot
    ) -> PreBindProgress:
        """The progress; called after the writes and whenever an awaited object changes."""
        ...

    def pre_bind_timed_out(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> str:
        """The text of the error if the time limit passes."""
        ...


@runtime_checkable
class BindPlugin(Plugin, Protocol):
    """Chooses how a pod is bound."""

    def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> BindPod | None:
        """The instruction that binds the pod, or None to leave it to the next Bind plugin."""
        ...


@runtime_checkable
class PostBindPlugin(Plugin, Protocol):
    """Is notified that a pod was bound."""

    def post_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Take note; the answer is ignored."""
        ...


@runtime_checkable
class EnqueueExtensions(Plugin, Protocol):
    """Registers the events that may make pods schedulable that the plugin rejected."""

    def events_to_register(self) -> Sequence[EventRegistration]:
        """The events; a plugin without this method is registered for every event."""
        ...
