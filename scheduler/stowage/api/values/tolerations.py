"""Tolerations of taints (``component-helpers/scheduling/corev1`` v1.36)."""

from collections.abc import Iterable, Sequence

from stowage.api.objects.node import Taint
from stowage.api.objects.pod import Toleration

NO_SCHEDULE = "NoSchedule"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
NO_EXECUTE = "NoExecute"
DO_NOT_SCHEDULE_EFFECTS = frozenset([NO_SCHEDULE, NO_EXECUTE])
"""The effects of taints that make a node infeasible."""


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether a toleration tolerates a taint (``Toleration.ToleratesTaint``).

    An empty effect tolerates all effects, an empty key with Exists all keys. Equal, the default,
    also compares values. The operators Lt and Gt, whose feature gate is off, tolerate nothing.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    """Whether some toleration tolerates the taint."""
    return any(tolerates(toleration, taint) for toleration in tolerations)


def first_untolerated_taint(
    taints: Iterable[Taint], tolerations: Sequence[Toleration]
) -> Taint | None:
    """The first untolerated taint with effect NoSchedule or NoExecute, if any.

    ``FindMatchingUntoleratedTaint`` of v1.36.
    """
    for taint in taints:
        if taint.effect in DO_NOT_SCHEDULE_EFFECTS and not tolerated(taint, tolerations):
            return taint
    return None
