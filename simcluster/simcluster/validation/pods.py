"""Pods and pod templates, and which changes a pod takes."""

from typing import Any

from cachetools import LRUCache

from simcluster.apiserver.errors import (
    FieldError,
    duplicate_value,
    forbidden_field,
    invalid_value,
    required,
    unsupported_value,
)
from simcluster.store.store import encode
from simcluster.validation import names
from simcluster.validation.containers import validate_containers
from simcluster.validation.differences import pod_difference
from simcluster.validation.metadata import validate_annotations, validate_labels
from simcluster.validation.names import NameCheck
from simcluster.validation.resources import validate_amount, validate_requirements
from simcluster.validation.selectors import (
    validate_affinity,
    validate_key,
    validate_spread,
    validate_tolerations,
)
from simcluster.validation.volumes import validate_volumes

Json = dict[str, Any]

_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
_INT32_MAX = 2**31 - 1
_NAMED: tuple[tuple[str, NameCheck], ...] = (
    ("serviceAccountName", names.dns_subdomain),
    ("nodeName", names.dns_subdomain),
    ("hostname", names.dns_label),
    ("subdomain", names.dns_label),
    ("priorityClassName", names.dns_subdomain),
    ("runtimeClassName", names.dns_subdomain),
)
_GATED_NODE_NAME = "cannot be set until all schedulingGates have been cleared"


def validate_pod_spec(spec: Json, path: str) -> list[FieldError]:
    """Errors of a pod spec, of a pod or of a template."""
    found = validate_volumes(spec.get("volumes") or (), f"{path}.volumes")
    found += _validate_claims(spec.get("resourceClaims") or (), f"{path}.resourceClaims")
    found += validate_containers(spec, path)
    if spec.get("hostNetwork"):
        found += _validate_host_network(spec, f"{path}.containers")
    policies = (("restartPolicy", _RESTART_POLICIES), ("dnsPolicy", _DNS_POLICIES))
    for field, known in policies:
        if spec.get(field, known[0]) not in known:
            found.append(unsupported_value(f"{path}.{field}", spec[field], known))
    if selector := spec.get("nodeSelector"):
        found += validate_labels(selector, f"{path}.nodeSelector")
    if affinity := spec.get("affinity"):
        found += validate_affinity(affinity, f"{path}.affinity")
    for position, gate in enumerate(spec.get("readinessGates") or ()):
        place = f"{path}.readinessGates[{position}].conditionType"
        found += validate_key(gate.get("conditionType", ""), place)
    found += _validate_gates(spec.get("schedulingGates") or (), f"{path}.schedulingGates")
    if constraints := spec.get("topologySpreadConstraints"):
        found += validate_spread(constraints, f"{path}.topologySpreadConstraints")
    return found + _validate_rest(spec, path)


def _validate_rest(spec: Json, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for field, check in _NAMED:
        if value := spec.get(field):
            found += [invalid_value(f"{path}.{field}", value, message) for message in check(value)]
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _INT32_MAX:
        place = f"{path}.activeDeadlineSeconds"
        found.append(invalid_value(place, deadline, names.in_range(1, _INT32_MAX)))
    if tolerations := spec.get("tolerations"):
        found += validate_tolerations(tolerations, f"{path}.tolerations")
    policy = spec.get("preemptionPolicy")
    if policy is not None and policy not in _PREEMPTION_POLICIES:
        place = f"{path}.preemptionPolicy"
        found.append(unsupported_value(place, policy, _PREEMPTION_POLICIES))
    for name, amount in (spec.get("overhead") or {}).items():
        found += validate_amount(name, amount, f"{path}.overhead[{name}]")
    if resources := spec.get("resources"):
        found += validate_requirements(resources, f"{path}.resources")
    return found


def _validate_host_network(spec: Json, path: str) -> list[FieldError]:
    detail = "must match `containerPort` when `hostNetwork` is true"
    return [
        invalid_value(f"{path}[{position}].ports[{index}].hostPort", port["hostPort"], detail)
        for position, container in enumerate(spec.get("containers") or ())
        for index, port in enumerate(container.get("ports") or ())
        if port.get("hostPort") and port["hostPort"] != port.get("containerPort")
    ]


def _validate_gates(gates: list[Json] | tuple[()], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for position, gate in enumerate(gates):
        name = gate.get("name", "")
        found += validate_key(name, f"{path}[{position}]")
        if name in seen:
            found.append(duplicate_value(f"{path}[{position}]", name))
        seen.add(name)
    return found


def _validate_claims(claims: list[Json] | tuple[()], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for position, claim in enumerate(claims):
        place, name = f"{path}[{position}]", claim.get("name", "")
        if not name:
            found.append(required(f"{place}.name"))
        elif name in seen:
            found.append(duplicate_value(f"{place}.name", name))
        else:
            found += [invalid_value(f"{place}.name", name, each) for each in names.dns_label(name)]
        seen.add(name)
        sources = [
            key for key in ("resourceClaimName", "resourceClaimTemplateName") if key in claim
        ]
        if len(sources) == 2:
            detail = (
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            )
            found.append(invalid_value(place, claim, detail))
        if not sources:
            detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            found.append(invalid_value(place, claim, detail))
    return found


_valid_specs: LRUCache[bytes, bool] = LRUCache(maxsize=4096)
"""Specs that were found valid: pods of one template have one between them."""


def validate_pod(pod: Json) -> list[FieldError]:
    """Errors of a new pod's spec."""
    spec = pod["spec"]
    key = encode(spec)
    if key in _valid_specs:
        return []
    found = _validate_new(spec)
    if not found:
        _valid_specs[key] = True
    return found


def _validate_new(spec: Json) -> list[FieldError]:
    found = _validate_whole(spec)
    if spec.get("ephemeralContainers"):
        found.append(forbidden_field("spec.ephemeralContainers", "cannot be set on create"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        found.append(forbidden_field("spec.nodeName", _GATED_NODE_NAME))
    return found


def _validate_whole(spec: Json) -> list[FieldError]:
    """What is asked of a pod's spec; images are read more strictly than a template's."""
    found = validate_pod_spec(spec, "spec")
    for kind in ("containers", "initContainers"):
        for position, container in enumerate(spec.get(kind) or ()):
            image = container.get("image", "")
            if image != image.strip():
                detail = "must not have leading or trailing whitespace"
                found.append(invalid_value(f"spec.{kind}[{position}].image", image, detail))
    return found


def validate_template_metadata(template: Json, path: str) -> list[FieldError]:
    """Errors of a pod template's labels and annotations."""
    metadata = template.get("metadata") or {}
    found = validate_labels(metadata.get("labels") or {}, f"{path}.labels")
    return found + validate_annotations(metadata.get("annotations") or {}, f"{path}.annotations")


def validate_template(template: Json, path: str) -> list[FieldError]:
    """Errors of a pod template."""
    found = validate_template_metadata(template, path)
    found += validate_pod_spec(template.get("spec") or {}, f"{path}.spec")
    if (template.get("spec") or {}).get("ephemeralContainers"):
        detail = "ephemeral containers not allowed in pod template"
        found.append(forbidden_field(f"{path}.spec.ephemeralContainers", detail))
    return found


def validate_pod_update(new: Json, old: Json) -> list[FieldError]:
    """Errors of a change to a pod."""
    spec, before = new["spec"], old["spec"]
    if spec == before:
        return []
    found = _validate_whole(spec)
    for kind in ("containers", "initContainers"):
        if len(spec.get(kind) or ()) != len(before.get(kind) or ()):
            detail = "pod updates may not add or remove containers"
            return [*found, forbidden_field(f"spec.{kind}", detail)]
    deadline = _validate_deadline(spec, before)
    found += deadline
    if deadline and "activeDeadlineSeconds" in spec:
        return found
    found += _validate_added_tolerations(spec, before)
    found += _validate_removed_gates(spec, before)
    return found + _validate_fixed(spec, before)


def _validate_deadline(spec: Json, before: Json) -> list[FieldError]:
    path, new = "spec.activeDeadlineSeconds", spec.get("activeDeadlineSeconds")
    old = before.get("activeDeadlineSeconds")
    if new is None:
        detail = "must not update from a positive integer to nil value"
        return [] if old is None else [invalid_value(path, None, detail)]
    if not 0 <= new <= _INT32_MAX:
        return [invalid_value(path, new, names.in_range(0, _INT32_MAX))]
    if old is not None and old < new:
        return [invalid_value(path, new, "must be less than or equal to previous value")]
    return []


def _validate_added_tolerations(spec: Json, before: Json) -> list[FieldError]:
    def kept(toleration: Json) -> Json:
        return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}

    new = [kept(toleration) for toleration in spec.get("tolerations") or ()]
    if all(kept(old) in new for old in before.get("tolerations") or ()):
        return []
    detail = "existing toleration can not be modified except its tolerationSeconds"
    return [forbidden_field("spec.tolerations", detail)]


def _validate_removed_gates(spec: Json, before: Json) -> list[FieldError]:
    old = {gate.get("name") for gate in before.get("schedulingGates") or ()}
    return [
        forbidden_field(
            f"spec.schedulingGates[{position}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'",
        )
        for position, gate in enumerate(spec.get("schedulingGates") or ())
        if gate.get("name") not in old
    ]


_FREE = ("activeDeadlineSeconds", "schedulingGates", "tolerations")
_IMMUTABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)"
)


def _validate_fixed(spec: Json, before: Json) -> list[FieldError]:
    """Everything else stays; a gated pod may still narrow where it goes."""
    fixed, kept = _fixed_part(spec), _fixed_part(before)
    grace = "terminationGracePeriodSeconds"
    if kept.get(grace, 0) < 0 and fixed.get(grace) == 1:
        fixed[grace] = kept[grace]
    found: list[FieldError] = []
    if before.get("schedulingGates"):
        found += _validate_narrowed_selector(fixed, kept)
        found += _validate_narrowed_affinity(fixed, kept)
    if fixed != kept:
        detail = f"{_IMMUTABLE}\n{pod_difference(kept, fixed, _FIELD_ORDER)}"
        found.append(forbidden_field("spec", detail))
    return found


def _fixed_part(spec: Json) -> Json:
    fixed = {key: value for key, value in spec.items() if key not in _FREE}
    for kind in ("containers", "initContainers"):
        fixed[kind] = [
            {key: value for key, value in container.items() if key != "image"}
            for container in spec.get(kind) or ()
        ]
    return fixed


_FIELD_ORDER = (
    "volumes",
    "initContainers",
    "containers",
    "ephemeralContainers",
    "restartPolicy",
    "terminationGracePeriodSeconds",
    "activeDeadlineSeconds",
    "dnsPolicy",
    "nodeSelector",
    "serviceAccountName",
    "automountServiceAccountToken",
    "nodeName",
    "securityContext",
    "imagePullSecrets",
    "hostname",
    "subdomain",
    "setHostnameAsFQDN",
    "affinity",
    "schedulerName",
    "tolerations",
    "hostAliases",
    "priorityClassName",
    "priority",
    "preemptionPolicy",
    "dnsConfig",
    "readinessGates",
    "runtimeClassName",
    "overhead",
    "enableServiceLinks",
    "topologySpreadConstraints",
    "os",
    "schedulingGates",
    "resourceClaims",
    "resources",
)
"""Of ``core.PodSpec``."""


def _validate_narrowed_selector(fixed: Json, kept: Json) -> list[FieldError]:
    new, old = fixed.pop("nodeSelector", None) or {}, kept.pop("nodeSelector", None) or {}
    if old.items() <= new.items():
        return []
    detail = (
        "field is immutable"
        if old.keys() <= new.keys()
        else ("only additions are allowed (no mutations or deletions)")
    )
    return [invalid_value("spec.nodeSelector", new, detail)]


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def _validate_narrowed_affinity(fixed: Json, kept: Json) -> list[FieldError]:
    parts = []
    for spec in (fixed, kept):
        affinity = dict(spec.pop("affinity", None) or {})
        parts.append((affinity.pop("nodeAffinity", None) or {}).get(_REQUIRED))
        if affinity:
            spec["affinity"] = affinity
    new, old = parts
    if old is None or new == old:
        return []
    path = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
    terms, before = (new or {}).get("nodeSelectorTerms") or [], old.get("nodeSelectorTerms") or []
    if before and len(terms) != len(before):
        detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return [invalid_value(path, terms, detail)]
    detail = "only additions are allowed (no mutations or deletions)"
    return [
        invalid_value(f"{path}[{position}]", term, detail)
        for position, (term, old_term) in enumerate(zip(terms, before, strict=False))
        if any(
            (term.get(kind) or [])[: len(old_term.get(kind) or [])] != (old_term.get(kind) or [])
            for kind in ("matchExpressions", "matchFields")
        )
    ]


def validate_pod_status_update(new: Json, old: Json) -> list[FieldError]:
    """Errors of a change to a pod's status."""
    status, before = new.get("status") or {}, old.get("status") or {}
    found: list[FieldError] = []
    for position, condition in enumerate(status.get("conditions") or ()):
        kind = condition.get("type", "")
        if kind not in {"PodScheduled", "Ready", "Initialized"}:
            found += validate_key(kind, f"metadata.conditions[{position}].Type")
    nominated = status.get("nominatedNodeName")
    if nominated and nominated != before.get("nominatedNodeName"):
        path = "status.nominatedNodeName"
        found += [invalid_value(path, nominated, each) for each in names.dns_subdomain(nominated)]
    quality = status.get("qosClass", before.get("qosClass"))
    if quality != before.get("qosClass"):
        found.append(invalid_value("status.qosClass", quality, "field is immutable"))
    if new["spec"].get("restartPolicy") != "Always":
        found += _validate_terminated(status, before, new["spec"].get("restartPolicy"))
    return found


def _validate_terminated(status: Json, before: Json, policy: str | None) -> list[FieldError]:
    """A container that has ended for good does not run again."""
    running = {
        container.get("name")
        for container in status.get("containerStatuses") or ()
        if not (container.get("state") or {}).get("terminated")
    }
    found = []
    for position, container in enumerate(before.get("containerStatuses") or ()):
        terminated = (container.get("state") or {}).get("terminated")
        if not terminated or (terminated.get("exitCode") and policy == "OnFailure"):
            continue
        if container.get("name") in running:
            detail = "may not be transitioned to non-terminated state"
            found.append(forbidden_field(f"status.containerStatuses[{position}].state", detail))
    return found
