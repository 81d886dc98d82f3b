"""What a benchmark of the embedded cluster measured."""

from __future__ import annotations

import msgspec


class RequestCost(msgspec.Struct, frozen=True):
    """Requests of one kind: how many a second, and what one costs the server."""

    kind: str
    requests: int
    per_s: float
    server_cpu_ms: float


class WatchCost(msgspec.Struct, frozen=True):
    """Events to several watchers at once: how many a second each got, and what one costs."""

    kind: str
    watchers: int
    events: int
    per_s_to_slowest: float
    server_cpu_us: float


class ClusterResult(msgspec.Struct, frozen=True):
    """All of it.

    Attributes:
        load_s: From the start of the process with a file of all nodes and pods to its kubeconfig.
        file_mib: Size of that file.
        rss_mib: Resident memory with all nodes and pods, before anything else is measured.
        peak_rss_mib: At the end, whatever came in between.
        list_s: All pods in one list.
        list_mib: Its size.
        longest_wait_ms: For a small answer, while the list and the watches were sent.
    """

    nodes: int
    pods: int
    load_s: float
    file_mib: float
    rss_mib: float
    peak_rss_mib: float
    list_s: float
    list_mib: float
    longest_wait_ms: float
    requests: tuple[RequestCost, ...]
    watches: tuple[WatchCost, ...]
