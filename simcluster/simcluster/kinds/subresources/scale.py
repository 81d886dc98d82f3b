"""The scale subresource, which reads and sets the replica count of a workload."""

from typing import Any

from simcluster.apiserver import errors
from simcluster.kinds.resources import REPLICATION_CONTROLLERS, SCALES, Resource
from simcluster.store.etcd_keys import other_uid
from simcluster.store.json_path import compile_path
from simcluster.store.registry import Registry, WriteOptions, editable
from simcluster.store.selectors import selector_text
from simcluster.store.store import Stored
from simcluster.values import Json


def scale_of(resource: Resource, stored: Stored) -> Json:
    """The ``Scale`` of a workload, or of a custom resource with a scale subresource."""
    obj, metadata = stored.obj, stored.metadata
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    paths = resource.custom.scale if resource.custom else None
    if paths is None:
        replicas = obj["spec"].get("replicas", 1)
        status: Json = {"replicas": (obj.get("status") or {}).get("replicas", 0)}
        selector = selector_text(_label_selector(resource, obj))
    else:
        replicas = _at(obj, paths["specReplicasPath"], 0)
        status = {"replicas": _at(obj, paths["statusReplicasPath"], 0)}
        selector = _at(obj, paths.get("labelSelectorPath", ""), "")
    if selector:
        status["selector"] = selector
    return {
        "kind": SCALES.kind,
        "apiVersion": SCALES.api_version,
        "metadata": {key: metadata[key] for key in kept if key in metadata},
        "spec": {"replicas": replicas},
        "status": status,
    }


def _at(obj: Json, path: str, default: Any) -> Any:
    found = compile_path(path)(obj) if path else []
    return found[0] if found else default


def _label_selector(resource: Resource, obj: Json) -> Json:
    """The selector of a workload; a ReplicationController has a map of labels."""
    selector: Json = obj["spec"].get("selector") or {}
    return {"matchLabels": selector} if resource is REPLICATION_CONTROLLERS else selector


def set_scale(
    registry: Registry,
    resource: Resource,
    current: Stored,
    scale: Json,
    options: WriteOptions,
) -> Stored:
    """Set ``spec.replicas`` from a ``Scale``.

    Raises:
        ApiError: 409, the scale names another revision or uid; 422, the count is negative or no
            number.
    """
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    # Of a custom resource, the object is validated.
    if resource.custom is None and replicas < 0:
        error = errors.invalid_value(
            "spec.replicas", replicas, "must be greater than or equal to 0"
        )
        raise errors.invalid("autoscaling", "Scale", current.name, [error])
    metadata = scale.get("metadata") or {}
    asked, uid = metadata.get("resourceVersion"), metadata.get("uid")
    if uid and uid != current.uid:
        raise errors.conflict(resource, current.name, other_uid(resource, current, uid))
    if asked and asked != str(current.revision):
        raise errors.conflict(resource, current.name)
    obj = editable(current)
    *parents, last = _replicas_path(resource)
    holder = obj
    for key in parents:
        holder = holder.setdefault(key, {})
    holder[last] = replicas
    return registry.replace(resource, current, obj, options)


def _replicas_path(resource: Resource) -> list[str]:
    custom = resource.custom
    path = custom.scale["specReplicasPath"] if custom and custom.scale else ".spec.replicas"
    return path.lstrip(".").split(".")


def part_of_scale(resource: Resource, scale: Json) -> Json:
    """The part of a workload that a ``Scale`` sets; empty if it names no replicas."""
    replicas = (scale.get("spec") or {}).get("replicas")
    *parents, last = _replicas_path(resource)
    part: Json = {last: replicas}
    for key in reversed(parents):
        part = {key: part}
    return {} if replicas is None else part
