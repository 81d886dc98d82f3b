"""The cells of pods; the status in one word follows kube-apiserver's ``printPod``."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from simcluster.clock import parse_timestamp
from simcluster.printing.cells import NONE, cell, elapsed, timed_cell

Json = dict[str, Any]

_FINISHED: Mapping[str, str] = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}


class _Summary(NamedTuple):
    """The state of a pod's containers that the columns show."""

    reason: str
    num_ready: int
    num_containers: int
    num_restarts: int
    last_restarts: Sequence[str]


def _of(pod: Json, key: str) -> list[Json]:
    found: list[Json] = (pod.get("status") or {}).get(key) or []
    return found


def _is_true(pod: Json, condition: str) -> bool:
    return any(
        found.get("type") == condition and found.get("status") == "True"
        for found in _of(pod, "conditions")
    )


def _first_reason(pod: Json) -> str:
    status = pod.get("status") or {}
    for condition in _of(pod, "conditions"):
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            return "SchedulingGated"
    return str(status.get("reason") or status.get("phase") or "")


def _ended(state: Json) -> str:
    """How a container ended, in a word."""
    terminated = state["terminated"]
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _sidecars(pod: Json) -> set[str]:
    return {
        found["name"]
        for found in pod["spec"].get("initContainers") or ()
        if found.get("restartPolicy") == "Always"
    }


def _initializing(pod: Json, sidecars: set[str]) -> str:
    """The state of the first init container that has not finished; empty if all have."""
    for index, status in enumerate(_of(pod, "initContainerStatuses")):
        state = status.get("state") or {}
        terminated, waiting = state.get("terminated"), state.get("waiting") or {}
        if terminated is not None and not terminated.get("exitCode"):
            continue
        if status["name"] in sidecars and status.get("started"):
            continue
        if terminated is not None:
            return f"Init:{_ended(state)}"
        if waiting.get("reason") not in {None, "", "PodInitializing"}:
            return f"Init:{waiting['reason']}"
        return f"Init:{index}/{len(pod['spec'].get('initContainers') or ())}"
    return ""


def _summary(pod: Json) -> _Summary:
    sidecars = _sidecars(pod)
    init = _of(pod, "initContainerStatuses")
    num_containers = len(pod["spec"].get("containers") or ()) + len(sidecars)
    initializing = _initializing(pod, sidecars)
    started = [found for found in init if found["name"] in sidecars]
    num_ready = sum(bool(found.get("started") and found.get("ready")) for found in started)
    if initializing and not _is_true(pod, "Initialized"):
        reason, counted = initializing, init
    else:
        reason, num_running = _main_reason(pod, initializing or _first_reason(pod))
        num_ready += num_running
        counted = [*started, *_of(pod, "containerStatuses")]
    restarts = sum(found.get("restartCount", 0) for found in counted)
    last_states = [(found.get("lastState") or {}).get("terminated") or {} for found in counted]
    ends = [state["finishedAt"] for state in last_states if state.get("finishedAt")]
    return _Summary(_final_reason(pod, reason), num_ready, num_containers, restarts, ends)


def _main_reason(pod: Json, reason: str) -> tuple[str, int]:
    """The reason as the main containers have it, and how many of them are ready."""
    num_running = 0
    for status in reversed(_of(pod, "containerStatuses")):
        state = status.get("state") or {}
        waiting = (state.get("waiting") or {}).get("reason")
        if waiting:
            reason = waiting
        elif state.get("terminated") is not None:
            reason = _ended(state)
        elif status.get("ready") and state.get("running") is not None:
            num_running += 1
    if reason == "Completed" and num_running:
        reason = "Running" if _is_true(pod, "Ready") else "NotReady"
    return reason, num_running


def _final_reason(pod: Json, reason: str) -> str:
    status = pod.get("status") or {}
    if pod["metadata"].get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            return "Unknown"
        if status.get("phase") not in {"Succeeded", "Failed"}:
            return "Terminating"
    return reason


@cell
def pod_status(pod: Json) -> str:
    """The pod's status in one word: its phase, or what keeps it from running."""
    return _summary(pod).reason


@cell
def pod_ready(pod: Json) -> str:
    """Ready containers of all containers."""
    found = _summary(pod)
    return f"{found.num_ready}/{found.num_containers}"


@timed_cell
def pod_restarts(pod: Json, now: float) -> str:
    """The number of restarts, and the time since the last one."""
    found = _summary(pod)
    if found.num_restarts and found.last_restarts:
        last = max(found.last_restarts, key=parse_timestamp)
        return f"{found.num_restarts} ({elapsed(last, now)} ago)"
    return str(found.num_restarts)


@cell
def pod_gates(pod: Json) -> str:
    """Readiness gates that are met of all readiness gates."""
    gates = pod["spec"].get("readinessGates") or ()
    if not gates:
        return NONE
    met = sum(_is_true(pod, gate["conditionType"]) for gate in gates)
    return f"{met}/{len(gates)}"


def row_conditions(pod: Json) -> list[Json]:
    """The conditions of a pod's row: whether the pod has finished."""
    phase = (pod.get("status") or {}).get("phase") or ""
    if phase not in _FINISHED:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": _FINISHED[phase]}]
