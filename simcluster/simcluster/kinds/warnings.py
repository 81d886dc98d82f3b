"""Warnings about objects that are valid but have deprecated or probably unintended fields.

The texts are kube-apiserver's (``pkg/api/pod/warnings.go`` and the ``WarningsOnCreate`` of kinds).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from cachetools import LRUCache

from simcluster.kinds.resources import Resource
from simcluster.store.stored import encode
from simcluster.validation import names
from simcluster.values import Json
from stowage.api.values.quantity import quantity_milli_value

_DEPRECATED_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": (
        'deprecated since v1.17; use "topology.kubernetes.io/region" instead'
    ),
    "failure-domain.beta.kubernetes.io/zone": (
        'deprecated since v1.17; use "topology.kubernetes.io/zone" instead'
    ),
    "beta.kubernetes.io/instance-type": (
        'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead'
    ),
}
_DEPRECATED_VOLUMES = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_DEPRECATED_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": (
        'non-functional in v1.16+; use the "priorityClassName" field instead'
    ),
    "security.alpha.kubernetes.io/sysctls": (
        'non-functional in v1.11+; use the "sysctls" field instead'
    ),
    "security.alpha.kubernetes.io/unsafe-sysctls": (
        'non-functional in v1.11+; use the "sysctls" field instead'
    ),
}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_WHOLE_BYTES = ("memory", "ephemeral-storage")
_RECOMMENDED = "which can result in surprising behavior; a DNS label is recommended: [{}]".format


def warnings_on_create(resource: Resource, obj: Json) -> tuple[str, ...]:
    """Warnings of an answer to the creation of ``obj``."""
    if resource.custom is not None:
        return tuple(_of_finalizers(obj["metadata"].get("finalizers") or (), ()))
    warn = _ON_CREATE.get(resource.stored_in)
    return tuple(warn(obj)) if warn is not None else ()


def warnings_on_update(resource: Resource, obj: Json, before: Json) -> tuple[str, ...]:
    """Warnings of an answer to a change of a pod template or of the finalizers."""
    if resource.custom is not None:
        lists = (each["metadata"].get("finalizers") or () for each in (obj, before))
        return tuple(_of_finalizers(*lists))
    path = _TEMPLATES.get(resource.stored_in)
    generations = obj["metadata"].get("generation"), before["metadata"].get("generation")
    if path is None or generations[0] == generations[1]:
        return ()
    return tuple(_of_template(_template_of(obj, path), path))


_STANDARD_FINALIZERS = frozenset(("foregroundDeletion", "kubernetes", "orphan"))
_OTHER_WRITERS = "to avoid accidental conflicts with other finalizer writers"


def _of_finalizers(finalizers: Iterable[str], before: Iterable[str]) -> Iterator[str]:
    """Warnings about new finalizers of a custom resource that have no domain."""
    for finalizer in sorted(set(finalizers) - set(before)):
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            path = " including a path (/)" if "." in finalizer else ""
            wish = f"prefer a domain-qualified finalizer name{path} {_OTHER_WRITERS}"
            yield f'metadata.finalizers: "{finalizer}": {wish}'


def _of_pod(pod: Json) -> Iterator[str]:
    if problems := names.dns_label(pod["metadata"]["name"]):
        recommended = _RECOMMENDED(" ".join(problems))
        yield f"metadata.name: this is used in the Pod's hostname, {recommended}"
    annotations = pod["metadata"].get("annotations")
    key = encode((annotations, pod["spec"]))
    warnings = _pod_warnings.get(key)
    if warnings is None:
        warnings = _pod_warnings[key] = tuple(_of_template(pod, ""))
    yield from warnings


_pod_warnings: LRUCache[bytes, tuple[str, ...]] = LRUCache(maxsize=1024)
"""Warnings by annotations and spec: pods of one template share them."""


def _items(holder: Json, field: str, path: str) -> Iterator[tuple[Json, str]]:
    """The objects of a list, each with its path."""
    for position, item in enumerate(holder.get(field) or ()):
        yield item, f"{path}.{field}[{position}]"


def _of_template(template: Json, path: str) -> Iterator[str]:
    """Warnings of a pod, at the empty path, or of a pod template."""
    prefix = f"{path}." if path else ""
    spec, place = template.get("spec") or {}, f"{prefix}spec"
    for part in (_of_node_selector, _of_node_affinity, _of_spread):
        yield from part(spec, place)
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    for key, why in _DEPRECATED_ANNOTATIONS.items():
        if key in annotations:
            yield f"{prefix}metadata.annotations[{key}]: {why}"
    for part in (_of_volumes, _of_lists, _of_containers, _of_ports, _of_grace, _of_pod_affinity):
        yield from part(spec, place)


def _of_node_selector(spec: Json, path: str) -> Iterator[str]:
    for key in spec.get("nodeSelector") or ():
        if key in _DEPRECATED_LABELS:
            yield f"{path}.nodeSelector[{key}]: {_DEPRECATED_LABELS[key]}"


def _of_spread(spec: Json, path: str) -> Iterator[str]:
    for constraint, where in _items(spec, "topologySpreadConstraints", path):
        yield from _deprecated(constraint.get("topologyKey"), f"{where}.topologyKey")
        yield from _null_selector(constraint, where)


def _of_volumes(spec: Json, path: str) -> Iterator[str]:
    for volume, where in _items(spec, "volumes", path):
        for kind in _DEPRECATED_VOLUMES.keys() & volume.keys():
            yield f"{where}.{kind}: {_DEPRECATED_VOLUMES[kind]}"


def _of_grace(spec: Json, path: str) -> Iterator[str]:
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        why = "must be >= 0; negative values are invalid and will be treated as 1"
        yield f"{path}.terminationGracePeriodSeconds: {why}"


def _of_pod_affinity(spec: Json, path: str) -> Iterator[str]:
    for kind in ("podAffinity", "podAntiAffinity"):
        terms, where = (spec.get("affinity") or {}).get(kind) or {}, f"{path}.affinity.{kind}"
        for term, inner in _items(terms, _REQUIRED, where):
            yield from _null_selector(term, inner)
        for weighted, inner in _items(terms, _PREFERRED, where):
            term = weighted.get("podAffinityTerm") or {}
            yield from _null_selector(term, f"{inner}.podAffinityTerm")


def _deprecated(key: str | None, path: str) -> Iterator[str]:
    if key in _DEPRECATED_LABELS:
        yield f"{path}: {key} is {_DEPRECATED_LABELS[key]}"


def _null_selector(term: Json, path: str) -> Iterator[str]:
    if term.get("labelSelector") is None:
        yield f"{path}.labelSelector: a null labelSelector results in matching no pod"


def _of_node_affinity(spec: Json, path: str) -> Iterator[str]:
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required, place = affinity.get(_REQUIRED) or {}, f"{path}.affinity.nodeAffinity"
    for term, where in _items(required, "nodeSelectorTerms", f"{place}.{_REQUIRED}"):
        yield from _of_selector_term(term, where)
    for weighted, where in _items(affinity, _PREFERRED, place):
        yield from _of_selector_term(weighted.get("preference") or {}, f"{where}.preference")


def _of_selector_term(term: Json, path: str) -> Iterator[str]:
    for expression, where in _items(term, "matchExpressions", path):
        yield from _deprecated(expression.get("key"), f"{where}.key")


def _of_lists(spec: Json, path: str) -> Iterator[str]:
    for field, key in (("hostAliases", "ip"), ("imagePullSecrets", "name")):
        seen: set[str] = set()
        for item, where in _items(spec, field, path):
            value = item.get(key, "")
            if value in seen:
                yield f'{where}.{key}: duplicate {key} "{value}"'
            seen.add(value)
    for secret, where in _items(spec, "imagePullSecrets", path):
        if not secret.get("name"):
            yield f'{where}.name: invalid empty name ""'


def _fraction(amounts: Json | None, name: str, path: str) -> Iterator[str]:
    amount = (amounts or {}).get(name)
    if amount and amount.endswith("m") and quantity_milli_value(amount) % 1000:
        why = f'fractional byte value "{amount}" is invalid, must be an integer'
        yield f"{path}[{name}]: {why}"


def _containers(spec: Json, path: str) -> Iterator[tuple[Json, str]]:
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        yield from _items(spec, kind, path)


def _of_containers(spec: Json, path: str) -> Iterator[str]:
    for name in _WHOLE_BYTES:
        yield from _fraction(spec.get("overhead"), name, f"{path}.overhead")
    for container, where in _containers(spec, path):
        yield from _of_container(container, where)


def _of_container(container: Json, path: str) -> Iterator[str]:
    resources = container.get("resources") or {}
    for name in _WHOLE_BYTES:
        for kind in ("limits", "requests"):
            yield from _fraction(resources.get(kind), name, f"{path}.resources.{kind}")
    seen: set[str] = set()
    for variable, where in _items(container, "env", path):
        name, value = variable.get("name", ""), variable.get("value", "")
        reference = f"$({name})"
        is_lost = variable.get("valueFrom") or value == reference or reference not in value
        if name in seen and is_lost:
            yield (
                f'{where}: hides previous definition of "{name}", which may be dropped when using '
                "apply"
            )
        seen.add(name)


def _of_ports(spec: Json, path: str) -> Iterator[str]:
    others: dict[tuple[int, str], list[tuple[Json, str]]] = {}
    for container, where in _containers(spec, path):
        for port, place in _items(container, "ports", where):
            same = others.setdefault((port.get("containerPort", 0), port["protocol"]), [])
            for other, other_place in same:
                if how := _clash(port, other):
                    yield f"{place}: {how} port definition with {other_place}"
            same.append((port, place))


def _clash(port: Json, other: Json) -> str:
    ips = port.get("hostIP", ""), other.get("hostIP", "")
    ports = port.get("hostPort", 0), other.get("hostPort", 0)
    if ips[0] == ips[1] and ports[0] == ports[1]:
        return "duplicate"
    if 0 in ports:
        return "overlapping"
    is_ambiguous = ports[0] == ports[1] and bool(ips[0]) != bool(ips[1])
    return "dangerously ambiguous" if is_ambiguous else ""


def _of_claim(claim: Json) -> Iterator[str]:
    resources = (claim.get("spec") or {}).get("resources") or {}
    return _fraction(resources.get("requests"), "storage", "spec.resources.requests")


def _of_volume(volume: Json) -> Iterator[str]:
    spec = volume.get("spec") or {}
    required = (spec.get("nodeAffinity") or {}).get("required") or {}
    for term, where in _items(required, "nodeSelectorTerms", "spec.nodeAffinity.required"):
        yield from _of_selector_term(term, where)
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        why = (
            "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use "
            "dynamic provisioning."
        )
        yield f"spec.persistentVolumeReclaimPolicy: {why}"


_TEMPLATE = "spec.template"
_TEMPLATES: Mapping[str, str] = {
    "deployments.apps": _TEMPLATE,
    "replicasets.apps": _TEMPLATE,
    "statefulsets.apps": _TEMPLATE,
    "daemonsets.apps": _TEMPLATE,
    "replicationcontrollers": _TEMPLATE,
    "jobs.batch": _TEMPLATE,
    "cronjobs.batch": "spec.jobTemplate.spec.template",
}
_NAMES_PODS = _TEMPLATES.keys() - {"statefulsets.apps", "daemonsets.apps"}


def _template_of(obj: Json, path: str) -> Json:
    found: Json = obj
    for key in path.split("."):
        found = found.get(key) or {}
    return found


def _of_workload(collection: str) -> Callable[[Json], Iterator[str]]:
    path = _TEMPLATES[collection]

    def warn(workload: Json) -> Iterator[str]:
        problems = names.dns_label(workload["metadata"]["name"])
        if problems and collection in _NAMES_PODS:
            recommended = _RECOMMENDED(" ".join(problems))
            yield f"metadata.name: this is used in Pod names and hostnames, {recommended}"
        yield from _of_template(_template_of(workload, path), path)

    return warn


_ON_CREATE: Mapping[str, Callable[[Json], Iterator[str]]] = {
    "pods": _of_pod,
    "persistentvolumeclaims": _of_claim,
    "persistentvolumes": _of_volume,
    **{collection: _of_workload(collection) for collection in _TEMPLATES},
}
