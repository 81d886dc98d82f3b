"""Killed at any step of a story, a new process reaches the same end from the objects alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

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
from stowage.framework import plugin_factory
from stowage.plugins import in_tree_registry

from tests.support.builders import HOSTNAME, make_node, make_pod
from tests.support.engines import default_engine
from tests.support.guard import Guard
from tests.support.model_cluster import ModelCluster

PROFILE = {
    "schedulerName": "default-scheduler",
    "plugins": {"multiPoint": {"enabled": [{"name": "Guard"}]}},
}


@dataclass
class MortalCluster(ModelCluster):
    """A cluster that can stop listening to its scheduler, which has died."""

    is_deaf: bool = False

    def carry_out(self, instructions: Iterable[Instruction]) -> None:
        if not self.is_deaf:
            super().carry_out(instructions)


class World:
    """The objects, and whichever process schedules them."""

    def __init__(self) -> None:
        self.cluster = MortalCluster()
        self.now = 0.0
        self.restart()

    def restart(self) -> None:
        """The process is gone with all it knew and had heard; a new one lists the objects."""
        cluster = self.cluster
        cluster.is_deaf = False
        for queue in (cluster.pending_watch, cluster.assigned_watch, cluster.answers):
            queue.clear()
        cluster.late_answers.clear()
        cluster.pre_binds.clear()
        guard = Guard()
        registry = in_tree_registry().merged_with(plugin_factory(lambda: guard, name="Guard"))
        self.engine: Engine = default_engine(profile=PROFILE, registry=registry)
        listed: list[Event] = [NodeSeen(node) for node in cluster.nodes.values()]
        listed += [
            AssignedPodSeen(pod) if pod.spec.node_name else PendingPodSeen(pod)
            for pod in cluster.pods.values()
        ]
        self.cluster.tell(self.engine, listed, self.now)

    def create(self, name: str, cpu: str, *labels: str, **spec: object) -> None:
        """A user creates a pod."""
        pod = make_pod(name, cpu=cpu, labels=dict.fromkeys(labels, ""), **spec)  # type: ignore[arg-type]
        self.cluster.create_pod(pod)

    def go_on(self) -> None:
        """Everything that is under way moves one step further."""
        self.now += 11.0
        self.cluster.deliver(self.engine, self.now)
        for uid in list(self.cluster.pre_binds):
            del self.cluster.pre_binds[uid]
            self.cluster.tell(self.engine, [PreBindFinished(uid, Code.SUCCESS)], self.now)
        for waiting in self.engine.waiting_pods():
            allowed = WaitingPodAllowed(waiting.pod.uid, "Guard")
            self.cluster.tell(self.engine, [allowed], self.now)
        self.cluster.carry_out(self.engine.schedule(self.now, 10))
        self.engine.validate()

    def end(self) -> dict[str, tuple[str, str, str, str]]:
        """What can be said of each pod when all has come to rest."""
        for _ in range(8):
            self.go_on()
        self.cluster.check()
        return {uid: _said_of(pod) for uid, pod in self.cluster.pods.items()}


def _said_of(pod: Pod) -> tuple[str, str, str, str]:
    """Node, reason and message of PodScheduled=False, and nominated node."""
    if pod.spec.node_name:
        return pod.spec.node_name, "", "", ""
    said = [(each.reason, each.message) for each in pod.status.conditions] or [("", "")]
    return ("", *said[0], pod.status.nominated_node_name)


Step: TypeAlias = Callable[[World], object]


def schedule(world: World) -> None:
    """The scheduler tries what is ready."""
    world.cluster.carry_out(world.engine.schedule(world.now, 3))


def deliver(world: World) -> None:
    """All watches and answers come in."""
    world.cluster.deliver(world.engine, world.now)


def on(node_name: str) -> dict[str, str]:
    """Where a pod has to go, so that the story has one end only."""
    return {HOSTNAME: node_name}


STORY: tuple[Step, ...] = (
    lambda world: world.cluster.add_node(make_node("small", cpu="1")),
    lambda world: world.create("plain", "600m", node_selector=on("small")),
    deliver,
    schedule,
    deliver,
    lambda world: world.create("too-big", "3"),
    deliver,
    schedule,
    deliver,
    lambda world: world.cluster.add_node(make_node("big", cpu="2")),
    lambda world: world.create("waits", "1500m", "wait"),
    deliver,
    schedule,
    deliver,
    World.go_on,
    lambda world: world.create("works", "300m", "work", node_selector=on("big")),
    lambda world: world.create("gated", "100m", gates=["quota"]),
    deliver,
    schedule,
    World.go_on,
    lambda world: setattr(world.cluster, "refusals", 1),
    lambda world: world.create("refused", "400m", node_selector=on("small")),
    deliver,
    schedule,
    World.go_on,
    lambda world: world.cluster.delete_pod("uid-waits"),
    lambda world: world.create("heir", "1600m", "wait", "work"),
    deliver,
    schedule,
    World.go_on,
    lambda world: world.cluster.delete_pod("uid-too-big"),
    lambda world: world.create("too-big", "3", uid="uid-again"),
    deliver,
    schedule,
)


def tell(kill_at: int | None = None, *, unheard: bool = False) -> World:
    """The story, with a process killed after one step; `unheard`: before its wishes were heard."""
    world = World()
    for number, step in enumerate(STORY):
        world.cluster.is_deaf = unheard and number == kill_at
        step(world)
        if number == kill_at:
            world.restart()
    return world


UNDISTURBED = tell().end()


def test_the_story_has_pods_that_are_placed_refused_and_gated() -> None:
    placed = {uid for uid, said in UNDISTURBED.items() if said[0]}
    assert placed == {"uid-plain", "uid-works", "uid-refused", "uid-heir"}
    assert UNDISTURBED["uid-again"][1] == "Unschedulable"
    assert UNDISTURBED["uid-gated"] == ("", "", "", "")


@pytest.mark.parametrize("unheard", [False, True], ids=["heard", "unheard"])
@pytest.mark.parametrize("kill_at", range(len(STORY)))
def test_a_new_process_reaches_the_same_end(kill_at: int, unheard: bool) -> None:
    world = tell(kill_at, unheard=unheard)
    assert world.end() == UNDISTURBED
    assert all(times == 1 for times in world.cluster.bindings.values())


def test_a_new_process_writes_no_condition_that_is_there_already() -> None:
    world = tell()
    world.end()
    revision = world.cluster.revision
    world.restart()
    world.end()
    assert world.cluster.revision == revision
