"""The kubelet stand-in: runs what is bound to any node, or refuses it as a kubelet would.

It judges pods one by one in the order they were bound, against the node's allocatable and what it
has admitted before. A scheduler that overcommits a node therefore sees pods fail with ``OutOfcpu``
and the like. Nothing runs; statuses change as if it did.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import structlog

from scheduler.api import InvalidObject, Node, SelectorError, decode_object, decode_pod
from scheduler.cluster.deletion import DeleteOptions
from scheduler.cluster.node_load import NodeLoad, Refusal
from scheduler.cluster.nodes import node_conditions
from scheduler.cluster.pod_status import refused_status, running_status, succeeded_status
from scheduler.cluster.registry import Registry
from scheduler.cluster.resources import NODES, PODS
from scheduler.cluster.store import Change, Stored

Json = dict[str, Any]

RUN_SECONDS_ANNOTATION = "stowage/run-seconds"
_FINISHED = frozenset(("Succeeded", "Failed"))

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class KubeletOptions:
    """How long things take.

    Args:
        start_s: from admission to Running.
        job_run_s: how long a Job's pod runs before it succeeds. A pod that does not restart may
            say so itself in the annotation ``stowage/run-seconds``.
        stop_s: longest a terminating pod takes to stop; its grace period may be shorter.
    """

    start_s: float = 0.0
    job_run_s: float = 2.0
    stop_s: float = 0.1


class _Admitted(NamedTuple):
    node: str
    namespace: str
    name: str


class Kubelet:
    """The kubelets of all nodes.

    Args:
        registry: where pods and nodes live.
        options: how long things take.
    """

    def __init__(self, registry: Registry, options: KubeletOptions) -> None:
        self._registry = registry
        self._store = registry.store
        self._options = options
        self._nodes: dict[str, NodeLoad] = {}
        self._pods: dict[str, _Admitted] = {}
        self._waiting: dict[str, dict[str, tuple[str, str]]] = {}
        self._stopping: set[str] = set()
        self._work: deque[Callable[[], None]] = deque()
        self._wake = asyncio.Event()
        self._timers: set[asyncio.TimerHandle] = set()
        self._task: asyncio.Task[None] | None = None
        self._unsubscribe: list[Callable[[], None]] = []
        self._next_address = 0

    def start(self) -> None:
        """Take over what exists and follow what changes."""
        for stored in self._store.collection(NODES.stored_in).items():
            self._later(self._see_node, stored)
        pods = self._store.collection(PODS.stored_in).items()
        for stored in sorted(pods, key=lambda pod: pod.revision):
            self._later(self._see_pod, stored)
        self._unsubscribe = [
            self._store.subscribe(NODES.stored_in, self._on_node),
            self._store.subscribe(PODS.stored_in, self._on_pod),
        ]
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Stop following; every pod stays as it is."""
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def _on_node(self, change: Change) -> None:
        if change.type == "DELETED":
            self._later(self._forget_node, change.current)
        else:
            self._later(self._see_node, change.current)

    def _on_pod(self, change: Change) -> None:
        if change.type == "DELETED":
            self._later(self._release_pod, change.current)
        elif change.current.obj["spec"].get("nodeName"):
            self._later(self._see_pod, change.current)

    def _later(self, act: Callable[[Stored], None], stored: Stored) -> None:
        self._work.append(lambda: act(stored))
        self._wake.set()

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._work:
                act = self._work.popleft()
                try:
                    act()
                except Exception:
                    log.exception("kubelet stand-in failed on an object; it goes on with the next")
                if len(self._work) % 64 == 0:
                    await asyncio.sleep(0)

    def _after(self, seconds: float, act: Callable[[], None]) -> None:
        if seconds <= 0:
            self._work.append(act)
            self._wake.set()
            return

        def fire() -> None:
            self._timers.discard(timer)
            self._work.append(act)
            self._wake.set()

        timer = asyncio.get_running_loop().call_later(seconds, fire)
        self._timers.add(timer)

    def _see_node(self, stored: Stored) -> None:
        try:
            node = decode_object(Node, stored.body)
            load = self._nodes.get(stored.name)
            if load is None:
                self._nodes[stored.name] = NodeLoad(node)
            else:
                load.update_node(node)
        except InvalidObject as error:
            log.warning("node is not run", node=stored.name, why=str(error))
            return
        self._report_ready(stored)
        for namespace, name in self._waiting.pop(stored.name, {}).values():
            pod = self._store.get(PODS.stored_in, namespace, name)
            if pod is not None:
                self._see_pod(pod)

    def _report_ready(self, stored: Stored) -> None:
        """Give a node that says nothing of its health the conditions of a healthy one."""
        conditions = stored.obj["status"].get("conditions") or []
        if any(condition.get("type") == "Ready" for condition in conditions):
            return
        fresh = node_conditions(self._registry.clock.now())
        self._registry.change_status(
            NODES, "", stored.name, lambda node: {**node["status"], "conditions": fresh}
        )

    def _forget_node(self, stored: Stored) -> None:
        """A node takes its pods with it."""
        load = self._nodes.pop(stored.name, None)
        self._waiting.pop(stored.name, None)
        for uid in load.pod_uids if load is not None else ():
            admitted = self._pods.pop(uid)
            if self._store.get(PODS.stored_in, admitted.namespace, admitted.name) is not None:
                options = DeleteOptions(grace_period_s=0, uid=uid)
                self._registry.delete(PODS, admitted.namespace, admitted.name, options)

    def _see_pod(self, stored: Stored) -> None:
        metadata, status = stored.obj["metadata"], stored.obj["status"]
        uid = metadata["uid"]
        if status.get("phase") in _FINISHED:
            self._release(uid)
        elif uid not in self._pods and not metadata.get("deletionTimestamp"):
            self._admit(stored)
        if metadata.get("deletionTimestamp"):
            self._stop_pod(stored)

    def _admit(self, stored: Stored) -> None:
        uid, node_name = stored.obj["metadata"]["uid"], stored.obj["spec"]["nodeName"]
        load = self._nodes.get(node_name)
        if load is None:
            waiting = self._waiting.setdefault(node_name, {})
            waiting[uid] = (stored.namespace, stored.name)
            return
        self._pods[uid] = _Admitted(node_name, stored.namespace, stored.name)
        refusal = self._judge(load, stored)
        if refusal is not None:
            self._refuse(stored, refusal)
        elif stored.obj["status"].get("phase") == "Pending":
            self._after(self._options.start_s, lambda: self._start_pod(stored))
        else:
            self._plan_end(stored)

    @staticmethod
    def _judge(load: NodeLoad, stored: Stored) -> Refusal | None:
        try:
            return load.admit(decode_pod(stored.body))
        except (InvalidObject, SelectorError) as error:
            return Refusal("UnexpectedAdmissionError", str(error))

    def _refuse(self, stored: Stored, refusal: Refusal) -> None:
        now = self._registry.clock.now()
        self._change(stored, lambda pod: refused_status(pod, now, refusal))

    def _change(self, stored: Stored, transform: Callable[[Json], Json]) -> None:
        """Set the status of a pod that is still the same one and has not finished."""
        current = self._store.get(PODS.stored_in, stored.namespace, stored.name)
        if (
            current is None
            or current.obj["metadata"]["uid"] != stored.obj["metadata"]["uid"]
            or current.obj["status"].get("phase") in _FINISHED
        ):
            return
        self._registry.change_status(PODS, stored.namespace, stored.name, transform)

    def _start_pod(self, stored: Stored) -> None:
        if stored.obj["metadata"]["uid"] in self._stopping:
            return
        now, pod_ip = self._registry.clock.now(), self._new_address()
        node = self._store.get(NODES.stored_in, "", stored.obj["spec"]["nodeName"])
        host_ip = _internal_ip(node) or "127.0.0.1"
        self._change(stored, lambda pod: running_status(pod, now, pod_ip, host_ip))
        self._plan_end(stored)

    def _new_address(self) -> str:
        self._next_address += 1
        high, low = divmod(self._next_address, 254)
        return f"10.{64 + high // 256 % 128}.{high % 256}.{low + 1}"

    def _plan_end(self, stored: Stored) -> None:
        seconds = _run_seconds(stored.obj, self._options.job_run_s)
        if seconds is not None:
            self._after(seconds, lambda: self._finish(stored))

    def _finish(self, stored: Stored) -> None:
        now = self._registry.clock.now()
        self._change(stored, lambda pod: succeeded_status(pod, now))

    def _stop_pod(self, stored: Stored) -> None:
        metadata = stored.obj["metadata"]
        uid = metadata["uid"]
        if uid in self._stopping:
            return
        self._stopping.add(uid)
        grace = metadata.get("deletionGracePeriodSeconds") or 0
        self._after(min(grace, self._options.stop_s), lambda: self._remove(stored))

    def _remove(self, stored: Stored) -> None:
        uid = stored.obj["metadata"]["uid"]
        self._stopping.discard(uid)
        current = self._store.get(PODS.stored_in, stored.namespace, stored.name)
        if current is None or current.obj["metadata"]["uid"] != uid:
            return
        options = DeleteOptions(grace_period_s=0, uid=uid)
        self._registry.delete(PODS, stored.namespace, stored.name, options)

    def _release_pod(self, stored: Stored) -> None:
        uid = stored.obj["metadata"]["uid"]
        self._release(uid)
        self._pods.pop(uid, None)
        self._stopping.discard(uid)
        self._waiting.get(stored.obj["spec"].get("nodeName", ""), {}).pop(uid, None)

    def _release(self, uid: str) -> None:
        admitted = self._pods.get(uid)
        load = self._nodes.get(admitted.node) if admitted is not None else None
        if load is not None:
            load.release(uid)


def _internal_ip(node: Stored | None) -> str:
    addresses = (node.obj["status"].get("addresses") or ()) if node is not None else ()
    found = (entry["address"] for entry in addresses if entry.get("type") == "InternalIP")
    return next(found, "")


def _run_seconds(pod: Json, job_run_s: float) -> float | None:
    """How long a pod runs before it succeeds; ``None`` for as long as it is let."""
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
