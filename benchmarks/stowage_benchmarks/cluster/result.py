"""The result of ``stowage bench cluster``."""

from __future__ import annotations

import msgspec


class RequestCost(msgspec.Struct, frozen=True):
    """Requests of one kind: rate, and server CPU per request."""

    kind: str
    requests: int
    per_s: float
    server_cpu_ms: float


class WatchCost(msgspec.Struct, frozen=True):
    """Events to several watchers: rate per watcher, and server CPU per event."""

    kind: str
    watchers: int
    events: int
    per_s_to_slowest: float
    server_cpu_us: float


class ClusterResult(msgspec.Struct, frozen=True):
    """All figures.

    Attributes:
        load_s: From the start of the process with a file of all nodes and pods to its kubeconfig.
        file_mib: Size of that file.
        rss_mib: Resident memory with all nodes and pods, before anything else is measured.
        peak_rss_mib: Peak resident memory, read at the end.
        list_s: Seconds to list all pods at once.
        list_mib: Size of that list.
        longest_wait_ms: Longest response time of a small request during the list and the watches.
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
