"""Warnings of the strategies of kinds: what is stored as asked, but hardly means what was meant.

The texts are kube-apiserver's (``pkg/api/pod/warnings.go`` and the ``WarningsOnCreate`` of kinds).
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from cachetools import LRUCache
from stowage.api.values.quantity import quantity_milli_value

from simcluster.kinds.resources import Resource
from simcluster.store.stored import encode
from simcluster.validation import names

Json = dict[str, Any]

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
_NO_POD = "a null labelSelector results in matching no pod"
_WHOLE_BYTES = ("memory", "ephemeral-storage")
_RECOMMENDED = "which can result in surprising behavior; a DNS label is recommended: [{}]".format


def warnings_on_create(resource: Resource, obj: Json) -> tuple[str, ...]:
    """Warnings of an answer to the creation of ``obj``."""
    warn = _ON_CREATE.get(resource.stored_in)
    return tuple(warn(obj)) if warn is not None else ()


def warnings_on_update(resource: Resource, obj: Json, before: Json) -> tuple[str, ...]:
    """Warnings of an answer to a change, which only one of what pods are made of earns."""
    path = _TEMPLATES.get(resource.stored_in)
    generations = obj["metadata"].get("generation"), before["metadata"].get("generation")
    if path is None or generations[0] == generations[1]:
        return ()
    return tuple(_of_template(_template_of(obj, path), path))


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
"""Warnings by what they are about: pods of one template have it between them."""


def _of_template(template: Json, path: str) -> Iterator[str]:
    """Warnings of a pod, at the empty path, or of a pod template."""
    prefix = f"{path}." if path else ""
    spec, place = template.get("spec") or {}, f"{prefix}spec"
    for key in spec.get("nodeSelector") or ():
        if key in _DEPRECATED_LABELS:
            yield f"{place}.nodeSelector[{key}]: {_DEPRECATED_LABELS[key]}"
    affinity = spec.get("affinity") or {}
    yield from _of_node_affinity(affinity.get("nodeAffinity") or {}, f"{place}.affinity")
    yield from _of_spread(spec.get("topologySpreadConstraints") or (), place)
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    for key, why in _DEPRECATED_ANNOTATIONS.items():
        if key in annotations:
            yield f"{prefix}metadata.annotations[{key}]: {why}"
    for position, volume in enumerate(spec.get("volumes") or ()):
        for kind in volume.keys() & _DEPRECATED_VOLUMES.keys():
            yield f"{place}.volumes[{position}].{kind}: {_DEPRECATED_VOLUMES[kind]}"
    yield from _of_lists(spec, place)
    yield from _of_fractions(spec.get("overhead") or {}, f"{place}.overhead")
    for container, where in _containers(spec, place):
        yield from _of_container(container, where)
    yield from _of_ports(spec, place)
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        why = "must be >= 0; negative values are invalid and will be treated as 1"
        yield f"{place}.terminationGracePeriodSeconds: {why}"
    for kind in ("podAffinity", "podAntiAffinity"):
        yield from _of_pod_terms(affinity.get(kind) or {}, f"{place}.affinity.{kind}")


def _of_node_affinity(affinity: Json, path: str) -> Iterator[str]:
    required = (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()
    terms = [
        (term, f"{path}.nodeAffinity.{_REQUIRED}.nodeSelectorTerms[{position}]")
        for position, term in enumerate(required)
    ] + [
        (term.get("preference") or {}, f"{path}.nodeAffinity.{_PREFERRED}[{position}].preference")
        for position, term in enumerate(affinity.get(_PREFERRED) or ())
    ]
    for term, place in terms:
        yield from _of_selector_term(term, place)


def _of_selector_term(term: Json, path: str) -> Iterator[str]:
    for position, expression in enumerate(term.get("matchExpressions") or ()):
        key = expression.get("key", "")
        if key in _DEPRECATED_LABELS:
            yield f"{path}.matchExpressions[{position}].key: {key} is {_DEPRECATED_LABELS[key]}"


def _of_spread(constraints: list[Json] | tuple[()], path: str) -> Iterator[str]:
    for position, constraint in enumerate(constraints):
        place, key = f"{path}.topologySpreadConstraints[{position}]", constraint.get("topologyKey")
        if key in _DEPRECATED_LABELS:
            yield f"{place}.topologyKey: {key} is {_DEPRECATED_LABELS[key]}"
        if constraint.get("labelSelector") is None:
            yield f"{place}.labelSelector: {_NO_POD}"


def _of_pod_terms(affinity: Json, path: str) -> Iterator[str]:
    for position, term in enumerate(affinity.get(_REQUIRED) or ()):
        if term.get("labelSelector") is None:
            yield f"{path}.{_REQUIRED}[{position}].labelSelector: {_NO_POD}"
    for position, weighted in enumerate(affinity.get(_PREFERRED) or ()):
        if (weighted.get("podAffinityTerm") or {}).get("labelSelector") is None:
            yield f"{path}.{_PREFERRED}[{position}].podAffinityTerm.labelSelector: {_NO_POD}"


def _of_lists(spec: Json, path: str) -> Iterator[str]:
    for field, key in (("hostAliases", "ip"), ("imagePullSecrets", "name")):
        seen: set[str] = set()
        for position, item in enumerate(spec.get(field) or ()):
            value = item.get(key, "")
            if value in seen:
                yield f'{path}.{field}[{position}].{key}: duplicate {key} "{value}"'
            seen.add(value)
    for position, secret in enumerate(spec.get("imagePullSecrets") or ()):
        if not secret.get("name"):
            yield f'{path}.imagePullSecrets[{position}].name: invalid empty name ""'


def _of_fractions(amounts: Json, path: str) -> Iterator[str]:
    for name in _WHOLE_BYTES:
        amount = amounts.get(name)
        if amount is not None and amount.endswith("m") and quantity_milli_value(amount) % 1000:
            why = f'fractional byte value "{amount}" is invalid, must be an integer'
            yield f"{path}[{name}]: {why}"


def _containers(spec: Json, path: str) -> Iterator[tuple[Json, str]]:
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for position, container in enumerate(spec.get(kind) or ()):
            yield container, f"{path}.{kind}[{position}]"


def _of_container(container: Json, path: str) -> Iterator[str]:
    resources = container.get("resources") or {}
    for name in _WHOLE_BYTES:
        for kind in ("limits", "requests"):
            amounts = resources.get(kind) or {}
            if name in amounts:
                yield from _of_fractions({name: amounts[name]}, f"{path}.resources.{kind}")
    seen: set[str] = set()
    for position, variable in enumerate(container.get("env") or ()):
        name, value = variable.get("name", ""), variable.get("value", "")
        reference = f"$({name})"
        if name in seen and (
            variable.get("valueFrom") or value == reference or reference not in value
        ):
            why = f'hides previous definition of "{name}", which may be dropped when using apply'
            yield f"{path}.env[{position}]: {why}"
        seen.add(name)


def _of_ports(spec: Json, path: str) -> Iterator[str]:
    others: dict[tuple[Any, Any], list[tuple[str, Json]]] = {}
    for container, where in _containers(spec, path):
        for position, port in enumerate(container.get("ports") or ()):
            place, key = f"{where}.ports[{position}]", (port.get("containerPort"), port["protocol"])
            for other_place, other in others.setdefault(key, []):
                if how := _clash(port, other):
                    yield f"{place}: {how} port definition with {other_place}"
            others[key].append((place, port))


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
    requests = ((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}
    amount = requests.get("storage")
    if amount and amount.endswith("m") and quantity_milli_value(amount) % 1000:
        why = f'fractional byte value "{amount}" is invalid, must be an integer'
        yield f"spec.resources.requests[storage]: {why}"


def _of_volume(volume: Json) -> Iterator[str]:
    spec = volume.get("spec") or {}
    terms = ((spec.get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms") or ()
    for position, term in enumerate(terms):
        path = f"spec.nodeAffinity.required.nodeSelectorTerms[{position}]"
        yield from _of_selector_term(term, path)
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        why = (
            "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use "
            "dynamic provisioning."
        )
        yield f"spec.persistentVolumeReclaimPolicy: {why}"


_TEMPLATES: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "deployments.apps",
            "replicasets.apps",
            "statefulsets.apps",
            "daemonsets.apps",
            "replicationcontrollers",
            "jobs.batch",
        ),
        "spec.template",
    ),
    "cronjobs.batch": "spec.jobTemplate.spec.template",
}
_NAMES_PODS = frozenset(
    (
        "deployments.apps",
        "replicasets.apps",
        "replicationcontrollers",
        "jobs.batch",
        "cronjobs.batch",
    )
)


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
