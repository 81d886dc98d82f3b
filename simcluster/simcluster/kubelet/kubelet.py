"""The simulated kubelets: run the pods that are bound to nodes, or refuse them as a kubelet would.

A kubelet admits pods in the order in which they were bound, by the node's allocatable and the pods
admitted before. A scheduler that overcommits a node therefore sees pods fail with ``OutOfcpu`` and
the like. No container runs; only statuses change. Annotations set the behaviour of a single node,
see ``node_state``.
"""

import contextlib
import random
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import structlog

from simcluster.kinds.resources import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    RESOURCE_CLAIMS,
)
from simcluster.kubelet.claim_waits import ClaimWaits
from simcluster.kubelet.device_claims import DeviceClaims
from simcluster.kubelet.node_heartbeat import is_alive
from simcluster.kubelet.node_load import NodeLoad, Refusal
from simcluster.kubelet.node_reporter import NodeReporter
from simcluster.kubelet.node_state import NODE_STATE, STOPPED, NodeBehaviour, node_behaviour
from simcluster.kubelet.nodes import internal_ip
from simcluster.kubelet.pod_status import (
    crashing_status,
    creating_status,
    failed_status,
    refused_status,
    running_status,
    stopped_status,
    succeeded_status,
)
from simcluster.kubelet.volume_reach import VolumeReach
from simcluster.store.deletion import DeleteOptions
from simcluster.store.registry import Registry, editable
from simcluster.store.store import Change, Stored
from simcluster.timers import LoopTimers, Timer, Timers
from simcluster.values import Json
from simcluster.worker import Worker
from stowage.api import InvalidObject, Node, SelectorError, decode_object, decode_pod

RUN_SECONDS_ANNOTATION = "stowage/run-seconds"
_FINISHED = frozenset(("Succeeded", "Failed"))

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class KubeletOptions:
    """Times of pods, unless a node's annotations set others.

    Args:
        start_s: from admission to Running.
        job_run_s: how long a Job's pod runs before it succeeds. The annotation
            ``stowage/run-seconds`` of a pod that does not restart has precedence.
        stop_s: longest time to stop a terminating pod; its grace period may be shorter.
        seed: of the random numbers that decide which pods fail.
    """

    start_s: float = 0.0
    job_run_s: float = 2.0
    stop_s: float = 0.1
    seed: int = 0


class _Admitted(NamedTuple):
    node: str
    namespace: str
    name: str
    generation: int


class Kubelet(Worker):
    """The kubelets of all nodes.

    Args:
        registry: pods and nodes.
        options: times of pods.
        timers: those of the event loop if ``None``; tests pass their own.
    """

    def __init__(
        self, registry: Registry, options: KubeletOptions, timers: Timers | None = None
    ) -> None:
        super().__init__()
        self._registry = registry
        self._store = registry.store
        self._options = options
        self._time: Timers = timers or LoopTimers()
        self._random = random.Random(options.seed)  # noqa: S311 - simulated failures
        self._nodes: dict[str, NodeLoad] = {}
        self._behaviours: dict[str, NodeBehaviour] = {}
        self._dead: set[str] = set()
        self._pods: dict[str, _Admitted] = {}
        self._waiting: dict[str, dict[str, tuple[str, str]]] = {}
        self._claims = ClaimWaits(registry.store)
        self._reach = VolumeReach(registry)
        self._devices = DeviceClaims(registry)
        self._reporter = NodeReporter(registry)
        self._stopping: set[str] = set()
        self._work: deque[Callable[[], None]] = deque()
        self._timers: set[Timer] = set()
        self._next_address = 0

    def follow(self) -> None:
        """Take over existing objects and follow changes."""
        for stored in self._store.collection(NODES.stored_in).items():
            self._see_node(stored)
        pods = self._store.collection(PODS.stored_in).items()
        for stored in sorted(pods, key=lambda pod: pod.revision):
            self._take_over(stored)
        self._unsubscribe = [
            self._store.subscribe(NODES.stored_in, self._on_node),
            self._store.subscribe(PODS.stored_in, self._on_pod),
            self._store.subscribe(PERSISTENT_VOLUME_CLAIMS.stored_in, self._on_claim),
            self._store.subscribe(RESOURCE_CLAIMS.stored_in, self._on_device_claim),
        ]

    def cancel_timers(self) -> None:
        """Cancel all timers; every pod keeps its state."""
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()

    def _on_node(self, change: Change) -> None:
        if change.type == "DELETED":
            self._later(self._forget_node, change.current)
        else:
            self._later(self._see_node, change.current)

    def _on_pod(self, change: Change) -> None:
        if change.type == "DELETED":
            self._later(self._release_pod, change.current)
        elif change.current.spec.get("nodeName"):
            self._later(self._see_pod, change.current)
            if self._devices.take_pod((change.current.namespace, change.current.name)):
                self._later(self._begin, change.current)

    def _on_claim(self, change: Change) -> None:
        self._begin_again(self._claims.take(change))

    def _on_device_claim(self, change: Change) -> None:
        self._begin_again(self._devices.take(change))

    def _begin_again(self, names: Iterable[tuple[str, str]]) -> None:
        for namespace, name in names:
            pod = self._pod(namespace, name)
            if pod is not None:
                self._later(self._begin, pod)

    def _pod(self, namespace: str, name: str) -> Stored | None:
        return self._store.get(PODS.stored_in, namespace, name)

    def _later(self, act: Callable[[Stored], None], stored: Stored) -> None:
        self._work.append(lambda: act(stored))
        self._wake.set()

    def work_next(self) -> bool:
        """Do one piece of work that is due; False if there is none."""
        if not self._work:
            return False
        act = self._work.popleft()
        try:
            act()
        except Exception:
            log.exception("simulated kubelet failed on an object; it continues with the next")
        return True

    def _after(self, seconds: float, act: Callable[[], None]) -> None:
        if seconds <= 0:
            self._work.append(act)
            self._wake.set()
            return

        def fire() -> None:
            self._timers.discard(timer)
            self._work.append(act)
            self._wake.set()

        timer = self._time.after(seconds, fire)
        self._timers.add(timer)

    def _see_node(self, stored: Stored) -> None:
        name = stored.name
        try:
            node = decode_object(Node, stored.content)
            load = self._nodes.get(name)
            if load is None:
                self._nodes[name] = NodeLoad(node)
            else:
                load.update_node(node)
        except InvalidObject as error:
            log.warning("node is not run", node=name, why=str(error))
            return
        before = self._behaviours.get(name)
        behaviour = self._behave(stored, before)
        if not is_alive(stored.obj, behaviour, before):
            self._dead.add(name)
            return
        self._reporter.report(stored, behaviour, before)
        if name in self._dead:
            self._dead.discard(name)
            self._catch_up(name)
        for namespace, pod_name in self._waiting.pop(name, {}).values():
            pod = self._pod(namespace, pod_name)
            if pod is not None:
                self._see_pod(pod)
        self._begin_again(self._reach.take(name))

    def _behave(self, stored: Stored, before: NodeBehaviour | None) -> NodeBehaviour:
        """Read the node's annotations, and plan when its kubelet stops."""
        behaviour = self._behaviours[stored.name] = node_behaviour(stored.obj)
        if before is None or before.problems != behaviour.problems:
            for problem in behaviour.problems:
                log.warning("annotation of a node", node=stored.name, problem=problem)
        stop_after_s = behaviour.stop_after_s
        if stop_after_s is not None and (before is None or before.stop_after_s != stop_after_s):
            self._after(stop_after_s, lambda: self._stop_node(stored.name))
        return behaviour

    def _stop_node(self, name: str) -> None:
        """Annotate the node as stopped, as a user would."""
        stored = self._store.get(NODES.stored_in, "", name)
        if stored is None or self._behaviours.get(name, NodeBehaviour()).stop_after_s is None:
            return
        obj = editable(stored)
        obj["metadata"].setdefault("annotations", {})[NODE_STATE] = STOPPED
        self._registry.replace(NODES, stored, obj)

    def _catch_up(self, node_name: str) -> None:
        """Run the pods of a node whose kubelet runs again, and stop terminating ones."""
        for admitted in [found for found in self._pods.values() if found.node == node_name]:
            pod = self._pod(admitted.namespace, admitted.name)
            if pod is None:
                continue
            if pod.is_terminating:
                self._stop_pod(pod)
            elif pod.status.get("phase") == "Running":
                self._run_pod(pod)

    def _forget_node(self, stored: Stored) -> None:
        """Forget a deleted node and its pods, which the pod garbage collector removes."""
        load = self._nodes.pop(stored.name, None)
        self._behaviours.pop(stored.name, None)
        self._dead.discard(stored.name)
        self._waiting.pop(stored.name, None)
        self._reporter.forget(stored.name)
        for uid in load.pod_uids if load is not None else ():
            self._pods.pop(uid, None)

    def _see_pod(self, stored: Stored) -> None:
        metadata, status = stored.metadata, stored.status
        uid = metadata["uid"]
        if status.get("phase") in _FINISHED:
            self._release(uid)
        elif not metadata.get("deletionTimestamp"):
            admitted = self._pods.get(uid)
            if admitted is None:
                self._admit(stored)
            elif admitted.generation != metadata.get("generation"):
                self._resize(stored)
        if metadata.get("deletionTimestamp"):
            self._stop_pod(stored)

    def _take_over(self, stored: Stored) -> None:
        """Take over a pod that exists at the start; a running one is not refused and does not end.

        Only a pod with the annotation ``stowage/run-seconds`` ends.
        """
        try:
            pod = decode_pod(stored.content)
        except InvalidObject as error:
            log.warning("pod is not run", pod=stored.name, why=str(error))
            return
        load = self._nodes.get(pod.spec.node_name)
        if pod.status.phase not in {"Running", "Unknown"} or load is None:
            if pod.spec.node_name:
                self._later(self._see_pod, stored)
            return
        metadata = pod.metadata
        self._pods[metadata.uid] = _admitted(stored)
        try:
            load.take(pod)
        except (InvalidObject, SelectorError) as error:
            log.warning("what a pod takes is not known", pod=stored.name, why=str(error))
        self._devices.take_over(stored)
        if RUN_SECONDS_ANNOTATION in metadata.annotations:
            self._plan_end(stored)
        if metadata.deletion_timestamp:
            self._later(self._stop_pod, stored)

    def _admit(self, stored: Stored) -> None:
        uid, node_name = stored.uid, stored.spec["nodeName"]
        load = self._nodes.get(node_name)
        if load is None or node_name in self._dead:
            waiting = self._waiting.setdefault(node_name, {})
            waiting[uid] = (stored.namespace, stored.name)
            return
        self._pods[uid] = _admitted(stored)
        refusal = self._judge(load, stored)
        if refusal is not None:
            self._refuse(stored, refusal)
        elif stored.status.get("phase") == "Pending":
            self._begin(stored)
        else:
            self._plan_end(stored)

    def _resize(self, stored: Stored) -> None:
        """Count what an admitted pod requests now."""
        uid = stored.uid
        self._pods[uid] = _admitted(stored)
        load = self._nodes.get(stored.spec["nodeName"])
        if load is None or not load.holds(uid):
            return
        try:
            load.take(decode_pod(stored.content))
        except (InvalidObject, SelectorError) as error:
            log.warning("what a pod takes is not known", pod=stored.name, why=str(error))

    @staticmethod
    def _judge(load: NodeLoad, stored: Stored) -> Refusal | None:
        try:
            return load.admit(decode_pod(stored.content))
        except (InvalidObject, SelectorError) as error:
            return Refusal("UnexpectedAdmissionError", str(error))

    def _refuse(self, stored: Stored, refusal: Refusal) -> None:
        now = self._registry.clock.now()
        self._change(stored, lambda pod: refused_status(pod, now, refusal))

    def _change(self, stored: Stored, transform: Callable[[Json], Json]) -> None:
        """Set a pod's status unless it was replaced or has finished, or its kubelet is stopped."""
        current = self._pod(stored.namespace, stored.name)
        if (
            current is None
            or current.uid != stored.uid
            or current.status.get("phase") in _FINISHED
            or current.spec.get("nodeName") != stored.spec.get("nodeName")  # restored from a backup
            or current.spec["nodeName"] in self._dead
        ):
            return
        self._registry.change_status(PODS, stored.namespace, stored.name, transform)

    def _begin(self, stored: Stored) -> None:
        """Start a pod once its claims are ready and its start time is over."""
        if self._claims.must_wait(stored):
            return
        if self._reach.must_wait(stored) or self._devices.must_wait(stored):
            self._show_creating(stored)
            return
        refusal = self._devices.prepare(stored)
        if refusal is not None:
            self._refuse(stored, refusal)
            return
        behaviour = self._behaviour_for(stored)
        start_s = behaviour.pod_start_s
        start_s = self._options.start_s if start_s is None else start_s
        self._after(start_s, lambda: self._start_pod(stored))

    def _show_creating(self, stored: Stored) -> None:
        """Show that a pod's containers are being created, unless the status shows it already."""
        if not stored.status.get("containerStatuses"):
            now = self._registry.clock.now()
            self._change(stored, lambda pod: creating_status(pod, now))

    def _behaviour_for(self, stored: Stored) -> NodeBehaviour:
        return self._behaviours.get(stored.spec.get("nodeName", ""), NodeBehaviour())

    def _start_pod(self, stored: Stored) -> None:
        if stored.uid in self._stopping:
            return
        rate = self._behaviour_for(stored).pod_failure_rate
        if rate and self._random.random() < rate:
            self._fail_pod(stored)
            return
        self._run_pod(stored)
        self._plan_end(stored)

    def _run_pod(self, stored: Stored) -> None:
        now, pod_ip = self._registry.clock.now(), stored.status.get("podIP")
        node = self._store.get(NODES.stored_in, "", stored.spec["nodeName"])
        host_ip = internal_ip(node) or "127.0.0.1"
        if not pod_ip:
            pod_ip = host_ip if stored.spec.get("hostNetwork") else self._new_address()
        self._change(stored, lambda pod: running_status(pod, now, pod_ip, host_ip))

    def _fail_pod(self, stored: Stored) -> None:
        """Mark a pod as failed, or as crashing if it is restarted."""
        now = self._registry.clock.now()
        if stored.spec.get("restartPolicy") == "Never":
            self._change(stored, lambda pod: failed_status(pod, now))
        else:
            self._change(stored, lambda pod: crashing_status(pod, now))

    def _new_address(self) -> str:
        self._next_address += 1
        high, low = divmod(self._next_address, 254)
        return f"10.{64 + high // 256 % 128}.{high % 256}.{low + 1}"

    def _plan_end(self, stored: Stored) -> None:
        job_run_s = self._behaviour_for(stored).job_run_s
        default_s = self._options.job_run_s if job_run_s is None else job_run_s
        seconds = _run_seconds(stored.obj, default_s)
        if seconds is not None:
            self._after(seconds, lambda: self._finish(stored))

    def _finish(self, stored: Stored) -> None:
        now = self._registry.clock.now()
        self._change(stored, lambda pod: succeeded_status(pod, now))

    def _stop_pod(self, stored: Stored) -> None:
        metadata = stored.metadata
        uid = metadata["uid"]
        if uid in self._stopping or stored.spec.get("nodeName") in self._dead:
            return
        self._stopping.add(uid)
        grace = metadata.get("deletionGracePeriodSeconds") or 0
        self._after(min(grace, self._options.stop_s), lambda: self._remove(stored))

    def _remove(self, stored: Stored) -> None:
        uid = stored.uid
        self._stopping.discard(uid)
        current = self._pod(stored.namespace, stored.name)
        if current is None or current.uid != uid:
            return
        if current.spec.get("nodeName") in self._dead:
            return
        if current.finalizers:  # the pod stays, and others can have its room
            now = self._registry.clock.now()
            self._change(current, lambda pod: stopped_status(pod, now))
        options = DeleteOptions(grace_period_s=0, uid=uid)
        self._registry.delete(PODS, stored.namespace, stored.name, options)

    def _release_pod(self, stored: Stored) -> None:
        uid = stored.uid
        self._release(uid)
        self._pods.pop(uid, None)
        self._stopping.discard(uid)
        self._waiting.get(stored.spec.get("nodeName", ""), {}).pop(uid, None)
        self._claims.forget(stored)
        self._reach.forget(stored)
        self._devices.forget(stored)

    def _release(self, uid: str) -> None:
        self._devices.release(uid)
        admitted = self._pods.get(uid)
        load = self._nodes.get(admitted.node) if admitted is not None else None
        if load is not None:
            load.release(uid)


def _admitted(stored: Stored) -> _Admitted:
    generation = stored.metadata.get("generation", 0)
    return _Admitted(stored.spec["nodeName"], stored.namespace, stored.name, generation)


def _run_seconds(pod: Json, job_run_s: float) -> float | None:
    """How long a pod runs before it succeeds; ``None`` if it does not end by itself."""
    if pod["spec"].get("restartPolicy") == "Always":
        return None
    metadata = pod["metadata"]
    asked = (metadata.get("annotations") or {}).get(RUN_SECONDS_ANNOTATION)
    if asked is not None:
        with contextlib.suppress(ValueError):
            return float(asked)
        log.warning("annotation is no number", annotation=RUN_SECONDS_ANNOTATION, value=asked)
    owners = metadata.get("ownerReferences") or ()
    return job_run_s if any(owner.get("kind") == "Job" for owner in owners) else None
