"""The taints that a node's own state requires."""

from simcluster.kinds.admission.pods import NOT_READY_TAINT, UNREACHABLE_TAINT
from simcluster.values import Json

UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"
_BY_CONDITION = {
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
}
_READINESS = frozenset((NOT_READY_TAINT, UNREACHABLE_TAINT))
_OWN = frozenset((*_READINESS, UNSCHEDULABLE_TAINT, *_BY_CONDITION.values()))


def condition_status(node: Json, kind: str) -> str:
    """``True``, ``False`` or ``Unknown``; empty where the node does not have the condition."""
    for condition in node["status"].get("conditions") or ():
        if condition.get("type") == kind:
            return str(condition.get("status", ""))
    return ""


def wanted_taints(node: Json) -> list[tuple[str, str]]:
    """Keys and effects of the taints that readiness, pressure and cordon require.

    A node without a Ready condition takes no new pods, but keeps those that it has.
    """
    ready = condition_status(node, "Ready")
    wanted: list[tuple[str, str]] = []
    if ready == "Unknown":
        wanted += [(UNREACHABLE_TAINT, "NoSchedule"), (UNREACHABLE_TAINT, "NoExecute")]
    elif ready == "False":
        wanted += [(NOT_READY_TAINT, "NoSchedule"), (NOT_READY_TAINT, "NoExecute")]
    elif ready != "True":
        wanted.append((NOT_READY_TAINT, "NoSchedule"))
    wanted += [
        (taint, "NoSchedule")
        for kind, taint in _BY_CONDITION.items()
        if condition_status(node, kind) == "True"
    ]
    if node["spec"].get("unschedulable"):
        wanted.append((UNSCHEDULABLE_TAINT, "NoSchedule"))
    return wanted


def with_own_taints(node: Json, now: str) -> list[Json]:
    """A node's taints with the managed ones corrected; all others stay as they are."""
    wanted = wanted_taints(node)
    before = node["spec"].get("taints") or []
    kept = [taint for taint in before if not _is_own(taint) or _place(taint) in wanted]
    present = {_place(taint) for taint in kept}
    return kept + [
        {"key": key, "effect": effect, "timeAdded": now}
        for key, effect in wanted
        if (key, effect) not in present
    ]


def _is_own(taint: Json) -> bool:
    if taint.get("effect") == "NoExecute":
        return taint["key"] in _READINESS
    return taint["key"] in _OWN and taint.get("effect") == "NoSchedule"


def _place(taint: Json) -> tuple[str, str]:
    return taint["key"], str(taint.get("effect", ""))
