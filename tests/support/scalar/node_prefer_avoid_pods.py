"""NodePreferAvoidPods of kube-scheduler 1.12, one node at a time."""

from __future__ import annotations

import json

from stowage.api.objects.meta import controller_of
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod

ANNOTATION = "scheduler.alpha.kubernetes.io/preferAvoidPods"


def score(pod: Pod, node: Node) -> int:
    """1.12's 0 or 10 points, times 10."""
    owner = controller_of(pod.metadata)
    if owner is None or owner.kind not in ("ReplicationController", "ReplicaSet"):
        return 100
    try:
        avoid = json.loads(node.metadata.annotations.get(ANNOTATION) or "{}")
    except ValueError:
        return 100
    if not isinstance(avoid, dict):
        return 100
    for entry in avoid.get("preferAvoidPods", ()):
        controller = entry["podSignature"]["podController"]
        if (controller["kind"], controller["uid"]) == (owner.kind, owner.uid):
            return 0
    return 100
