"""The binding subresource, which sets a pod's node once."""

from simcluster.apiserver import errors
from simcluster.kinds.resources import NODES, PODS
from simcluster.store.registry import Registry
from simcluster.values import Json

TOPOLOGY_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
CREATED: Json = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Success",
    "code": 201,
}
"""The answer to a binding and to an eviction."""


def bind(
    registry: Registry, namespace: str, name: str, binding: Json, *, dry_run: bool = False
) -> Json:
    """Assign a pod to ``binding.target`` and mark it scheduled; the node need not exist.

    Raises:
        ApiError: 404; 409, the pod is bound, gated or being deleted, or a precondition does not
            hold; 500, the target is unusable.
    """
    if not name:
        raise errors.bad_request("Name parameter required.")
    node_name = _target(binding)
    stored = registry.get(PODS, namespace, name)
    pod, metadata = stored.obj, binding.get("metadata") or {}
    _check_preconditions(pod, metadata)
    _check_bindable(pod)
    if dry_run:
        return CREATED
    bound_metadata = dict(pod["metadata"])
    labels = {**(metadata.get("labels") or {}), **_topology_labels(registry, node_name)}
    for field, added in (("annotations", metadata.get("annotations")), ("labels", labels)):
        if added:
            bound_metadata[field] = {**(bound_metadata.get(field) or {}), **added}
    status = {key: value for key, value in pod["status"].items() if key != "nominatedNodeName"}
    status["conditions"] = _with_scheduled(pod, registry.clock.now(), bound_metadata)
    bound = {
        **pod,
        "metadata": bound_metadata,
        "spec": {**pod["spec"], "nodeName": node_name},
        "status": status,
    }
    registry.store.put(PODS.stored_in, bound)
    return CREATED


def _target(binding: Json) -> str:
    target = binding.get("target")
    if not isinstance(target, dict):
        target = {}
    problems = []
    kind, name = target.get("kind"), target.get("name")
    if kind and kind != "Node":
        problems.append(
            f'target.kind: Unsupported value: "{kind}": supported values: "<empty>", "Node"'
        )
    if not name:
        problems.append("target.name: Required value")
    if problems:
        raise errors.internal(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    return str(name)


def _check_preconditions(pod: Json, metadata: Json) -> None:
    for field, shown in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        asked, actual = metadata.get(field), pod["metadata"][field]
        if asked and asked != actual:
            why = f"{shown} in precondition: {asked}, {shown} in object meta: {actual}"
            raise errors.binding_conflict(pod["metadata"]["name"], f"Precondition failed: {why}")


def _check_bindable(pod: Json) -> None:
    name, spec = pod["metadata"]["name"], pod["spec"]
    why = ""
    if pod["metadata"].get("deletionTimestamp"):
        why = "is being deleted, cannot be assigned to a host"
    elif spec.get("nodeName"):
        why = f'is already assigned to node "{spec["nodeName"]}"'
    elif spec.get("schedulingGates"):
        why = "has non-empty .spec.schedulingGates"
    if why:
        raise errors.binding_conflict(name, f"pod {name} {why}")


def _topology_labels(registry: Registry, node_name: str) -> Json:
    node = registry.store.get(NODES.stored_in, "", node_name)
    labels = node.labels if node is not None else {}
    return {key: labels[key] for key in TOPOLOGY_LABELS if key in labels}


def _with_scheduled(pod: Json, now: str, metadata: Json) -> list[Json]:
    before = pod["status"].get("conditions") or []
    old = next((found for found in before if found.get("type") == "PodScheduled"), None)
    condition: Json = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": now,
    }
    if "generation" in metadata:
        condition["observedGeneration"] = metadata["generation"]
    if old is None:
        return [*before, condition]
    if old.get("status") == "True":
        condition["lastTransitionTime"] = old.get("lastTransitionTime")
    return [condition if found is old else found for found in before]
