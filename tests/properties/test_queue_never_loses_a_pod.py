"""Each pod is always in exactly one queue, the one in which a much simpler queue has it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource, QueueingHint
from stowage.api.status import SUCCESS, Status, unresolvable
from stowage.queue import (
    QueuedPod,
    QueueRules,
    QueueState,
    Registration,
    Registrations,
    SchedulingQueue,
)
from stowage.state.pods.pod_info import PodInfo
from tests.unit.queue.scenario import (
    CLAIM_ADD,
    NODE_ADD,
    NODE_LABEL,
    POD_DELETE,
    PROFILE,
    by_priority,
    pending,
)

EVERYTHING = ClusterEvent(EventResource.WILDCARD, ActionType.ALL)
POD_UPDATE = ClusterEvent(EventResource.UNSCHEDULED_POD, ActionType.UPDATE_POD_OTHER)
POD_RELABELLED = ClusterEvent(EventResource.UNSCHEDULED_POD, ActionType.UPDATE_POD_LABEL)
# No plugin registered it: only a pod that "Stranger" rejected waits for it.
UNREGISTERED = ClusterEvent(EventResource.CSI_NODE, ActionType.ADD)
EVENTS = [NODE_ADD, NODE_LABEL, POD_DELETE, CLAIM_ADD, UNREGISTERED, EVERYTHING]
# Which events help a pod that the plugin rejected; "Stranger" registered no event.
HELPED_BY = {
    "Fit": {NODE_ADD, POD_DELETE, EVERYTHING},
    "Affinity": {NODE_LABEL, EVERYTHING},
    "Named": {NODE_LABEL, EVERYTHING},
    "Claims": {CLAIM_ADD, EVERYTHING},
    "Gatekeeper": {CLAIM_ADD, EVERYTHING},
    "Stranger": {*EVENTS, POD_UPDATE, POD_RELABELLED},
}
# Events that may open the gate of a pod; no other event does.
GATING_EVENTS = {CLAIM_ADD}
NAMES = [f"p{number}" for number in range(4)]
PRIORITIES = st.integers(0, 2)
REJECTORS = st.sampled_from(
    [
        set(),
        {"Fit"},
        {"Affinity"},
        {"Named"},
        {"Stranger"},
        {"Fit", "Affinity"},
        {"Affinity", "Named"},
        {"Fit", "Stranger"},
    ]
)
PENDING = st.sampled_from([set(), set(), {"Claims"}])


APPS = st.sampled_from(["web", "db"])


def of_its_app(pod: PodInfo, old: Any, new: Any) -> QueueingHint:
    """The hint of Affinity: an event helps the pods of one app; called once for each class."""
    return QueueingHint.when(helps_app(pod.labels["app"], new))


def of_its_name(pod: PodInfo, old: Any, new: Any) -> QueueingHint:
    """The hint of Named: an event helps pods by name; called for each pod."""
    return QueueingHint.when(helps_name(pod.name, new))


def helps_app(app: str, number: int) -> bool:
    return number % 2 == ("web", "db").index(app)


def helps_name(name: str, number: int) -> bool:
    return number % 2 == int(name[1:]) % 2


REGISTRATIONS: Registrations = {
    (PROFILE, "Fit"): [(NODE_ADD, None), (POD_DELETE, None)],
    (PROFILE, "Affinity"): [Registration(NODE_LABEL, of_its_app, per_class=True)],
    (PROFILE, "Named"): [Registration(NODE_LABEL, of_its_name)],
    (PROFILE, "Claims"): [(CLAIM_ADD, None)],
    (PROFILE, "Gatekeeper"): [(CLAIM_ADD, None)],
}


@dataclass
class ModelPod:
    """The model's state of a pod."""

    name: str
    priority: int
    queued_at: float
    app: str = "web"
    place: QueueState | None = None
    rejected_by: set[str] = field(default_factory=set)
    pending_on: set[str] = field(default_factory=set)
    is_gated: bool = False
    is_gone: bool = False
    rejections: int = 0
    errors: int = 0
    waits_until: float = 0.0
    latest: tuple[int, str] | None = None
    missed: list[tuple[ClusterEvent, int]] = field(default_factory=list)

    @property
    def turn(self) -> tuple[int, float]:
        return (-self.priority, self.queued_at)

    @property
    def backoff_ends_in(self) -> float:
        """Start of the second in which the backoff ends."""
        failures = self.errors or self.rejections
        backoff_s = min(10.0, 2.0 ** (failures - 1)) if failures else -math.inf
        return math.floor(self.queued_at + backoff_s) if failures else -math.inf

    def helped_by(self, plugins: set[str], event: ClusterEvent, number: int) -> bool:
        return any(
            event in HELPED_BY[plugin]
            and (plugin != "Affinity" or event == EVERYTHING or helps_app(self.app, number))
            and (plugin != "Named" or event == EVERYTHING or helps_name(self.name, number))
            for plugin in plugins
        )


class ModelQueue:
    """A queue with the same rules, one pod at a time and without an index."""

    def __init__(self) -> None:
        self.pods: dict[str, ModelPod] = {}
        self.closed: set[str] = set()

    def at(self, place: QueueState) -> list[ModelPod]:
        return [pod for pod in self.pods.values() if pod.place is place]

    def requeue(self, pod: ModelPod, place: QueueState, now: float) -> None:
        """Move a pod to active or backoff, unless a gate holds it."""
        pod.is_gated = pod.name in self.closed
        if pod.is_gated:
            pod.rejected_by.add("Gatekeeper")
            self.park(pod)
        elif place is QueueState.BACKOFF and pod.backoff_ends_in + 1.0 > now:
            pod.place = QueueState.BACKOFF
        else:
            pod.place = QueueState.ACTIVE

    def park(self, pod: ModelPod) -> None:
        if pod.place is not QueueState.UNSCHEDULABLE:
            pod.place = QueueState.UNSCHEDULABLE
            pod.waits_until = math.ceil((pod.queued_at + 300.0) / 30.0) * 30.0

    def happen(self, event: ClusterEvent, number: int, now: float, max_priority: int = 2) -> None:
        for pod in self.at(QueueState.IN_FLIGHT):
            pod.missed.append((event, number))
        for pod in self.at(QueueState.UNSCHEDULABLE):
            if pod.priority <= max_priority:
                self.consider(pod, event, number, now)

    def consider(self, pod: ModelPod, event: ClusterEvent, number: int, now: float) -> None:
        if pod.is_gated and event not in GATING_EVENTS:
            return
        self.offer(pod, event, number, now)

    def offer(self, pod: ModelPod, event: ClusterEvent, number: int, now: float) -> None:
        if event != EVERYTHING and pod.helped_by(pod.pending_on, event, number):
            self.requeue(pod, QueueState.ACTIVE, now)
        elif pod.helped_by(pod.rejected_by | pod.pending_on, event, number):
            self.requeue(pod, QueueState.BACKOFF, now)

    def come_back(self, pod: ModelPod, now: float) -> None:
        missed, pod.missed = pod.missed, []
        plugins = pod.rejected_by | pod.pending_on
        helped = [event for event, number in missed if pod.helped_by(plugins, event, number)]
        at_once = [
            event
            for event, number in missed
            if event != EVERYTHING and pod.helped_by(pod.pending_on, event, number)
        ]
        pod.place = None
        if at_once:
            self.requeue(pod, QueueState.ACTIVE, now)
        elif helped or not plugins:
            self.requeue(pod, QueueState.BACKOFF, now)
        else:
            self.park(pod)

    def flush(self, now: float) -> None:
        for pod in self.at(QueueState.BACKOFF):
            if pod.backoff_ends_in + 1.0 <= now:
                pod.place = QueueState.ACTIVE
        for pod in self.at(QueueState.UNSCHEDULABLE):
            if pod.waits_until <= now:
                pod.waits_until = math.ceil((now + 300.0) / 30.0) * 30.0
                self.consider(pod, EVERYTHING, 0, now)

    def next_pods(self) -> set[str]:
        """The names of the pods one of which must be popped next."""
        active = self.at(QueueState.ACTIVE)
        if active:
            first = min(pod.turn for pod in active)
            return {pod.name for pod in active if pod.turn == first}
        early = [pod for pod in self.at(QueueState.BACKOFF) if pod.rejected_by or pod.pending_on]
        if not early:
            return set()
        first_out = min((pod.backoff_ends_in, *pod.turn) for pod in early)
        return {pod.name for pod in early if (pod.backoff_ends_in, *pod.turn) == first_out}


class QueueMachine(RuleBasedStateMachine):
    """Applies the same operations to the queue and to its model."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.number = 0
        self.model = ModelQueue()
        self.queue = SchedulingQueue(QueueRules(by_priority, self._pre_enqueue, REGISTRATIONS))
        self.flying: dict[str, QueuedPod] = {}

    def _pre_enqueue(self, info: PodInfo) -> Status:
        if info.name in self.model.closed:
            return unresolvable("closed", plugin="Gatekeeper")
        return SUCCESS

    def _name(self, data: st.DataObject, place: QueueState | None = None) -> str:
        pods = self.model.pods.values()
        names = [pod.name for pod in pods if place is None or pod.place is place]
        return data.draw(st.sampled_from(names))

    @rule(seconds=st.sampled_from([0.25, 1.0, 3.0, 40.0, 310.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(name=st.sampled_from(NAMES), priority=PRIORITIES, app=APPS)
    def add(self, name: str, priority: int, app: str) -> None:
        if name in self.model.pods:
            self._update(name, priority, app)
            return
        self.queue.add(pending(name, priority=priority, labels={"app": app}), self.now)
        pod = self.model.pods[name] = ModelPod(name, priority, self.now, app)
        self.model.requeue(pod, QueueState.ACTIVE, self.now)

    def _update(self, name: str, priority: int, app: str) -> None:
        self.queue.update(pending(name, priority=priority, labels={"app": app}), self.now)
        pod = self.model.pods[name]
        _, known = pod.latest or (0, pod.app)
        event = POD_UPDATE if known == app else POD_RELABELLED
        if pod.place is QueueState.IN_FLIGHT:
            pod.is_gone = False
            pod.latest = priority, app
            for flying in self.model.at(QueueState.IN_FLIGHT):
                flying.missed.append((event, 0))
        else:
            pod.priority, pod.app = priority, app
            if pod.place is QueueState.UNSCHEDULABLE:
                self.model.offer(pod, event, 0, self.now)

    @precondition(lambda self: self.model.pods)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        name = self._name(data)
        self.queue.delete(f"uid-{name}")
        pod = self.model.pods[name]
        if pod.place is QueueState.IN_FLIGHT:
            pod.is_gone = True
        else:
            del self.model.pods[name]

    @rule()
    def pop(self) -> None:
        if self.model.next_pods():
            self._pop()
        else:
            assert self.queue.pop(self.now) is None

    def _pop(self) -> str:
        expected = self.model.next_pods()
        queued = self.queue.pop(self.now)
        assert queued is not None
        name = queued.info.name
        assert name in expected
        self.flying[name] = queued
        pod = self.model.pods[name]
        pod.place = QueueState.IN_FLIGHT
        pod.rejected_by, pod.pending_on, pod.is_gated = set(), set(), False
        return name

    @precondition(lambda self: self.flying)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        name = self._name(data, QueueState.IN_FLIGHT)
        self.queue.done(self.flying.pop(name).uid)
        del self.model.pods[name]

    @precondition(lambda self: self.flying)
    @rule(data=st.data(), rejected_by=REJECTORS, pending_on=PENDING)
    def reject(self, data: st.DataObject, rejected_by: set[str], pending_on: set[str]) -> None:
        self._reject(self._name(data, QueueState.IN_FLIGHT), rejected_by, pending_on)

    @precondition(lambda self: self.model.next_pods())
    @rule(
        meanwhile=st.lists(st.sampled_from(EVENTS), max_size=2),
        rejected_by=REJECTORS,
        pending_on=PENDING,
    )
    def attempt(
        self, meanwhile: list[ClusterEvent], rejected_by: set[str], pending_on: set[str]
    ) -> None:
        """Pop a pod and reject it, a sequence that single rules seldom produce."""
        name = self._pop()
        for event in meanwhile:
            self.happen(event)
        self._reject(name, rejected_by, pending_on)

    def _reject(self, name: str, rejected_by: set[str], pending_on: set[str]) -> None:
        pod = self.model.pods[name]
        place = self.queue.add_unschedulable(
            self.flying.pop(name), self.now, rejected_by, pending=pending_on
        )
        if pod.is_gone:
            assert place is None
            del self.model.pods[name]
            return
        if pod.latest is not None:
            (pod.priority, pod.app), pod.latest = pod.latest, None
        pod.rejected_by, pod.pending_on = set(rejected_by), set(pending_on)
        pod.queued_at = self.now
        pod.rejections += bool(rejected_by or pending_on)
        pod.errors = 0 if rejected_by or pending_on else pod.errors + 1
        self.model.come_back(pod, self.now)

    @rule(event=st.sampled_from(EVENTS))
    def happen(self, event: ClusterEvent) -> None:
        self.number += 1
        new = None if event == EVERYTHING else self.number
        self.queue.move_on_event(event, None, new, self.now)
        self.model.happen(event, self.number, self.now)

    @rule(max_priority=PRIORITIES)
    def release(self, max_priority: int) -> None:
        """Remove something that only mattered to pods up to a priority."""

        def pre_check(info: PodInfo) -> bool:
            return info.priority <= max_priority

        self.queue.move_on_event(POD_DELETE, None, None, self.now, pre_check)
        self.model.happen(POD_DELETE, 0, self.now, max_priority)

    @precondition(lambda self: self.model.pods)
    @rule(data=st.data())
    def activate(self, data: st.DataObject) -> None:
        name = self._name(data)
        self.queue.activate([f"uid-{name}"], self.now)
        pod = self.model.pods[name]
        if pod.place is QueueState.IN_FLIGHT:
            pod.missed.append((EVERYTHING, 0))
        elif pod.place is QueueState.BACKOFF:
            pod.place = QueueState.ACTIVE
        elif pod.place is QueueState.UNSCHEDULABLE:
            self.model.requeue(pod, QueueState.ACTIVE, self.now)

    @rule()
    def flush(self) -> None:
        self.queue.flush(self.now)
        self.model.flush(self.now)

    @rule(name=st.sampled_from(NAMES))
    def turn_gate(self, name: str) -> None:
        self.model.closed ^= {name}

    @invariant()
    def every_pod_is_where_the_model_has_it(self) -> None:
        self.queue.validate()
        places = {pod.name: pod.place for pod in self.model.pods.values()}
        assert {name: self.queue.state_of(f"uid-{name}") for name in places} == places
        assert sum(map(len, self.queue.contents().values())) == len(places)
        assert self.queue.has_ready_pods() == bool(self.model.next_pods())
        assert self.queue.drain_problems() == []


QueueMachine.TestCase.settings = settings(
    max_examples=100, stateful_step_count=60, deadline=None, database=None
)
TestQueueNeverLosesAPod = QueueMachine.TestCase
