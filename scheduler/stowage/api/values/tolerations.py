"""Which taints a pod tolerates (component-helpers' ``corev1`` helpers, v1.36)."""

from collections.abc import Iterable, Sequence

from stowage.api.objects.node import Taint
from stowage.api.objects.pod import Toleration

NO_SCHEDULE = "NoSchedule"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
NO_EXECUTE = "NoExecute"
DO_NOT_SCHEDULE_EFFECTS = frozenset([NO_SCHEDULE, NO_EXECUTE])
"""Taints with these effects keep a pod off a node."""


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether one toleration covers one taint (``Toleration.ToleratesTaint``).

    An empty effect covers all effects, an empty key (with Exists) all keys; Equal, which is the
    default, also compares values. The comparison operators Lt and Gt, behind a gate that is off,
    tolerate nothing.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    """Whether some toleration covers the taint."""
    return any(tolerates(toleration, taint) for toleration in tolerations)


def first_untolerated_taint(
    taints: Iterable[Taint], tolerations: Sequence[Toleration]
) -> Taint | None:
    """The first taint that keeps a pod with these tolerations off the node, if any.

    Only the effects NoSchedule and NoExecute keep a pod off (``FindMatchingUntoleratedTaint``).
    """
    for taint in taints:
        if taint.effect in DO_NOT_SCHEDULE_EFFECTS and not tolerated(taint, tolerations):
            return taint
    return None
