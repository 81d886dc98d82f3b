"""Measures node changes while many pods wait: ``--workload requeue-storm``.

Half of the pods request more CPU than any node has, half a label that no node has. Then every node
changes its labels and its size, one after the other. The time of an event covers the cache update,
the queueing hints and the moves of pods.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import msgspec
from rich.console import Console
from rich.table import Table

from simcluster.kubelet.nodes import bench_node
from stowage.api.config.loading import DEFAULT_SCHEDULER_NAME, load_configuration
from stowage.api.decoding.decode import convert_object
from stowage.api.events import NodeSeen, PendingPodSeen
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod
from stowage.cli.profiles import make_frameworks
from stowage.engine import Engine, make_engine
from stowage_benchmarks.core.frozen_heap import frozen_heap
from stowage_benchmarks.workloads import pending_pod

Json: TypeAlias = dict[str, Any]

#: Pods that wait at the start.
WAITING = 10_000
#: Number of pod templates in the cases with few templates.
TEMPLATES = 50
#: Nodes that exist when the pods are first tried. Where each pod is of its own class, only
#: these nodes change: there the cost of an event grows with the number of classes.
FIRST_NODES = 100

_LABEL = "stowage.example.com/storm"
_WANTED_CPU = "100"
_BEGAN = 60.0
"""Seconds after the attempts: every backoff is over, and the flush is not due yet."""


class StormResult(msgspec.Struct, frozen=True):
    """Cost of one storm.

    Attributes:
        case: Name of the case.
        events: Nodes that changed.
        waiting: Pods that waited at the start.
        classes: Number of their templates.
        woken: Pods that an event moved.
        us_per_pod_event: CPU microseconds per waiting pod and event.
        worst_event_ms: CPU milliseconds of the most expensive event.
        total_ms: CPU milliseconds of all events.
        valid: Whether the expected number of pods was moved.
    """

    case: str
    events: int
    waiting: int
    classes: int
    woken: int
    us_per_pod_event: float
    worst_event_ms: float
    total_ms: float
    valid: bool


def measure_storms(num_nodes: int, waiting: int = WAITING) -> list[StormResult]:
    """Change `num_nodes` nodes: no pod is moved, all are, and each pod is of its own class."""
    few = max(min(FIRST_NODES, num_nodes), 1)
    return [
        _measure("none woken", num_nodes, waiting, TEMPLATES, helps=False),
        _measure("all woken", num_nodes, waiting, TEMPLATES, helps=True),
        _measure("no two pods alike", few, waiting, waiting, helps=False),
        _measure("no two requests alike", few, waiting, waiting, helps=False, alike=False),
    ]


def _measure(
    case: str, num_nodes: int, waiting: int, classes: int, *, helps: bool, alike: bool = True
) -> StormResult:
    engine = _waiting_engine(num_nodes, waiting, classes, alike)
    costs: list[int] = []
    offered = 0
    with frozen_heap():
        for index in range(num_nodes):
            event = NodeSeen(convert_object(Node, _changed_node(index, helps)))
            offered += engine.pending_counts()["unschedulable"]
            begin = time.thread_time_ns()
            engine.handle((event,), _BEGAN)
            costs.append(time.thread_time_ns() - begin)
    woken = waiting - engine.pending_counts()["unschedulable"]
    return StormResult(
        case=case,
        events=num_nodes,
        waiting=waiting,
        classes=classes,
        woken=woken,
        us_per_pod_event=round((costs[0] if helps else sum(costs)) / 1e3 / offered, 4),
        worst_event_ms=round(max(costs) / 1e6, 3),
        total_ms=round(sum(costs) / 1e6, 1),
        valid=woken == (waiting if helps else 0),
    )


def _waiting_engine(num_nodes: int, waiting: int, classes: int, alike: bool) -> Engine:
    """An engine with all nodes in which every pod is unschedulable."""
    ties = random.Random(0)  # noqa: S311 - ties between equal nodes are no secret
    engine = make_engine(make_frameworks(load_configuration()), ties.randrange)
    few = min(FIRST_NODES, num_nodes)
    engine.handle(_nodes(range(few)), 0.0)
    pods = (_pod(index, classes, alike) for index in range(waiting))
    engine.handle(map(PendingPodSeen, pods), 0.0)
    engine.schedule(0.0, waiting)
    engine.handle(_nodes(range(few, num_nodes)), 0.0)
    return engine


def _nodes(numbers: Iterable[int]) -> Iterable[NodeSeen]:
    return (NodeSeen(convert_object(Node, bench_node(number))) for number in numbers)


def _changed_node(index: int, helps: bool) -> Json:
    node = bench_node(index)
    node["metadata"]["labels"][_LABEL] = "wanted" if helps else "unwanted"
    node["status"]["allocatable"]["cpu"] = "200" if helps else "5"
    return node


def _pod(index: int, classes: int, alike: bool) -> Pod:
    manifest = pending_pod("basic", index, DEFAULT_SCHEDULER_NAME)
    template = index % classes
    manifest["metadata"]["labels"] = {"template": str(template)}
    if template % 2:
        manifest["spec"]["nodeSelector"] = {_LABEL: "wanted"}
    else:
        requests = {"cpu": _WANTED_CPU, "memory": "1Gi" if alike else str(2**30 + index)}
        manifest["spec"]["containers"][0]["resources"] = {"requests": requests}
    if not alike:
        manifest["spec"]["tolerations"] = [{"key": f"own-{index}", "operator": "Exists"}]
    pod = convert_object(Pod, manifest)
    metadata = msgspec.structs.replace(pod.metadata, uid=f"uid-{index}")
    return msgspec.structs.replace(pod, metadata=metadata)


def print_storms(console: Console, results: Sequence[StormResult]) -> None:
    """Print one row per case, and the invalid ones."""
    title = "Requeue storms: CPU of taking in the change of one node after another"
    table = Table("storm", title=title, title_justify="left")
    for name in ("events", "pods", "classes", "woken", "µs a pod, event", "worst ms", "all ms"):
        table.add_column(name, justify="right")
    for each in results:
        counts = (each.events, each.waiting, each.classes, each.woken)
        costs = (each.us_per_pod_event, each.worst_event_ms, each.total_ms)
        table.add_row(each.case, *(f"{it:,}" for it in (*counts, *costs)))
    console.print(table)
    for each in results:
        if not each.valid:
            console.print(f"[red]failed:[/red] {each.case}: {each.woken:,} pods were woken")
