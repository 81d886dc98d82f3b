"""A plugin that delays pods by their labels and tracks its reservations."""

from __future__ import annotations

from collections.abc import Sequence

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource
from stowage.api.status import SKIP, SUCCESS, WAIT, Status, unschedulable
from stowage.framework import CycleState, EventRegistration
from stowage.state import PodInfo

WAIT_S = 20.0


class ReservationTracker:
    """Pods labelled ``wait`` wait at Permit, ``work`` have PreBind work, ``no`` are rejected.

    Attributes:
        reserved: UIDs of the pods that are reserved and neither bound nor unreserved.
    """

    name = "ReservationTracker"

    def __init__(self) -> None:
        self.reserved: set[str] = set()

    def events_to_register(self) -> Sequence[EventRegistration]:
        return (
            EventRegistration(ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE)),
            EventRegistration(ClusterEvent(EventResource.NODE, ActionType.ADD)),
        )

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        assert pod.uid not in self.reserved, f"{pod.name} is reserved twice"
        self.reserved.add(pod.uid)
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        self.reserved.discard(pod.uid)

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        if "no" in pod.labels:
            return unschedulable("not today"), 0.0
        return (WAIT if "wait" in pod.labels else SUCCESS), WAIT_S

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        return SUCCESS if "work" in pod.labels else SKIP

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        return SUCCESS

    def post_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        self.reserved.discard(pod.uid)
