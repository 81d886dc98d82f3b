"""The engine: events in, instructions out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from types import GeneratorType
from typing import Any, TypeAlias

from stowage.api import events
from stowage.api.cluster_events import ClusterEvent
from stowage.api.config.extenders import NO_EXTENDERS, Extenders
from stowage.api.events import Event
from stowage.api.instructions import Instruction
from stowage.api.interruptible import Interruptible, finish
from stowage.api.status import Status
from stowage.api.values.deadlines import earlier
from stowage.engine import custom_event_handlers as custom
from stowage.engine import (
    device_event_handlers,
    event_handlers,
    pod_group_event_handlers,
    storage_event_handlers,
)
from stowage.engine.binding import event_handlers as binding
from stowage.engine.binding.created_claims import claim_deletion_finished
from stowage.engine.binding.steps import run_pre_bind
from stowage.engine.dump import dump_state
from stowage.engine.extenders.consulting import extenders_answered, victims_reviewed
from stowage.engine.invariants import invariant_steps
from stowage.engine.journal import CallRecorder, HandleCall, ScheduleCall
from stowage.engine.pod_groups.group_preemption import eviction_finished
from stowage.engine.preemption.gate import gate_preemptors
from stowage.engine.reconfiguration import configuration_changed
from stowage.engine.schedule_one import schedule_one
from stowage.engine.scheduling import TieBreaker
from stowage.engine.scheduling_failure import report_gated_pods
from stowage.engine.settings import Configure
from stowage.engine.state.engine_state import EngineState
from stowage.engine.state.wall_clock import WallClock
from stowage.framework import Framework, Timings, WaitingPod
from stowage.queue.queue_events import event_label
from stowage.queue.scheduling_queue import SchedulingQueue
from stowage.state.pods.pod_info import PodInfo

#: The cluster events that an event caused, for metrics.
Caused: TypeAlias = Sequence[ClusterEvent] | None

#: Handles one kind of event, at once or in steps.
Handler: TypeAlias = Callable[[EngineState, Any, float], Caused | Interruptible[Caused]]

_HANDLERS: Mapping[type[Any], Handler] = {
    events.PendingPodSeen: event_handlers.pending_pod_seen,
    events.PendingPodGone: event_handlers.pending_pod_gone,
    events.AssignedPodSeen: event_handlers.assigned_pod_seen,
    events.AssignedPodGone: event_handlers.assigned_pod_gone,
    events.NodeSeen: event_handlers.node_seen,
    events.NodeGone: event_handlers.node_gone,
    events.NamespaceSeen: event_handlers.namespace_seen,
    events.NamespaceGone: event_handlers.namespace_gone,
    events.WorkloadSeen: event_handlers.workload_seen,
    events.WorkloadGone: event_handlers.workload_gone,
    events.StorageSeen: storage_event_handlers.storage_seen,
    events.StorageGone: storage_event_handlers.storage_gone,
    events.DeviceObjectSeen: device_event_handlers.device_object_seen,
    events.DeviceObjectGone: device_event_handlers.device_object_gone,
    events.DisruptionBudgetSeen: event_handlers.disruption_budget_seen,
    events.DisruptionBudgetGone: event_handlers.disruption_budget_gone,
    events.PodGroupSeen: pod_group_event_handlers.pod_group_seen,
    events.PodGroupGone: pod_group_event_handlers.pod_group_gone,
    events.PodGroupsServed: pod_group_event_handlers.pod_groups_served,
    events.CustomObjectSeen: custom.custom_object_seen,
    events.CustomObjectGone: custom.custom_object_gone,
    events.CustomResourceGone: custom.custom_resource_gone,
    events.ObjectInvalid: event_handlers.object_invalid,
    events.VolumesWritten: binding.pre_bind_finished,
    events.ClaimsWritten: binding.claims_written,
    events.ClaimDeletionFinished: claim_deletion_finished,
    events.PreBindFinished: binding.pre_bind_finished,
    events.BindSucceeded: binding.bind_finished,
    events.BindFailed: binding.bind_finished,
    events.WaitingPodAllowed: binding.waiting_pod_allowed,
    events.WaitingPodRejected: binding.waiting_pod_rejected,
    events.PodsActivated: binding.pods_activated,
    events.ExtendersAnswered: extenders_answered,
    events.VictimsReviewed: victims_reviewed,
    events.EvictionFinished: eviction_finished,
    events.ConfigurationChanged: configuration_changed,
}


class Engine:
    """The scheduler without I/O, clock and randomness.

    The caller passes the time (seconds of one monotonic clock), carries out the instructions, and
    reports their outcomes as events. Only `handle` and `schedule` change the state, so it is
    consistent between two calls. An event may take `handle` seconds, and a pod group may take
    `schedule` seconds; `handling_steps` and `scheduling_steps` do the same in short steps, between
    which the state is not consistent.

    Args:
        frameworks: One per profile, by scheduler name.
        queue: Made with the rules of these frameworks.
        choose: ``choose(n)`` returns an index below n; breaks ties between best nodes.
        timer: A clock for durations in results and for time limits of plugins; the default
            measures nothing.
        journal: Records the calls; None records nothing.
        extenders: The configured extenders.
        wall_clock: Returns the seconds since the epoch, which API objects carry as timestamps.

    Attributes:
        state: What the engine knows; tests read it.
        journal: The journal, if there is one.
        is_in_steps: Whether `handling_steps` or `scheduling_steps` has begun and has not ended.
    """

    is_in_steps = False

    def __init__(
        self,
        frameworks: Mapping[str, Framework],
        queue: SchedulingQueue,
        choose: Callable[[int], int],
        *,
        timer: Callable[[], float] = lambda: 0.0,
        journal: CallRecorder | None = None,
        extenders: Extenders = NO_EXTENDERS,
        wall_clock: Callable[[], float] = lambda: 0.0,
    ) -> None:
        ties = TieBreaker(choose)
        clock = WallClock(wall_clock)
        self.state = EngineState(frameworks, queue, ties, timer, clock, extenders)
        self.journal = journal
        for framework in frameworks.values():
            gate_preemptors(self.state, framework)
            framework.read_snapshots(self.state.cache.snapshot)

    def follow_configuration(self, configuration: str, configure: Configure) -> None:
        """Let ``ConfigurationChanged`` change the configuration; without this it is an error.

        Args:
            configuration: Hash of the configuration the engine was made from.
            configure: Makes engine settings from a later configuration.
        """
        self.state.configuration = configuration
        self.state.configure = configure

    def take_durations(self, timings: Timings) -> None:
        """Record the durations of sampled cycles, of events and of hints."""
        self.state.timings = timings
        observe_hint = timings.observer.observe_hint
        self.state.queue.hint_durations.follow(timings.timer, observe_hint)

    def handle(self, arrived: Iterable[Event], now: float) -> list[Instruction]:
        """Handle events, and timeouts that have passed.

        An exception in the handling of one event is reported and stops no other event. An iterator
        may end early: each event is taken from it when the one before has been handled.
        """
        return finish(self.handling_steps(arrived, now))

    def handling_steps(
        self, arrived: Iterable[Event], now: float
    ) -> Interruptible[list[Instruction]]:
        """`handle` in steps: an event may move a hundred thousand waiting pods.

        The caller must not call `handle` or `schedule` before the last step. If it never takes the
        last step, the engine cannot be used any more.

        Raises:
            RuntimeError: Steps of an earlier call have not ended.
        """
        handled: list[Event] = []
        self._refuse_if_in_steps()
        self.is_in_steps = True
        self.state.wall_clock.clear()
        yield from self._advance_time(now)
        for event in arrived:
            handled.append(event)
            yield from self._handle_event(event, now)
        answer = self._answer()
        if self.journal is not None:
            readings = tuple(self.state.wall_clock.readings)
            self.journal.record(HandleCall(now, tuple(handled), tuple(answer), readings))
        self.is_in_steps = False
        return answer

    def schedule(
        self, now: float, budget: int, is_over: Callable[[], bool] = lambda: False
    ) -> list[Instruction]:
        """Attempt up to `budget` pods, in the order of the queue, and report gated pods.

        Args:
            now: The time.
            budget: The greatest number of pods.
            is_over: Asked after each pod; whether to attempt no further one.
        """
        return finish(self.scheduling_steps(now, budget, is_over))

    def scheduling_steps(
        self, now: float, budget: int, is_over: Callable[[], bool] = lambda: False
    ) -> Interruptible[list[Instruction]]:
        """`schedule` in short steps: one for each member of a pod group, and for each other pod.

        There are more for a pod that asks what none has asked before, that has thousands of terms,
        or that no node takes, so that PostFilter runs.

        All pods are tried on the cluster as it was before the first step. The caller must not call
        `handle` or `schedule` before the last step. If it never takes the last step, nothing has
        been decided, and the engine cannot be used any more.

        Raises:
            RuntimeError: An earlier call has not ended.
        """
        self._refuse_if_in_steps()
        self.is_in_steps = True
        self.state.ties.clear()
        self.state.limits.clear()
        self.state.wall_clock.clear()
        yield from self._advance_time(now)
        report_gated_pods(self.state)
        for number in range(1, budget + 1):
            if not (yield from schedule_one(self.state, now)):
                break
            if is_over():
                budget = number  # so that a replay attempts as many
                break
        answer = self._answer()
        if self.journal is not None:
            choices = tuple(self.state.ties.choices)
            readings = tuple(self.state.wall_clock.readings)
            limits = tuple(self.state.limits.passed)
            self.journal.record(ScheduleCall(now, budget, choices, tuple(answer), readings, limits))
        self.is_in_steps = False
        return answer

    def repeat_time_limits(self, passed: Sequence[int]) -> None:
        """Until the next call of this, let time limits pass at these checks only; for replays."""
        self.state.limits.repeat(passed)

    def time_limits_passed(self) -> Sequence[int]:
        """The checks of time limits in the last call of `schedule` that found one passed."""
        return tuple(self.state.limits.passed)

    def pre_bind(self, uid: str, plugin: str) -> Coroutine[Any, Any, Status] | None:
        """The coroutine of one of the PreBind plugins of a ``RunPreBind``; the shell awaits it.

        It does not change the engine's state; ``PreBindFinished`` reports its outcome.

        Args:
            uid: The pod.
            plugin: One of the instruction's plugins.

        Returns:
            None if the pod is not being pre-bound any more.
        """
        return run_pre_bind(self.state, uid, plugin)

    def waiting_pods(self) -> Sequence[WaitingPod]:
        """The pods that wait for Permit plugins."""
        return binding.waiting_pods(self.state)

    def custom_resources(self) -> frozenset[str]:
        """The resources to watch because plugins registered events of theirs."""
        return custom.custom_resources(self.state.frameworks.values())

    def next_deadline(self) -> float | None:
        """When to call `handle` even if no event arrives; None if no timeout is pending."""
        return earlier(self.state.queue.next_deadline(), self.state.bindings.next_deadline())

    def has_ready_pods(self) -> bool:
        """Whether `schedule` would attempt a pod, or report a gated one."""
        queue = self.state.queue
        return self.state.consultations.has_ready or queue.has_ready_pods() or queue.has_gated

    def in_flight(self) -> int:
        """The number of pods that are being bound."""
        return len(self.state.bindings)

    def pending_counts(self) -> Mapping[str, int]:
        """The number of waiting pods by queue: active, backoff, unschedulable, gated."""
        return self.state.queue.pending_counts()

    def oldest_attempt_at(self) -> float | None:
        """When the longest waiting pod first became active; None if none waits."""
        return self.state.queue.oldest_attempt_at()

    def incoming_counts(self) -> Counter[tuple[str, str]]:
        """How often pods entered a queue, by queue and event label."""
        return self.state.queue.incoming_counts

    def cache_counts(self) -> Mapping[str, int]:
        """The number of nodes, pods and assumed pods in the cache."""
        return self.state.cache.counts()

    def unschedulable_counts(self) -> Mapping[tuple[str, str], int]:
        """The number of waiting pods that each plugin rejected, by (scheduler name, plugin)."""
        return self.state.queue.unschedulable_counts()

    def evaluation_counts(self) -> Counter[tuple[str, str, str]]:
        """How often plugins ran, by (plugin, extension point, scheduler name).

        Filter and Score count nodes. A new configuration starts at 0.
        """
        return Counter(
            {
                (plugin, point, name): times
                for name, framework in self.state.frameworks.items()
                for (plugin, point), times in framework.evaluations.totals().items()
            }
        )

    def in_flight_event_counts(self) -> Mapping[str, int]:
        """The number of events kept for pods in flight, by label."""
        return self.state.queue.in_flight_event_counts()

    def volume_error_counts(self) -> Mapping[str, int]:
        """How often volumes caused an error, by stage: predicate, assume, bind."""
        return self.state.errors.by_volume_stage

    def plugin_failure_counts(self) -> Mapping[str, int]:
        """How often an attempt ended because a plugin raised or returned an Error, by plugin."""
        return self.state.errors.by_plugin

    def pods(self) -> Iterator[PodInfo]:
        """Every pod, placed, assumed or waiting; valid until the next call of `handle`."""
        yield from self.state.cache.pods()
        for queued in chain.from_iterable(self.state.queue.contents().values()):
            if self.state.cache.get_pod(queued.uid) is None:
                yield queued.info

    def node_names(self) -> list[str]:
        """The names of the nodes that exist, in no order."""
        snapshot = self.state.cache.snapshot()
        return [
            name
            for row, name in enumerate(snapshot.node_names)
            if name and bool(snapshot.exists[row])
        ]

    def dump(self) -> dict[str, Any]:
        """The whole state as plain data; slow, so not for the scheduling path."""
        return dump_state(self.state)

    def validate(self) -> None:
        """Check every invariant.

        Raises:
            InvariantViolation: Naming what is wrong.
        """
        for _ in self.validation_steps():
            pass

    def validation_steps(self) -> Iterator[None]:
        """`validate` in short steps; `handle` and `schedule` may be called between two of them.

        Raises:
            InvariantViolation: Naming what is wrong.
        """
        return invariant_steps(self.state)

    def _answer(self) -> list[Instruction]:
        for problem in self.state.queue.drain_problems():
            self.state.outbox.report("scheduling queue", problem)
        return self.state.outbox.take()

    def _handle_event(self, event: Event, now: float) -> Interruptible[None]:
        timings = self.state.timings
        started = 0.0 if timings is None else timings.timer()
        try:
            handled = _HANDLERS[type(event)](self.state, event, now)
            cluster_events = (yield from handled) if isinstance(handled, GeneratorType) else handled
        except MemoryError:
            # The state may be changed in part, and no event is at fault: the process must end.
            raise
        except Exception as fault:
            self.state.outbox.report(type(event).__name__, f"{fault!r}{_object_of(event)}")
            return
        if timings is not None and cluster_events:
            duration_s = timings.timer() - started
            for each in cluster_events:
                timings.observer.observe_event(event_label(each), duration_s)

    def _refuse_if_in_steps(self) -> None:
        if self.is_in_steps:
            raise RuntimeError("the engine was called before the last of its steps")

    def _advance_time(self, now: float) -> Interruptible[None]:
        yield from self.state.queue.flush_steps(now)
        binding.expire_binding_timeouts(self.state, now)


def _object_of(event: Event) -> str:
    """The event's object, by name: the whole event may be long and may hold private data."""
    for name in event.__struct_fields__:
        metadata = getattr(getattr(event, name), "metadata", None)
        if metadata is not None:
            return f" on {metadata.namespace}/{metadata.name}"
    uid = getattr(event, "uid", "")
    return f" on {uid}" if uid else ""
