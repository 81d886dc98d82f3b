"""The pods that a node's kubelet has admitted, and its reasons to refuse another."""

from typing import NamedTuple

from stowage.api import Node, Pod, node_allocatable, pod_requests, required_node_affinity
from stowage.api.values.resource_names import PODS, is_accounted, is_extended_resource_name
from stowage.api.values.tolerations import tolerated


class Refusal(NamedTuple):
    """Reason and message of a pod that a kubelet does not admit."""

    reason: str
    message: str


class _Port(NamedTuple):
    ip: str
    protocol: str
    number: int

    def collides(self, other: "_Port") -> bool:
        """Same port and protocol on the same address, or on all of them."""
        return (self.number, self.protocol) == (other.number, other.protocol) and (
            self.ip == other.ip or "0.0.0.0" in {self.ip, other.ip}  # noqa: S104 - a hostIP, not a socket
        )


class _Load(NamedTuple):
    requests: dict[str, int]
    ports: tuple[_Port, ...]


class NodeLoad:
    """The pods that a node's kubelet has admitted, and the sum of their requests.

    Args:
        node: as decoded from the API.
    """

    def __init__(self, node: Node) -> None:
        self._admitted: dict[str, _Load] = {}
        self._used: dict[str, int] = {}
        self.update_node(node)

    def update_node(self, node: Node) -> None:
        """Replace the node; admitted pods stay."""
        self._node = node
        self._allocatable = node_allocatable(node)

    @property
    def pod_uids(self) -> list[str]:
        """The admitted pods."""
        return list(self._admitted)

    def holds(self, uid: str) -> bool:
        """Whether a pod is admitted."""
        return uid in self._admitted

    def admit(self, pod: Pod) -> Refusal | None:
        """Admit a pod, or return why not: the kubelet's checks in the kubelet's order."""
        requests = self._counted_requests(pod)
        refusal = self._lacking(requests) or self._mismatch(pod)
        if refusal is None:
            self._take(pod, requests)
        return refusal

    def take(self, pod: Pod) -> None:
        """Admit a pod without checks."""
        self.release(pod.metadata.uid)
        self._take(pod, self._counted_requests(pod))

    def _take(self, pod: Pod, requests: dict[str, int]) -> None:
        self._admitted[pod.metadata.uid] = _Load(requests, _host_ports(pod))
        for name, amount in requests.items():
            self._used[name] = self._used.get(name, 0) + amount

    def release(self, uid: str) -> None:
        """Free the resources of a finished or removed pod."""
        load = self._admitted.pop(uid, None)
        if load is not None:
            for name, amount in load.requests.items():
                self._used[name] -= amount

    def _counted_requests(self, pod: Pod) -> dict[str, int]:
        """A pod's requests without extended resources that a claim holds or the node lacks."""
        claimed = pod.status.extended_resource_claim_status
        of_claim = {found.resource_name for found in claimed.request_mappings} if claimed else ()
        return {
            name: amount
            for name, amount in pod_requests(pod).items()
            if is_accounted(name)
            and name not in of_claim
            and (name in self._allocatable or not is_extended_resource_name(name))
        }

    def _lacking(self, requests: dict[str, int]) -> Refusal | None:
        pods = len(self._admitted)
        if pods + 1 > self._allocatable.get(PODS, 0):
            return _out_of(PODS, 1, pods, self._allocatable.get(PODS, 0))
        for name, amount in requests.items():
            used, capacity = self._used.get(name, 0), self._allocatable.get(name, 0)
            if amount > 0 and amount > capacity - used:
                return _out_of(name, amount, used, capacity)
        return None

    def _mismatch(self, pod: Pod) -> Refusal | None:
        labels, name = self._node.metadata.labels, self._node.metadata.name
        if not required_node_affinity(pod.spec).matches(labels, name):
            return _failed("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")
        taken = [port for load in self._admitted.values() for port in load.ports]
        if any(wanted.collides(port) for wanted in _host_ports(pod) for port in taken):
            return _failed(
                "NodePorts", "node(s) didn't have free ports for the requested pod ports"
            )
        taints = (taint for taint in self._node.spec.taints if taint.effect == "NoExecute")
        if not all(tolerated(taint, pod.spec.tolerations) for taint in taints):
            return _failed("TaintToleration", "node(s) had taints that the pod didn't tolerate")
        return None


def _out_of(resource: str, requested: int, used: int, capacity: int) -> Refusal:
    message = (
        f"Node didn't have enough resource: {resource}, requested: {requested}, used: {used}, "
        f"capacity: {capacity}"
    )
    return Refusal(f"OutOf{resource}", message)


def _failed(predicate: str, why: str) -> Refusal:
    return Refusal(predicate, f"Predicate {predicate} failed: {why}")


def _host_ports(pod: Pod) -> tuple[_Port, ...]:
    return tuple(
        _Port(port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)  # noqa: S104 - a hostIP, not a socket
        for container in pod.spec.containers
        for port in container.ports
        if port.host_port > 0
    )
