"""Defaults, admission and validation by kind, and where each is looked up."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from scheduler.cluster.custom_definitions import (
    set_definition_defaults,
    validate_definition,
    validate_definition_update,
)
from scheduler.cluster.custom_rules import rule_functions
from scheduler.cluster.errors import FieldError, forbidden_field, invalid_value
from scheduler.cluster.event_conversion import set_event_defaults
from scheduler.cluster.plain_rules import PLAIN_DEFAULTS
from scheduler.cluster.pod_defaults import (
    canonical_quantities,
    set_pod_defaults,
)
from scheduler.cluster.pod_rules import (
    NOT_READY_TAINT,
    admit_pod,
    validate_pod,
    validate_pod_update,
)
from scheduler.cluster.rbac_rules import (
    set_binding_defaults,
    validate_binding,
    validate_binding_update,
    validate_role,
    validate_role_update,
)
from scheduler.cluster.resources import SERVICES, STORAGE_CLASSES, Resource
from scheduler.cluster.store import Store
from scheduler.cluster.workload_rules import (
    admit_job,
    set_controller_defaults,
    set_daemon_set_defaults,
    set_deployment_defaults,
    set_job_defaults,
    set_replicated_defaults,
    set_stateful_set_defaults,
    validate_job,
    validate_workload,
    validate_workload_update,
)

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


_ROLE_RULES = KindRules(validate=validate_role, validate_update=validate_role_update)
_ROLE_BINDING_RULES = KindRules(
    set_binding_defaults, validate=validate_binding, validate_update=validate_binding_update
)

RULES: dict[str, KindRules] = {
    **{collection: KindRules(defaults) for collection, defaults in PLAIN_DEFAULTS.items()},
    "pods": KindRules(set_pod_defaults, admit_pod, validate_pod, validate_pod_update),
    "nodes": KindRules(_set_node_defaults, _admit_node),
    "namespaces": KindRules(_set_namespace_defaults),
    "events": KindRules(set_event_defaults),
    "services": KindRules(_set_service_defaults, _admit_service),
    "replicationcontrollers": KindRules(set_controller_defaults),
    "persistentvolumes": KindRules(_set_volume_defaults),
    "persistentvolumeclaims": KindRules(_set_claim_defaults, _admit_claim),
    "deployments.apps": KindRules(
        set_deployment_defaults, _no_admission, validate_workload, validate_workload_update
    ),
    "replicasets.apps": KindRules(
        set_replicated_defaults, _no_admission, validate_workload, validate_workload_update
    ),
    "statefulsets.apps": KindRules(
        set_stateful_set_defaults, _no_admission, validate_workload, validate_workload_update
    ),
    "daemonsets.apps": KindRules(
        set_daemon_set_defaults, _no_admission, validate_workload, validate_workload_update
    ),
    "jobs.batch": KindRules(set_job_defaults, admit_job, validate_job),
    "priorityclasses.scheduling.k8s.io": KindRules(
        _set_priority_class_defaults, validate_update=_validate_priority_class_update
    ),
    "poddisruptionbudgets.policy": KindRules(_set_budget_defaults),
    "storageclasses.storage.k8s.io": KindRules(_set_storage_class_defaults),
    "csidrivers.storage.k8s.io": KindRules(_set_csi_driver_defaults),
    "csistoragecapacities.storage.k8s.io": KindRules(_set_capacity_defaults),
    "customresourcedefinitions.apiextensions.k8s.io": KindRules(
        set_definition_defaults,
        validate=validate_definition,
        validate_update=validate_definition_update,
    ),
    "roles.rbac.authorization.k8s.io": _ROLE_RULES,
    "rolebindings.rbac.authorization.k8s.io": _ROLE_BINDING_RULES,
    "clusterroles.rbac.authorization.k8s.io": _ROLE_RULES,
    "clusterrolebindings.rbac.authorization.k8s.io": _ROLE_BINDING_RULES,
}
_NO_RULES = KindRules()


def rules_of(resource: Resource) -> KindRules:
    """The rules of a resource's kind."""
    if resource.custom is not None:
        return KindRules(**rule_functions(resource.custom))
    return RULES.get(resource.stored_in, _NO_RULES)
