"""Nodes of the simulated cluster: a varied set for the demo, equal ones for benchmarks."""

import msgspec

from simcluster.clock import Clock
from simcluster.store.stored import Stored
from simcluster.values import Json
from stowage.api.objects.node import NodeSelector
from stowage.api.values.node_affinity import compile_node_selector

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
HOSTNAME = "kubernetes.io/hostname"
KUBELET_VERSION = "v1.36.0"

NUM_BENCH_ZONES = 10

_DEMO_SIZES = (("small", "4", "16Gi"), ("large", "16", "64Gi"))
_DEMO_ZONES = ("zone-a", "zone-b", "zone-c")


def make_node(
    name: str,
    capacity: dict[str, str],
    labels: dict[str, str] | None = None,
    taints: list[Json] | None = None,
    created: str | None = None,
) -> Json:
    """A ready node.

    Args:
        name: also its hostname label.
        capacity: resource amounts, such as ``{"cpu": "4", "memory": "16Gi", "pods": "110"}``; all
            of it is allocatable.
        labels: besides the hostname, operating system and architecture.
        taints: as in ``spec.taints``.
        created: ``metadata.creationTimestamp`` and heartbeat of its conditions.
    """
    now = created or Clock().now()
    spec: Json = {"taints": taints} if taints else {}
    well_known = {
        HOSTNAME: name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": "amd64",
    }
    return {
        "metadata": {"name": name, "labels": {**well_known, **(labels or {})}},
        "spec": spec,
        "status": {
            "capacity": dict(capacity),
            "allocatable": dict(capacity),
            "conditions": node_conditions(now),
            "addresses": [{"type": "Hostname", "address": name}],
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": "",
                "containerRuntimeVersion": "stowage://1",
                "kernelVersion": "6.1.0",
                "kubeProxyVersion": "",
                "kubeletVersion": KUBELET_VERSION,
                "machineID": "",
                "operatingSystem": "linux",
                "osImage": "Stowage",
                "systemUUID": "",
            },
        },
    }


def internal_ip(node: Stored | None) -> str:
    """The internal address of a node; empty if it has none or is gone."""
    addresses = (node.status.get("addresses") or ()) if node is not None else ()
    found = (entry["address"] for entry in addresses if entry.get("type") == "InternalIP")
    return next(found, "")


def node_conditions(now: str) -> list[Json]:
    """The conditions of a healthy node."""
    healthy = (
        ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID"),
        ("Ready", "True", "KubeletReady"),
    )
    return [
        {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": "the simulated kubelet keeps this node",
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        }
        for kind, status, reason in healthy
    ]


def sample_nodes(count: int = 100) -> list[Json]:
    """Nodes of the demo: three zones, two sizes, every tenth tainted, every fifth with an SSD.

    Of the tainted, every other one is ``dedicated=batch:NoSchedule``; the rest offer two
    ``example.com/gpu`` and are tainted for it.
    """
    return [_sample_node(position) for position in range(count)]


def _sample_node(position: int) -> Json:
    size, cpu, memory = _DEMO_SIZES[position // len(_DEMO_ZONES) % len(_DEMO_SIZES)]
    capacity = {"cpu": cpu, "memory": memory, "ephemeral-storage": "100Gi", "pods": "110"}
    labels = {
        ZONE: _DEMO_ZONES[position % len(_DEMO_ZONES)],
        REGION: "region-1",
        "node.kubernetes.io/instance-type": size,
        "disk": "hdd" if position % 5 else "ssd",
    }
    taints: list[Json] = []
    if position % 20 == 19:
        capacity["example.com/gpu"] = "2"
        labels["accelerator"] = "gpu"
        taints.append({"key": "example.com/gpu", "value": "present", "effect": "NoSchedule"})
    elif position % 10 == 9:
        labels["dedicated"] = "batch"
        taints.append({"key": "dedicated", "value": "batch", "effect": "NoSchedule"})
    node = make_node(f"node-{position:03d}", capacity, labels, taints)
    address = f"10.0.{position // 250}.{position % 250 + 1}"
    node["status"]["addresses"].insert(0, {"type": "InternalIP", "address": address})
    return node


def bench_node(index: int) -> Json:
    """Node number ``index`` of the benchmarks: 4 CPUs, 32Gi and 110 pods, in one of ten zones."""
    name = f"node-{index:05d}"
    capacity = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                HOSTNAME: name,
                ZONE: f"zone{index % NUM_BENCH_ZONES}",
                REGION: "r1",
                "disk": "ssd" if index % 3 else "hdd",
            },
        },
        "status": {
            "capacity": capacity,
            "allocatable": dict(capacity),
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def is_selected(node: Stored, selector: Json | None) -> bool:
    """Whether a node selector of an object selects a node; ``None`` selects every node."""
    if selector is None:
        return True
    terms = compile_node_selector(msgspec.convert(selector, NodeSelector))
    return terms.matches(node.labels, node.name)
