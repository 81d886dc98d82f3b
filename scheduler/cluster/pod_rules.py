"""How pods are admitted and changed: priority, tolerations, gates, validation, immutable spec."""

from typing import Any

from scheduler.cluster.errors import (
    FieldError,
    forbidden,
    forbidden_field,
    invalid_value,
    required,
    unsupported_value,
)
from scheduler.cluster.pod_defaults import qos_class
from scheduler.cluster.resources import PODS, PRIORITY_CLASSES
from scheduler.cluster.store import Store

Json = dict[str, Any]

GATED_MESSAGE = "Scheduling is blocked due to non-empty scheduling gates"
NOT_READY_TAINT = "node.kubernetes.io/not-ready"
UNREACHABLE_TAINT = "node.kubernetes.io/unreachable"
DEFAULT_TOLERATION_S = 300
_CHANGEABLE_SPEC = (
    "activeDeadlineSeconds",
    "containers",
    "initContainers",
    "schedulingGates",
    "terminationGracePeriodSeconds",
    "tolerations",
)
_IMMUTABLE_SPEC = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)"
)


def admit_pod(store: Store, pod: Json) -> None:
    """Set what admission decides: priority, default tolerations, key-derived selectors, status.

    Raises:
        ApiError: 403, the priority class is unknown or contradicted.
    """
    spec = pod["spec"]
    _admit_priority(store, pod)
    _add_default_tolerations(spec)
    _merge_match_label_keys(pod)
    status: Json = {"phase": "Pending", "qosClass": qos_class(spec)}
    if spec.get("schedulingGates"):
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": GATED_MESSAGE,
            "lastProbeTime": None,
            "lastTransitionTime": None,
        }
        status["conditions"] = [condition]
    pod["status"] = status


def _admit_priority(store: Store, pod: Json) -> None:
    spec = pod["spec"]
    class_name = spec.get("priorityClassName")
    priority_class = _priority_class(store, pod, class_name)
    if priority_class is not None:
        spec["priorityClassName"] = priority_class["metadata"]["name"]
    value = priority_class["value"] if priority_class else 0
    policy = (priority_class or {}).get("preemptionPolicy", "PreemptLowerPriority")
    name = pod["metadata"].get("name", "")
    if spec.get("priority", value) != value:
        raise forbidden(
            PODS,
            name,
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; "
            f"priority admission controller computed {value} from the given PriorityClass name",
        )
    if priority_class and spec.get("preemptionPolicy", policy) != policy:
        raise forbidden(
            PODS,
            name,
            f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be "
            f"provided in pod spec; priority admission controller computed {policy} from the "
            "given PriorityClass name",
        )
    spec["priority"] = value
    spec.setdefault("preemptionPolicy", policy)


def _priority_class(store: Store, pod: Json, class_name: str | None) -> Json | None:
    classes = store.collection(PRIORITY_CLASSES.stored_in)
    if class_name:
        stored = classes.get("", class_name)
        if stored is None:
            raise forbidden(
                PODS,
                pod["metadata"].get("name", ""),
                f"no PriorityClass with name {class_name} was found",
            )
        return stored.obj
    defaults = [stored.obj for stored in classes if stored.obj.get("globalDefault")]
    return min(defaults, key=lambda found: int(found["value"]), default=None)


def _add_default_tolerations(spec: Json) -> None:
    tolerations = spec.get("tolerations") or []
    for taint in (NOT_READY_TAINT, UNREACHABLE_TAINT):
        is_tolerated = any(
            (toleration.get("key") or taint) == taint
            and (toleration.get("effect") or "NoExecute") == "NoExecute"
            for toleration in tolerations
        )
        if not is_tolerated:
            toleration = {
                "key": taint,
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": DEFAULT_TOLERATION_S,
            }
            tolerations = [*tolerations, toleration]
    spec["tolerations"] = tolerations


def _merge_match_label_keys(pod: Json) -> None:
    """Turn (mis)matchLabelKeys into selector requirements, as the pod strategy does on create."""
    labels = pod["metadata"].get("labels") or {}
    spec = pod["spec"]
    for constraint in spec.get("topologySpreadConstraints") or ():
        _merge_keys(constraint, constraint.get("matchLabelKeys"), "In", labels)
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        for term in terms.get("requiredDuringSchedulingIgnoredDuringExecution") or ():
            _merge_term(term, labels)
        for weighted in terms.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            _merge_term(weighted["podAffinityTerm"], labels)


def _merge_term(term: Json, labels: Json) -> None:
    _merge_keys(term, term.get("matchLabelKeys"), "In", labels)
    _merge_keys(term, term.get("mismatchLabelKeys"), "NotIn", labels)


def _merge_keys(holder: Json, keys: list[str] | None, operator: str, labels: Json) -> None:
    if not keys or holder.get("labelSelector") is None:
        return
    expressions = holder["labelSelector"].setdefault("matchExpressions", [])
    expressions.extend(
        {"key": key, "operator": operator, "values": [labels[key]]} for key in keys if key in labels
    )


def validate_pod(pod: Json) -> list[FieldError]:
    """Errors of a new pod's spec."""
    return validate_pod_spec(pod["spec"], "spec")


def validate_pod_spec(spec: Json, path: str) -> list[FieldError]:
    """Errors of a pod spec found at ``path``."""
    errors: list[FieldError] = []
    containers = spec.get("containers")
    if not containers:
        errors.append(required(f"{path}.containers"))
    for position, container in enumerate(containers or ()):
        errors += _validate_container(container, f"{path}.containers[{position}]")
    for position, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        errors += _validate_spread(constraint, f"{path}.topologySpreadConstraints[{position}]")
    if spec.get("restartPolicy") not in {"Always", "OnFailure", "Never"}:
        known = ("Always", "OnFailure", "Never")
        errors.append(unsupported_value(f"{path}.restartPolicy", spec["restartPolicy"], known))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        errors.append(
            forbidden_field(
                f"{path}.nodeName", "cannot be set until all schedulingGates have been cleared"
            )
        )
    return errors


def _validate_container(container: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if not container.get("name"):
        errors.append(required(f"{path}.name"))
    if not container.get("image"):
        errors.append(required(f"{path}.image"))
    return errors


def _validate_spread(constraint: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if constraint.get("maxSkew", 0) <= 0:
        errors.append(
            invalid_value(
                f"{path}.maxSkew", constraint.get("maxSkew", 0), "must be greater than zero"
            )
        )
    if not constraint.get("topologyKey"):
        errors.append(required(f"{path}.topologyKey", "can not be empty"))
    known = ("DoNotSchedule", "ScheduleAnyway")
    if constraint.get("whenUnsatisfiable") not in known:
        value = str(constraint.get("whenUnsatisfiable", ""))
        errors.append(unsupported_value(f"{path}.whenUnsatisfiable", value, known))
    return errors


def validate_pod_update(new: Json, old: Json) -> list[FieldError]:
    """Errors of a change to an existing pod."""
    spec, before = new["spec"], old["spec"]
    if spec == before:
        return []
    errors = validate_pod_spec(spec, "spec") + _validate_gates(spec, before)
    is_gated = bool(before.get("schedulingGates"))
    if _fixed_part(spec, is_gated) != _fixed_part(before, is_gated):
        errors.append(forbidden_field("spec", _IMMUTABLE_SPEC))
    tolerations = spec.get("tolerations") or []
    if any(old_one not in tolerations for old_one in before.get("tolerations") or ()):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        errors.append(forbidden_field("spec.tolerations", detail))
    return errors


def _validate_gates(spec: Json, before: Json) -> list[FieldError]:
    old_gates = before.get("schedulingGates") or []
    added = [gate for gate in spec.get("schedulingGates") or () if gate not in old_gates]
    if not added:
        return []
    detail = "only deletion is allowed, but found new scheduling gate"
    return [
        forbidden_field("spec.schedulingGates", f"{detail} '{gate.get('name')}'") for gate in added
    ]


def _fixed_part(spec: Json, is_gated: bool) -> Json:
    """What must stay as it is; a gated pod may still narrow where it goes."""
    changeable = (*_CHANGEABLE_SPEC, "nodeSelector", "affinity") if is_gated else _CHANGEABLE_SPEC
    fixed = {key: value for key, value in spec.items() if key not in changeable}
    for kind in ("containers", "initContainers"):
        fixed[kind] = [
            {key: value for key, value in container.items() if key != "image"}
            for container in spec.get(kind) or ()
        ]
    return fixed
