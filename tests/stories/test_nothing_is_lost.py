"""Whatever the order of watches and whatever fails: nothing lost, bound twice or overcommitted."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stowage.api.values.resources import node_allocatable, pod_requests
from stowage.engine import Engine, Journal, replay

from tests.support.builders import make_node, make_pod
from tests.support.engines import default_engine
from tests.support.model_cluster import ModelCluster

ZONES = ("a", "b", "c")


class Story:
    """A run of random happenings over one cluster, then quiet until everything has settled."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.cluster = ModelCluster()
        self.journal = Journal()
        self.engine = default_engine(self.rng.randrange, journal=self.journal)
        self.now = 0.0
        self.created = 0
        for number in range(self.rng.randint(1, 4)):
            self.add_node(number)

    def add_node(self, number: int) -> None:
        """A node joins, or comes back."""
        cpu = str(self.rng.randint(1, 4))
        self.cluster.add_node(make_node(f"n{number}", cpu=cpu, pods=5, zone=ZONES[number % 3]))

    def create_pod(self) -> None:
        """A user creates a pod that may or may not fit."""
        self.created += 1
        cpu = f"{self.rng.choice((100, 500, 1500, 5000))}m"
        priority = self.rng.choice((0, 0, 10))
        self.cluster.create_pod(make_pod(f"p{self.created}", cpu=cpu, priority=priority))

    def happen(self) -> None:
        """One random thing."""
        cluster, rng = self.cluster, self.rng
        self.now += rng.choice((0.0, 0.01, 1.5, 12.0))
        match rng.randrange(11):
            case 0 | 1:
                self.create_pod()
            case 2:
                cluster.delete_pod(rng.choice([*cluster.pods, "uid-nobody"]))
            case 3:
                cluster.lost_answers += 1
            case 4:
                cluster.refusals += 1
            case 5:
                cluster.release_late_answers()
            case 6:
                cluster.failing_evictions += 1
            case 7:
                cluster.end_terminating()
            case 8:
                watches = rng.choice(("pending", "assigned", "pending assigned"))
                cluster.deliver(self.engine, self.now, watches=watches)
            case _:
                cluster.carry_out(self.engine.schedule(self.now, rng.randint(1, 3)))
        self.engine.validate()
        cluster.check()

    def settle(self) -> None:
        """Nothing fails any more; go on until nothing moves."""
        cluster = self.cluster
        cluster.lost_answers = cluster.refusals = cluster.failing_evictions = 0
        for _ in range(40):
            self.now += 11.0
            cluster.release_late_answers()
            cluster.end_terminating()
            cluster.deliver(self.engine, self.now)
            cluster.carry_out(self.engine.schedule(self.now, 50))
            cluster.deliver(self.engine, self.now)
        self.engine.validate()
        cluster.check()


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 60))
def test_every_pod_ends_bound_once_or_known_to_fit_nowhere(seed: int, steps: int) -> None:
    story = Story(seed)
    for _ in range(steps):
        story.happen()
    story.settle()
    unbound = {pod.metadata.uid for pod in story.cluster.unbound()}
    assert sum(story.engine.pending_counts().values()) == len(unbound)
    assert unbound <= story.cluster.conditions.keys()
    assert story.engine.dump()["preemptions"] == []
    _check_that_nobody_could_make_room(story.cluster)
    assert story.engine.in_flight() == 0
    assert story.engine.cache_counts()["assumed_pods"] == 0


def _check_that_nobody_could_make_room(cluster: ModelCluster) -> None:
    """No pod without a node would fit where all less important pods are gone."""
    for pod in cluster.unbound():
        priority = pod.spec.priority or 0
        for name, node in cluster.nodes.items():
            rivals = [
                pod_requests(other).get("cpu", 0)
                for other in cluster.pods.values()
                if other.spec.node_name == name and (other.spec.priority or 0) >= priority
            ]
            have = node_allocatable(node)
            wanted = pod_requests(pod).get("cpu", 0)
            assert sum(rivals) + wanted > have["cpu"] or len(rivals) >= have["pods"]


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 40))
def test_replaying_the_journal_reaches_the_same_state(seed: int, steps: int) -> None:
    story = Story(seed)
    for _ in range(steps):
        story.happen()
    replayed: list[Engine] = []

    def rebuild(choose: object) -> Engine:
        replayed.append(default_engine(choose))  # type: ignore[arg-type]
        return replayed[-1]

    replay(story.journal, rebuild)
    assert replayed[0].dump() == story.engine.dump()


def test_a_lost_answer_does_not_free_the_room_that_is_taken() -> None:
    """kube-scheduler forgets such a pod at once and then overcommits the node."""
    cluster = ModelCluster()
    engine = default_engine()
    cluster.add_node(make_node("n", cpu="1"))
    cluster.create_pod(make_pod("p", cpu="1"))
    cluster.create_pod(make_pod("q", cpu="1"))
    cluster.lost_answers = 1
    cluster.deliver(engine, 0.0)
    cluster.assigned_watch.clear()
    cluster.carry_out(engine.schedule(0.0, 2))
    cluster.assigned_watch.clear()
    for later in (5.0, 15.0, 400.0):
        cluster.deliver(engine, later)
        cluster.carry_out(engine.schedule(later, 2))
        cluster.check()
    assert [pod.metadata.name for pod in cluster.unbound()] == ["q"]


@pytest.mark.parametrize("seed", range(5))
def test_a_pod_bound_and_deleted_unseen_does_not_stay_assumed(seed: int) -> None:
    cluster = ModelCluster()
    engine = default_engine(Random(seed).randrange)
    cluster.add_node(make_node("n", cpu="1"))
    cluster.create_pod(make_pod("p", cpu="1"))
    cluster.deliver(engine, 0.0)
    cluster.carry_out(engine.schedule(0.0, 1))
    cluster.delete_pod("uid-p")
    cluster.assigned_watch.clear()
    cluster.deliver(engine, 0.0)
    assert engine.cache_counts()["assumed_pods"] == 1
    cluster.deliver(engine, 31.0)
    cluster.deliver(engine, 31.0)
    assert engine.cache_counts()["pods"] == 0
    engine.validate()
