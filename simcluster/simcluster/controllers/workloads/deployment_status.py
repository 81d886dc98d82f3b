"""The status of a Deployment: counts, and the conditions Available and Progressing."""

from collections.abc import Sequence

from simcluster.clock import Clock, parse_timestamp
from simcluster.controllers.ownership import set_condition
from simcluster.controllers.workloads.rollout import max_unavailable
from simcluster.store.store import Stored
from simcluster.values import Json

AVAILABLE = "NewReplicaSetAvailable"
TIMED_OUT = "ProgressDeadlineExceeded"
_COUNTS = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")


def counted(stored: Stored | None, key: str) -> int:
    """A count of a ReplicaSet's status; 0 if there is no such set."""
    return int(stored.obj["status"].get(key, 0)) if stored is not None else 0


def deployment_status(
    deployment: Stored, current: Stored | None, older: Sequence[Stored], clock: Clock
) -> Json:
    """The status of a Deployment, computed from its ReplicaSets."""
    sets = [*older, current] if current is not None else list(older)
    counts = {key: sum(counted(found, key) for found in sets) for key in _COUNTS}
    counts["updatedReplicas"] = counted(current, "replicas")
    desired = deployment.obj["spec"]["replicas"]
    total = max(desired, sum(found.obj["spec"]["replicas"] for found in sets))
    counts["unavailableReplicas"] = max(0, total - counts["availableReplicas"])
    status: Json = {name: count for name, count in counts.items() if count}
    status["observedGeneration"] = deployment.obj["metadata"].get("generation", 1)
    conditions = deployment.obj["status"].get("conditions") or []
    conditions = _with_available(conditions, deployment.obj["spec"], counts, clock)
    status["conditions"] = _with_progress(conditions, deployment, current, counts, clock)
    return status


def _with_available(
    conditions: list[Json], spec: Json, counts: dict[str, int], clock: Clock
) -> list[Json]:
    is_available = counts["availableReplicas"] >= spec["replicas"] - max_unavailable(spec)
    condition = _condition(
        "Available",
        is_available,
        "MinimumReplicasAvailable" if is_available else "MinimumReplicasUnavailable",
        f"Deployment {'has' if is_available else 'does not have'} minimum availability.",
        clock,
    )
    return _updated(conditions, condition)


def _with_progress(
    conditions: list[Json],
    deployment: Stored,
    current: Stored | None,
    counts: dict[str, int],
    clock: Clock,
) -> list[Json]:
    spec, old = deployment.obj["spec"], deployment.obj["status"]
    before = progressing_of(deployment)
    name = f'ReplicaSet "{current.name}"' if current is not None else "Deployment"
    if deployment.name and current is None:
        name = f'Deployment "{deployment.name}"'
    if spec.get("paused"):
        if before is not None and before["reason"] in {TIMED_OUT, AVAILABLE, "DeploymentPaused"}:
            return conditions
        paused = _condition("Progressing", None, "DeploymentPaused", "Deployment is paused", clock)
        return _updated(conditions, paused)
    if is_complete(spec, counts):
        done = f"{name} has successfully progressed."
        return _updated(conditions, _condition("Progressing", True, AVAILABLE, done, clock))
    if before is None or _has_progressed(old, counts) or before["reason"] == "DeploymentPaused":
        reason = "NewReplicaSetCreated" if before is None else "ReplicaSetUpdated"
        going = f"{name} is progressing."
        fresh = _condition("Progressing", True, reason, going, clock)
        return _updated(conditions, fresh, is_fresh=True)
    if before["reason"] == AVAILABLE:
        fresh = _condition(
            "Progressing", True, "ReplicaSetUpdated", f"{name} is progressing.", clock
        )
        return _updated(conditions, fresh, is_fresh=True)
    if progress_left_s(deployment, clock) <= 0:
        late = f"{name} has timed out progressing."
        return _updated(conditions, _condition("Progressing", False, TIMED_OUT, late, clock))
    return conditions


def is_complete(spec: Json, counts: Json) -> bool:
    """Whether all replicas are of the newest template and available, and no other exists."""
    desired = spec["replicas"]
    return all(
        counts.get(key, 0) == desired
        for key in ("updatedReplicas", "replicas", "availableReplicas")
    )


def progressing_of(deployment: Stored) -> Json | None:
    """A Deployment's Progressing condition."""
    conditions = deployment.obj["status"].get("conditions") or ()
    return next((found for found in conditions if found["type"] == "Progressing"), None)


def progress_left_s(deployment: Stored, clock: Clock) -> float:
    """Seconds until a rollout without progress has failed."""
    before = progressing_of(deployment)
    if before is None:
        return float(deployment.obj["spec"]["progressDeadlineSeconds"])
    began = parse_timestamp(before.get("lastUpdateTime") or before["lastTransitionTime"])
    deadline_s: float = deployment.obj["spec"]["progressDeadlineSeconds"]
    return began + deadline_s - clock.time_s()


def _has_progressed(old: Json, counts: dict[str, int]) -> bool:
    old_before = old.get("replicas", 0) - old.get("updatedReplicas", 0)
    old_now = counts["replicas"] - counts["updatedReplicas"]
    rising = ("updatedReplicas", "readyReplicas", "availableReplicas")
    return old_now < old_before or any(counts[key] > old.get(key, 0) for key in rising)


def _condition(kind: str, is_true: bool | None, reason: str, message: str, clock: Clock) -> Json:
    now = clock.now()
    return {
        "type": kind,
        "status": "Unknown" if is_true is None else str(is_true),
        "reason": reason,
        "message": message,
        "lastUpdateTime": now,
        "lastTransitionTime": now,
    }


def _updated(conditions: list[Json], condition: Json, *, is_fresh: bool = False) -> list[Json]:
    """Conditions with one replaced; an equal one keeps its update time unless ``is_fresh``."""
    before = next((old for old in conditions if old["type"] == condition["type"]), None)
    if before is not None and not is_fresh:
        same = ("status", "reason", "message")
        if all(before.get(key) == condition[key] for key in same):
            condition["lastUpdateTime"] = before.get("lastUpdateTime", condition["lastUpdateTime"])
    return set_condition(conditions, condition)
