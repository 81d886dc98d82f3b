"""How much of each resource is requested, and how evenly, over time."""

from __future__ import annotations

import msgspec
import numpy as np

from stowage.state.snapshot import Snapshot

_SAMPLES = 1_000
"""The step between two samples grows with the time, to this part of it."""


class Share(msgspec.Struct, frozen=True):
    """The requested share of a resource, from 0 to 1.

    Attributes:
        mean: Of all nodes together.
        deviation: The standard deviation between the shares of the nodes.
    """

    mean: float
    deviation: float


def requested_shares(snapshot: Snapshot) -> dict[str, Share]:
    """Resource -> the requested share, of the resources that some node has.

    Nodes without a resource do not count for it. The resource ``pods`` counts pods.
    """
    rows = np.flatnonzero(snapshot.exists)
    allocatable = snapshot.allocatable[rows]
    requested = snapshot.requested[rows].copy()
    names = dict(enumerate(snapshot.resources.names))
    for column, name in names.items():
        if name == "pods":
            requested[:, column] = snapshot.num_pods[rows]
    has = allocatable > 0
    num = np.maximum(has.sum(axis=0), 1)
    share = np.where(has, requested / np.where(has, allocatable, 1), 0.0)
    mean_of_nodes = share.sum(axis=0) / num
    deviation = np.sqrt((np.where(has, share - mean_of_nodes, 0.0) ** 2).sum(axis=0) / num)
    total = np.where(has, allocatable, 0).sum(axis=0, dtype=np.int64)
    taken = np.where(has, requested, 0).sum(axis=0, dtype=np.int64)
    return {
        name: Share(float(taken[column] / total[column]), float(deviation[column]))
        for column, name in names.items()
        if name and total[column]
    }


class UtilisationSamples:
    """Shares of resources, averaged over time.

    Call `advance` before the cluster changes. A sample counts for the time since the one before.
    """

    def __init__(self) -> None:
        self._started: float | None = None
        self._sampled = 0.0
        self._sums: dict[str, tuple[float, float, float]] = {}

    def advance(self, now: float, snapshot: Snapshot) -> None:
        """Count the cluster as it has been until `now`; does nothing if too little time passed."""
        if self._started is None:
            self._started = self._sampled = now
        passed_s = now - self._sampled
        if passed_s > (now - self._started) / _SAMPLES:
            self._sampled = now
            for name, share in requested_shares(snapshot).items():
                mean, deviation, weight = self._sums.get(name, (0.0, 0.0, 0.0))
                self._sums[name] = (
                    mean + share.mean * passed_s,
                    deviation + share.deviation * passed_s,
                    weight + passed_s,
                )

    def averages(self) -> dict[str, Share]:
        """Resource -> the shares, averaged over the time in which it existed."""
        return {
            name: Share(round(mean / weight, 4), round(deviation / weight, 4))
            for name, (mean, deviation, weight) in self._sums.items()
        }
