"""Events in, instructions out: the pure machine that the shell drives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias

from stowage.api import events
from stowage.api.config.extenders import NO_EXTENDERS, Extenders
from stowage.api.events import ClusterEvent, Event
from stowage.api.instructions import Instruction
from stowage.api.status import Status
from stowage.engine import event_handlers, storage_event_handlers
from stowage.engine.binding import commitments
from stowage.engine.dump import dump_machine
from stowage.engine.extenders.consulting import extenders_answered, victims_reviewed
from stowage.engine.invariants import check_invariants
from stowage.engine.journal import Handled, Journal, Scheduled
from stowage.engine.machine import Machine
from stowage.engine.preemption.evictions import eviction_finished, gate_preemptors
from stowage.engine.reconfiguration import configuration_changed
from stowage.engine.schedule_one import attempt_pod, resume_pod
from stowage.engine.settings import Configure
from stowage.framework import Framework, Timings, WaitingPod
from stowage.queue.queue_events import event_label
from stowage.queue.scheduling_queue import SchedulingQueue
from stowage.state.cache import ClusterCache
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import Snapshot

#: What takes in one kind of event; returns what it amounts to for pods that wait.
Handler: TypeAlias = Callable[[Machine, Any, float], Sequence[ClusterEvent] | None]

_HANDLERS: Mapping[type[Any], Handler] = {
    events.PendingPodSeen: event_handlers.pending_pod_seen,
    events.PendingPodGone: event_handlers.pending_pod_left,
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
    events.DisruptionBudgetSeen: event_handlers.disruption_budget_seen,
    events.DisruptionBudgetGone: event_handlers.disruption_budget_gone,
    events.ObjectInvalid: event_handlers.object_invalid,
    events.VolumesWritten: commitments.volumes_written,
    events.PreBindFinished: commitments.pre_bind_finished,
    events.BindSucceeded: commitments.bind_succeeded,
    events.BindFailed: commitments.bind_failed,
    events.WaitingPodAllowed: commitments.waiting_pod_allowed,
    events.WaitingPodRejected: commitments.waiting_pod_rejected,
    events.PodsActivated: commitments.pods_activated,
    events.ExtendersAnswered: extenders_answered,
    events.VictimsReviewed: victims_reviewed,
    events.EvictionFinished: eviction_finished,
    events.ConfigurationChanged: configuration_changed,
}


class Engine:
    """The scheduler without I/O, clock and randomness.

    All times are seconds of one monotonic clock, given by the caller, who also carries out the
    instructions and reports their outcome as events. The state changes in `handle` and
    `schedule` only, so between two calls it is consistent and `validate` may be called.

    Args:
        frameworks: One per profile, by scheduler name.
        queue: Built with the frameworks' order, gates and hints.
        choose: ``choose(n)`` gives an index below n; breaks ties between best nodes.
        timer: A clock for durations in results; the default measures nothing.
        journal: Where calls are recorded; None records nothing.
        extenders: Who has a say besides the plugins.
    """

    def __init__(
        self,
        frameworks: Mapping[str, Framework],
        queue: SchedulingQueue,
        choose: Callable[[int], int],
        *,
        timer: Callable[[], float] = lambda: 0.0,
        journal: Journal | None = None,
        extenders: Extenders = NO_EXTENDERS,
    ) -> None:
        self._machine = Machine(frameworks, ClusterCache(), queue, self._choose, timer, extenders)
        for framework in frameworks.values():
            gate_preemptors(self._machine, framework)
        self._choose_index = choose
        self._choices: list[int] = []
        self.journal = journal

    def follow_configuration(self, configuration: str, configure: Configure) -> None:
        """Have ``ConfigurationChanged`` heeded; without this it is reported as a problem.

        Args:
            configuration: Hash of the configuration the engine was made from.
            configure: Reads one that comes later.
        """
        self._machine.configuration = configuration
        self._machine.configure = configure

    def take_durations(self, timings: Timings) -> None:
        """Have the durations of sampled cycles, of events and of hints taken."""
        self._machine.timings = timings
        observe_hint = timings.observer.observe_hint
        self._machine.queue.hint_durations.follow(timings.timer, observe_hint)

    def handle(self, arrived: Iterable[Event], now: float) -> list[Instruction]:
        """Take in what arrived and what time has brought about.

        A fault in one event is reported and stops no other.
        """
        arrived = tuple(arrived)
        self._advance_time(now)
        for event in arrived:
            self._take_in(event, now)
        answer = self._answer()
        if self.journal is not None:
            self.journal.record(Handled(now, arrived, tuple(answer)))
        return answer

    def schedule(self, now: float, budget: int) -> list[Instruction]:
        """Try up to `budget` pods, best first; fewer if fewer are ready."""
        self._choices.clear()
        self._advance_time(now)
        for _ in range(budget):
            if not self._try_one(now):
                break
        answer = self._answer()
        if self.journal is not None:
            self.journal.record(Scheduled(now, budget, tuple(self._choices), tuple(answer)))
        return answer

    def pre_bind(self, uid: str, plugin: str) -> Coroutine[Any, Any, Status] | None:
        """The work that ``RunPreBind`` asks for, one plugin at a time; the shell awaits it.

        It changes nothing the engine knows; its outcome is told by ``PreBindFinished``.

        Args:
            uid: Of the pod.
            plugin: One of the instruction's plugins.

        Returns:
            None if the pod is not being pre-bound any more.
        """
        cycle = self._machine.bindings.get(uid)
        return None if cycle is None else cycle.run_pre_bind(plugin)

    def waiting_pods(self) -> Sequence[WaitingPod]:
        """The pods that wait at Permit."""
        return commitments.waiting_pods(self._machine)

    def next_deadline(self) -> float | None:
        """When `handle` or `schedule` should be called even if nothing arrives."""
        deadlines = (
            self._machine.queue.next_deadline(),
            commitments.next_commitment_deadline(self._machine),
        )
        return min((each for each in deadlines if each is not None), default=None)

    def has_ready_pods(self) -> bool:
        """Whether `schedule` would find a pod to try."""
        return self._machine.consultations.has_ready or self._machine.queue.has_ready_pods()

    def in_flight(self) -> int:
        """How many pods have a node and are not known to be bound."""
        return len(self._machine.bindings)

    def pending_counts(self) -> Mapping[str, int]:
        """Pods waiting, by queue: active, backoff, unschedulable, gated."""
        return self._machine.queue.pending_counts()

    def incoming_counts(self) -> Counter[tuple[str, str]]:
        """Pods that ever entered a queue, by queue and event label."""
        return self._machine.queue.incoming_counts

    def cache_counts(self) -> Mapping[str, int]:
        """How many nodes, pods and assumed pods the cache holds."""
        return self._machine.cache.counts()

    def unschedulable_counts(self) -> Mapping[tuple[str, str], int]:
        """How many pods each plugin of a profile has rejected, by (scheduler name, plugin)."""
        return self._machine.queue.unschedulable_counts()

    def evaluation_counts(self) -> Counter[tuple[str, str, str]]:
        """How often plugins were asked, by (plugin, extension point, scheduler name).

        Filter and Score count nodes. Begins anew with another configuration.
        """
        return Counter(
            {
                (plugin, point, name): times
                for name, framework in self._machine.frameworks.items()
                for (plugin, point), times in framework.evaluations.totals().items()
            }
        )

    def in_flight_event_counts(self) -> Mapping[str, int]:
        """Events kept for pods in flight, by label."""
        return self._machine.queue.in_flight_event_counts()

    def volume_error_counts(self) -> Mapping[str, int]:
        """How often volumes were the reason of an error, by stage: predicate, assume, bind."""
        return self._machine.volume_errors

    def plugin_failure_counts(self) -> Mapping[str, int]:
        """How often an attempt ended because a plugin raised or answered an Error, by plugin."""
        return self._machine.plugin_failures

    def pods(self) -> Iterator[PodInfo]:
        """Every pod, placed, assumed or waiting; valid until the next call of `handle`."""
        yield from self._machine.cache.pods()
        for queued in chain.from_iterable(self._machine.queue.contents().values()):
            if self._machine.cache.get_pod(queued.uid) is None:
                yield queued.info

    def snapshot(self) -> Snapshot:
        """The cluster as the plugins of the next scheduling cycle see it."""
        return self._machine.cache.snapshot()

    def node_names(self) -> list[str]:
        """Of the nodes that exist, in no order."""
        snapshot = self.snapshot()
        return [
            name
            for row, name in enumerate(snapshot.node_names)
            if name and bool(snapshot.exists[row])
        ]

    def dump(self) -> dict[str, Any]:
        """Everything the engine knows, as plain data; not for the scheduling path."""
        return dump_machine(self._machine)

    def validate(self) -> None:
        """Check every invariant.

        Raises:
            InvariantViolation: Naming what is wrong.
        """
        check_invariants(self._machine)

    def _answer(self) -> list[Instruction]:
        return self._machine.take_outbox()

    def _try_one(self, now: float) -> bool:
        """Try the next pod; those that extenders have answered go first. False if there is none."""
        consultation = self._machine.consultations.take_ready()
        if consultation is not None:
            resume_pod(self._machine, consultation, now)
            return True
        queued = self._machine.queue.pop(now)
        if queued is not None:
            attempt_pod(self._machine, queued, now)
        return queued is not None

    def _take_in(self, event: Event, now: float) -> None:
        timings = self._machine.timings
        started = 0.0 if timings is None else timings.timer()
        try:
            happened = _HANDLERS[type(event)](self._machine, event, now)
        except Exception as fault:
            self._machine.problem(type(event).__name__, f"{fault!r}{_about(event)}")
            return
        if timings is not None and happened:
            duration_s = timings.timer() - started
            for each in happened:
                timings.observer.observe_event(event_label(each), duration_s)

    def _advance_time(self, now: float) -> None:
        self._machine.queue.flush(now)
        commitments.expire_waiting_pods(self._machine, now)
        commitments.expire_stages(self._machine, now)
        commitments.read_back_unconfirmed(self._machine, now)

    def _choose(self, num_ties: int) -> int:
        choice = self._choose_index(num_ties)
        self._choices.append(choice)
        return choice


def _about(event: Event) -> str:
    """Whom an event is about: all of it may be long, and may hold what is nobody's business."""
    for name in event.__struct_fields__:
        metadata = getattr(getattr(event, name), "metadata", None)
        if metadata is not None:
            return f" on {metadata.namespace}/{metadata.name}"
    uid = getattr(event, "uid", "")
    return f" on {uid}" if uid else ""
