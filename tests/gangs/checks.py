"""The checks of scenarios: what is wrong with a state of the cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.support.integration.auditor import node_of

Json = dict[str, Any]


@dataclass(frozen=True)
class State:
    """What the API server shows: objects by ``namespace/name``, nodes by name, Events.

    ``violations`` are over-committed nodes and pods that moved.
    """

    pods: Mapping[str, Json]
    nodes: Mapping[str, Json]
    groups: Mapping[str, Json]
    events: Sequence[Json]
    violations: Sequence[str] = ()

    def named(self, expected: Json) -> Iterator[tuple[str, Json | None]]:
        """The pods that an expectation names."""
        for name in expected["pods"]:
            key = name if "/" in name else f"default/{name}"
            yield name, self.pods.get(key)


def _condition(obj: Json | None, kind: str) -> Json | None:
    conditions = ((obj or {}).get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == kind), None)


def _differs(found: Json | None, expected: Json, *fields: str) -> bool:
    if found is None:
        return True
    wanted = {field: expected[field] for field in fields if field in expected}
    return any(found.get(field, "") != value for field, value in wanted.items())


def _lacks_text(found: Json | None, expected: Json) -> bool:
    return expected.get("contains", "") not in (found or {}).get("message", "")


def bound(expected: Json, state: State) -> str:
    """All pods have a node."""
    nodes = {name: node_of(pod) if pod else "" for name, pod in state.named(expected)}
    on = expected.get("on", "")
    allowed = [on] if isinstance(on, str) else on
    for name, node in nodes.items():
        if not node or (on and node not in allowed):
            return f"{name} is on {node or 'no node'}"
    if expected.get("distinct") and len(set(nodes.values())) < len(nodes):
        return f"some share a node: {nodes}"
    return ""


def bound_count(expected: Json, state: State) -> str:
    """Exactly so many pods have a node."""
    count = sum(bool(pod and node_of(pod)) for _, pod in state.named(expected))
    return "" if count == expected["n"] else f"{count} are bound"


def pending(expected: Json, state: State) -> str:
    """All pods are unschedulable, for this reason."""
    wanted = {"status": "False", "reason": "Unschedulable", **expected}
    for name, pod in state.named(expected):
        found = _condition(pod, "PodScheduled")
        if _differs(found, wanted, "status", "reason", "message") or _lacks_text(found, expected):
            return f"{name} has {found}"
    return ""


def untouched(expected: Json, state: State) -> str:
    """No pod has a node or a condition."""
    for name, pod in state.named(expected):
        if pod is None or node_of(pod) or _condition(pod, "PodScheduled"):
            return f"{name}: {pod and (node_of(pod) or _condition(pod, 'PodScheduled'))}"
    return ""


def domain(expected: Json, state: State) -> str:
    """All pods are on nodes with the same value of a label."""
    key, found = expected["key"], set[str]()
    for name, pod in state.named(expected):
        if not pod or not node_of(pod):
            return f"{name} is not bound"
        found.add(state.nodes[node_of(pod)]["metadata"]["labels"].get(key, ""))
    if len(found) == 1 and found <= {expected.get("want", *found)}:
        return ""
    return f"the values of {key} are {sorted(found)}"


def group_condition(expected: Json, state: State) -> str:
    """The groups have this condition PodGroupScheduled."""
    for name in expected["groups"]:
        group = state.groups.get(f"default/{name}")
        found = _condition(group, "PodGroupScheduled")
        if _differs(found, expected, "status", "reason", "message") or _lacks_text(found, expected):
            return f"{name} has {found}"
        if expected.get("observed") and group and found:
            generation = group["metadata"].get("generation")
            if found.get("observedGeneration") != generation:
                return f"{name}: generation {generation}, condition {found}"
    return ""


def no_group_condition(expected: Json, state: State) -> str:
    """The groups have no condition PodGroupScheduled."""
    for name in expected["groups"]:
        group = state.groups.get(f"default/{name}")
        if found := _condition(group, "PodGroupScheduled"):
            return f"{name} has {found}"
    return ""


def gone(expected: Json, state: State) -> str:
    """No pod exists."""
    left = [name for name, pod in state.named(expected) if pod is not None]
    return f"still there: {left}" if left else ""


def _is_alive(pod: Json | None) -> bool:
    return pod is not None and "deletionTimestamp" not in pod["metadata"]


def alive(expected: Json, state: State) -> str:
    """No pod is being deleted."""
    lost = [name for name, pod in state.named(expected) if not _is_alive(pod)]
    return f"deleted: {lost}" if lost else ""


def survivors(expected: Json, state: State) -> str:
    """Exactly so many pods are not being deleted."""
    left = [name for name, pod in state.named(expected) if _is_alive(pod)]
    return "" if len(left) == expected["n"] else f"left: {left}"


def event(expected: Json, state: State) -> str:
    """The pod has such an Event."""
    for name, pod in state.named(expected):
        uid = pod["metadata"]["uid"] if pod else ""
        about = [each for each in state.events if each["regarding"].get("uid") == uid]
        if all(_differs(each, expected, "type", "reason", "note") for each in about):
            return f"{name} has {[(each['reason'], each['note']) for each in about]}"
    return ""


def condition(expected: Json, state: State) -> str:
    """The pods have this condition."""
    for name, pod in state.named(expected):
        found = _condition(pod, expected["type"])
        if _differs(found, expected, "status", "reason", "message"):
            return f"{name} has {found}"
    return ""


def fits(expected: Json, state: State) -> str:
    """No node is over-committed."""
    del expected
    return "; ".join(state.violations)


CHECKS: Mapping[str, Callable[[Json, State], str]] = {
    "bound": bound,
    "boundCount": bound_count,
    "pending": pending,
    "untouched": untouched,
    "domain": domain,
    "groupCondition": group_condition,
    "noGroupCondition": no_group_condition,
    "gone": gone,
    "alive": alive,
    "survivors": survivors,
    "event": event,
    "condition": condition,
    "fits": fits,
}
