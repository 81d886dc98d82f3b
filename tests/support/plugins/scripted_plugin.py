"""A plugin with scripted answers at each extension point, which records its calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import numpy as np

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource
from stowage.api.instructions import BindPod
from stowage.api.status import SKIP, SUCCESS, Status, unschedulable
from stowage.framework import (
    ACCEPT_ALL,
    CycleState,
    Diagnosis,
    EventRegistration,
    FilterVerdict,
    PluginTraits,
    PreFilterResult,
)
from stowage.framework.verdict import Int64Array
from stowage.state import NodeView, PodInfo, Snapshot

T = TypeVar("T")

ASSIGNED_POD_DELETE = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE)


@dataclass
class ScriptedPlugin:
    """Succeeds at each extension point that has no scripted answer.

    Attributes:
        answers: Method -> what it returns; an exception is raised, a callable is called with the
            method's arguments.
        only: The pod that gets the scripted answers; others succeed. Empty means all pods.
        log: ``method pod by plugin`` for every call after the decision.
    """

    name: str = "Scripted"
    answers: dict[str, Any] = field(default_factory=dict)
    only: str = ""
    log: list[str] = field(default_factory=list)
    registered: Sequence[ClusterEvent] = (ASSIGNED_POD_DELETE,)
    traits = PluginTraits()

    def _act(self, method: str, pod: PodInfo, usual: T, *args: Any) -> T:
        if self.only and pod.name != self.only:
            return usual
        answer = self.answers.get(method, usual)
        if isinstance(answer, Exception):
            raise answer
        return cast("T", answer(*args) if callable(answer) else answer)

    def _note(self, method: str, pod: PodInfo) -> None:
        self.log.append(f"{method} {pod.name} by {self.name}")

    def events_to_register(self) -> Sequence[EventRegistration]:
        return tuple(EventRegistration(event) for event in self.registered)

    def pre_enqueue(self, pod: PodInfo) -> Status:
        return self._act("pre_enqueue", pod, SUCCESS, pod)

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        return self._act("pre_filter", pod, PreFilterResult(), state, pod, snapshot)

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> FilterVerdict:
        return self._act("filter", pod, ACCEPT_ALL, state, pod, nodes)

    def post_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, diagnosis: Diagnosis
    ) -> tuple[Status, str | None]:
        usual: tuple[Status, str | None] = (unschedulable(), None)
        return self._act("post_filter", pod, usual, state, pod, snapshot, diagnosis)

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Status:
        return self._act("pre_score", pod, SUCCESS, state, pod, nodes)

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        return self._act("score", pod, np.zeros(len(nodes), dtype=np.int64), state, pod, nodes)

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        self._note("reserve", pod)
        return self._act("reserve", pod, SUCCESS, state, pod, node_name)

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        self._note("unreserve", pod)
        self._act("unreserve", pod, None, state, pod, node_name)

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        self._note("permit", pod)
        return self._act("permit", pod, (SUCCESS, 0.0), state, pod, node_name)

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        return self._act("pre_bind_pre_flight", pod, SKIP, state, pod, node_name)

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        self._note("pre_bind", pod)
        return self._act("pre_bind", pod, SUCCESS, state, pod, node_name)

    def post_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        self._note("post_bind", pod)
        self._act("post_bind", pod, None, state, pod, node_name)


@dataclass
class ScriptedBinder:
    """A Bind plugin that binds all pods, or fails."""

    name: str = "ScriptedBinder"
    problem: Exception | None = None
    traits = PluginTraits()

    def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> BindPod | None:
        if self.problem is not None:
            raise self.problem
        return BindPod(pod.reference, node_name)
