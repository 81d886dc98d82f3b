"""Defaults, admission and validation of every kind but the pod, and where each is looked up."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from scheduler.cluster.errors import FieldError, forbidden_field, invalid_value, required
from scheduler.cluster.event_conversion import set_event_defaults
from scheduler.cluster.object_meta import new_uid
from scheduler.cluster.pod_defaults import (
    canonical_quantities,
    set_pod_defaults,
    set_pod_spec_defaults,
)
from scheduler.cluster.pod_rules import (
    NOT_READY_TAINT,
    admit_pod,
    validate_pod,
    validate_pod_spec,
    validate_pod_update,
)
from scheduler.cluster.resources import SERVICES, STORAGE_CLASSES
from scheduler.cluster.store import Store

Json = dict[str, Any]

IS_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


def _no_defaults(_obj: Json) -> None:
    """Leave the object as it is."""


def _no_admission(_store: Store, _obj: Json) -> None:
    """Let the object in as it is."""


def _valid(_obj: Json) -> list[FieldError]:
    return []


def _valid_update(_new: Json, _old: Json) -> list[FieldError]:
    return []


@dataclass(frozen=True)
class KindRules:
    """What happens to an object of one kind before it is stored.

    Args:
        set_defaults: fills fields in place; on create and on update.
        admit: decides fields that depend on other objects; on create only.
        validate: errors of the object; on create, and on update where ``validate_update`` is not
            given.
        validate_update: errors of a change.
    """

    set_defaults: Callable[[Json], None] = _no_defaults
    admit: Callable[[Store, Json], None] = _no_admission
    validate: Callable[[Json], list[FieldError]] = _valid
    validate_update: Callable[[Json, Json], list[FieldError]] = _valid_update


def _set_node_defaults(node: Json) -> None:
    node.setdefault("spec", {})
    status = node.setdefault("status", {})
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])
    canonical_quantities(status, "capacity", "allocatable")


def _admit_node(_store: Store, node: Json) -> None:
    """A new node is tainted until something has seen it ready (TaintNodesByCondition)."""
    taints = node["spec"].get("taints") or []
    taint = {"key": NOT_READY_TAINT, "effect": "NoSchedule"}
    if not any(found.get("key") == NOT_READY_TAINT for found in taints):
        node["spec"]["taints"] = [*taints, taint]


def _set_namespace_defaults(namespace: Json) -> None:
    name = namespace["metadata"]["name"]
    namespace["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = name
    namespace.setdefault("spec", {}).setdefault("finalizers", ["kubernetes"])
    namespace.setdefault("status", {}).setdefault("phase", "Active")


def _set_template_defaults(spec: Json) -> None:
    template = spec.setdefault("template", {})
    template.setdefault("metadata", {})
    set_pod_spec_defaults(template.setdefault("spec", {}))


def _set_deployment_defaults(deployment: Json) -> None:
    spec = deployment.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    strategy = spec.setdefault("strategy", {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    _set_template_defaults(spec)
    deployment.setdefault("status", {})


def _set_replicated_defaults(workload: Json) -> None:
    spec = workload.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    _set_template_defaults(spec)
    workload.setdefault("status", {"replicas": 0})


def _set_controller_defaults(controller: Json) -> None:
    _set_replicated_defaults(controller)
    spec = controller["spec"]
    labels = spec["template"]["metadata"].get("labels")
    if labels and not spec.get("selector"):
        spec["selector"] = dict(labels)


def _set_stateful_set_defaults(workload: Json) -> None:
    _set_replicated_defaults(workload)
    spec = workload["spec"]
    spec.setdefault("podManagementPolicy", "OrderedReady")
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("updateStrategy", {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}})


def _set_daemon_set_defaults(workload: Json) -> None:
    spec = workload.setdefault("spec", {})
    _set_template_defaults(spec)
    spec.setdefault("revisionHistoryLimit", 10)
    rolling = {"maxUnavailable": 1, "maxSurge": 0}
    spec.setdefault("updateStrategy", {"type": "RollingUpdate", "rollingUpdate": rolling})
    counts = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled")
    workload.setdefault("status", {**dict.fromkeys(counts, 0), "numberReady": 0})


def _set_job_defaults(job: Json) -> None:
    spec = job.setdefault("spec", {})
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "TerminatingOrFailed")
    _set_template_defaults(spec)
    job.setdefault("status", {})


def _admit_job(_store: Store, job: Json) -> None:
    """Give the job's pods labels of their own and select by them."""
    if job["spec"].get("manualSelector"):
        return
    uid, name = job["metadata"].get("uid") or new_uid(), job["metadata"]["name"]
    labels = job["spec"]["template"]["metadata"].setdefault("labels", {})
    for prefix in ("", "batch.kubernetes.io/"):
        labels[f"{prefix}controller-uid"] = uid
        labels[f"{prefix}job-name"] = name
    job["spec"]["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}


def _set_service_defaults(service: Json) -> None:
    spec = service.setdefault("spec", {})
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    spec.setdefault("internalTrafficPolicy", "Cluster")
    for port in spec.get("ports") or ():
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port.get("port"))
    service.setdefault("status", {"loadBalancer": {}})


def _admit_service(store: Store, service: Json) -> None:
    spec = service["spec"]
    if spec["type"] == "ExternalName" or spec.get("clusterIP"):
        return
    taken = {stored.obj["spec"].get("clusterIP") for stored in store.collection(SERVICES.stored_in)}
    free = (f"10.96.{high}.{low}" for high in range(256) for low in range(1, 255))
    spec["clusterIP"] = next(address for address in free if address not in taken)
    spec["clusterIPs"] = [spec["clusterIP"]]
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")


def _set_volume_defaults(volume: Json) -> None:
    spec = volume.setdefault("spec", {})
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")
    canonical_quantities(spec, "capacity")
    volume.setdefault("status", {}).setdefault("phase", "Pending")


def _set_claim_defaults(claim: Json) -> None:
    spec = claim.setdefault("spec", {})
    spec.setdefault("volumeMode", "Filesystem")
    canonical_quantities(spec.get("resources"), "requests", "limits")
    claim.setdefault("status", {}).setdefault("phase", "Pending")


def _admit_claim(store: Store, claim: Json) -> None:
    """A claim that names no class gets the default one."""
    if "storageClassName" in claim["spec"]:
        return
    for stored in store.collection(STORAGE_CLASSES.stored_in):
        annotations = stored.obj["metadata"].get("annotations") or {}
        if annotations.get(IS_DEFAULT_CLASS) == "true":
            claim["spec"]["storageClassName"] = stored.name
            return


def _set_storage_class_defaults(storage_class: Json) -> None:
    storage_class.setdefault("reclaimPolicy", "Delete")
    storage_class.setdefault("volumeBindingMode", "Immediate")


def _set_csi_driver_defaults(driver: Json) -> None:
    spec = driver.setdefault("spec", {})
    for key, value in (
        ("attachRequired", True),
        ("podInfoOnMount", False),
        ("storageCapacity", False),
        ("fsGroupPolicy", "ReadWriteOnceWithFSType"),
        ("requiresRepublish", False),
        ("seLinuxMount", False),
    ):
        spec.setdefault(key, value)
    spec.setdefault("volumeLifecycleModes", ["Persistent"])


def _set_capacity_defaults(capacity: Json) -> None:
    for key in ("capacity", "maximumVolumeSize"):
        if key in capacity:
            amounts = {"amounts": {key: capacity[key]}}
            canonical_quantities(amounts, "amounts")
            capacity[key] = amounts["amounts"][key]


def _set_priority_class_defaults(priority_class: Json) -> None:
    priority_class.setdefault("value", 0)
    priority_class.setdefault("preemptionPolicy", "PreemptLowerPriority")


def _set_budget_defaults(budget: Json) -> None:
    budget.setdefault("spec", {})
    counts = ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods")
    status = budget.setdefault("status", {})
    for count in counts:
        status.setdefault(count, 0)


def _validate_priority_class_update(new: Json, old: Json) -> list[FieldError]:
    errors = []
    if new.get("value") != old.get("value"):
        errors.append(forbidden_field("value", "may not be changed in an update."))
    if new.get("preemptionPolicy") != old.get("preemptionPolicy"):
        errors.append(
            invalid_value("preemptionPolicy", new.get("preemptionPolicy", ""), "field is immutable")
        )
    return errors


def _validate_workload(workload: Json) -> list[FieldError]:
    spec = workload["spec"]
    template = spec["template"]
    errors: list[FieldError] = []
    if not spec.get("selector"):
        errors.append(required("spec.selector"))
    elif any(
        (template["metadata"].get("labels") or {}).get(key) != value
        for key, value in (spec["selector"].get("matchLabels") or {}).items()
    ):
        labels = template["metadata"].get("labels") or {}
        errors.append(
            invalid_value(
                "spec.template.metadata.labels",
                labels,
                "`selector` does not match template `labels`",
            )
        )
    return errors + validate_pod_spec(template["spec"], "spec.template.spec")


def _validate_workload_update(new: Json, old: Json) -> list[FieldError]:
    errors = _validate_workload(new)
    if new["spec"].get("selector") != old["spec"].get("selector"):
        selector = new["spec"].get("selector")
        errors.append(invalid_value("spec.selector", selector, "field is immutable"))
    return errors


def _validate_job(job: Json) -> list[FieldError]:
    template = job["spec"]["template"]["spec"]
    errors = validate_pod_spec(template, "spec.template.spec")
    if template.get("restartPolicy") == "Always":
        message = 'Unsupported value: "Always": supported values: "OnFailure", "Never"'
        field = "spec.template.spec.restartPolicy"
        errors.append(FieldError(field, "FieldValueNotSupported", message))
    return errors


RULES: dict[str, KindRules] = {
    "pods": KindRules(set_pod_defaults, admit_pod, validate_pod, validate_pod_update),
    "nodes": KindRules(_set_node_defaults, _admit_node),
    "namespaces": KindRules(_set_namespace_defaults),
    "events": KindRules(set_event_defaults),
    "services": KindRules(_set_service_defaults, _admit_service),
    "replicationcontrollers": KindRules(_set_controller_defaults),
    "persistentvolumes": KindRules(_set_volume_defaults),
    "persistentvolumeclaims": KindRules(_set_claim_defaults, _admit_claim),
    "deployments.apps": KindRules(
        _set_deployment_defaults, _no_admission, _validate_workload, _validate_workload_update
    ),
    "replicasets.apps": KindRules(
        _set_replicated_defaults, _no_admission, _validate_workload, _validate_workload_update
    ),
    "statefulsets.apps": KindRules(
        _set_stateful_set_defaults, _no_admission, _validate_workload, _validate_workload_update
    ),
    "daemonsets.apps": KindRules(
        _set_daemon_set_defaults, _no_admission, _validate_workload, _validate_workload_update
    ),
    "jobs.batch": KindRules(_set_job_defaults, _admit_job, _validate_job),
    "priorityclasses.scheduling.k8s.io": KindRules(
        _set_priority_class_defaults, validate_update=_validate_priority_class_update
    ),
    "poddisruptionbudgets.policy": KindRules(_set_budget_defaults),
    "storageclasses.storage.k8s.io": KindRules(_set_storage_class_defaults),
    "csidrivers.storage.k8s.io": KindRules(_set_csi_driver_defaults),
    "csistoragecapacities.storage.k8s.io": KindRules(_set_capacity_defaults),
}
_NO_RULES = KindRules()


def rules_of(collection: str) -> KindRules:
    """The rules of a collection's kind."""
    return RULES.get(collection, _NO_RULES)
