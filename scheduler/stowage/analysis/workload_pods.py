"""The pods that the workloads of manifests make, with the defaults of admission.

Read from plain objects: scheduling itself never reads pod templates.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from stowage.analysis.cluster_objects import ClusterObjects, ObjectT, struct_of
from stowage.analysis.generated_claims import default_requests, missing_templates
from stowage.analysis.manifest_identity import with_identity
from stowage.api.decoding.decode import convert_object
from stowage.api.decoding.errors import InvalidObject, SelectorError
from stowage.api.objects.meta import ObjectMeta
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod
from stowage.api.objects.pod_groups import PodGroup
from stowage.api.objects.policy import PriorityClass
from stowage.api.values.node_affinity import required_node_affinity
from stowage.api.values.tolerations import first_untolerated_taint
from stowage.state.pods.pod_info import PodClasses, make_pod_info

Json = dict[str, Any]

_NAMESPACED_WORKLOADS = frozenset(
    {
        "Deployment",
        "ReplicaSet",
        "ReplicationController",
        "StatefulSet",
        "DaemonSet",
        "Job",
        "CronJob",
    }
)
_SELECTS_PODS = {"Deployment": "ReplicaSet"}
_WITH_DEVICE_REQUESTS = frozenset({"ResourceClaim", "ResourceClaimTemplate"})
_NOT_READY_S = 300
#: The API server of every cluster makes them.
_SYSTEM_CLASSES = {
    name: PriorityClass(ObjectMeta(name=name), value)
    for name, value in (
        ("system-cluster-critical", 2_000_000_000),
        ("system-node-critical", 2_000_001_000),
    )
}
_DAEMON_TOLERATIONS = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)

_HOST_NETWORK_TOLERATIONS = (("node.kubernetes.io/network-unavailable", "NoSchedule"),)


class InvalidManifest(ValueError):  # noqa: N818 - it names the finding
    """An object of a manifest cannot be used; the message names the object and the field."""


def objects_of_manifests(
    items: Iterable[Mapping[str, Any]], cluster: ClusterObjects, removed_nodes: Collection[str] = ()
) -> ClusterObjects:
    """The objects of manifests, and the pods that their workloads make.

    Pods get what admission adds: namespace, priority, default tolerations, requests from limits.
    LimitRanges and quotas are not applied.

    Args:
        items: The objects of the manifests, plain.
        cluster: The cluster's objects: its nodes for DaemonSets, its priority classes.
        removed_nodes: The nodes for which DaemonSets make no pods.

    Raises:
        InvalidManifest: A field is invalid.
    """
    made = ClusterObjects()
    described = [_with_namespace(item) for item in items]
    classes = _SYSTEM_CLASSES | {
        each.metadata.name: each for each in cluster.of_kind(PriorityClass)
    }
    for item in described:
        if item["kind"] == "PriorityClass":
            classes[_name(item)] = _decoded(item, PriorityClass)
    nodes = [each for each in cluster.of_kind(Node) if each.metadata.name not in removed_nodes]
    for item in described:
        for obj in _expanded(item, nodes):
            kind = struct_of(obj)
            if kind is Pod:
                if obj is item:
                    _decoded(item, Pod)  # what follows relies on the shapes of its fields
                _admit(obj, classes)
            elif kind is PodGroup:
                _decoded(obj, PodGroup)
                obj["spec"] = dict(_field(obj, "spec"))
                _set_priority(obj, obj["spec"], classes)
            if kind is not None:
                made.add(_decoded(obj, kind))
    known = PodClasses()
    for pod in made.pods():
        _check_templates(pod, made, cluster)
        _check_fields(pod, known)
    return made


def unread_kinds(items: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """A note that names the kinds of manifests that scheduling does not read, if there are any.

    A misspelt kind is one of them.
    """
    kinds = {str(item.get("kind")) for item in items if struct_of(item) is None}
    names = ", ".join(sorted(kinds - _NAMESPACED_WORKLOADS))
    return (f"scheduling does not read these kinds of the manifests: {names}",) if names else ()


def _check_fields(pod: Pod, known: PodClasses) -> None:
    """Refuse what the engine cannot use; `known` are the classes of the pods before it."""
    try:
        make_pod_info(pod, known)
    except InvalidObject as invalid:
        raise InvalidManifest(str(invalid)) from invalid


def _check_templates(pod: Pod, *places: ClusterObjects) -> None:
    for index, name in missing_templates(pod, *places):
        field = f"spec.resourceClaims[{index}].resourceClaimTemplateName"
        raise InvalidManifest(
            f"Pod {pod.metadata.name}: {field}: {name} (expected a known ResourceClaimTemplate)"
        )


def _decoded(item: Json, kind: type[ObjectT]) -> ObjectT:
    try:
        return convert_object(kind, item)
    except InvalidObject as invalid:
        raise InvalidManifest(str(invalid)) from invalid


def _with_namespace(item: Mapping[str, Any]) -> Json:
    """A copy with namespace and UID."""
    kind, meta = str(item.get("kind", "")), item.get("metadata")
    given = (meta.get("name") or meta.get("generateName")) if isinstance(meta, Mapping) else None
    if not isinstance(meta, Mapping) or not given or not isinstance(given, str):
        raise InvalidManifest(f"{kind or 'object'}: metadata.name: expected a name")
    name = given if meta.get("name") else f"{given}x"
    named = {**item, "kind": kind, "metadata": {**meta, "name": name}}
    return dict(with_identity(named))


def _name(item: Json) -> str:
    return str(item["metadata"]["name"])


def _expanded(item: Json, nodes: Iterable[Node]) -> Iterator[Json]:
    """The object itself, or what the controller of a workload makes of it."""
    kind = item["kind"]
    if kind == "CronJob":
        spec = _field(item, "spec", "jobTemplate", "spec")
        item = {**item, "kind": "Job", "spec": spec}
    if kind not in _NAMESPACED_WORKLOADS:
        yield default_requests(item) if kind in _WITH_DEVICE_REQUESTS else item
        return
    _check_pod_template(item)
    if kind in ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet"):
        yield {**item, "kind": _SELECTS_PODS.get(kind, kind)}
    if kind == "DaemonSet":
        yield from _daemon_pods(item, nodes)
        return
    for index in range(_replicas(item)):
        pod = _pod(item, f"{_name(item)}-{index}")
        if kind == "StatefulSet":
            yield from _claims(item, pod)
        yield pod


def _replicas(item: Json) -> int:
    if item["kind"] != "Job":
        return _count(item, "replicas", 1)
    parallelism = _count(item, "parallelism", 1)
    return min(parallelism, _count(item, "completions", parallelism))


def _count(item: Json, field: str, default: int) -> int:
    number = _field(item, "spec").get(field)
    if number is None:
        return default
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        where = f"{item['kind']} {_name(item)}: spec.{field}"
        raise InvalidManifest(f"{where}: {number!r} (expected 0 or more)")
    return number


def _check_pod_template(item: Json) -> None:
    """Check the shapes of the fields of a workload's pods, before pods are made of them."""
    template = _field(item, "spec", "template")
    metadata = _field(item, "spec", "template", "metadata") if template.get("metadata") else {}
    spec = _field(item, "spec", "template", "spec")
    _decoded({"kind": "Pod", "metadata": {**metadata, "name": _name(item)}, "spec": spec}, Pod)


def _pod(item: Json, name: str) -> Json:
    template = _field(item, "spec", "template")
    meta = item["metadata"]
    kind = _SELECTS_PODS.get(item["kind"], item["kind"])
    owner = {"kind": kind, "name": meta["name"], "uid": meta["uid"], "controller": True}
    own = template.get("metadata") or {}
    return {
        "kind": "Pod",
        "metadata": {
            **own,
            "name": name,
            "namespace": meta["namespace"],
            "uid": f"{meta['uid']}/{name}",
            "ownerReferences": [{**owner, "apiVersion": item.get("apiVersion", "")}],
        },
        "spec": dict(_field(item, "spec", "template", "spec")),
    }


def _daemon_pods(item: Json, nodes: Iterable[Node]) -> Iterator[Json]:
    """The pods of a DaemonSet."""
    template = _decoded(_daemon_pod(item, _name(item)), Pod)
    for node in nodes:
        name = node.metadata.name
        try:
            is_made = _is_made_for(template, node)
        except SelectorError as invalid:
            where = f"DaemonSet {_name(item)}: spec.template.spec.affinity.nodeAffinity"
            raise InvalidManifest(f"{where}: {invalid}") from invalid
        if is_made:
            yield _only_for(_daemon_pod(item, f"{_name(item)}-{name}"), name)


def _daemon_pod(item: Json, name: str) -> Json:
    """A pod of a DaemonSet, with the tolerations that its controller adds."""
    pod = _pod(item, name)
    spec = pod["spec"]
    tolerated = _DAEMON_TOLERATIONS + (_HOST_NETWORK_TOLERATIONS if spec.get("hostNetwork") else ())
    tolerations = [
        {"key": key, "operator": "Exists", "effect": effect} for key, effect in tolerated
    ]
    spec["tolerations"] = [*(spec.get("tolerations") or ()), *tolerations]
    return pod


def _only_for(pod: Json, node_name: str) -> Json:
    """The pod for one node: the controller of a DaemonSet replaces the required node affinity.

    ``ReplaceDaemonSetPodNodeNameNodeAffinity`` of v1.36.
    """
    spec = pod["spec"]
    affinity = spec.get("affinity") or {}
    field = {"key": "metadata.name", "operator": "In", "values": [node_name]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    node_affinity = {
        **(affinity.get("nodeAffinity") or {}),
        "requiredDuringSchedulingIgnoredDuringExecution": required,
    }
    spec["affinity"] = {**affinity, "nodeAffinity": node_affinity}
    return pod


def _is_made_for(pod: Pod, node: Node) -> bool:
    """Whether the controller of a DaemonSet makes its pod, not yet for one node, for this node.

    ``NodeShouldRunDaemonPod`` of v1.36: nodes that the pod does not select, or whose taints it does
    not tolerate, get none.

    Raises:
        SelectorError: The node affinity is invalid.
    """
    name, spec = node.metadata.name, pod.spec
    return (
        spec.node_name in ("", name)
        and required_node_affinity(spec).matches(node.metadata.labels, name)
        and first_untolerated_taint(node.spec.taints, spec.tolerations) is None
    )


def _claims(item: Json, pod: Json) -> Iterator[Json]:
    """The claims of a StatefulSet's pod, and the volumes that name them."""
    volumes = list(pod["spec"].get("volumes") or ())
    templates = _field(item, "spec").get("volumeClaimTemplates") or ()
    where = f"{item['kind']} {_name(item)}: spec.volumeClaimTemplates"
    if not isinstance(templates, list | tuple):
        raise InvalidManifest(f"{where}: expected a list")
    for index, template in enumerate(templates):
        metadata = template.get("metadata") if isinstance(template, dict) else None
        volume = metadata.get("name") if isinstance(metadata, dict) else None
        if not isinstance(volume, str):
            raise InvalidManifest(f"{where}[{index}].metadata.name: expected a name")
        name = f"{volume}-{pod['metadata']['name']}"
        namespace = item["metadata"]["namespace"]
        meta = {"name": name, "namespace": namespace, "uid": f"claim/{namespace}/{name}"}
        yield {**template, "kind": "PersistentVolumeClaim", "metadata": meta}
        volumes.append({"name": volume, "persistentVolumeClaim": {"claimName": name}})
    pod["spec"]["volumes"] = volumes


def _admit(pod: Json, classes: Mapping[str, PriorityClass]) -> None:
    """Add what admission plugins and defaults add to a pod."""
    spec = pod["spec"] = dict(_field(pod, "spec"))
    _set_priority(pod, spec, classes)
    tolerations = _without_nulls(spec.get("tolerations"))
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(each.get("key") in (key, None, "") for each in tolerations):
            added = {"key": key, "operator": "Exists", "effect": "NoExecute"}
            tolerations.append({**added, "tolerationSeconds": _NOT_READY_S})
    spec["tolerations"] = tolerations
    for field in ("initContainers", "containers"):
        spec[field] = [_with_requests(each) for each in _without_nulls(spec.get(field))]


def _without_nulls(items: Iterable[Json | None] | None) -> list[Json]:
    """The items of a list; decoding leaves out those that are null, too."""
    return [each for each in items or () if each is not None]


def _set_priority(pod: Json, spec: Json, classes: Mapping[str, PriorityClass]) -> None:
    """Resolve the priority class of a pod, or of a pod group."""
    if spec.get("priority") is not None:
        return
    name = spec.get("priorityClassName")
    where = f"{pod['kind']} {_name(pod)}: spec.priorityClassName"
    if name is not None and not isinstance(name, str):
        raise InvalidManifest(f"{where}: {type(name).__name__} (expected the name of a class)")
    default = next((each for each in classes.values() if each.global_default), None)
    chosen = classes.get(name) if name else default
    if name and chosen is None:
        raise InvalidManifest(f"{where}: {name} (expected a known PriorityClass)")
    spec["priority"] = 0 if chosen is None else chosen.value
    if chosen is not None and chosen.preemption_policy and not spec.get("preemptionPolicy"):
        spec["preemptionPolicy"] = chosen.preemption_policy


def _with_requests(container: Json) -> Json:
    """The container; a resource that has only a limit requests it."""
    resources = container.get("resources") or {}
    requests = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return (
        {**container, "resources": {**resources, "requests": requests}} if requests else container
    )


def _field(item: Json, *path: str) -> Json:
    """The mapping at a path.

    Raises:
        InvalidManifest: There is none.
    """
    found: Json = item
    for number, name in enumerate(path, 1):
        inner = found.get(name)
        if not isinstance(inner, dict):
            where = ".".join(path[:number])
            raise InvalidManifest(f"{item['kind']} {_name(item)}: {where}: expected an object")
        found = inner
    return found
