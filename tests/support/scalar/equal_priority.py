"""EqualPriority of kube-scheduler 1.12, one node at a time."""

from __future__ import annotations

from scheduler.api.node import Node
from scheduler.api.pod import Pod


def score(_pod: Pod, _node: Node) -> int:
    """1.12's 1 point, times 10."""
    return 10
