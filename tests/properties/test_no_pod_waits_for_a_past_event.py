"""Queueing hints miss no event: no pod stays unschedulable that could be scheduled now.

A run goes on until nothing changes, without the flush that retries every pod after five minutes.
Then a fresh engine gets the present cluster; it must not find a pod to bind or preempt for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
from stowage.api.instructions import BindPod, BindVolumes, EvictPod
from stowage.api.objects.pod import Pod, ResourceRequirements, Toleration
from stowage.api.objects.volume import StorageObject
from tests.support.builders import HOSTNAME, label_selector, make_namespace
from tests.support.engines import default_engine
from tests.support.generators.drawn_objects import (
    NAMESPACES,
    NODES,
    TEAMS,
    draw_budget,
    draw_labels,
    draw_node,
    draw_pod,
)
from tests.support.models.cluster_driver import ClusterDriver
from tests.support.models.model_storage import ModelStorage
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
"""Of eleven seconds each, which is longer than any backoff; together shorter than the flush."""


class EventfulRun(ClusterDriver):
    """Random events of every kind.

    Attributes:
        others: The last event of each object that is neither a pod nor a node.
        log: The names of the steps so far.
    """

    storage: ModelStorage

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        super().__init__(rng=self.rng, storage=ModelStorage(self.rng), checks_capacity=False)
        self.others: dict[str, Event] = {}
        self.created = 0
        self.log: list[str] = []
        self.steps: list[Callable[[], None]] = [
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
            self.show(f"class {each.metadata.name}", StorageSeen(each))
        for name in NAMESPACES:
            self.show(
                f"namespace {name}", NamespaceSeen(make_namespace(name, labels={"team": "red"}))
            )
        for name in NODES[: self.rng.randint(1, 4)]:
            self.cluster.add_node(draw_node(self.rng, name))

    def show(self, what: str, event: Event) -> None:
        """Create or update an object that is neither a pod nor a node."""
        self.others[what] = event
        self.handle(event)

    def create_pod(self) -> None:
        self.created += 1
        self.cluster.create_pod(draw_pod(self.rng, f"p{self.created}"))

    def create_pod_with_claim(self) -> None:
        """Create a pod, and its claim before or after it, earlier, or never."""
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
        """Create a local volume on a node."""
        self.created += 1
        where = (HOSTNAME, [self.rng.choice(NODES)])
        self.storage.store(make_volume(f"disk{self.created}", "local", where=where))

    def delete_claim(self) -> None:
        """Delete a claim that no placed pod uses."""
        used = {
            volume.persistent_volume_claim.claim_name
            for pod in self.cluster.pods.values()
            for volume in pod.spec.volumes
            if volume.persistent_volume_claim is not None and pod.spec.node_name
        }
        self.storage.delete_claim(
            self.rng.choice([*sorted(self.storage.claims.keys() - used), "unknown"])
        )

    def put_csi_node(self) -> None:
        """Report the volume limit of a CSI driver on a node."""
        name, limit = self.rng.choice(NODES), self.rng.randint(1, 2)
        self.put_or_remove(make_csi_node(name, csi_example_com=limit))

    def put_attachment(self) -> None:
        """Attach a volume without a claim to a node, or detach it."""
        self.put_or_remove(make_attachment("strange", self.rng.choice(NODES), "strange-volume"))

    def change_driver(self) -> None:
        """Let the CSI driver start or stop reporting its capacity."""
        self.show("driver", StorageSeen(make_driver(capacity=self.rng.random() < 0.5)))

    def put_capacity(self) -> None:
        """Report or remove the capacity of a storage class on a node."""
        name, left = self.rng.choice(NODES), self.rng.choice(("100Mi", "5Gi"))
        self.put_or_remove(make_capacity(f"of-{name}", left, label_selector({HOSTNAME: name})))

    def put_or_remove(self, obj: StorageObject) -> None:
        """Create an object, or delete it if it exists."""
        kind, meta = type(obj).__name__, obj.metadata
        what = f"{kind} {meta.name}"
        if self.others.pop(what, None) is None:
            self.show(what, StorageSeen(obj))
        else:
            gone = StorageGone(kind, meta.namespace, meta.name)
            self.handle(gone)

    def begin_to_delete(self) -> None:
        """Set the deletion timestamp of a placed pod, which ends later."""
        placed = [pod for pod in self.cluster.pods.values() if pod.spec.node_name]
        if placed:
            pod = self.rng.choice(placed)
            metadata = replace(pod.metadata, deletion_timestamp="2026-01-02T00:00:00Z")
            self.cluster.update_pod(replace(pod, metadata=metadata))
            self.cluster.terminating.add(pod.metadata.uid)

    def fail(self) -> None:
        """Let one of the next requests fail."""
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
        """Let another scheduler place a pod without checking capacity."""
        self.created += 1
        if self.cluster.nodes:
            node = self.rng.choice(sorted(self.cluster.nodes))
            self.cluster.create_pod(draw_pod(self.rng, f"p{self.created}", node=node, gates=()))

    def delete_pod(self) -> None:
        self.cluster.delete_pod(self.rng.choice([*self.cluster.pods, "uid-unknown"]))

    def change_labels(self) -> None:
        pod = self.any_pod()
        if pod is not None:
            metadata = replace(pod.metadata, labels=draw_labels(self.rng))
            self.cluster.update_pod(replace(pod, metadata=metadata))

    def change_pending(self) -> None:
        """Remove the gates of a pending pod or add a toleration."""
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
        """Remove a node with its pods."""
        if not self.cluster.nodes:
            return
        name = self.rng.choice(sorted(self.cluster.nodes))
        self.cluster.remove_node(name)
        for uid in [uid for uid, pod in self.cluster.pods.items() if pod.spec.node_name == name]:
            self.cluster.delete_pod(uid)

    def change_namespace(self) -> None:
        name, team = self.rng.choice(NAMESPACES), self.rng.choice(TEAMS)
        self.show(f"namespace {name}", NamespaceSeen(make_namespace(name, labels={"team": team})))

    def change_budget(self) -> None:
        self.show("budget", DisruptionBudgetSeen(draw_budget(self.rng)))

    def any_pod(self) -> Pod | None:
        return (
            self.cluster.pods[self.rng.choice(list(self.cluster.pods))]
            if self.cluster.pods
            else None
        )

    def step(self) -> None:
        """Apply one random event, which the engine handles now or later."""
        step = self.rng.choice(self.steps)
        self.log.append(step.__name__)
        step()
        self.now += self.rng.choice((0.0, 0.1, 1.5, 12.0))
        if self.rng.random() < 0.8:
            self.work(self.rng.randint(1, 4))

    def work(self, budget: int) -> None:
        """Let controllers, watches and the scheduler act."""
        for _ in range(3):
            self.storage.control()
        self.deliver_storage()
        self.deliver()
        self.schedule(budget)
        if self.rng.random() < 0.5:
            self.cluster.end_terminating()
            self.cluster.release_late_answers()
        self.deliver()

    def settle(self) -> None:
        """End all faults and run until nothing changes."""
        self.end_faults()
        self.storage.failure_rate = 0.0
        for _ in range(QUIET_STEPS):
            self.now += 11.0
            for _ in range(4):
                self.cluster.release_late_answers()
                self.cluster.end_terminating()
                for _ in range(20):
                    self.storage.control()
                self.work(50)
        self.engine.validate()


def overlooked(run: EventfulRun) -> Iterator[str]:
    """Pods that a fresh engine, given the present cluster, would bind or preempt for."""
    cluster = run.cluster
    waiting = [pod for pod in cluster.pods.values() if not pod.spec.node_name]
    seen: list[Event] = [NodeSeen(node) for node in cluster.nodes.values()]
    seen += run.others.values()
    seen += [StorageSeen(claim) for claim in run.storage.claims.values()]
    seen += [StorageSeen(volume) for volume in run.storage.volumes.values()]
    seen += [AssignedPodSeen(pod) for pod in cluster.pods.values() if pod.spec.node_name]
    seen += [PendingPodSeen(pod) for pod in waiting]
    fresh = default_engine()
    fresh.handle(seen, 0.0)
    for instruction in fresh.schedule(0.0, len(waiting)):
        if isinstance(instruction, BindPod | BindVolumes):
            yield f"{instruction.pod.key} could be on {instruction.node_name}"
        elif isinstance(instruction, EvictPod):
            yield f"{instruction.preemptor.key} could take the place of {instruction.victim.key}"


@settings(max_examples=100)
@given(seed=st.integers(0, 2**32 - 1), steps=st.integers(1, 60))
def test_no_pod_waits_for_an_event_that_already_happened(seed: int, steps: int) -> None:
    run = EventfulRun(seed)
    for _ in range(steps):
        run.step()
    run.settle()
    assert list(overlooked(run)) == []
