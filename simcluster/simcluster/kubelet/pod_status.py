"""The pod statuses that a kubelet writes."""

import signal
from collections.abc import Iterable

from simcluster.kubelet.node_load import Refusal
from simcluster.values import Json

_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")
_READINESS = ("Ready", "ContainersReady")
_CRASHING = {"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting failed container"}


def running_status(pod: Json, now: str, pod_ip: str, host_ip: str) -> Json:
    """All containers run and are ready."""
    state = {"running": {"startedAt": now}}
    addresses = {
        "podIP": pod_ip,
        "podIPs": [{"ip": pod_ip}],
        "hostIP": host_ip,
        "hostIPs": [{"ip": host_ip}],
    }
    conditions = _conditions(pod, now, _CONDITIONS)
    return {
        **_status(pod, now, "Running", state, conditions),
        "observedGeneration": pod["metadata"].get("generation", 1),
        **addresses,
    }


def creating_status(pod: Json, now: str) -> Json:
    """The kubelet prepares what the containers need."""
    waiting = [kind for kind in _CONDITIONS if kind != "Initialized"]
    conditions = _conditions(pod, now, waiting, "ContainersNotReady")
    conditions += _conditions(pod, now, ("Initialized",))
    state = {"waiting": {"reason": "ContainerCreating"}}
    status = _status(pod, now, "Pending", state, conditions)
    made = [
        {key: value for key, value in found.items() if key != "containerID"}
        for found in status["containerStatuses"]
    ]
    return {**status, "containerStatuses": made}


def succeeded_status(pod: Json, now: str) -> Json:
    """All containers have ended without an error."""
    false = [kind for kind in _CONDITIONS if kind != "Initialized"]
    state = _terminated(pod, 0, "Completed", now)
    return _status(pod, now, "Succeeded", state, _conditions(pod, now, false, "PodCompleted"))


def failed_status(pod: Json, now: str, exit_code: int = 1) -> Json:
    """A container has ended with an error and is not restarted."""
    state = _terminated(pod, exit_code, "Error", now)
    return _status(pod, now, "Failed", state, _conditions(pod, now, _READINESS, "PodFailed"))


def stopped_status(pod: Json, now: str) -> Json:
    """The containers of a deleted pod were ended by SIGTERM."""
    return failed_status(pod, now, 128 + signal.SIGTERM)


def crashing_status(pod: Json, now: str) -> Json:
    """A container ends with an error each time it is started."""
    conditions = _conditions(pod, now, _READINESS, "ContainersNotReady")
    status = _status(pod, now, "Running", {"waiting": _CRASHING}, conditions)
    restarted = [{**found, "restartCount": 1} for found in status["containerStatuses"]]
    return {**status, "containerStatuses": restarted}


def refused_status(pod: Json, now: str, refusal: Refusal) -> Json:
    """The node did not admit the pod, which never runs."""
    return {
        **pod["status"],
        "phase": "Failed",
        "reason": refusal.reason,
        "message": f"Pod was rejected: {refusal.message}",
        "startTime": now,
    }


def _terminated(pod: Json, exit_code: int, reason: str, now: str) -> Json:
    began = pod["status"].get("startTime", now)
    ended = {"exitCode": exit_code, "reason": reason, "startedAt": began, "finishedAt": now}
    return {"terminated": ended}


def _status(pod: Json, now: str, phase: str, state: Json, fresh: list[Json]) -> Json:
    """A status with one state for all containers, and fresh conditions."""
    replaced = {condition["type"] for condition in fresh}
    old, is_running = pod["status"].get("conditions") or (), "running" in state
    statuses = [
        {
            "name": container["name"],
            "image": container.get("image", ""),
            "imageID": "",
            "containerID": f"stowage://{pod['metadata']['uid']}/{container['name']}",
            "ready": is_running,
            "started": is_running,
            "restartCount": 0,
            "state": state,
            "lastState": {},
        }
        for container in pod["spec"]["containers"]
    ]
    return {
        **pod["status"],
        "phase": phase,
        "startTime": pod["status"].get("startTime", now),
        "conditions": fresh + [found for found in old if found.get("type") not in replaced],
        "containerStatuses": statuses,
    }


def _conditions(pod: Json, now: str, kinds: Iterable[str], reason: str = "") -> list[Json]:
    """Conditions that are True, or False for a reason."""
    return [
        {
            "type": kind,
            "status": str(not reason),
            "lastProbeTime": None,
            "lastTransitionTime": now,
            "observedGeneration": pod["metadata"].get("generation", 1),
            **({"reason": reason} if reason else {}),
        }
        for kind in kinds
    ]
