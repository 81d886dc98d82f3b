"""The pods of `stowage bench chaos` and the life of each, drawn from a seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from simcluster.controllers.storage.provisioner import DELAY
from simcluster.kubelet.kubelet import RUN_SECONDS_ANNOTATION
from simcluster.kubelet.nodes import bench_node
from stowage_benchmarks.devices import (
    asking_for_device,
    claim_template,
    device_class,
    resource_slice,
)
from stowage_benchmarks.e2e.scenarios import HIGH_PRIORITY, NAMESPACE
from stowage_benchmarks.workloads import Json, pending_pod

FOREIGN_SCHEDULER = "foreign"
MIDDLE_PRIORITY = "bench-middle"
GATED = "gated-"
HUGE = "huge-"
"""Name prefixes of pods that have a reason to be pending."""
WITH_VOLUME = "volume-"
"""Name prefix of pods that wait for a volume to be provisioned."""
WITH_DEVICE = "device-"
"""Name prefix of pods with a claim for a device."""
IN_GANG = "gang-"
"""Name prefix of the members of gangs."""

PRIORITY_CLASSES = ((MIDDLE_PRIORITY, 100), (HIGH_PRIORITY, 1000))
_GATE = "bench/chaos"
_STORAGE_CLASS = "chaos"
_MIN_RUN_S, _MAX_RUN_S = 4.0, 40.0
_CLAIM_EVERY = 12
"""One of so many pods has a claim, unless it has another special life."""
_GANG_EVERY = 60
"""After so many pods comes a gang."""
_GANG_SIZES = (2, 3, 4, 6, 8)
_GANG_RUN_S = (60.0, 90.0)
"""Longer than a new leader needs: a member that has ended is none for those that wait."""


@dataclass(frozen=True, slots=True)
class PodLife:
    """A pod to create, and what its user does with it later.

    Attributes:
        opens_after_s: When its scheduling gate is removed; None if it has none or keeps it.
        deleted_after_s: When it is deleted, bound or not; None lets it run to its end.
        is_made_again: Whether a pod of the same name is created at once after the deletion.
        group: The pod group to create before it.
    """

    manifest: Json
    opens_after_s: float | None = None
    deleted_after_s: float | None = None
    is_made_again: bool = False
    group: Json | None = None

    @property
    def name(self) -> str:
        """Name of the pod."""
        name: str = self.manifest["metadata"]["name"]
        return name

    @property
    def is_foreign(self) -> bool:
        """Whether another scheduler binds it."""
        return bool(self.manifest["spec"]["schedulerName"] == FOREIGN_SCHEDULER)

    @property
    def needs_more_than_a_node(self) -> bool:
        """Whether its scheduler has to choose the node: for a volume, a device or companions."""
        return self.name.startswith((WITH_VOLUME, WITH_DEVICE, IN_GANG))


def classes() -> Iterator[Json]:
    """The PriorityClasses of the pods, and the StorageClass of their volumes."""
    for name, value in PRIORITY_CLASSES:
        yield {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }
    yield {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": _STORAGE_CLASS},
        "provisioner": "disk.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
        "reclaimPolicy": "Delete",
        "parameters": {DELAY: "0.3"},
    }


def devices(num_nodes: int) -> Iterator[Json]:
    """Devices on every fourth node, their class, and the template of the claims."""
    yield device_class()
    yield claim_template(NAMESPACE)
    for index in range(0, num_nodes, 4):
        yield resource_slice(bench_node(index)["metadata"]["name"])


def pod_lives(
    seed: int, scheduler_name: str, *, with_claims: bool = False, with_gangs: bool = False
) -> Iterator[PodLife]:
    """Yield pods without end: seven kinds of constraints, many sizes, three priorities."""
    random = Random(f"{seed} pods")  # noqa: S311 - to be repeatable
    of_gangs = Random(f"{seed} gangs")  # noqa: S311 - to be repeatable
    index = 0
    while True:
        life = _draw(index, scheduler_name, random)
        yield _with_claim(life, index) if with_claims else life
        index += 1
        if with_gangs and not index % _GANG_EVERY:
            yield from _gang(index // _GANG_EVERY, scheduler_name, of_gangs)


def calm_pod(name: str, scheduler_name: str) -> Json:
    """A small pod that any node can hold."""
    pod = pending_pod("basic", 0, scheduler_name)
    pod["metadata"]["name"] = name
    _shape(pod, "100m", run_s=1.0)
    return pod


def _draw(index: int, scheduler_name: str, random: Random) -> PodLife:
    pod = pending_pod("mixed", index, scheduler_name)
    _shape(
        pod, random.choice(("100m", "200m", "300m", "500m")), random.uniform(_MIN_RUN_S, _MAX_RUN_S)
    )
    spec, kind = pod["spec"], random.random()
    if random.random() < 0.2:
        spec["priorityClassName"] = MIDDLE_PRIORITY
    if kind < 0.03:
        spec["schedulerName"] = FOREIGN_SCHEDULER
    elif kind < 0.04:
        _rename(pod, GATED)
        spec["schedulingGates"] = [{"name": _GATE}]
        opens = random.random() < 0.95
        return PodLife(pod, opens_after_s=random.uniform(0.5, 15.0) if opens else None)
    elif kind < 0.0405:
        _rename(pod, HUGE)
        _shape(pod, "100", run_s=1.0)
        return PodLife(pod, deleted_after_s=random.choice((None, 60.0)))
    elif kind < 0.05:
        # No node has this much free CPU: the pod has to preempt.
        spec["priorityClassName"] = HIGH_PRIORITY
        _shape(pod, random.choice(("2500m", "3500m")), random.uniform(1.0, 5.0))
    elif kind < 0.09:
        return PodLife(
            pod, deleted_after_s=random.uniform(0.0, 5.0), is_made_again=random.random() < 0.5
        )
    elif kind < 0.13:
        _rename(pod, WITH_VOLUME)
        spec["volumes"] = [_ephemeral_volume()]
    return PodLife(pod)


def _with_claim(life: PodLife, index: int) -> PodLife:
    """The same life with a claim for a device, if it is one of the pods that get one."""
    is_plain = life.name.startswith("pod-") and not life.is_foreign
    if not is_plain or index % _CLAIM_EVERY:
        return life
    pod = asking_for_device(life.manifest)
    _rename(pod, WITH_DEVICE)
    return replace(life, manifest=pod)


def _gang(index: int, scheduler_name: str, random: Random) -> Iterator[PodLife]:
    """The members of a gang, which needs all of them or all but one."""
    name, size = f"{IN_GANG}{index:05d}", random.choice(_GANG_SIZES)
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"schedulingPolicy": {"gang": {"minCount": size - random.choice((0, 0, 1))}}},
    }
    cpu, run_s = random.choice(("100m", "300m", "900m")), random.uniform(*_GANG_RUN_S)
    priority = random.choice(({}, {}, {"priorityClassName": MIDDLE_PRIORITY}))
    for number in range(size):
        pod = pending_pod("basic", 0, scheduler_name)
        pod["metadata"]["name"] = f"{name}-{number}"
        pod["spec"] |= {"schedulingGroup": {"podGroupName": name}, **priority}
        _shape(pod, cpu, run_s)
        yield PodLife(pod, group=None if number else group)


def _shape(pod: Json, cpu: str, run_s: float) -> None:
    resources = {"cpu": cpu, "memory": "64Mi"}
    pod["spec"]["containers"][0]["resources"] = {"requests": resources, "limits": resources}
    pod["spec"] |= {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1}
    pod["metadata"]["annotations"] = {RUN_SECONDS_ANNOTATION: f"{run_s:.1f}"}


def _ephemeral_volume() -> Json:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": _STORAGE_CLASS,
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return {"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}


def _rename(pod: Json, prefix: str) -> None:
    pod["metadata"]["name"] = prefix + pod["metadata"]["name"]
