"""Permit and PreBind plugins from outside, through the whole engine."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from stowage.api.events import (
    BindFailed,
    BindSucceeded,
    Event,
    NodeSeen,
    PendingPodGone,
    PendingPodSeen,
    PreBindFinished,
)
from stowage.api.instructions import (
    BindPod,
    EmitEvent,
    Instruction,
    PatchPodStatus,
    PodBound,
    PodReference,
    ReportProblem,
    RunPreBind,
    StopPreBind,
)
from stowage.api.status import Code
from stowage.engine import Engine, Journal, replay
from stowage.framework import plugin_factory
from stowage.framework.authoring import (
    SUCCESS,
    WAIT,
    CycleState,
    Handle,
    PodInfo,
    Status,
    unschedulable,
)
from stowage.plugins import in_tree_registry

from tests.support.builders import make_node, make_pod
from tests.support.engines import default_engine, of_type

POD = PodReference("default", "p", "uid-p")


class Doorman:
    """Lets pods with a ``wait`` label wait, and writes down what happens."""

    name = "Doorman"

    def __init__(self, handle: Handle) -> None:
        self.handle = handle

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        if pod.labels.get("release") == "all":
            for waiting in self.handle.waiting_pods():
                self.handle.allow(waiting.pod.uid, self.name)
        return (WAIT if "wait" in pod.labels else SUCCESS), 30.0


class Clerk:
    name = "Clerk"

    def __init__(self) -> None:
        self.log: list[str] = []
        self.answer = SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        self.log.append(f"unreserved {pod.name}")

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        await asyncio.sleep(0)
        self.log.append(f"prepared {pod.name} on {node_name}")
        return self.answer

    def post_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        self.log.append(f"bound {pod.name}")


class Clumsy:
    """Fails whenever it is told something."""

    name = "Clumsy"

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        raise RuntimeError("lost the keys")

    def post_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        raise RuntimeError("forgot the door")


class Story:
    """An engine with plugins of one's own, and what they ask for."""

    def __init__(self, *plugins: str, journal: Journal | None = None, choose: Any = None) -> None:
        self.handle, self.clerk = Handle(), Clerk()
        self.posted: list[Event] = []

        def make_clerk() -> Clerk:
            return self.clerk

        registry = in_tree_registry().merged_with(
            plugin_factory(Doorman, handle=self.handle),
            plugin_factory(make_clerk, name="Clerk"),
            plugin_factory(Clumsy),
        )
        enabled = [{"name": name} for name in plugins]
        profile = {
            "schedulerName": "default-scheduler",
            "plugins": {"multiPoint": {"enabled": enabled}},
        }
        self.engine: Engine = default_engine(
            choose or (lambda _ties: 0), profile=profile, registry=registry, journal=journal
        )
        self.handle.connect(self.posted.append, self.engine.waiting_pods)

    def schedule(self, *names: str, labels: dict[str, str] | None = None) -> list[Instruction]:
        """Pods arrive and are tried."""
        pods = [PendingPodSeen(make_pod(name, labels=labels)) for name in names]
        return self.engine.handle([NodeSeen(make_node("n")), *pods], 0.0) + self.engine.schedule(
            0.0, len(names)
        )

    def deliver(self, now: float = 1.0) -> list[Instruction]:
        """What plugins asked for through the handle arrives."""
        events, self.posted[:] = tuple(self.posted), []
        return self.engine.handle(events, now)


def test_a_waiting_pod_is_bound_once_its_plugin_allows_it() -> None:
    story = Story("Doorman")
    assert of_type(BindPod, story.schedule("p", labels={"wait": ""})) == []
    (waiting,) = story.engine.waiting_pods()
    assert (waiting.pod.key, waiting.node_name) == ("default/p", "n")
    assert waiting.plugins == {"Doorman"}
    story.handle.allow("uid-p", "Doorman")
    assert of_type(BindPod, story.deliver()) == [BindPod(POD, "n")]
    assert story.engine.waiting_pods() == []
    story.engine.validate()


def test_another_plugins_permission_is_not_enough() -> None:
    story = Story("Doorman")
    story.schedule("p", labels={"wait": ""})
    story.handle.allow("uid-p", "Clerk")
    assert of_type(BindPod, story.deliver()) == []


def test_a_plugin_may_release_waiting_pods_while_it_permits_another() -> None:
    story = Story("Doorman")
    story.schedule("p", "q", labels={"wait": ""})
    (bind,) = of_type(BindPod, story.schedule("last", labels={"release": "all"}))
    assert bind.pod.name == "last"
    released = of_type(BindPod, story.deliver())
    assert [bind.pod.name for bind in released] == ["p", "q"]
    story.engine.validate()


def test_a_rejected_pod_is_told_why_and_waits_in_the_queue() -> None:
    story = Story("Doorman")
    story.schedule("p", labels={"wait": ""})
    story.handle.reject("uid-p", "Doorman", "the others are gone")
    (patch,) = of_type(PatchPodStatus, story.deliver())
    assert (patch.reason, patch.message) == (
        "Unschedulable",
        "0/1 nodes are available: 1 the others are gone.",
    )
    assert story.engine.cache_counts()["assumed_pods"] == 0
    assert sum(story.engine.pending_counts().values()) == 1
    story.engine.validate()


def test_a_pod_that_nobody_allows_in_time_is_rejected() -> None:
    story = Story("Doorman")
    story.schedule("p", labels={"wait": ""})
    assert story.engine.next_deadline() == 30.0
    (patch,) = of_type(PatchPodStatus, story.engine.handle([], 30.0))
    assert patch.message == (
        "0/1 nodes are available: 1 rejected due to timeout after waiting 30s at plugin Doorman."
    )


def test_a_pod_deleted_while_it_waits_is_forgotten() -> None:
    story = Story("Doorman")
    story.schedule("p", labels={"wait": ""})
    story.engine.handle([PendingPodGone("default", "p", "uid-p")], 1.0)
    story.handle.allow("uid-p", "Doorman")
    assert story.deliver() == []
    assert story.engine.cache_counts()["pods"] == 0
    story.engine.validate()


async def test_pre_bind_runs_before_the_binding() -> None:
    story = Story("Clerk")
    answer = story.schedule("p")
    assert of_type(BindPod, answer) == []
    assert of_type(RunPreBind, answer) == [RunPreBind(POD, "n", "default-scheduler", ("Clerk",))]
    work = story.engine.pre_bind("uid-p", "Clerk")
    assert work is not None
    assert await work == SUCCESS
    assert story.clerk.log == ["prepared p on n"]
    done = story.engine.handle([PreBindFinished("uid-p", Code.SUCCESS)], 1.0)
    assert of_type(BindPod, done) == [BindPod(POD, "n")]
    assert story.engine.pre_bind("uid-p", "Clerk") is None


async def test_a_failed_pre_bind_gives_everything_back() -> None:
    story = Story("Clerk")
    story.clerk.answer = unschedulable("no shelf left")
    story.schedule("p")
    work = story.engine.pre_bind("uid-p", "Clerk")
    assert work is not None
    status = await work
    assert (status.code, status.plugin) == (Code.UNSCHEDULABLE, "Clerk")
    finished = PreBindFinished("uid-p", status.code, status.reasons, status.plugin)
    (patch,) = of_type(PatchPodStatus, story.engine.handle([finished], 1.0))
    assert patch.message == "no shelf left"
    assert story.clerk.log == ["prepared p on n", "unreserved p"]
    assert story.engine.cache_counts()["assumed_pods"] == 0
    story.engine.validate()


def test_a_pod_deleted_during_pre_bind_ends_it() -> None:
    story = Story("Clerk")
    story.schedule("p")
    answer = story.engine.handle([PendingPodGone("default", "p", "uid-p")], 1.0)
    assert of_type(StopPreBind, answer) == [StopPreBind(POD)]
    assert of_type(EmitEvent, answer) == []
    assert story.engine.pre_bind("uid-p", "Clerk") is None
    assert story.clerk.log == ["unreserved p"]
    assert story.engine.handle([PreBindFinished("uid-p", Code.SUCCESS)], 2.0) == []
    story.engine.validate()


def test_a_plugin_that_fails_to_unreserve_keeps_no_room() -> None:
    story = Story("Clumsy")
    (bind,) = of_type(BindPod, story.schedule("p"))
    answer = story.engine.handle([BindFailed(bind.pod.uid, "n", "the server said no")], 1.0)
    (problem,) = of_type(ReportProblem, answer)
    assert "lost the keys" in problem.text
    assert of_type(PatchPodStatus, answer)
    assert story.engine.cache_counts()["assumed_pods"] == 0
    story.engine.validate()


def test_a_plugin_that_fails_after_binding_hides_no_success() -> None:
    story = Story("Clumsy")
    (bind,) = of_type(BindPod, story.schedule("p"))
    answer = story.engine.handle([BindSucceeded(bind.pod.uid, "n")], 1.0)
    (problem,) = of_type(ReportProblem, answer)
    assert "forgot the door" in problem.text
    assert [bound.pod.name for bound in of_type(PodBound, answer)] == ["p"]


def test_the_work_of_a_pod_nobody_knows_is_none() -> None:
    assert Story("Clerk").engine.pre_bind("uid-nobody", "Clerk") is None


@pytest.mark.parametrize("plugins", [("Doorman",), ("Doorman", "Clerk")])
def test_what_plugins_ask_for_is_replayed_with_the_rest(plugins: tuple[str, ...]) -> None:
    journal = Journal()
    story = Story(*plugins, journal=journal)
    story.schedule("p", "q", labels={"wait": ""})
    story.schedule("last", labels={"release": "all"})
    story.deliver()
    replayed: list[Engine] = []

    def rebuild(choose: object) -> Engine:
        replayed.append(Story(*plugins, choose=choose).engine)
        return replayed[-1]

    replay(journal, rebuild)
    assert replayed[0].dump() == story.engine.dump()
