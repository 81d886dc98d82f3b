"""Judges a cluster's history: which guarantees were broken, and how fast binding resumed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from simcluster.kubelet.nodes import bench_node
from stowage.api.values.quantity import quantity_milli_value
from stowage_benchmarks.chaos.claim_ledger import ClaimLedger
from stowage_benchmarks.chaos.gang_ledger import GangLedger
from stowage_benchmarks.chaos.history import (
    ClaimChange,
    GroupChange,
    Line,
    NodeChange,
    PodChange,
    WriteArrived,
)
from stowage_benchmarks.chaos.pods import WITH_DEVICE, WITH_VOLUME

_ALLOCATABLE = bench_node(0)["status"]["allocatable"]
NODE_CPU_MILLI = quantity_milli_value(_ALLOCATABLE["cpu"])
NODE_PODS = int(_ALLOCATABLE["pods"])
_FINISHED = ("Succeeded", "Failed")
_OUT_OF = "OutOf"


@dataclass(slots=True)
class SeenPod:
    """A pod that exists.

    Attributes:
        node: Where it was bound, or empty.
        bound_by: The replica that did it; empty for anybody else.
    """

    name: str
    uid: str
    cpu_milli: int
    scheduler: str
    created_at: float
    node: str = ""
    bound_by: str = ""
    is_finished: bool = False
    is_evicted: bool = False


@dataclass(slots=True)
class Disturbance:
    """A leader was killed or stopped.

    Attributes:
        at: When, in monotonic seconds.
        kind: What was done to it.
        was_taken_over: Whether the lease has changed hands since.
        recovered_at: The first binding after that; None while there is none.
        limit_s: So long it may take; None where other faults may be in the way.
        waited_s: So long the processes on its way waited for a CPU, which does not count: others
            use the machine, too.
    """

    at: float
    kind: str
    holder: str
    limit_s: float | None = None
    waited_s: float = 0.0
    was_taken_over: bool = False
    recovered_at: float | None = None

    @property
    def lateness(self) -> str:
        """A violation as a sentence if recovery took longer than the limit, else empty."""
        limit_s, after = self.limit_s, "after: " + self.kind
        if limit_s is None:
            return ""
        if self.recovered_at is None:
            return f"no replica bound a pod {after}"
        took_s = self.recovered_at - self.at
        if took_s <= limit_s + self.waited_s:
            return ""
        waited = f", {self.waited_s:.2f} s of them without a CPU" if self.waited_s else ""
        return f"no pod was bound for {took_s:.2f} s{waited} {after}"


@dataclass(slots=True)
class Ledger:
    """The state of the cluster according to its history, and the violations found.

    Attributes:
        scheduler_name: ``spec.schedulerName`` of the pods that the replicas place.
        lease_s: Duration of the lease after its last renewal.
        pods: Existing pods, by UID.
        finished: UIDs of finished pods that still exist.
        node_names: Names of existing nodes.
        on_node: Unfinished pods, by node and UID.
        claims: Claims and the devices that they have.
        gangs: Pod groups and their members.
        holder: ``holderIdentity`` of the lease.
        longest_wait_s: Longest time that a write waited in front of the server.
        violations: Broken guarantees, one sentence each.
        counts: Number of events, by name.
    """

    scheduler_name: str
    lease_s: float
    pods: dict[str, SeenPod] = field(default_factory=dict)
    finished: set[str] = field(default_factory=set)
    node_names: set[str] = field(default_factory=set)
    on_node: dict[str, dict[str, SeenPod]] = field(default_factory=dict)
    waiting: dict[str, SeenPod] = field(default_factory=dict)
    claims: ClaimLedger = field(default_factory=ClaimLedger)
    gangs: GangLedger = field(default_factory=GangLedger)
    holder: str = ""
    holding_replica: str = ""
    violations: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    disturbances: list[Disturbance] = field(default_factory=list)
    longest_wait_s: float = 0.0
    first_bound_at: float | None = None
    last_bound_at: float = 0.0
    _renewed_at: dict[str, float] = field(default_factory=dict)
    _names: set[str] = field(default_factory=set)
    _deleted: set[str] = field(default_factory=set)
    _bound_by: dict[str, str] = field(default_factory=dict)

    def take(self, lines: Iterable[Line]) -> None:
        """Process new lines of the history."""
        for line in lines:
            if isinstance(line, PodChange):
                self._take_pod(line)
                self.gangs.take_pod(line, self.counts)
            elif isinstance(line, GroupChange):
                self.gangs.take_group(line)
            elif isinstance(line, ClaimChange):
                self.claims.take(line, self.counts, self.violations)
            elif isinstance(line, NodeChange):
                self._take_node(line)
            elif isinstance(line, WriteArrived):
                self._take_write(line)
            else:
                self._take_lease(line.at, line.by, line.holder)

    def disturbed(self, at: float, kind: str, limit_s: float | None = None) -> Disturbance:
        """Record that the present leader was killed or stopped, to time the recovery."""
        disturbance = Disturbance(at, kind, self.holder, limit_s)
        self.disturbances.append(disturbance)
        return disturbance

    @property
    def binds_per_s(self) -> float:
        """Bindings per second between the first and the last one by a replica."""
        if self.first_bound_at is None or self.last_bound_at == self.first_bound_at:
            return 0.0
        return self.counts["pods bound"] / (self.last_bound_at - self.first_bound_at)

    def cpu_used(self, node_name: str) -> int:
        """Milli-CPUs requested by the pods of a node."""
        return sum(pod.cpu_milli for pod in self.on_node.get(node_name, {}).values())

    def _take_node(self, line: NodeChange) -> None:
        if line.change == "DELETED":
            self.node_names.discard(line.name)
            self.counts["nodes removed"] += 1
        else:
            self.node_names.add(line.name)

    def _take_lease(self, at: float, by: str, holder: str) -> None:
        if holder and holder != self.holder:
            self.counts["leaders"] += 1
            for each in self.disturbances:
                each.was_taken_over = each.was_taken_over or each.holder != holder
        self.holder, self.holding_replica = holder, by if holder else ""
        self._renewed_at[by] = at

    def _take_write(self, line: WriteArrived) -> None:
        """Report a write that left its replica when the lease was over.

        A lease is over later here than for its replica, which counts from before its renewal to
        the renew deadline. What the server does with a write that waited is the server's affair.
        """
        if self.holding_replica and line.by != self.holding_replica:
            self.counts["writes that arrived while another replica led"] += 1
        self.longest_wait_s = max(self.longest_wait_s, line.waited_s)
        renewed_at, sent_at = self._renewed_at.get(line.by), line.passed_at or line.at
        if renewed_at is None:
            self.violations.append(f"{line.by} sent {_shown(line)} and never held the lease")
        elif sent_at - renewed_at > self.lease_s:
            self.violations.append(
                f"{line.by} sent {_shown(line)} {sent_at - renewed_at:.2f} s after it renewed its "
                f"lease of {self.lease_s:g} s, handled {line.waited_s:.2f} s later, "
                f"while {self.holding_replica or 'no replica'} leads"
            )

    def _take_pod(self, line: PodChange) -> None:
        pod = self.pods.get(line.uid)
        if line.change == "DELETED":
            self._forget(line.uid)
            if not line.is_restored:
                self._deleted.add(line.uid)
            return
        if line.is_restored:
            self._restore(line)
            return
        if pod is None:
            pod = SeenPod(line.name, line.uid, line.cpu_milli, line.scheduler, line.at)
            self.pods[line.uid] = pod
            self._count_new(line)
            if not line.node and line.scheduler == self.scheduler_name:
                self.waiting[line.uid] = pod
        if line.node != pod.node:
            self._bound(pod, line)
        if line.is_deleting and line.by and not pod.is_evicted:
            pod.is_evicted = True
            self.counts["pods preempted"] += 1
        if line.phase in _FINISHED and not pod.is_finished:
            pod.is_finished = True
            self.finished.add(line.uid)
            if line.phase == "Failed":
                self._refused(pod, line.reason)
            self.on_node.get(pod.node, {}).pop(line.uid, None)

    def _restore(self, line: PodChange) -> None:
        """A pod is as it was in a backup; what happened to it since then has not happened."""
        pod = SeenPod(line.name, line.uid, line.cpu_milli, line.scheduler, line.at)
        self.pods[line.uid] = pod
        self.counts["pods restored"] += 1
        pod.is_finished = line.phase in _FINISHED
        pod.is_evicted = line.is_deleting
        if line.node:
            pod.node, pod.bound_by = line.node, self._bound_by.get(line.uid, "")
            if not pod.is_finished:
                self.on_node.setdefault(line.node, {})[line.uid] = pod
        elif line.scheduler == self.scheduler_name and not pod.is_finished:
            self.waiting[line.uid] = pod
        if pod.is_finished or line.uid in self._deleted:
            # Whoever deleted it before deletes it again.
            self.finished.add(line.uid)

    def _count_new(self, line: PodChange) -> None:
        self.counts["pods created"] += 1
        if line.name in self._names:
            self.counts["pods made again under their names"] += 1
        self._names.add(line.name)

    def _forget(self, uid: str) -> None:
        pod = self.pods.pop(uid, None)
        self.waiting.pop(uid, None)
        self.finished.discard(uid)
        if pod is not None:
            self.on_node.get(pod.node, {}).pop(uid, None)

    def _bound(self, pod: SeenPod, line: PodChange) -> None:
        if pod.node:
            self.violations.append(f"pod {pod.name} was on {pod.node} and is on {line.node}")
        pod.node, pod.bound_by = line.node, line.by
        self._bound_by[pod.uid] = line.by
        self.waiting.pop(pod.uid, None)
        self.on_node.setdefault(line.node, {})[pod.uid] = pod
        if not line.by:
            self.counts["pods bound by another scheduler"] += 1
            return
        self.counts["pods bound"] += 1
        if pod.name.startswith(WITH_VOLUME):
            self.counts["pods with volumes bound"] += 1
        if pod.name.startswith(WITH_DEVICE):
            self.counts["pods with devices bound"] += 1
            if not self.claims.serves(pod.uid):
                self.violations.append(f"pod {pod.name} was bound without its device")
        self.first_bound_at = self.first_bound_at or line.at
        self.last_bound_at = line.at
        for each in self.disturbances:
            if each.was_taken_over and each.recovered_at is None:
                each.recovered_at = line.at

    def _refused(self, pod: SeenPod, reason: str) -> None:
        """Report a pod that the kubelet refused because its node was overcommitted."""
        there = self.on_node.get(pod.node, {}).values()
        ours = [each for each in there if each.bound_by]
        others = len(there) - len(ours)
        is_overcommitted_by_us = (
            sum(each.cpu_milli for each in ours) > NODE_CPU_MILLI or len(ours) > NODE_PODS
        )
        if not pod.bound_by:
            self.counts["conflicts with another scheduler (its pod refused)"] += 1
        elif reason.startswith(_OUT_OF) and others and not is_overcommitted_by_us:
            self.counts["conflicts with another scheduler (our pod refused)"] += 1
        else:
            self.violations.append(f"pod {pod.name} was refused by node {pod.node}: {reason}")


def _shown(line: WriteArrived) -> str:
    return f"{line.verb} {line.resource} {line.name}".rstrip()
