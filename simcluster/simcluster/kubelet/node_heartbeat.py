"""The conditions that a simulated kubelet reports for its node."""

from simcluster.kubelet.node_state import NOT_READY, PRESSURES, RUNNING, STOPPED, NodeBehaviour
from simcluster.kubelet.nodes import node_conditions
from simcluster.values import Json

_PRESSED = {
    "MemoryPressure": "KubeletHasInsufficientMemory",
    "DiskPressure": "KubeletHasDiskPressure",
    "PIDPressure": "KubeletHasInsufficientPID",
    "NetworkUnavailable": "NoRouteCreated",
}
_REPORTED = frozenset(("Ready", *_PRESSED))


def is_alive(node: Json, behaviour: NodeBehaviour, before: NodeBehaviour | None) -> bool:
    """Whether the node's kubelet runs.

    A node that was not stopped here but is Unknown was already silent in the dump that it was
    loaded from; its kubelet runs once the annotation says ``running``.
    """
    if STOPPED in behaviour.words:
        return False
    if before is not None and STOPPED in before.words:
        return True
    ready = next((found for found in _conditions(node) if found.get("type") == "Ready"), {})
    return ready.get("status") != "Unknown" or RUNNING in behaviour.words


def reported_conditions(
    node: Json, behaviour: NodeBehaviour, before: NodeBehaviour | None, now: str
) -> list[Json] | None:
    """The node's conditions as its kubelet reports them now; ``None`` if it has nothing to report.

    A node whose annotations never asked for anything keeps the conditions that it was created with.

    Args:
        node: the present object.
        behaviour: by its annotations.
        before: the behaviour at the last report; ``None`` if there was none.
        now: the time of changed conditions.
    """
    conditions = _conditions(node)
    has_ready = any(found.get("type") == "Ready" for found in conditions)
    has_changed = before is not None and before.words != behaviour.words
    if has_ready and not has_changed and not (before is None and behaviour.words):
        return None
    fresh = {found["type"]: found for found in node_conditions(now)}
    for word, kind in PRESSURES.items():
        if word in behaviour.words:
            fresh[kind] = {**_blank(kind, now), "status": "True", "reason": _PRESSED[kind]}
    if NOT_READY in behaviour.words:
        fresh["Ready"] |= {
            "status": "False",
            "reason": "KubeletNotReady",
            "message": "an annotation says that the kubelet is not ready",
        }
    return _merged(conditions, fresh)


def _conditions(node: Json) -> list[Json]:
    return list(node["status"].get("conditions") or ())


def _blank(kind: str, now: str) -> Json:
    return {
        "type": kind,
        "message": "an annotation says so",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }


def _merged(conditions: list[Json], fresh: dict[str, Json]) -> list[Json]:
    """Replaces reported conditions; keeps the times of unchanged ones, and all other conditions."""
    merged = []
    for old in conditions:
        if old["type"] not in _REPORTED:
            merged.append(old)
        elif old["type"] in fresh:
            new = fresh.pop(old["type"])
            if new["status"] == old.get("status"):
                new["lastTransitionTime"] = old.get("lastTransitionTime")
            merged.append(new)
    return [*merged, *fresh.values()]
