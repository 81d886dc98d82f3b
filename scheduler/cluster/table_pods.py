"""The columns of pods; the status in one word follows kubectl's own reading of a pod."""

from typing import Any

from scheduler.cluster.clock import parse_timestamp
from scheduler.cluster.table_cells import NONE, Column, age_column, column, name_column, since, wide

Json = dict[str, Any]


def _container_statuses(pod: Json) -> list[Json]:
    found: list[Json] = (pod.get("status") or {}).get("containerStatuses") or []
    return found


def _ready(pod: Json) -> str:
    ready = sum(bool(status.get("ready")) for status in _container_statuses(pod))
    return f"{ready}/{len(pod['spec'].get('containers') or ())}"


def _waiting_or_terminated(pod: Json) -> str:
    for status in reversed(_container_statuses(pod)):
        state = status.get("state") or {}
        for kind in ("waiting", "terminated"):
            if state.get(kind, {}).get("reason"):
                return str(state[kind]["reason"])
    return ""


def pod_reason(pod: Json) -> str:
    """The pod's status in one word: its phase, or what keeps it from running."""
    status = pod.get("status") or {}
    reason = status.get("reason") or status.get("phase") or ""
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            reason = "SchedulingGated"
    reason = _waiting_or_terminated(pod) or reason
    if pod["metadata"].get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            return "Unknown"
        if status.get("phase") not in {"Succeeded", "Failed"}:
            return "Terminating"
    return str(reason)


def _restarts(pod: Json, now: float) -> str:
    statuses = _container_statuses(pod)
    restarts = sum(status.get("restartCount", 0) for status in statuses)
    ended = [
        finished
        for status in statuses
        if (finished := (status.get("lastState") or {}).get("terminated", {}).get("finishedAt"))
    ]
    if restarts and ended:
        return f"{restarts} ({since(max(ended, key=parse_timestamp), now)} ago)"
    return str(restarts)


def _gates(pod: Json) -> str:
    gates = pod["spec"].get("readinessGates") or ()
    if not gates:
        return NONE
    wanted = {gate["conditionType"] for gate in gates}
    met = sum(
        condition.get("type") in wanted and condition.get("status") == "True"
        for condition in (pod.get("status") or {}).get("conditions") or ()
    )
    return f"{met}/{len(gates)}"


def _status_field(key: str, pod: Json) -> str:
    return (pod.get("status") or {}).get(key) or NONE


POD_COLUMNS = (
    name_column(),
    column("Ready", _ready),
    column("Status", pod_reason),
    Column("Restarts", _restarts),
    age_column(),
    wide("IP", lambda pod: _status_field("podIP", pod)),
    wide("Node", lambda pod: pod["spec"].get("nodeName") or NONE),
    wide("Nominated Node", lambda pod: _status_field("nominatedNodeName", pod)),
    wide("Readiness Gates", _gates),
)
