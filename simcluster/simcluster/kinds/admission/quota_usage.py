"""How much of a ResourceQuota an object uses, and which quotas it counts for.

Follows the evaluators in ``pkg/quota/v1/evaluator/core``. Quotas of device classes and volume
attributes classes are left out.
"""

from collections.abc import Callable, Iterable, Mapping

from simcluster.kinds.defaults.pod_resources import Amounts, amounts_together
from simcluster.kinds.resources import (
    EVENTS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    SERVICES,
    Resource,
)
from simcluster.schema.scalars import canonical_quantity
from simcluster.values import Json
from stowage.api.values.quantity import quantity_milli_value

ONE = 1000
"""One object, in thousandths."""

_COMPUTE = ("cpu", "memory")
_OF_PODS = frozenset(
    (
        "pods",
        *(
            f"{prefix}{name}"
            for prefix in ("", "requests.", "limits.")
            for name in (*_COMPUTE, "ephemeral-storage")
        ),
    )
)
_REQUIRED = frozenset(
    f"{prefix}{name}" for prefix in ("", "requests.", "limits.") for name in _COMPUTE
)
_HUGE_PAGES = ("hugepages-", "requests.hugepages-")
_STORAGE_CLASS = ".storageclass.storage.k8s.io/"
_OF_CLAIMS = ("persistentvolumeclaims", "requests.storage")
_OF_SERVICES = ("services", "services.loadbalancers", "services.nodeports")
_COUNTED_BY_PLURAL = frozenset(
    ("configmaps", "replicationcontrollers", "resourcequotas", "secrets")
)
_IN_BYTES = ("memory", "storage", "hugepages-")


def amount_of_quota(name: str, milli: int) -> str:
    """An amount as the status of a quota shows it; bytes as multiples of 1024 where they are."""
    if any(word in name for word in _IN_BYTES) and milli and milli % (1024 * ONE) == 0:
        return canonical_quantity(f"{milli // (1024 * ONE)}Ki") or "0"
    return canonical_quantity(f"{milli}m") or "0"


def is_counted(resource: Resource) -> bool:
    """Whether quotas count the objects of a resource."""
    return resource.namespaced and resource.stored_in != EVENTS.stored_in


def _counts(resource: Resource) -> tuple[str, ...]:
    name = f"count/{resource.qualified}"
    return (name, resource.plural) if resource.qualified in _COUNTED_BY_PLURAL else (name,)


def tracked_names(resource: Resource, names: Iterable[str]) -> list[str]:
    """Those of the names in a quota that an object of this resource may use."""
    is_tracked = _TRACKED.get(resource.stored_in, frozenset[str]().__contains__)
    return sorted(name for name in names if name in _counts(resource) or is_tracked(name))


def _is_of_pods(name: str) -> bool:
    is_extended = name.startswith("requests.") and _is_extended(name.removeprefix("requests."))
    return name in _OF_PODS or name.startswith(_HUGE_PAGES) or is_extended


def _is_extended(name: str) -> bool:
    return "/" in name and "kubernetes.io/" not in name


def _is_of_claims(name: str) -> bool:
    return name in _OF_CLAIMS or name.endswith(tuple(_STORAGE_CLASS + each for each in _OF_CLAIMS))


_TRACKED: Mapping[str, Callable[[str], bool]] = {
    PODS.stored_in: _is_of_pods,
    PERSISTENT_VOLUME_CLAIMS.stored_in: _is_of_claims,
    SERVICES.stored_in: _OF_SERVICES.__contains__,
}


def usage_of(resource: Resource, obj: Json) -> Amounts:
    """What an object uses, in thousandths."""
    own = _USAGE.get(resource.stored_in)
    return dict.fromkeys(_counts(resource), ONE) | ({} if own is None else own(obj))


def _pod_usage(pod: Json) -> Amounts:
    if (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}:
        return {}
    spec = pod["spec"]
    return {"pods": ONE} | _computed(_amounts(spec, "requests"), _amounts(spec, "limits"))


def _amounts(spec: Json, kind: str) -> Amounts:
    """The requests or limits of a pod, its overhead included."""
    found = amounts_together(spec, kind)
    own = (spec.get("resources") or {}).get(kind) or {}
    found |= {name: quantity_milli_value(amount) for name, amount in own.items()}
    for name, amount in (spec.get("overhead") or {}).items():
        if kind == "requests" or found.get(name):
            found[name] = found.get(name, 0) + quantity_milli_value(amount)
    return found


def _computed(requests: Amounts, limits: Amounts) -> Amounts:
    """Requests and limits by the names that quotas have for them."""
    found: Amounts = {}
    for name, amount in requests.items():
        if name in _OF_PODS or name.startswith(_HUGE_PAGES):
            found[name] = found[f"requests.{name}"] = amount
        elif _is_extended(name):
            found[f"requests.{name}"] = amount
    return found | {f"limits.{name}": each for name, each in limits.items() if name in _OF_PODS}


def missing_amounts(pod: Json, names: Iterable[str]) -> str:
    """Which containers lack a request or a limit that a quota of cpu or memory asks them for."""
    missing: dict[str, set[str]] = {}
    spec = pod["spec"]
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        own = container.get("resources") or {}
        given = _computed(own.get("requests") or {}, own.get("limits") or {})
        for name in _REQUIRED.intersection(names) - given.keys():
            missing.setdefault(name, set()).add(container["name"])
    return "; ".join(f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing))


def _claim_usage(claim: Json) -> Amounts:
    spec = claim["spec"]
    requests = (spec.get("resources") or {}).get("requests") or {}
    found = {"persistentvolumeclaims": ONE}
    if "storage" in requests:
        found["requests.storage"] = quantity_milli_value(requests["storage"])
    if storage_class := spec.get("storageClassName"):
        found |= {f"{storage_class}{_STORAGE_CLASS}{name}": each for name, each in found.items()}
    return found


def _service_usage(service: Json) -> Amounts:
    spec = service["spec"]
    found = dict.fromkeys(_OF_SERVICES, 0) | {"services": ONE}
    ports = spec.get("ports") or []
    if spec.get("type") == "LoadBalancer":
        found["services.loadbalancers"] = ONE
        if spec.get("allocateLoadBalancerNodePorts") is False:
            ports = [port for port in ports if port.get("nodePort")]
    if spec.get("type") in {"LoadBalancer", "NodePort"}:
        found["services.nodeports"] = ONE * len(ports)
    return found


_USAGE: Mapping[str, Callable[[Json], Amounts]] = {
    PODS.stored_in: _pod_usage,
    PERSISTENT_VOLUME_CLAIMS.stored_in: _claim_usage,
    SERVICES.stored_in: _service_usage,
}


def is_in_scope(resource: Resource, obj: Json, quota: Json) -> bool:
    """Whether an object has all scopes of a quota; only pods have scopes."""
    spec = quota.get("spec") or {}
    selectors = [{"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or ()]
    selectors += (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    if not selectors:
        return True
    return resource.stored_in == PODS.stored_in and all(_has_scope(obj, each) for each in selectors)


def _has_scope(pod: Json, selector: Json) -> bool:
    name, spec = selector.get("scopeName", ""), pod["spec"]
    is_best_effort = (pod.get("status") or {}).get("qosClass") == "BestEffort"
    has_deadline = spec.get("activeDeadlineSeconds") is not None
    found = {
        "BestEffort": is_best_effort,
        "NotBestEffort": not is_best_effort,
        "Terminating": has_deadline,
        "NotTerminating": not has_deadline,
        "CrossNamespacePodAffinity": _names_other_namespaces(spec.get("affinity") or {}),
    }
    if name in found:
        return found[name]
    return name == "PriorityClass" and _selects(selector, spec.get("priorityClassName") or "")


def _selects(selector: Json, priority_class: str) -> bool:
    operator, is_listed = selector.get("operator"), priority_class in (selector.get("values") or ())
    return {
        "Exists": bool(priority_class),
        "DoesNotExist": not priority_class,
        "In": is_listed,
        "NotIn": not is_listed,
    }.get(operator or "", False)


def _names_other_namespaces(affinity: Json) -> bool:
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind) or {}
        preferred = rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        terms = [each.get("podAffinityTerm") or {} for each in preferred]
        terms += rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        if any(term.get("namespaces") or "namespaceSelector" in term for term in terms):
            return True
    return False
