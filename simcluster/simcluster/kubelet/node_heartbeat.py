"""The conditions a kubelet stand-in reports for its node."""

from typing import Any

from simcluster.kubelet.node_state import NOT_READY, PRESSURES, RUNNING, STOPPED, NodeBehaviour
from simcluster.kubelet.nodes import node_conditions

Json = dict[str, Any]

_PRESSED = {
    "MemoryPressure": "KubeletHasInsufficientMemory",
    "DiskPressure": "KubeletHasDiskPressure",
    "PIDPressure": "KubeletHasInsufficientPID",
    "NetworkUnavailable": "NoRouteCreated",
}
_REPORTED = frozenset(("Ready", *_PRESSED))


def is_alive(node: Json, behaviour: NodeBehaviour, before: NodeBehaviour | None) -> bool:
    """Whether a kubelet stand-in runs the node.

    A node that is Unknown although it was not stopped here was given up where it was loaded from;
    it is alive once it is told to run.
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
    """The node's conditions as its kubelet reports them now; ``None`` if there is nothing to say.

    A node that was never told anything speaks for itself: it keeps the conditions it came with.

    Args:
        node: as it is.
        behaviour: what it is told to be.
        before: what it was told when it last reported; ``None`` if it never did.
        now: of changed conditions.
    """
    conditions = _conditions(node)
    has_ready = any(found.get("type") == "Ready" for found in conditions)
    was_told = before is not None and before.words != behaviour.words
    if has_ready and not was_told and not (before is None and behaviour.words):
        return None
    fresh = {found["type"]: found for found in node_conditions(now)}
    for word, kind in PRESSURES.items():
        if word in behaviour.words:
            fresh[kind] = {**_blank(kind, now), "status": "True", "reason": _PRESSED[kind]}
    if NOT_READY in behaviour.words:
        fresh["Ready"] |= {
            "status": "False",
            "reason": "KubeletNotReady",
            "message": "the kubelet stand-in was told not to be ready",
        }
    return _merged(conditions, fresh)


def _conditions(node: Json) -> list[Json]:
    return list(node["status"].get("conditions") or ())


def _blank(kind: str, now: str) -> Json:
    return {
        "type": kind,
        "message": "the kubelet stand-in was told so",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }


def _merged(conditions: list[Json], fresh: dict[str, Json]) -> list[Json]:
    """Reported conditions replaced, the times of unchanged ones kept, and others as they are."""
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
