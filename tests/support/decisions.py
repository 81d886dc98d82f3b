"""Attempts as the engine reports them, for tests of their record."""

from __future__ import annotations

from typing import Any

from stowage.api.decisions import BestNodes
from stowage.api.instructions import AttemptResult, PodReference
from stowage.operator.decisions.records import RecordedAttempt

TIME_NS = 1_800_000_000_000_000_000
"""2027-01-15T08:00:00Z."""
BEST = BestNodes(
    names=("n1", "n2"),
    totals=(110, 60),
    weights=(("Fit", 1), ("Taints", 2)),
    plain_plugins=("Fit",),
    plain=bytes((50, 20)),
    others={"Taints": ((7, 1), (30, 20))},
)


def attempt(number: int, pod: str = "default/p", **changes: Any) -> AttemptResult:
    """A successful attempt of a pod."""
    namespace, _, name = pod.partition("/")
    fields = {"result": "scheduled", "node_name": "n1", "best": BEST, "attempts": 1, **changes}
    reference = PodReference(namespace, name, f"uid-{name}")
    return AttemptResult(reference, scheduler_name="stowage", decision=number, **fields)


def refused(number: int, pod: str = "default/p", **changes: Any) -> AttemptResult:
    """An attempt that found no node."""
    fields = {
        "result": "unschedulable",
        "message": "0/5 nodes are available: 5 Insufficient cpu.",
        "reason_counts": {"Insufficient cpu": 5},
        "unschedulable_plugins": ("NodeResourcesFit",),
        "node_name": "",
        "best": None,
        **changes,
    }
    return attempt(number, pod, **fields)


def recorded(result: AttemptResult, seconds: float = 0.0) -> RecordedAttempt:
    """The attempt, some seconds after `TIME_NS`."""
    return RecordedAttempt(result, TIME_NS + int(seconds * 1e9))
