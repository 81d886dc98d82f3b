"""A recording of a scheduler that takes no time, lived through again, gives the same life."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from stowage.analysis.life_comparison import Life, LifeComparison, compare_lives
from stowage.analysis.recorded_life import RecordedLife
from stowage.analysis.relived_life import RelivedLife
from stowage.api.config.loading import load_configuration
from stowage.api.events import PendingPodSeen
from stowage.api.objects.meta import OwnerReference
from stowage.cli.replay.engines import OtherProfiles, make_deciding_engine
from stowage.engine.journal import HandleCall
from stowage.recording.header import Header
from tests.support.builders import make_node, make_pod
from tests.support.recorded_cluster import DEFAULTS, RecordedCluster

HEADER = Header("0", 0.0, DEFAULTS, "", 300.0)
OWNER = OwnerReference("ReplicaSet", "rs", "uid-rs", "apps/v1", controller=True)

_STEPS = st.one_of(
    st.tuples(st.just("create"), st.integers(1, 4), st.integers(0, 2)),
    st.tuples(st.just("create for a controller"), st.integers(1, 4), st.integers(0, 2)),
    st.tuples(st.just("delete"), st.integers(0, 20), st.just(0)),
    st.tuples(st.just("add node"), st.integers(1, 8), st.just(0)),
    st.tuples(st.just("remove node"), st.integers(0, 4), st.just(0)),
    st.tuples(st.just("wait"), st.integers(1, 400), st.just(0)),
)


class Story:
    """Carries out steps on a recorded cluster."""

    def __init__(self) -> None:
        self.cluster = RecordedCluster(("n0", "n1"), cpu="6")
        self._number = 2

    def take(self, step: str, amount: int, priority: int) -> None:
        """Carry out one step."""
        cluster = self.cluster
        cluster.advance(1.0)
        pods = sorted(cluster.objects.pods(), key=lambda pod: pod.metadata.namespaced_name)
        nodes = sorted(cluster.objects.by_kind["Node"])
        if step.startswith("create"):
            name, owner = self._name("p"), OWNER if step != "create" else None
            pod = make_pod(
                name,
                cpu=str(amount),
                priority=priority * 100,
                owner=owner,
                scheduler_name="stowage",
            )
            cluster.create_pods([pod])
        elif step == "delete" and pods:
            cluster.delete_pod(pods[amount % len(pods)])
        elif step == "add node":
            cluster.put_node(make_node(self._name("n"), cpu=str(amount)))
        elif step == "remove node" and len(nodes) > 1:
            name = nodes[amount % len(nodes)]
            cluster.remove_node(name)
            for pod in [pod for pod in pods if pod.spec.node_name == name]:
                cluster.advance(0.0)
                cluster.delete_pod(pod)
        elif step == "wait":
            cluster.advance(amount)
        cluster.advance(0.0)

    def _name(self, prefix: str) -> str:
        self._number += 1
        return f"{prefix}{self._number}"


def relived(cluster: RecordedCluster) -> LifeComparison:
    profiles = OtherProfiles(load_configuration(DEFAULTS))
    counting = make_deciding_engine(HEADER, profiles, lambda _event: None)
    recorded = RecordedLife(counting, HEADER.time_of_day)
    for entry in cluster.journal.entries:
        recorded.add(entry)
    engine = make_deciding_engine(HEADER, profiles, lambda _event: None)
    life = RelivedLife(engine, recorded, [], follows_configuration=True)
    for entry in cluster.journal.entries:
        life.add(entry)
    engine.validate()
    lives = [
        Life("recorded", recorded.stories, len(recorded.victims), recorded.samples, recorded.ended),
        Life("replayed", life.stories, life.num_preempted, life.samples, recorded.ended),
    ]
    return compare_lives(lives, "", "", [])


@settings(max_examples=60, deadline=None)
@given(st.lists(_STEPS, max_size=25))
def test_every_pod_has_the_recorded_node(steps: list[tuple[str, int, int]]) -> None:
    story = Story()
    for step in steps:
        story.take(*step)
    answer = relived(story.cluster)
    recorded, replayed = answer.lives
    assert answer.differing == ()
    assert answer.pods == len(names_of_pods(story))
    assert (replayed.placed, replayed.unplaced) == (recorded.placed, recorded.unplaced)
    assert replayed.preempted == recorded.preempted == len(story.cluster.preempted)
    assert replayed.pending == recorded.pending


def names_of_pods(story: Story) -> set[str]:
    """The names of all pods; one that was made again keeps its name."""
    return {
        event.pod.metadata.name
        for entry in story.cluster.journal.entries
        if isinstance(entry, HandleCall)
        for event in entry.events
        if isinstance(event, PendingPodSeen)
    }
