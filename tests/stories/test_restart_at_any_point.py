"""A process that is killed at any step is replaced by one that reaches the same outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import pytest

from stowage.api.events import (
    AssignedPodSeen,
    Event,
    NodeSeen,
    PendingPodSeen,
    PreBindFinished,
    WaitingPodAllowed,
)
from stowage.api.instructions import Instruction
from stowage.api.objects.pod import Pod
from stowage.api.status import Code
from stowage.engine import Engine
from tests.support.builders import HOSTNAME, make_node, make_pod
from tests.support.engines import default_engine
from tests.support.models.cluster_driver import ClusterDriver
from tests.support.plugins.reservation_tracker import ReservationTracker


def _new_engine(**options: Any) -> Engine:
    return default_engine(plugins=[ReservationTracker()], **options)


class RestartDriver(ClusterDriver):
    """A simulated cluster and a scheduler whose process can be killed.

    Attributes:
        is_cut_off: Whether instructions no longer reach the API server.
    """

    def __init__(self) -> None:
        super().__init__(_new_engine)
        self.is_cut_off = False

    def restart(self) -> None:
        """Kill the process with everything in flight, and start one that lists the objects."""
        cluster = self.cluster
        self.is_cut_off = False
        for queue in (cluster.pending_watch, cluster.assigned_watch, cluster.answers):
            queue.clear()
        cluster.late_answers.clear()
        cluster.pre_binds.clear()
        self.engine = _new_engine()
        listed: list[Event] = [NodeSeen(node) for node in cluster.nodes.values()]
        listed += [
            AssignedPodSeen(pod) if pod.spec.node_name else PendingPodSeen(pod)
            for pod in cluster.pods.values()
        ]
        self.handle(*listed)

    def carry_out(self, instructions: Iterable[Instruction]) -> None:
        if not self.is_cut_off:
            super().carry_out(instructions)

    def create(self, name: str, cpu: str, *labels: str, **spec: Any) -> None:
        """Create a pod."""
        pod = make_pod(name, cpu=cpu, labels=dict.fromkeys(labels, ""), **spec)
        self.cluster.create_pod(pod)

    def progress(self) -> None:
        """Let everything in flight move one step further."""
        self.now += 11.0
        self.deliver()
        for uid in list(self.cluster.pre_binds):
            run = self.cluster.pre_binds.pop(uid)
            self.handle(PreBindFinished(uid, run.number, Code.SUCCESS))
        for waiting in self.engine.waiting_pods():
            self.handle(WaitingPodAllowed(waiting.pod.uid, ReservationTracker.name))
        self.schedule()

    def settle(self) -> dict[str, tuple[str, str, str, str]]:
        """Go on until nothing changes, and return the outcome of each pod by UID."""
        for _ in range(8):
            self.progress()
        return {uid: _outcome(pod) for uid, pod in self.cluster.pods.items()}


def _outcome(pod: Pod) -> tuple[str, str, str, str]:
    """Node, reason and message of PodScheduled=False, and nominated node."""
    if pod.spec.node_name:
        return pod.spec.node_name, "", "", ""
    conditions = [(each.reason, each.message) for each in pod.status.conditions] or [("", "")]
    return ("", *conditions[0], pod.status.nominated_node_name)


Step: TypeAlias = Callable[[RestartDriver], object]


def schedule(driver: RestartDriver) -> None:
    driver.schedule(3)


deliver: Step = RestartDriver.deliver


def on(node_name: str) -> dict[str, str]:
    """A node selector for one node, so that the outcome is unique."""
    return {HOSTNAME: node_name}


STEPS: tuple[Step, ...] = (
    lambda driver: driver.cluster.add_node(make_node("small", cpu="1")),
    lambda driver: driver.create("plain", "600m", node_selector=on("small")),
    deliver,
    schedule,
    deliver,
    lambda driver: driver.create("too-big", "3"),
    deliver,
    schedule,
    deliver,
    lambda driver: driver.cluster.add_node(make_node("big", cpu="2")),
    lambda driver: driver.create("waits", "1500m", "wait"),
    deliver,
    schedule,
    deliver,
    RestartDriver.progress,
    lambda driver: driver.create("works", "300m", "work", node_selector=on("big")),
    lambda driver: driver.create("gated", "100m", gates=["quota"]),
    deliver,
    schedule,
    RestartDriver.progress,
    lambda driver: setattr(driver.cluster, "refusals", 1),
    lambda driver: driver.create("refused", "400m", node_selector=on("small")),
    deliver,
    schedule,
    RestartDriver.progress,
    lambda driver: driver.cluster.delete_pod("uid-waits"),
    lambda driver: driver.create("heir", "1600m", "wait", "work"),
    deliver,
    schedule,
    RestartDriver.progress,
    lambda driver: driver.cluster.delete_pod("uid-too-big"),
    lambda driver: driver.create("too-big", "3", uid="uid-again"),
    deliver,
    schedule,
)


def run_steps(kill_at: int | None = None, *, cut_off: bool = False) -> RestartDriver:
    """Run all steps and kill the process after one of them.

    With `cut_off` the instructions of that step do not reach the API server.
    """
    driver = RestartDriver()
    for number, step in enumerate(STEPS):
        driver.is_cut_off = cut_off and number == kill_at
        step(driver)
        if number == kill_at:
            driver.restart()
    return driver


OUTCOME_WITHOUT_RESTART = run_steps().settle()


def test_the_steps_have_pods_that_are_placed_rejected_and_gated() -> None:
    placed = {uid for uid, outcome in OUTCOME_WITHOUT_RESTART.items() if outcome[0]}
    assert placed == {"uid-plain", "uid-works", "uid-refused", "uid-heir"}
    assert OUTCOME_WITHOUT_RESTART["uid-again"][1] == "Unschedulable"
    assert OUTCOME_WITHOUT_RESTART["uid-gated"] == ("", "", "", "")


@pytest.mark.parametrize("cut_off", [False, True], ids=["sent", "cut off"])
@pytest.mark.parametrize("kill_at", range(len(STEPS)))
def test_a_new_process_reaches_the_same_outcome(kill_at: int, cut_off: bool) -> None:
    driver = run_steps(kill_at, cut_off=cut_off)
    assert driver.settle() == OUTCOME_WITHOUT_RESTART
    assert all(times == 1 for times in driver.cluster.bindings.values())


def test_a_new_process_does_not_write_an_existing_condition_again() -> None:
    driver = run_steps()
    driver.settle()
    revision = driver.cluster.revision
    driver.restart()
    driver.settle()
    assert driver.cluster.revision == revision
