"""EqualPriority of kube-scheduler 1.12, one node at a time."""

from __future__ import annotations

from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod


def score(_pod: Pod, _node: Node) -> int:
    """1.12's 1 point, times 10."""
    return 10
