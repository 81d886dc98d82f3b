"""Defaults, admission and validation by kind, and where each is looked up."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from simcluster.apiserver.errors import FieldError
from simcluster.apiserver.event_conversion import set_event_defaults
from simcluster.auth.rbac_rules import (
    set_binding_defaults,
    validate_binding,
    validate_binding_update,
    validate_role,
    validate_role_update,
)
from simcluster.crds.definitions import (
    set_definition_defaults,
    validate_definition,
    validate_definition_update,
)
from simcluster.crds.rules import rule_functions
from simcluster.kinds import defaults
from simcluster.kinds import workload_rules as workloads
from simcluster.kinds.defaults import IS_DEFAULT_CLASS
from simcluster.kinds.plain_rules import PLAIN_DEFAULTS
from simcluster.kinds.pod_defaults import set_pod_defaults
from simcluster.kinds.pod_rules import admit_pod, keep_pod_status, readmit_pod
from simcluster.kinds.resources import Resource
from simcluster.store.store import Store
from simcluster.validation import events, kinds, volumes
from simcluster.validation import workloads as workload_checks
from simcluster.validation.pods import validate_pod, validate_pod_status_update, validate_pod_update

Json = dict[str, Any]

__all__ = ["IS_DEFAULT_CLASS", "RULES", "KindRules", "rules_of"]


def _no_defaults(_obj: Json) -> None:
    """Leave the object as it is."""


def _no_admission(_store: Store, _obj: Json) -> None:
    """Let the object in as it is."""


def _keep_nothing(_new: Json, _old: Json) -> None:
    """Take the update as it is."""


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
        validate: errors of a new object.
        validate_update: errors of a change.
        keep_on_update: puts back, in place, what an update does not touch.
        validate_status: errors of a change to the status.
        keep_on_status_update: the same for a change to the status.
    """

    set_defaults: Callable[[Json], None] = _no_defaults
    admit: Callable[[Store, Json], None] = _no_admission
    validate: Callable[[Json], list[FieldError]] = _valid
    validate_update: Callable[[Json, Json], list[FieldError]] = _valid_update
    keep_on_update: Callable[[Json, Json], None] = _keep_nothing
    validate_status: Callable[[Json, Json], list[FieldError]] = _valid_update
    keep_on_status_update: Callable[[Json, Json], None] = _keep_nothing


def _on_update_too(
    validate: Callable[[Json], list[FieldError]],
    *further: Callable[[Json, Json], list[FieldError]],
) -> Callable[[Json, Json], list[FieldError]]:
    """The checks of a new object, made of a changed one, and further ones."""

    def validate_update(new: Json, old: Json) -> list[FieldError]:
        found = validate(new)
        for check in further:
            found += check(new, old)
        return found

    return validate_update


def _workload(
    set_defaults: Callable[[Json], None], validate: Callable[[Json], list[FieldError]]
) -> KindRules:
    kept = workload_checks.validate_selector_kept
    return KindRules(
        set_defaults, validate=validate, validate_update=_on_update_too(validate, kept)
    )


_ROLE_RULES = KindRules(validate=validate_role, validate_update=validate_role_update)
_ROLE_BINDING_RULES = KindRules(
    set_binding_defaults, validate=validate_binding, validate_update=validate_binding_update
)

RULES: dict[str, KindRules] = {
    **{collection: KindRules(filled) for collection, filled in PLAIN_DEFAULTS.items()},
    "pods": KindRules(
        set_pod_defaults,
        admit_pod,
        validate_pod,
        validate_pod_update,
        keep_on_update=readmit_pod,
        validate_status=validate_pod_status_update,
        keep_on_status_update=keep_pod_status,
    ),
    "nodes": KindRules(
        defaults.set_node_defaults,
        defaults.admit_node,
        kinds.validate_node,
        kinds.validate_node_update,
    ),
    "namespaces": KindRules(
        defaults.set_namespace_defaults,
        defaults.admit_namespace,
        keep_on_update=defaults.keep_namespace,
    ),
    "events": KindRules(
        set_event_defaults,
        validate=events.validate_event,
        validate_update=events.validate_event_update,
    ),
    "configmaps": KindRules(
        validate=kinds.validate_config_map, validate_update=kinds.validate_config_map_update
    ),
    "secrets": KindRules(
        defaults.set_secret_defaults,
        validate=kinds.validate_secret,
        validate_update=kinds.validate_secret_update,
    ),
    "services": KindRules(
        defaults.set_service_defaults,
        defaults.admit_service,
        kinds.validate_service,
        kinds.validate_service_update,
        keep_on_update=defaults.keep_service,
    ),
    "replicationcontrollers": KindRules(
        workloads.set_controller_defaults,
        validate=workload_checks.validate_replication_controller,
        validate_update=_on_update_too(workload_checks.validate_replication_controller),
    ),
    "persistentvolumes": KindRules(
        defaults.set_volume_defaults,
        validate=volumes.validate_volume,
        validate_update=volumes.validate_volume_update,
    ),
    "persistentvolumeclaims": KindRules(
        defaults.set_claim_defaults,
        defaults.admit_claim,
        volumes.validate_claim,
        volumes.validate_claim_update,
    ),
    "deployments.apps": _workload(
        workloads.set_deployment_defaults, workload_checks.validate_deployment
    ),
    "replicasets.apps": _workload(
        workloads.set_replicated_defaults, workload_checks.validate_replica_set
    ),
    "statefulsets.apps": KindRules(
        workloads.set_stateful_set_defaults,
        validate=workload_checks.validate_stateful_set,
        validate_update=workload_checks.validate_stateful_set_update,
    ),
    "daemonsets.apps": _workload(
        workloads.set_daemon_set_defaults, workload_checks.validate_daemon_set
    ),
    "jobs.batch": KindRules(
        workloads.set_job_defaults,
        workloads.admit_job,
        workload_checks.validate_job,
        workload_checks.validate_job_update,
    ),
    "leases.coordination.k8s.io": KindRules(
        validate=kinds.validate_lease, validate_update=_on_update_too(kinds.validate_lease)
    ),
    "priorityclasses.scheduling.k8s.io": KindRules(
        defaults.set_priority_class_defaults,
        defaults.admit_priority_class,
        kinds.validate_priority_class,
        kinds.validate_priority_class_update,
    ),
    "poddisruptionbudgets.policy": KindRules(
        defaults.set_budget_defaults,
        validate=kinds.validate_budget,
        validate_update=_on_update_too(kinds.validate_budget),
    ),
    "storageclasses.storage.k8s.io": KindRules(
        defaults.set_storage_class_defaults,
        validate=kinds.validate_storage_class,
        validate_update=kinds.validate_storage_class_update,
    ),
    "csinodes.storage.k8s.io": KindRules(
        defaults.set_csi_node_defaults,
        validate=kinds.validate_csi_node,
        validate_update=_on_update_too(kinds.validate_csi_node),
    ),
    "csidrivers.storage.k8s.io": KindRules(defaults.set_csi_driver_defaults),
    "csistoragecapacities.storage.k8s.io": KindRules(
        defaults.set_capacity_defaults,
        validate=kinds.validate_capacity,
        validate_update=_on_update_too(kinds.validate_capacity),
    ),
    "volumeattachments.storage.k8s.io": KindRules(
        defaults.set_attachment_defaults,
        validate=kinds.validate_attachment,
        validate_update=kinds.validate_attachment_update,
    ),
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
