"""How a pod passes from the list of pending pods to that of the assigned ones.

The two are watched apart, so a pod that was bound may be seen with its node before it is gone from
the pending ones. Whoever follows both keeps the pod with its node.
"""

from __future__ import annotations

from stowage.api.events import AssignedPodGone, AssignedPodSeen, PendingPodGone, PendingPodSeen
from stowage.api.objects.pod import Pod


def replaces(known: Pod | None, event: PendingPodSeen | AssignedPodSeen) -> bool:
    """Whether the pod of the event replaces the one that is known by its name."""
    return (
        isinstance(event, AssignedPodSeen)
        or known is None
        or known.metadata.uid != event.pod.metadata.uid
        or not known.spec.node_name
    )


def ends(known: Pod | None, event: PendingPodGone | AssignedPodGone) -> bool:
    """Whether the pod that is known by the name of the event no longer exists."""
    if known is None or known.metadata.uid != event.uid:
        return False
    return isinstance(event, AssignedPodGone) or not known.spec.node_name
