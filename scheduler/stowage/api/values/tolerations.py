"""Tolerations of taints (``component-helpers/scheduling/corev1`` v1.36).

The operators Lt and Gt tolerate taints by number only where the caller says so, which knows the
feature gate TaintTolerationComparisonOperators.
"""

import re
from collections.abc import Iterable, Sequence

from stowage.api.objects.node import Taint
from stowage.api.objects.pod import Toleration
from stowage.api.values.selectors import parse_int64

NO_SCHEDULE = "NoSchedule"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
NO_EXECUTE = "NoExecute"
DO_NOT_SCHEDULE_EFFECTS = frozenset([NO_SCHEDULE, NO_EXECUTE])
"""The effects of taints that make a node infeasible."""

_DECIMAL = re.compile("0|-?[1-9][0-9]*")


def tolerates(toleration: Toleration, taint: Taint, *, compares: bool = False) -> bool:
    """Whether a toleration tolerates a taint (``Toleration.ToleratesTaint``).

    An empty effect tolerates all effects, an empty key with Exists all keys. Equal, the default,
    also compares values. With `compares`, Lt tolerates taints with a lower number than that of the
    toleration, and Gt those with a higher one; otherwise these operators tolerate nothing.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    if toleration.operator in ("Lt", "Gt"):
        return compares and _compares(toleration, taint)
    return toleration.operator == "Exists"


def tolerated(taint: Taint, tolerations: Iterable[Toleration], *, compares: bool = False) -> bool:
    """Whether some toleration tolerates the taint; `compares` is as in `tolerates`."""
    return any(tolerates(toleration, taint, compares=compares) for toleration in tolerations)


def first_untolerated_taint(
    taints: Iterable[Taint], tolerations: Sequence[Toleration], *, compares: bool = False
) -> Taint | None:
    """The first untolerated taint with effect NoSchedule or NoExecute, if any.

    ``FindMatchingUntoleratedTaint`` of v1.36.
    """
    for taint in taints:
        if taint.effect not in DO_NOT_SCHEDULE_EFFECTS:
            continue
        if not tolerated(taint, tolerations, compares=compares):
            return taint
    return None


def _compares(toleration: Toleration, taint: Taint) -> bool:
    """``compareNumericValues``: canonical decimal int64s only."""
    bound, actual = _number(toleration.value), _number(taint.value)
    if bound is None or actual is None:
        return False
    return actual < bound if toleration.operator == "Lt" else actual > bound


def _number(text: str) -> int | None:
    return parse_int64(text) if _DECIMAL.fullmatch(text) else None
