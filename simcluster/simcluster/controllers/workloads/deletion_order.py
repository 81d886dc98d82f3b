"""The order in which a ReplicaSet deletes surplus pods."""

import contextlib
from collections import Counter
from collections.abc import Iterable

from simcluster.controllers.ownership import ready_since
from simcluster.store.store import Stored

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASE_RANK = {"Pending": 0, "Unknown": 1, "Running": 2}


def in_deletion_order(pods: Iterable[Stored]) -> list[Stored]:
    """Pods in the order they are deleted, as kube-controller-manager's ``ActivePodsWithRanks``.

    Unassigned, then pending, then not ready, then of low deletion cost, then on the fullest node,
    then ready or created last, then restarted most.
    """
    candidates = list(pods)
    crowd = Counter(pod.obj["spec"].get("nodeName", "") for pod in candidates)
    newest_first = sorted(candidates, key=lambda pod: pod.obj["metadata"]["uid"])
    newest_first.sort(key=lambda pod: pod.obj["metadata"]["creationTimestamp"], reverse=True)
    newest_first.sort(key=_restarts, reverse=True)
    newest_first.sort(key=lambda pod: ready_since(pod) or "", reverse=True)
    return sorted(newest_first, key=lambda pod: _rank(pod, crowd))


def _rank(pod: Stored, crowd: Counter[str]) -> tuple[bool, int, bool, int, int]:
    node_name = pod.obj["spec"].get("nodeName", "")
    return (
        bool(node_name),
        _PHASE_RANK.get(pod.obj["status"].get("phase", "Unknown"), 1),
        ready_since(pod) is not None,
        _cost(pod),
        -crowd[node_name],
    )


def _cost(pod: Stored) -> int:
    """The annotation's number; anything else counts as 0."""
    text = (pod.obj["metadata"].get("annotations") or {}).get(DELETION_COST, "0")
    with contextlib.suppress(ValueError):
        return int(text)
    return 0


def _restarts(pod: Stored) -> int:
    statuses = pod.obj["status"].get("containerStatuses") or ()
    return max((status.get("restartCount", 0) for status in statuses), default=0)
