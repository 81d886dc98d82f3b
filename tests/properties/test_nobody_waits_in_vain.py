"""Whatever happens, a pod that would be placed by whoever looked at it now is looked at.

A story goes on until nothing moves, without the flush that tries everybody after five minutes.
Then an engine that knows nothing of what happened is shown the cluster as it is: whom it would
bind, or make room for, has been waiting in vain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from stowage.api.events import (
    AssignedPodSeen,
    DisruptionBudgetSeen,
    Event,
    NamespaceSeen,
    NodeSeen,
    PendingPodSeen,
    StorageGone,
    StorageSeen,
)
from stowage.api.instructions import BindPod, BindVolumes, EvictPod, Instruction
from stowage.api.objects.pod import Pod, ResourceRequirements, Toleration
from stowage.api.objects.volume import StorageObject

from tests.support.builders import HOSTNAME, label_selector, make_namespace
from tests.support.drawn_objects import (
    NAMESPACES,
    NODES,
    TEAMS,
    draw_budget,
    draw_labels,
    draw_node,
    draw_pod,
)
from tests.support.engines import default_engine
from tests.support.model_cluster import ModelCluster
from tests.support.model_storage import ModelStorage
from tests.support.volume_builders import (
    claim_volume,
    make_attachment,
    make_capacity,
    make_claim,
    make_class,
    make_csi_node,
    make_driver,
    make_volume,
)

NO_PROVISIONER = "kubernetes.io/no-provisioner"
QUIET_STEPS = 12
"""Of eleven seconds each: longer than any backoff, shorter than the flush."""


class Cluster(ModelCluster):
    """With storage."""

    def __init__(self, storage: ModelStorage) -> None:
        super().__init__()
        self.storage = storage

    def carry_out(self, instructions: Iterable[Instruction]) -> None:
        instructions = list(instructions)
        super().carry_out(instructions)
        self.storage.carry_out(instructions)


class Story:
    """A cluster to which one thing happens after the other."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.storage = ModelStorage(self.rng)
        self.cluster = Cluster(self.storage)
        self.others: dict[str, Event] = {}
        self.engine = default_engine(self.rng.randrange)
        self.now = 0.0
        self.created = 0
        self.log: list[str] = []
        self.happenings: list[Callable[[], None]] = [
            self.create_pod,
            self.create_pod,
            self.create_pod,
            self.delete_pod,
            self.place_pod,
            self.change_labels,
            self.change_pending,
            self.shrink,
            self.put_node,
            self.put_node,
            self.remove_node,
            self.change_namespace,
            self.change_budget,
            self.create_pod_with_claim,
            self.create_pod_with_claim,
            self.create_volume,
            self.delete_claim,
            self.put_csi_node,
            self.put_attachment,
            self.change_driver,
            self.put_capacity,
            self.begin_to_delete,
            self.fail,
        ]
        for each in (make_class("waits"), make_class("local", provisioner=NO_PROVISIONER)):
            self.tell(f"class {each.metadata.name}", StorageSeen(each))
        for name in NAMESPACES:
            self.tell(
                f"namespace {name}", NamespaceSeen(make_namespace(name, labels={"team": "red"}))
            )
        for name in NODES[: self.rng.randint(1, 4)]:
            self.cluster.add_node(draw_node(self.rng, name))

    def tell(self, what: str, event: Event) -> None:
        """Something neither pod nor node is there, or is different now."""
        self.others[what] = event
        self.cluster.tell(self.engine, [event], self.now)

    def create_pod(self) -> None:
        self.created += 1
        self.cluster.create_pod(draw_pod(self.rng, f"p{self.created}"))

    def create_pod_with_claim(self) -> None:
        """The claim comes before the pod or after it, or was there, or never comes."""
        self.created += 1
        name = f"c{self.rng.randint(1, self.created)}"
        pod = draw_pod(
            self.rng, f"p{self.created}", namespace="default", volumes=(claim_volume(name),)
        )
        self.cluster.create_pod(pod)
        if name not in self.storage.claims and self.rng.random() < 0.8:
            class_name = self.rng.choice(("waits", "local"))
            self.storage.store(make_claim(name, class_name, uid=f"uid-{name}-{self.created}"))

    def create_volume(self) -> None:
        """A local volume on a node."""
        self.created += 1
        where = (HOSTNAME, [self.rng.choice(NODES)])
        self.storage.store(make_volume(f"disk{self.created}", "local", where=where))

    def delete_claim(self) -> None:
        """One that no pod uses."""
        used = {
            volume.persistent_volume_claim.claim_name
            for pod in self.cluster.pods.values()
            for volume in pod.spec.volumes
            if volume.persistent_volume_claim is not None and pod.spec.node_name
        }
        self.storage.delete_claim(
            self.rng.choice([*sorted(self.storage.claims.keys() - used), "nobody"])
        )

    def put_csi_node(self) -> None:
        """A driver says how many volumes a node may have."""
        name, limit = self.rng.choice(NODES), self.rng.randint(1, 2)
        self.put_or_remove(make_csi_node(name, csi_example_com=limit))

    def put_attachment(self) -> None:
        """A volume of nobody's hangs on a node, or is let go."""
        self.put_or_remove(make_attachment("strange", self.rng.choice(NODES), "strange-volume"))

    def change_driver(self) -> None:
        """It says whether it knows what it has left."""
        self.tell("driver", StorageSeen(make_driver(capacity=self.rng.random() < 0.5)))

    def put_capacity(self) -> None:
        """What is left of a class for a node, or nothing is known of it any more."""
        name, left = self.rng.choice(NODES), self.rng.choice(("100Mi", "5Gi"))
        self.put_or_remove(make_capacity(f"of-{name}", left, label_selector({HOSTNAME: name})))

    def put_or_remove(self, obj: StorageObject) -> None:
        """Let it be there, or be gone."""
        kind, meta = type(obj).__name__, obj.metadata
        what = f"{kind} {meta.name}"
        if self.others.pop(what, None) is None:
            self.tell(what, StorageSeen(obj))
        else:
            gone = StorageGone(kind, meta.namespace, meta.name)
            self.cluster.tell(self.engine, [gone], self.now)

    def begin_to_delete(self) -> None:
        """A placed pod is told to end, and takes its time."""
        placed = [pod for pod in self.cluster.pods.values() if pod.spec.node_name]
        if placed:
            pod = self.rng.choice(placed)
            metadata = replace(pod.metadata, deletion_timestamp="2026-01-02T00:00:00Z")
            self.cluster.update_pod(replace(pod, metadata=metadata))
            self.cluster.terminating.add(pod.metadata.uid)

    def fail(self) -> None:
        """Something of what comes will not work."""
        match self.rng.randrange(4):
            case 0:
                self.cluster.lost_answers += 1
            case 1:
                self.cluster.refusals += 1
            case 2:
                self.cluster.failing_evictions += 1
            case _:
                self.storage.refusals += 1

    def place_pod(self) -> None:
        """By another scheduler, that knows no limits."""
        self.created += 1
        if self.cluster.nodes:
            node = self.rng.choice(sorted(self.cluster.nodes))
            self.cluster.create_pod(draw_pod(self.rng, f"p{self.created}", node=node, gates=()))

    def delete_pod(self) -> None:
        self.cluster.delete_pod(self.rng.choice([*self.cluster.pods, "uid-nobody"]))

    def change_labels(self) -> None:
        pod = self.any_pod()
        if pod is not None:
            metadata = replace(pod.metadata, labels=draw_labels(self.rng))
            self.cluster.update_pod(replace(pod, metadata=metadata))

    def change_pending(self) -> None:
        """The gates open, or the pod tolerates more."""
        pod = self.any_pod()
        if pod is not None and not pod.spec.node_name:
            changed: dict[str, Any] = {"scheduling_gates": ()}
            if self.rng.random() < 0.4:
                changed = {"tolerations": (*pod.spec.tolerations, Toleration("trouble", "Exists"))}
            self.cluster.update_pod(replace(pod, spec=replace(pod.spec, **changed)))

    def shrink(self) -> None:
        pod = self.any_pod()
        if pod is not None:
            (container,) = pod.spec.containers
            less = ResourceRequirements(container.resources.requests | {"cpu": "250m"})
            containers = (replace(container, resources=less),)
            self.cluster.update_pod(replace(pod, spec=replace(pod.spec, containers=containers)))

    def put_node(self) -> None:
        self.cluster.add_node(draw_node(self.rng, self.rng.choice(NODES)))

    def remove_node(self) -> None:
        """A node goes with its pods."""
        if not self.cluster.nodes:
            return
        name = self.rng.choice(sorted(self.cluster.nodes))
        self.cluster.remove_node(name)
        for uid in [uid for uid, pod in self.cluster.pods.items() if pod.spec.node_name == name]:
            self.cluster.delete_pod(uid)

    def change_namespace(self) -> None:
        name, team = self.rng.choice(NAMESPACES), self.rng.choice(TEAMS)
        self.tell(f"namespace {name}", NamespaceSeen(make_namespace(name, labels={"team": team})))

    def change_budget(self) -> None:
        self.tell("budget", DisruptionBudgetSeen(draw_budget(self.rng)))

    def any_pod(self) -> Pod | None:
        return (
            self.cluster.pods[self.rng.choice(list(self.cluster.pods))]
            if self.cluster.pods
            else None
        )

    def go_on(self) -> None:
        """One thing happens, and the engine gets to it, or not yet."""
        happening = self.rng.choice(self.happenings)
        self.log.append(happening.__name__)
        happening()
        self.now += self.rng.choice((0.0, 0.1, 1.5, 12.0))
        if self.rng.random() < 0.8:
            self.work(self.rng.randint(1, 4))

    def work(self, budget: int) -> None:
        for _ in range(3):
            self.storage.control()
        self.cluster.tell(self.engine, self.storage.take_answers(), self.now)
        self.cluster.tell(self.engine, self.storage.take_watch(), self.now)
        self.cluster.deliver(self.engine, self.now)
        self.cluster.carry_out(self.engine.schedule(self.now, budget))
        if self.rng.random() < 0.5:
            self.cluster.end_terminating()
            self.cluster.release_late_answers()
        self.cluster.deliver(self.engine, self.now)

    def settle(self) -> None:
        self.cluster.lost_answers = self.cluster.refusals = self.cluster.failing_evictions = 0
        self.storage.refusals, self.storage.failure_rate = 0, 0.0
        for _ in range(QUIET_STEPS):
            self.now += 11.0
            for _ in range(4):
                self.cluster.release_late_answers()
                self.cluster.end_terminating()
                for _ in range(20):
                    self.storage.control()
                self.work(50)
        self.engine.validate()


def in_vain(story: Story) -> Iterator[str]:
    """Who would be bound or made room for by an engine that has just seen everything."""
    cluster = story.cluster
    waiting = [pod for pod in cluster.pods.values() if not pod.spec.node_name]
    seen: list[Event] = [NodeSeen(node) for node in cluster.nodes.values()]
    seen += story.others.values()
    seen += [StorageSeen(claim) for claim in story.storage.claims.values()]
    seen += [StorageSeen(volume) for volume in story.storage.volumes.values()]
    seen += [AssignedPodSeen(pod) for pod in cluster.pods.values() if pod.spec.node_name]
    seen += [PendingPodSeen(pod) for pod in waiting]
    judge = default_engine()
    judge.handle(seen, 0.0)
    for instruction in judge.schedule(0.0, len(waiting)):
        if isinstance(instruction, BindPod | BindVolumes):
            yield f"{instruction.pod.key} could be on {instruction.node_name}"
        elif isinstance(instruction, EvictPod):
            yield f"{instruction.preemptor.key} could take the place of {instruction.victim.key}"


@settings(max_examples=100)
@given(seed=st.integers(0, 2**32 - 1), steps=st.integers(1, 60))
def test_nobody_waits_in_vain(seed: int, steps: int) -> None:
    story = Story(seed)
    for _ in range(steps):
        story.go_on()
    story.settle()
    assert list(in_vain(story)) == []
