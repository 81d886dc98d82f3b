"""The statuses a kubelet writes: running, finished, refused."""

from typing import Any

from simcluster.kubelet.node_load import Refusal

Json = dict[str, Any]

_RUNNING_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")


def _condition(pod: Json, type_: str, status: str, now: str, reason: str = "") -> Json:
    condition: Json = {
        "type": type_,
        "status": status,
        "lastProbeTime": None,
        "lastTransitionTime": now,
        "observedGeneration": pod["metadata"].get("generation", 1),
    }
    if reason:
        condition["reason"] = reason
    return condition


def _with_conditions(pod: Json, fresh: list[Json]) -> list[Json]:
    replaced = {condition["type"] for condition in fresh}
    kept = [
        condition
        for condition in pod["status"].get("conditions") or ()
        if condition.get("type") not in replaced
    ]
    return fresh + kept


def _container_statuses(pod: Json, state: Json, is_running: bool) -> list[Json]:
    return [
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


def running_status(pod: Json, now: str, pod_ip: str, host_ip: str) -> Json:
    """Every container runs and is ready."""
    conditions = [_condition(pod, type_, "True", now) for type_ in _RUNNING_CONDITIONS]
    return {
        **pod["status"],
        "phase": "Running",
        "observedGeneration": pod["metadata"].get("generation", 1),
        "startTime": pod["status"].get("startTime", now),
        "podIP": pod_ip,
        "podIPs": [{"ip": pod_ip}],
        "hostIP": host_ip,
        "hostIPs": [{"ip": host_ip}],
        "conditions": _with_conditions(pod, conditions),
        "containerStatuses": _container_statuses(pod, {"running": {"startedAt": now}}, True),
    }


def succeeded_status(pod: Json, now: str) -> Json:
    """Every container has ended well."""
    status = pod["status"]
    terminated = {
        "exitCode": 0,
        "reason": "Completed",
        "startedAt": status.get("startTime", now),
        "finishedAt": now,
    }
    conditions = [
        _condition(pod, type_, "False", now, "PodCompleted")
        for type_ in _RUNNING_CONDITIONS
        if type_ != "Initialized"
    ]
    return {
        **status,
        "phase": "Succeeded",
        "conditions": _with_conditions(pod, conditions),
        "containerStatuses": _container_statuses(pod, {"terminated": terminated}, False),
    }


def failed_status(pod: Json, now: str) -> Json:
    """A container has ended with an error, and none is started again."""
    status = pod["status"]
    began = status.get("startTime", now)
    terminated = {"exitCode": 1, "reason": "Error", "startedAt": began, "finishedAt": now}
    conditions = [
        _condition(pod, type_, "False", now, "PodFailed") for type_ in ("Ready", "ContainersReady")
    ]
    return {
        **status,
        "phase": "Failed",
        "startTime": began,
        "conditions": _with_conditions(pod, conditions),
        "containerStatuses": _container_statuses(pod, {"terminated": terminated}, False),
    }


def crashing_status(pod: Json, now: str) -> Json:
    """A container ends with an error whenever it is started."""
    waiting = {"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting failed container"}
    conditions = [
        _condition(pod, type_, "False", now, "ContainersNotReady")
        for type_ in ("Ready", "ContainersReady")
    ]
    statuses = _container_statuses(pod, {"waiting": waiting}, False)
    return {
        **pod["status"],
        "phase": "Running",
        "startTime": pod["status"].get("startTime", now),
        "conditions": _with_conditions(pod, conditions),
        "containerStatuses": [{**found, "restartCount": 1} for found in statuses],
    }


def refused_status(pod: Json, now: str, refusal: Refusal) -> Json:
    """The node did not admit the pod; it never runs."""
    return {
        **pod["status"],
        "phase": "Failed",
        "reason": refusal.reason,
        "message": f"Pod was rejected: {refusal.message}",
        "startTime": now,
    }
