"""A simulated cluster without sockets and event loop, whose clock the tests advance."""

import heapq
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from simcluster.clock import Clock
from simcluster.controllers import ControllerOptions, Shared, make_controllers
from simcluster.controllers.indexes import claims_of
from simcluster.kinds.resources import NAMESPACES, NODES, PERSISTENT_VOLUME_CLAIMS, PODS, Resource
from simcluster.kinds.subresources.binding import bind
from simcluster.kubelet.kubelet import Kubelet, KubeletOptions
from simcluster.kubelet.nodes import make_node
from simcluster.store.deletion import DeleteOptions
from simcluster.store.loading import LoadReport, load_files
from simcluster.store.registry import Registry, editable
from simcluster.store.store import Store, Stored

Json = dict[str, Any]

MAX_STEPS = 100_000


class _ManualTimer:
    def __init__(self, act: Callable[[], None]) -> None:
        self.act: Callable[[], None] | None = act

    def cancel(self) -> None:
        self.act = None


class ManualTime:
    """A clock that tests advance, and its timers."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now
        self._due: list[tuple[float, int, _ManualTimer]] = []
        self._numbers = itertools.count()

    def after(self, seconds: float, act: Callable[[], None]) -> _ManualTimer:
        timer = _ManualTimer(act)
        heapq.heappush(self._due, (self.now + seconds, next(self._numbers), timer))
        return timer

    def next_before(self, end: float) -> Callable[[], None] | None:
        """Advance to the next timer due until ``end``; returns its action, or None."""
        while self._due and self._due[0][0] <= end:
            at, _, timer = heapq.heappop(self._due)
            if timer.act is not None:
                self.now = max(self.now, at)
                return timer.act
        return None

    def run_until(self, end: float) -> None:
        """Advance the time and call what is due until ``end``."""
        while (act := self.next_before(end)) is not None:
            act()
        self.now = end


class ManualCluster:
    """The controllers and kubelets of a cluster, run step by step.

    Args:
        num_nodes: named ``node-0`` and so on, in zones a and b, with 8 CPUs, 32Gi and 110 pods.
        binds: whether every pending pod is bound, to nodes in turn.
    """

    def __init__(
        self,
        num_nodes: int = 3,
        *,
        binds: bool = True,
        kubelet: KubeletOptions | None = None,
        options: ControllerOptions | None = None,
        files: tuple[Path, ...] = (),
    ) -> None:
        self.time = ManualTime()
        self.store = Store()
        self.registry = Registry(self.store, Clock(lambda: self.time.now), taint_new_nodes=False)
        self.report: LoadReport = load_files(self.registry, files)
        for name in ("default", "kube-system"):
            if self.store.get(NAMESPACES.stored_in, "", name) is None:
                self.create(NAMESPACES, {"metadata": {"name": name}})
        for index in range(num_nodes):
            self.add_node(f"node-{index}", "ab"[index % 2])
        self._binds = binds
        self._next_node = 0
        shared = Shared(self.registry, self.time)
        self.controllers = make_controllers(shared, options or ControllerOptions())
        for controller in self.controllers:
            controller.follow()
        self.kubelet = Kubelet(self.registry, kubelet or KubeletOptions(), self.time)
        self.kubelet.follow()
        self.settle()

    def add_node(self, name: str, zone: str = "a", **metadata: Any) -> None:
        capacity = {"cpu": "8", "memory": "32Gi", "pods": "110"}
        node = make_node(name, capacity, {"topology.kubernetes.io/zone": zone})
        node["metadata"] |= metadata
        self.registry.create(NODES, "", node)

    def create(self, resource: Resource, obj: Json, namespace: str = "default") -> Stored:
        return self.registry.create(resource, namespace if resource.namespaced else "", obj)

    def get(self, resource: Resource, name: str, namespace: str = "default") -> Json:
        stored = self.find(resource, name, namespace)
        assert stored is not None, f"{resource.kind} {name} does not exist"
        return stored.obj

    def find(self, resource: Resource, name: str, namespace: str = "default") -> Stored | None:
        place = namespace if resource.namespaced else ""
        return self.store.get(resource.stored_in, place, name)

    def all(self, resource: Resource) -> list[Json]:
        return [stored.obj for stored in self.store.collection(resource.stored_in).items()]

    def names(self, resource: Resource) -> list[str]:
        return [obj["metadata"]["name"] for obj in self.all(resource)]

    def change(
        self, resource: Resource, name: str, act: Callable[[Json], Any], namespace: str = "default"
    ) -> None:
        """Edit an object as a user, then run controllers and kubelets."""
        stored = self.find(resource, name, namespace)
        assert stored is not None, f"{resource.kind} {name} does not exist"
        obj = editable(stored)
        act(obj)
        self.registry.replace(resource, stored, obj)
        self.settle()

    def delete(
        self, resource: Resource, name: str, policy: str = "", namespace: str = "default"
    ) -> None:
        place = namespace if resource.namespaced else ""
        options = DeleteOptions(propagation_policy=policy)
        self.registry.delete(resource, place, name, options)
        self.settle()

    def bind(self, pod: str, node: str, namespace: str = "default") -> None:
        bind(self.registry, namespace, pod, {"target": {"name": node}})
        self.settle()

    def settle(self) -> None:
        """Run controllers and kubelets until nothing is left to do at the current time.

        Raises:
            AssertionError: they do not end.
        """
        for _ in range(MAX_STEPS):
            # Each controller works in turn, as on an event loop.
            worked = [controller.work_next() for controller in self.controllers]
            if any([*worked, self.kubelet.work_next()]):
                continue
            if self._binds and self._bind_pending():
                continue
            act = self.time.next_before(self.time.now)
            if act is None:
                return
            act()
        raise AssertionError("controllers do not become idle")

    def pass_time(self, seconds: float) -> None:
        """Advance the time; run timers, controllers and kubelets."""
        end = self.time.now + seconds
        while (act := self.time.next_before(end)) is not None:
            act()
            self.settle()
        self.time.now = end
        self.settle()

    def _has_claims(self, pod: Json) -> bool:
        """Whether all claims of a pod are bound; an emptyDir keeps a pod pending in tests."""
        if any("emptyDir" in volume for volume in pod["spec"].get("volumes") or ()):
            return False
        claims = [
            self.find(PERSISTENT_VOLUME_CLAIMS, name, pod["metadata"]["namespace"])
            for name in claims_of(pod)
        ]
        return all(
            found is not None and found.obj["status"]["phase"] == "Bound" for found in claims
        )

    def _bind_pending(self) -> bool:
        nodes = self.names(NODES)
        bound = False
        for pod in self.all(PODS):
            metadata = pod["metadata"]
            if pod["spec"].get("nodeName") or metadata.get("deletionTimestamp") or not nodes:
                continue
            if pod["status"].get("phase") != "Pending" or not self._has_claims(pod):
                continue
            node = _pinned(pod) or nodes[self._next_node % len(nodes)]
            self._next_node += 1
            bind(self.registry, metadata["namespace"], metadata["name"], {"target": {"name": node}})
            bound = True
        return bound


def _pinned(pod: Json) -> str:
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            return str(field["values"][0])
    return ""


def template(image: str = "web:1", labels: Json | None = None, **spec: Any) -> Json:
    """A pod template of one container."""
    container = {"name": "c", "image": image}
    return {
        "metadata": {"labels": labels or {"app": "web"}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec},
    }


def workload(name: str = "web", replicas: int = 3, **spec: Any) -> Json:
    """A Deployment, ReplicaSet or StatefulSet."""
    selector = {"matchLabels": {"app": "web"}}
    defaults = {"replicas": replicas, "selector": selector, "template": template()}
    return {"metadata": {"name": name}, "spec": {**defaults, **spec}}
