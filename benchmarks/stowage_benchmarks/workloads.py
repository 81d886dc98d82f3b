"""Nodes and pods of the benchmarks, as the API objects a user would create.

The shapes are those of kube-scheduler's own performance tests: small pods, each kind under one
constraint, so that the cost of the constraint shows; ``mixed`` takes seven kinds in turn. Nodes
have 4 CPUs, 32 GiB and room for 110 pods, in ten zones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from simcluster.kubelet.nodes import HOSTNAME, ZONE, bench_node
from stowage_benchmarks.storage import bound_claims, csi_node, using_claim

Json: TypeAlias = dict[str, Any]

NAMESPACE = "default"
CSI_VOLUMES = "csi-volumes"
"""Basic pods, each with a bound claim of its own, on nodes with a limit for volumes."""
SERVICES = "services"
"""Pods of applications that have a Service each, so that the default constraints spread them."""
CLAIMS = "claims"
"""Basic pods, each with a claim for one device, on nodes with eight devices."""
#: A workload of `stowage bench core`: claims for devices that all nodes of a zone can use.
NETWORK_DEVICES = "network-devices"
#: A workload of `stowage bench core`: gangs that go to one of many racks each.
TOPOLOGY_GANGS = "topology-gangs"
#: Workloads of `stowage bench core` with pods in gangs -> pods of a gang.
GANG_SIZES = {"gangs": 8, "large-gangs": 1_000, TOPOLOGY_GANGS: 8}
#: Numbers of nodes that `stowage bench core` uses by default.
CORE_SIZES = (500, 1_000, 5_000, 15_000)
#: A workload of `stowage bench core` with full nodes.
PREEMPTION = "preemption"
#: The same without victims: every attempt fails.
FAILING_PREEMPTION = "failing-preemption"
#: A workload of `stowage bench core` with a few pods of several kinds.
MANY_TERMS = "many-terms"
#: A workload of `stowage bench core` that measures events, not pods.
REQUEUE_STORM = "requeue-storm"

_IMAGE = "registry.k8s.io/pause:3.10"
_RESOURCES = {"cpu": "100m", "memory": "500Mi"}
_REPLICAS = 3
_INIT_NODE_STRIDE = 7919
"""A prime, so that every node gets one running pod before any gets a second one."""


def pending_pod(workload: str, index: int, scheduler_name: str) -> Json:
    """Pending pod number ``index`` of a workload.

    Raises:
        KeyError: the workload does not exist.
    """
    labels, constraints = WORKLOADS["basic" if workload == CLAIMS else workload](index)
    name = f"pod-{index:06d}"
    if workload == CSI_VOLUMES:
        constraints = using_claim(name)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "schedulerName": scheduler_name,
            "containers": [
                {
                    "name": "pause",
                    "image": _IMAGE,
                    "resources": {"requests": dict(_RESOURCES), "limits": dict(_RESOURCES)},
                }
            ],
            **constraints,
        },
    }


def running_pod(workload: str, index: int, num_nodes: int, scheduler_name: str) -> Json:
    """Running pod number ``index``, on one of the nodes ``node-00000`` and so on.

    For anti-affinity the running pods are of the basic workload, since two would not fit on a node.
    """
    kind = "basic" if workload == "anti-affinity" else workload
    pod = pending_pod(kind, index, scheduler_name)
    pod["metadata"]["name"] = f"init-{index:06d}"
    if workload == CSI_VOLUMES:
        pod["spec"] |= using_claim(pod["metadata"]["name"])
    pod["spec"]["nodeName"] = f"node-{(index * _INIT_NODE_STRIDE) % num_nodes:05d}"
    return pod


def objects_of(workload: str, num_nodes: int, num_running: int, num_pods: int) -> Iterator[Json]:
    """Objects that exist before the pods of a workload: those of their volumes, or Services."""
    if workload == SERVICES:
        num_applications = -(-max(num_running, num_pods) // _REPLICAS)
        yield from map(_service, range(num_applications))
    if workload == CSI_VOLUMES:
        for index in range(num_nodes):
            yield csi_node(bench_node(index)["metadata"]["name"])
        names = [f"init-{index:06d}" for index in range(num_running)]
        names += [f"pod-{index:06d}" for index in range(num_pods)]
        yield from bound_claims(names, NAMESPACE)


def _service(number: int) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": f"service-{number:06d}", "namespace": NAMESPACE},
        "spec": {"selector": _application(number * _REPLICAS), "ports": [{"port": 80}]},
    }


def _application(index: int) -> Json:
    """The labels of the application that a pod is of."""
    return {"app": f"own-{index // _REPLICAS}"}


def _of_a_service(index: int) -> tuple[Json, Json]:
    return _application(index), {}


def _basic(index: int) -> tuple[Json, Json]:
    return {"app": f"a{index % 50}"}, {}


def _node_affinity(_index: int) -> tuple[Json, Json]:
    expression = {"key": ZONE, "operator": "In", "values": ["zone1", "zone2"]}
    selector = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": selector}
    return {"app": "na"}, {"affinity": {"nodeAffinity": required}}


def _affinity(_index: int) -> tuple[Json, Json]:
    return _required("podAffinity", "blue", ZONE)


def _anti_affinity(_index: int) -> tuple[Json, Json]:
    return _required("podAntiAffinity", "green", HOSTNAME)


def _own_anti_affinity(index: int) -> tuple[Json, Json]:
    """The replicas of each application keep away from each other."""
    labels = _application(index)
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": HOSTNAME}
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return labels, {"affinity": {"podAntiAffinity": terms}}


def _preferred_affinity(_index: int) -> tuple[Json, Json]:
    return _preferred("podAffinity", "red", HOSTNAME)


def _preferred_anti_affinity(_index: int) -> tuple[Json, Json]:
    return _preferred("podAntiAffinity", "yellow", HOSTNAME)


def _spread(_index: int) -> tuple[Json, Json]:
    return _spread_over_zones("DoNotSchedule")


def _preferred_spread(_index: int) -> tuple[Json, Json]:
    return _spread_over_zones("ScheduleAnyway")


def _mixed(index: int) -> tuple[Json, Json]:
    return _MIXED[index % len(_MIXED)](index)


def _term(color: str, topology_key: str) -> Json:
    return {
        "labelSelector": {"matchLabels": {"color": color}},
        "topologyKey": topology_key,
        "namespaces": [NAMESPACE],
    }


def _required(which: str, color: str, topology_key: str) -> tuple[Json, Json]:
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [_term(color, topology_key)]}
    return {"color": color}, {"affinity": {which: terms}}


def _preferred(which: str, color: str, topology_key: str) -> tuple[Json, Json]:
    weighted = {"weight": 1, "podAffinityTerm": _term(color, topology_key)}
    terms = {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}
    return {"color": color}, {"affinity": {which: terms}}


def _spread_over_zones(when_unsatisfiable: str) -> tuple[Json, Json]:
    constraint = {
        "maxSkew": 5,
        "topologyKey": ZONE,
        "whenUnsatisfiable": when_unsatisfiable,
        "labelSelector": {"matchLabels": {"color": "blue"}},
    }
    return {"color": "blue"}, {"topologySpreadConstraints": [constraint]}


_MIXED: tuple[Callable[[int], tuple[Json, Json]], ...] = (
    _basic,
    _node_affinity,
    _affinity,
    _preferred_affinity,
    _preferred_anti_affinity,
    _spread,
    _preferred_spread,
)

#: Name -> (pod number -> labels, the rest of the pod's spec).
WORKLOADS: dict[str, Callable[[int], tuple[Json, Json]]] = {
    "basic": _basic,
    "node-affinity": _node_affinity,
    "affinity": _affinity,
    "anti-affinity": _anti_affinity,
    "own-anti-affinity": _own_anti_affinity,
    "preferred-affinity": _preferred_affinity,
    "preferred-anti-affinity": _preferred_anti_affinity,
    "spread": _spread,
    "preferred-spread": _preferred_spread,
    "mixed": _mixed,
    SERVICES: _of_a_service,
    CSI_VOLUMES: _basic,
}
