"""The clock and the events of one experiment."""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import count
from typing import cast

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.analysis.loaded_cluster import LoadedCluster
from stowage.analysis.simulation.node_values import Requests, node_values
from stowage.analysis.simulation.pod_ledger import PodLedger, PodRecord
from stowage.analysis.simulation.result import ExperimentFailed
from stowage.analysis.simulation.samples import Samples
from stowage.analysis.simulation.timeline import (
    Happening,
    NodeJoins,
    NodeLeaves,
    OutsideEvent,
    PodArrives,
    PodLeaves,
    PolicyChanges,
    Timeline,
)
from stowage.analysis.virtual_cluster import DAEMON_SET, VirtualCluster
from stowage.api.events import AssignedPodSeen, Event, NodeGone, NodeSeen, PendingPodSeen
from stowage.api.instructions import (
    AttemptResult,
    BindByExtender,
    BindPod,
    EvictPod,
    Instruction,
    ReportProblem,
)
from stowage.api.objects.meta import controller_of
from stowage.api.objects.pod import Pod
from stowage.api.values.resources import pod_requests
from stowage.engine import Engine

PATIENCE_S = 900.0
"""An experiment without an end goes on for this long after the last event from outside and the last
decision: backoffs and the flush of unschedulable pods are shorter, and Permit waits no longer."""

_ERROR = "error"


class Simulation:
    """Lives through a timeline with an engine.

    Args:
        timeline: What happens.
        engine: An engine without nodes and pods.
        posted: Events that plugins post; emptied when they are handled.
        changes: What the engine becomes, in order of time. Without an end, the experiment does not
            go on for a change, unless pods are pending then.

    Attributes:
        ledger: The pods.
        samples: The quantities over time.
        ended: The end of the experiment, once it has run.
    """

    def __init__(
        self,
        timeline: Timeline,
        engine: Engine,
        posted: list[Event],
        changes: Sequence[PolicyChanges] = (),
    ) -> None:
        self.ledger = PodLedger()
        self.samples = Samples(timeline.expected_s, self._values)
        self.ended = 0.0
        self._timeline = timeline
        self._posted = posted
        self._changes = deque(changes)
        self._engine = engine
        self._cluster = VirtualCluster(
            LoadedCluster(ClusterObjects(), engine, {}), 0.0, self._observe
        )
        self._adapt = timeline.adapter(self._cluster.objects)
        self._endings: list[tuple[float, int, PodRecord, float]] = []
        self._numbers = count()

    def run(self) -> None:
        """Live through the timeline.

        Raises:
            ExperimentFailed: A plugin raised, or an object cannot be used.
        """
        self._cluster.create(self._timeline.objects())
        for pod in self._cluster.objects.pods():
            if not pod.spec.node_name:
                self.ledger.arrive(pod, 0.0, None)
        coming = _Coming(iter(self._timeline.happenings))
        while True:
            self._settle()
            due = min(coming.at_s, self._endings[0][0] if self._endings else math.inf)
            deadline = self._engine.next_deadline()
            change_at = self._changes[0].at_s if self._changes else math.inf
            now = min(due, change_at, math.inf if deadline is None else deadline)
            if now == math.inf or now > self._limit(due, change_at):
                break
            self.samples.advance(now)
            self._cluster.now = max(self._cluster.now, now)
            if due <= now:
                self.ended = now
            self._happen(coming, now)
        ends_at = self._timeline.ends_at_s
        self.ended = self.ended if ends_at is None else ends_at
        self.samples.finish(self.ended)

    def _limit(self, due: float, change_at: float) -> float:
        """Until when the experiment goes on at most.

        Args:
            due: When the next pod arrives or ends, or another thing happens outside.
            change_at: When the engine changes next.
        """
        if self._timeline.ends_at_s is not None:
            return self._timeline.ends_at_s
        if due < math.inf or (change_at < math.inf and self.ledger.num_pending):
            return math.inf
        return self.ended + PATIENCE_S

    def _settle(self) -> None:
        """Let the engine work at this time until no pod is ready."""
        self._cluster.settle()
        while self._posted:
            self._cluster.show(self._take_posted())
            self._cluster.settle()

    def _take_posted(self) -> list[Event]:
        events = list(self._posted)
        self._posted.clear()
        return events

    def _happen(self, coming: _Coming, now: float) -> None:
        """Show the engine what happens at a time, or that the time has passed."""
        events: list[Event] = []
        while self._endings and self._endings[0][0] <= now:
            _, _, record, bound_s = heapq.heappop(self._endings)
            if self.ledger.is_running(record, bound_s):
                events += self._pod_leaves(record.key)
        while self._changes and self._changes[0].at_s <= now:
            events.append(self._changes.popleft().event)
        while coming.at_s <= now:
            happening = coming.take()
            if isinstance(happening, NodeLeaves):
                self._cluster.show(events)
                events = []
                self._node_leaves(happening.name)
            else:
                events += self._events_of(happening, now)
        self._cluster.show(events)

    def _events_of(
        self,
        happening: PodArrives | PodLeaves | NodeJoins | OutsideEvent,
        now: float,
    ) -> Sequence[Event]:
        match happening:
            case PodArrives():
                return self._pod_arrives(happening, now)
            case PodLeaves():
                return self._pod_leaves(happening.key)
            case NodeJoins():
                self._cluster.objects.add(happening.node)
                return [NodeSeen(happening.node)]
            case OutsideEvent():
                return self._adapt(happening)

    def _pod_arrives(self, arrival: PodArrives, now: float) -> Sequence[Event]:
        pod, objects = arrival.pod, self._cluster.objects
        before = objects.pod(pod.metadata.namespaced_name)
        gone = () if before is None else self._pod_leaves(before.metadata.namespaced_name)
        if pod.spec.node_name:
            objects.add(pod)
            return (*gone, AssignedPodSeen(pod))
        if pod.spec.resource_claims:
            pod = self._cluster.with_claims(pod)
        objects.add(pod)
        self.ledger.arrive(pod, now, arrival.duration_s)
        return (*gone, PendingPodSeen(pod))

    def _pod_leaves(self, key: str) -> Sequence[Event]:
        pod = self._cluster.objects.pod(key)
        self.ledger.leave(key)
        return () if pod is None else self._cluster.deletion_of(pod)

    def _node_leaves(self, name: str) -> None:
        if self._cluster.objects.remove("Node", name) is None:
            return
        self._cluster.show([NodeGone(name)])
        for pod in self._cluster.pods.on_node(name):
            key = pod.metadata.namespaced_name
            self.ledger.counts["evicted"] += 1
            self.ledger.displace(key, is_made_again=_is_made_again(pod))
            self._cluster.evict_pod(pod)

    def _observe(self, instruction: Instruction) -> None:
        match instruction:
            case BindPod() | BindByExtender():
                self._bound(instruction.pod.key)
            case AttemptResult():
                self._attempted(instruction)
            case EvictPod():
                self._preempted(instruction)
            case ReportProblem():
                raise ExperimentFailed(f"{instruction.subject}: {instruction.text}")

    def _bound(self, key: str) -> None:
        now = self._cluster.now
        self.ended = now
        record = self.ledger.bind(key, now)
        if record is not None and record.duration_s is not None:
            ends = (now + record.duration_s, next(self._numbers), record, now)
            heapq.heappush(self._endings, ends)

    def _attempted(self, attempt: AttemptResult) -> None:
        self.ledger.counts["attempts"] += 1
        if attempt.result == _ERROR and self._engine.plugin_failure_counts():
            plugins = ", ".join(sorted(self._engine.plugin_failure_counts()))
            raise ExperimentFailed(f"Pod {attempt.pod.key}: {plugins}: {attempt.message}")
        if attempt.message:
            reasons = ", ".join(sorted(attempt.reason_counts)) or attempt.message
            self.ledger.attempt_failed(attempt.pod.key, reasons)

    def _preempted(self, instruction: EvictPod) -> None:
        self.ended = self._cluster.now
        victim = self._cluster.objects.pod(instruction.victim.key)
        if victim is not None and victim.metadata.uid == instruction.victim.uid:
            self.ledger.counts["preempted"] += 1
            self.ledger.displace(instruction.victim.key, is_made_again=_is_made_again(victim))

    def _values(self) -> dict[str, float]:
        self._cluster.forget_history()
        ledger = self.ledger
        return {
            "pending": float(ledger.num_pending),
            "running": float(ledger.num_running),
            "preempted": float(ledger.counts["preempted"]),
            **node_values(self._engine.state.cache.snapshot(), self._recent_requests()),
        }

    def _recent_requests(self) -> list[Requests]:
        known: dict[int, Requests] = {}
        for pod in self.ledger.recent:
            if id(pod.spec) not in known:
                known[id(pod.spec)] = pod_requests(pod)
        return [known[id(pod.spec)] for pod in self.ledger.recent]


class _Coming:
    """The happenings of a timeline that are still to come."""

    def __init__(self, happenings: Iterator[Happening]) -> None:
        self._happenings = happenings
        self._next = next(happenings, None)

    @property
    def at_s(self) -> float:
        """When the next one happens; infinity if none is left."""
        return math.inf if self._next is None else self._next.at_s

    def take(self) -> Happening:
        """The next one."""
        taken, self._next = self._next, next(self._happenings, None)
        return cast("Happening", taken)


def _is_made_again(pod: Pod) -> bool:
    """Whether a controller makes the pod again after its node or a preemptor has deleted it."""
    owner = controller_of(pod.metadata)
    return owner is not None and owner.kind != DAEMON_SET
