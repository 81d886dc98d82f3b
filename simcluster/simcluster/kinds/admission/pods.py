"""Admission of pods: limits, priority, tolerations, gates, and the status they begin with."""

from collections.abc import Sequence

from simcluster.apiserver.errors import forbidden
from simcluster.kinds.admission.limit_ranges import fill_by_limit_ranges, review_pod_limits
from simcluster.kinds.admission.priority_classes import check_priority, priority_class
from simcluster.kinds.admission.runtime_classes import admit_runtime_class, review_overhead
from simcluster.kinds.defaults.pods import qos_class
from simcluster.kinds.resources import PODS
from simcluster.store.store import Store
from simcluster.values import Json

GATED_MESSAGE = "Scheduling is blocked due to non-empty scheduling gates"
NOT_READY_TAINT = "node.kubernetes.io/not-ready"
UNREACHABLE_TAINT = "node.kubernetes.io/unreachable"
DEFAULT_TOLERATION_S = 300


def admit_pod(store: Store, pod: Json) -> None:
    """Set what other objects decide, default tolerations, selectors by keys, and the first status.

    Raises:
        ApiError: 403, the priority class or RuntimeClass is unknown, or the pod contradicts it.
    """
    spec = pod["spec"]
    fill_by_limit_ranges(store, pod)
    _admit_priority(store, pod)
    _add_default_tolerations(spec)
    admit_runtime_class(store, pod)
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


def review_pod(store: Store, pod: Json) -> None:
    """Refuse a valid pod that its namespace or its RuntimeClass does not allow.

    Raises:
        ApiError: 403.
    """
    review_pod_limits(store, pod)
    review_overhead(store, pod)


def _admit_priority(store: Store, pod: Json) -> None:
    spec, name = pod["spec"], pod["metadata"].get("name", "")
    found = priority_class(store, PODS, name, spec.get("priorityClassName"))
    value, policy = 0, "PreemptLowerPriority"
    if found is not None:
        spec["priorityClassName"] = found["metadata"]["name"]
        value, policy = found["value"], found.get("preemptionPolicy", policy)
    check_priority(PODS, name, spec, value)
    if spec.get("preemptionPolicy", policy) != policy:
        why = (
            f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be "
            f"provided in pod spec; priority admission controller computed {policy} from the "
            "given PriorityClass name"
        )
        raise forbidden(PODS, name, why)
    spec["priority"] = value
    spec.setdefault("preemptionPolicy", policy)


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


def readmit_pod(new: Json, old: Json) -> None:
    """Keep the priority of a changed pod and complete its tolerations."""
    spec, before = new["spec"], old["spec"]
    for field in ("priority", "preemptionPolicy"):
        if field not in spec and field in before:
            spec[field] = before[field]
    _add_default_tolerations(spec)


def keep_pod_status(new: Json, old: Json) -> None:
    """Keep the QoS class of a pod, and the observed generations of its conditions."""
    before = old.get("status") or {}
    status = new.setdefault("status", {})
    if "qosClass" in before:
        status.setdefault("qosClass", before["qosClass"])
    if seen := before.get("observedGeneration"):
        status["observedGeneration"] = status.get("observedGeneration") or seen
    _keep_observed_generations(status.get("conditions") or [], before.get("conditions") or ())


def _keep_observed_generations(conditions: list[Json], before: Sequence[Json]) -> None:
    for position, condition in enumerate(conditions):
        same = [found for found in before if found.get("type") == condition.get("type")]
        seen = same[0].get("observedGeneration") if same else 0
        if seen and not condition.get("observedGeneration"):
            conditions[position] = {**condition, "observedGeneration": seen}
