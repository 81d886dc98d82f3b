"""Invariants of pods, bindings and leases, checked on every write in the server's history."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stowage.api import Node, Pod
from stowage.api.values.resources import node_allocatable, pod_requests
from tests.simulation.device_audit import DeviceAuditor
from tests.simulation.device_objects import ACCELERATOR
from tests.simulation.extenders import is_interested, refused_by, spares
from tests.simulation.fault_rates import RECOVERY_S, FaultRates
from tests.simulation.feasible_nodes import FINISHED, decoded
from tests.simulation.gang_audit import GangAuditor
from tests.simulation.objects import GADGET
from tests.simulation.server import LEASES, NODES, PODS, Change, Json, ModelServer
from tests.simulation.storage_audit import StorageAuditor


@dataclass(slots=True)
class _Lease:
    """The lease by the clock of the loop, which does not jump.

    Attributes:
        holder: The holder's identity; empty before the first lease and after a release.
        lasts_until: When another replica may take it if it is not renewed.
    """

    holder: str = ""
    lasts_until: float = 0.0


class Auditor:
    """Follows every change and records violated invariants.

    Attributes:
        extenders: The configured extenders.
        violations: One sentence each.
        num_bound: How many pods were bound by the scheduler.
    """

    def __init__(
        self, server: ModelServer, fault_rates: FaultRates, now: Callable[[], float]
    ) -> None:
        self.violations: list[str] = []
        self.num_bound = 0
        self.extenders: Sequence[Json] = ()
        self._fault_rates = fault_rates
        self._server = server
        self._now = now
        self._storage = StorageAuditor(server, fault_rates, now)
        self._storage.violations = self.violations
        self._devices = DeviceAuditor(server)
        self._devices.violations = self.violations
        self._gangs = GangAuditor(server, fault_rates, now)
        self._gangs.violations = self.violations
        self._node_of: dict[str, str] = {}
        self._on_node: defaultdict[str, dict[str, Counter[str]]] = defaultdict(dict)
        self._foreign: set[str] = set()
        self._lease = _Lease()
        self._priorities: set[int] = set()
        self._num_evicted = 0
        server.subscribe(self._take, LEASES, PODS)

    def write_sent(self, process: str, path: str, body: bytes) -> None:
        """Check a write that leaves a process: the process must hold the lease.

        Leases, and the Events about them, are written without it.
        """
        if "/leases" in path or b'"kind":"Lease"' in body:
            return
        lease, what = self._lease, path.rsplit("/", 1)[-1]
        if lease.holder != process:
            self.violations.append(f"{process} let {what} out while {lease.holder!r} led")
        elif self._now() > lease.lasts_until:
            late_s = self._now() - lease.lasts_until
            self.violations.append(f"{process} let {what} out {late_s:.3f} s after its lease")

    def _take(self, change: Change) -> None:
        if change.path == LEASES and change.after is not None:
            spec = change.after["spec"]
            self._lease = _Lease(spec["holderIdentity"], change.at + spec["leaseDurationSeconds"])
        elif change.path == PODS:
            self._take_pod(change)
            self._check_victims()

    def _check_victims(self) -> None:
        """Check that some pod has a higher priority than the victim, and no extender spares it."""
        for pod in self._server.evicted[self._num_evicted :]:
            priority = pod["spec"]["priority"]
            if not any(other > priority for other in self._priorities):
                self.violations.append(
                    f"pod {pod['metadata']['uid']} was evicted without a preemptor"
                )
            for each in self._binding_extenders():
                is_asked = "preemptVerb" in each and "managedResources" not in each
                if is_asked and spares(each, pod["metadata"]["uid"]):
                    spared = f"although {each['urlPrefix']} spares it"
                    self.violations.append(f"pod {pod['metadata']['uid']} was evicted {spared}")
        self._num_evicted = len(self._server.evicted)

    def _take_pod(self, change: Change) -> None:
        pod = change.current
        uid, node_name = pod["metadata"]["uid"], pod["spec"].get("nodeName", "")
        self._priorities.add(pod["spec"]["priority"])
        if not node_name:
            return
        if change.after is None or pod["status"].get("phase") in FINISHED:
            self._on_node[node_name].pop(uid, None)
        if change.after is None:
            return
        before = self._node_of.setdefault(uid, node_name)
        if before != node_name:
            self.violations.append(f"pod {uid} was bound to {before} and to {node_name}")
        if pod["status"].get("phase") in FINISHED:
            return
        if uid not in self._on_node[node_name]:
            self._placed(uid, pod, node_name)
        elif change.before is not None and change.before["spec"] is not pod["spec"]:
            self._on_node[node_name][uid] = requests_of(pod)

    def _placed(self, uid: str, pod: Json, node_name: str) -> None:
        binders = self._server.binders.get(uid, [])
        if len(binders) > 1:
            self.violations.append(f"pod {uid} was bound by {' and by '.join(binders)}")
        if not binders or binders[0] == "foreign":
            self._foreign.add(uid)
        else:
            self.num_bound += 1
            if pod["spec"].get("schedulingGates"):
                self.violations.append(f"pod {uid} was bound behind its gate")
        self._on_node[node_name][uid] = requests_of(pod)
        node = self._server.collection(NODES).get(("", node_name))
        if node is None or uid in self._foreign:
            return
        self._check_capacity(node, node_name, uid)
        self._storage.check_placed(pod, node_name, self._foreign)
        self._devices.check_placed(pod, node_name)
        self._gangs.check_placed(pod)
        self._check_extenders(pod, node_name, binders[0])

    def _binding_extenders(self) -> list[Json]:
        """The extenders that must be obeyed: in the calm phase those that may be ignored, too."""
        is_calm = self._now() > self._fault_rates.calm_since + RECOVERY_S
        return [each for each in self.extenders if is_calm or not each["ignorable"]]

    def _check_extenders(self, pod: Json, node_name: str, binder: str) -> None:
        extenders = self._binding_extenders()
        subject = f"pod {pod['metadata']['uid']} was bound"
        for name in refused_by(extenders, pod, node_name):
            self.violations.append(f"{subject} to {node_name}, which {name} refuses")
        for each in extenders:
            name = each["urlPrefix"]
            if "bindVerb" in each and is_interested(each, pod) and binder != name:
                self.violations.append(f"{subject} by {binder}, bypassing {name}")

    def _check_capacity(self, node: Json, node_name: str, uid: str) -> None:
        """Check that our pods do not overcommit the node; pods of other schedulers do not count."""
        used: Counter[str] = Counter()
        for each, requests in self._on_node[node_name].items():
            if each not in self._foreign:
                used += requests
        for resource, amount in used.items():
            has = node_allocatable(decoded(Node, node)).get(resource, 0)
            if amount > has:
                self.violations.append(
                    f"pod {uid} overcommits {node_name}: {resource} {amount} of {has}"
                )


def requests_of(pod: Json) -> Counter[str]:
    """The resources that a pod takes of its node; not those that an extender or devices serve."""
    requests = pod_requests(decoded(Pod, pod))
    own = {name: requests[name] for name in requests if name not in (GADGET, ACCELERATOR)}
    return Counter(own | {"pods": 1})
