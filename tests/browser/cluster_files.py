"""Clusters to look at, as files that ``stowage console --from`` takes."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

from tests.support.builders import make_node, make_pod
from tests.support.recorded_cluster import RecordedCluster

REQUESTS_MILLI = (500, 750, 1_000, 1_250, 1_500)
ZONES = ("zone-a", "zone-b", "zone-c")
PENDING = "ml/train"
"""A pod that fits on no node, but on some after a small change or a preemption."""
FITTING = "shop/new"
"""A pending pod that fits on many nodes."""


def _node(index: int) -> dict[str, Any]:
    labels = {"topology.kubernetes.io/zone": ZONES[index % 3], "tier": f"t{index % 2}"}
    spec: dict[str, Any] = {}
    if index % 13 == 5:
        spec["unschedulable"] = True
    if index % 13 == 8:
        spec["taints"] = [{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}]
    if index % 13 == 11:
        pressure = "node.kubernetes.io/memory-pressure"
        spec["taints"] = [{"key": pressure, "effect": "NoSchedule"}]
    allocatable = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"node-{index:04d}", "labels": labels},
        "spec": spec,
        "status": {"allocatable": allocatable},
    }


def _pod(name: str, cpu_milli: int, node: str = "", priority: int = 0) -> dict[str, Any]:
    namespace, _, own = name.partition("/")
    requests = {"cpu": f"{cpu_milli}m", "memory": f"{max(1, cpu_milli // 500)}Gi"}
    spec: dict[str, Any] = {
        "schedulerName": "stowage",
        "priority": priority,
        "containers": [{"name": "main", "image": "app", "resources": {"requests": requests}}],
    }
    if node:
        spec["nodeName"] = node
    times = {"creationTimestamp": "2026-05-01T11:50:00Z"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": own, "namespace": namespace, "uid": f"uid-{namespace}-{own}", **times},
        "spec": spec,
        "status": {"phase": "Running" if node else "Pending"},
    }


def write_cluster(path: Path, num_nodes: int, most_pods: int) -> Path:
    """Write a cluster with up to `most_pods` pods on each node, at least one, and two pending."""
    random = Random(1)
    items = [_node(index) for index in range(num_nodes)]
    for index in range(num_nodes):
        for number in range(random.randint(1, most_pods)):
            name = f"shop/web-{index}-{number}"
            items.append(_pod(name, random.choice(REQUESTS_MILLI), f"node-{index:04d}"))
    items += [_pod(PENDING, 15_800, priority=100), _pod(FITTING, 2_000)]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return path


def write_recording(path: Path) -> Path:
    """Write a life: a pod waits until a larger node comes; others get their nodes at once."""
    cluster = RecordedCluster(("small-1", "small-2"), cpu="4")
    cluster.create_pods([make_pod("big", cpu="6", scheduler_name="stowage")])
    for minute in range(6):
        pod = make_pod(f"web-{minute}", cpu="500m", scheduler_name="stowage")
        cluster.create_pods([pod])
        cluster.advance(60.0)
    cluster.put_node(make_node("large", cpu="8"))
    cluster.advance(120.0)
    return cluster.write(path)
