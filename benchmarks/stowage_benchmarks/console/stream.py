"""Measures what the stream of the console costs, in this process."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from simcluster.kubelet.nodes import bench_node
from stowage.analysis.cluster_objects import ClusterObjects
from stowage.api.config.loading import load_configuration
from stowage.api.events import AssignedPodSeen, PendingPodGone, PendingPodSeen
from stowage.api.objects.pod import Pod
from stowage.cli.profiles import make_frameworks
from stowage.console.clusters.live import LiveCluster
from stowage.console.clusters.source import SourceName
from stowage.console.decisions.history import OBSERVED, DecisionHistory
from stowage.console.stream.feed import TICK_S, Feed
from stowage.console.stream.hub import Hub
from stowage_benchmarks.workloads import pending_pod

A_SECOND = 1_000
"""Decisions a second of the stream's clock."""


class StreamCost(msgspec.Struct, frozen=True):
    """What a decision costs.

    Attributes:
        pages: The open pages.
        decisions: The decisions that were followed.
        follow_us: CPU time to apply the events of a decision to the cluster, in microseconds.
        tell_us: CPU time of the stream for a decision, for all pages together.
        bytes_a_page: What a page gets for a decision.
    """

    pages: int
    decisions: int
    follow_us: float
    tell_us: float
    bytes_a_page: float


def measure_stream(num_nodes: int, num_pages: int, num_decisions: int) -> StreamCost:
    """Follow decisions, `A_SECOND` of them in a second of the clock, and tell the pages."""
    now = 0.0
    cluster = _cluster(num_nodes, lambda: now)
    hub = Hub("bench")
    feed = Feed(hub, cluster, now)
    cluster.decided = feed.decided
    subscribers = [hub.subscribe() for _ in range(num_pages)]
    feed.tick(now, now)
    a_tick = round(A_SECOND * TICK_S)
    follow_s = tell_s = 0.0
    num_bytes = 0
    for first in range(0, num_decisions, a_tick):
        events = _events(range(first, min(first + a_tick, num_decisions)), num_nodes)
        began = time.process_time()
        cluster.apply(events)
        now += TICK_S
        between = time.process_time()
        feed.tick(now, now)
        for subscriber in subscribers:
            num_bytes += subscriber.queue.num_bytes
            subscriber.queue.clear()
        tell_s += time.process_time() - between
        follow_s += between - began
    return StreamCost(
        num_pages,
        num_decisions,
        round(follow_s / num_decisions * 1e6, 1),
        round(tell_s / num_decisions * 1e6, 1),
        round(num_bytes / max(1, num_pages) / num_decisions, 1),
    )


def _cluster(num_nodes: int, unix_s: Callable[[], float]) -> LiveCluster:
    frameworks = make_frameworks(load_configuration())
    name = SourceName("cluster", "bench", "")
    cluster = LiveCluster(name, frameworks, DecisionHistory(OBSERVED), unix_s, is_live=True)
    cluster.load(
        ClusterObjects.of({**bench_node(index), "kind": "Node"} for index in range(num_nodes))
    )
    return cluster


def _events(
    numbers: range, num_nodes: int
) -> list[PendingPodSeen | PendingPodGone | AssignedPodSeen]:
    """Pods that come, are bound, and leave the pending ones."""
    events: list[PendingPodSeen | PendingPodGone | AssignedPodSeen] = []
    for number in numbers:
        written = pending_pod("basic", number, "stowage")
        uid = f"uid-{number}"
        written["metadata"].update(namespace="default", uid=uid)
        pod = msgspec.convert(written, Pod)
        node = f"node-{number % num_nodes:05}"
        bound = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))
        events += [
            PendingPodSeen(pod),
            PendingPodGone("default", pod.metadata.name, uid),
            AssignedPodSeen(bound),
        ]
    return events
