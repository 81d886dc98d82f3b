"""Watches show decisions, whichever scheduler makes them."""

from __future__ import annotations

import msgspec
import pytest

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.analysis.followed_objects import FollowedObjects
from stowage.api.events import AssignedPodSeen, Event, PendingPodGone, PendingPodSeen
from stowage.api.objects.meta import Condition
from stowage.api.objects.pod import Pod
from stowage.console.decisions.observed import LEFT_S, ObservedDecisions
from stowage.console.decisions.row import DecisionRow
from tests.support.builders import make_pod
from tests.support.consoles import START_S

PENDING, PLACED = make_pod("p"), make_pod("p", node="n")
GONE = PendingPodGone("default", "p", "uid-p")


class Watching:
    """Applies events one second after the other."""

    def __init__(self) -> None:
        self.decisions = ObservedDecisions("seen")
        self._followed = FollowedObjects(ClusterObjects())
        self.now = START_S + 100

    def see(self, *events: Event, is_listed: bool = False) -> list[DecisionRow]:
        rows = []
        for event in events:
            self.now += 1
            objects = self._followed.objects
            rows.append(self.decisions.see(event, objects, self.now, is_listed=is_listed))
            self._followed.follow(event)
        return [row for row in rows if row is not None]


def refused(message: str, reason: str = "Unschedulable") -> Pod:
    condition = Condition("PodScheduled", "False", reason, message)
    status = msgspec.structs.replace(PENDING.status, conditions=(condition,))
    return msgspec.structs.replace(PENDING, status=status)


@pytest.mark.parametrize(
    "events", [[AssignedPodSeen(PLACED), GONE], [GONE, AssignedPodSeen(PLACED)]]
)
def test_a_pending_pod_that_gets_a_node_was_scheduled(events: list[Event]) -> None:
    (row,) = Watching().see(PendingPodSeen(PENDING), *events)
    assert (row.pod, row.node, row.result, row.exact) == ("default/p", "n", "scheduled", False)
    assert row.latency_s == (1.0 if events[1] is GONE else 2.0)


def test_a_pod_that_waited_before_has_waited_since_its_creation() -> None:
    watching = Watching()
    assert watching.see(PendingPodSeen(PENDING), is_listed=True) == []
    (row,) = watching.see(AssignedPodSeen(PLACED))
    assert row.latency_s == 102.0


def test_a_pod_that_always_had_a_node_was_not_decided_about() -> None:
    assert Watching().see(AssignedPodSeen(PLACED), AssignedPodSeen(PLACED)) == []


def test_a_refusal_is_seen_once() -> None:
    first, second = refused("0/1 nodes"), refused("0/2 nodes")
    rows = Watching().see(*map(PendingPodSeen, [PENDING, first, first, second]))
    assert [(each.result, each.message) for each in rows] == [
        ("unschedulable", "0/1 nodes"),
        ("unschedulable", "0/2 nodes"),
    ]


def test_a_refusal_of_the_first_list_is_old() -> None:
    assert Watching().see(PendingPodSeen(refused("0/1 nodes")), is_listed=True) == []


@pytest.mark.parametrize(
    ("reason", "results"), [("SchedulerError", ["error"]), ("SchedulingGated", [])]
)
def test_the_reason_of_the_condition_tells_the_result(reason: str, results: list[str]) -> None:
    rows = Watching().see(PendingPodSeen(refused("text", reason)))
    assert [each.result for each in rows] == results


def test_a_pod_of_the_same_name_is_another_pod() -> None:
    other = make_pod("p", uid="other", node="n")
    assert Watching().see(PendingPodSeen(PENDING), AssignedPodSeen(other)) == []


def test_a_deleted_pod_is_forgotten_after_a_while() -> None:
    watching = Watching()
    watching.see(PendingPodSeen(PENDING), GONE)
    watching.now += LEFT_S
    watching.see(PendingPodSeen(make_pod("later")))
    assert len(watching.decisions) == 1
    assert watching.see(AssignedPodSeen(PLACED)) == []
