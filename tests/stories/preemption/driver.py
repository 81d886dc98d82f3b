"""An engine driver for preemption: running pods, preemptors and outcomes of evictions."""

from __future__ import annotations

from functools import partial
from typing import Any

from msgspec.structs import replace

from stowage.api.events import AssignedPodGone, AssignedPodSeen, EvictionFinished, PendingPodSeen
from stowage.api.instructions import EvictPod, Instruction
from stowage.api.objects.meta import Condition
from stowage.api.objects.pod import Affinity, Pod, PodAffinity
from tests.support.builders import HOSTNAME, affinity_term, label_selector, make_pod
from tests.support.engines import default_engine, of_type
from tests.support.models.engine_driver import EngineDriver

LOW, HIGH, HIGHER = 0, 100, 1000
"""Priorities: of running pods, of preemptors, of pods that preemptors cannot preempt."""

AWAY_FROM_WEB = Affinity(
    pod_anti_affinity=PodAffinity((affinity_term(HOSTNAME, label_selector({"app": "web"})),))
)
"""Keeps a pod from the nodes of the pods with the label ``app: web``, and these from its own."""


class PreemptionDriver(EngineDriver):
    """An engine with `options` of `default_engine`, and the pods it has seen, by name."""

    def __init__(self, **options: Any) -> None:
        super().__init__(partial(default_engine, **options))
        self.pods: dict[str, Pod] = {}

    def add_nodes(self, *names: str, **fields: Any) -> None:
        super().add_nodes(*names, **{"cpu": "2", **fields})

    def show_running(self, name: str, node: str, **fields: Any) -> Pod:
        """Show a pod that runs on a node; each pod has started later than those shown before."""
        started = f"2026-01-01T00:{len(self.pods):02d}:00Z"
        fields = {"cpu": "1", "priority": LOW, "started": started, "phase": "Running", **fields}
        return self._show(make_pod(name, node=node, **fields))

    def show_pending(self, name: str, **fields: Any) -> Pod:
        """Show a pending pod, by default one that may preempt running pods."""
        return self._show(make_pod(name, **{"cpu": "1", "priority": HIGH, **fields}))

    def schedule_next(self, after_s: float = 0.0) -> list[Instruction]:
        """Let time pass and let the engine schedule one pod."""
        self.now += after_s
        return self.schedule(1)

    def finish_eviction(self, eviction: EvictPod, *, error: str = "") -> list[Instruction]:
        """Report that the API server has deleted the victim, or has refused to."""
        answer = EvictionFinished(
            eviction.preemptor.uid, eviction.victim, was_deleted=not error, error=error
        )
        return self.handle(answer)

    def show_terminating(self, name: str) -> None:
        """Show a pod with a deletion timestamp and the condition that preemption sets."""
        pod = self.pods[name]
        condition = Condition("DisruptionTarget", "True", "PreemptionByScheduler")
        metadata = replace(pod.metadata, deletion_timestamp="2026-01-02T00:00:00Z")
        self._show(
            replace(pod, metadata=metadata, status=replace(pod.status, conditions=(condition,)))
        )

    def remove(self, name: str) -> list[Instruction]:
        """Report that a running pod is gone."""
        meta = self.pods[name].metadata
        return self.handle(AssignedPodGone(meta.namespace, meta.name, meta.uid))

    def show_nomination(self, name: str, node: str) -> None:
        """Show a pending pod with its nominated node."""
        pod = self.pods[name]
        self._show(replace(pod, status=replace(pod.status, nominated_node_name=node)))

    def _show(self, pod: Pod) -> Pod:
        self.pods[pod.metadata.name] = pod
        self.handle(AssignedPodSeen(pod) if pod.spec.node_name else PendingPodSeen(pod))
        return pod


def preempt_two(driver: PreemptionDriver) -> EvictPod:
    """Let `p` preempt `a` and `b`, which fill the node `n0`; returns the first eviction."""
    driver.add_nodes("n0")
    for name in ("a", "b"):
        driver.show_running(name, "n0")
    driver.show_pending("p", cpu="2")
    (first,) = of_type(EvictPod, driver.schedule_next())
    return first


def names(evictions: list[EvictPod]) -> list[str]:
    """The names of the victims."""
    return [each.victim.name for each in evictions]
