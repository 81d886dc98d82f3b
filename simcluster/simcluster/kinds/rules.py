"""Defaults, admission and validation of each kind, and where each is looked up."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from simcluster.apiserver.errors import FieldError
from simcluster.auth import rbac_rules as rbac
from simcluster.crds import definitions
from simcluster.crds.rules import rule_functions
from simcluster.kinds.admission import devices, pod_groups, volumes
from simcluster.kinds.admission import kinds as admission
from simcluster.kinds.admission.limit_ranges import review_claim_limits
from simcluster.kinds.admission.pods import admit_pod, keep_pod_status, readmit_pod, review_pod
from simcluster.kinds.defaults.kinds import DEFAULTS
from simcluster.kinds.resources import Resource
from simcluster.store.store import Store
from simcluster.validation.device_claims import DEVICE_CLAIMS, validate_claim_status
from simcluster.validation.device_slices import DEVICE_SLICES
from simcluster.validation.events import EVENTS
from simcluster.validation.kinds import KINDS, validate_node_status
from simcluster.validation.limit_ranges import LIMIT_RANGES
from simcluster.validation.pod_groups import POD_GROUPS
from simcluster.validation.pod_updates import validate_pod_status_update, validate_pod_update
from simcluster.validation.pods import validate_pod
from simcluster.validation.rules import Validation
from simcluster.validation.volumes import VOLUMES
from simcluster.validation.workloads import WORKLOADS
from simcluster.values import Json


def _unchanged(*_objects: object) -> None:
    """Leave the object as it is."""


def _valid(*_objects: Json) -> list[FieldError]:
    return []


@dataclass(frozen=True)
class KindRules:
    """The functions that an object of one kind passes before it is stored.

    Args:
        set_defaults: fills fields in place; on create and on update.
        admit: decides fields that depend on other objects; on create only.
        validate: errors of a new object.
        review: refuses a valid new object that other objects forbid.
        validate_update: errors of a change.
        review_update: refuses a valid change that other objects forbid.
        keep_on_update: restores, in place, fields that an update does not change.
        validate_status: errors of a change to the status.
        keep_on_status_update: the same for a change to the status.
    """

    set_defaults: Callable[[Json], None] = _unchanged
    admit: Callable[[Store, Json], None] = _unchanged
    validate: Callable[[Json], list[FieldError]] = _valid
    review: Callable[[Store, Json], None] = _unchanged
    validate_update: Callable[[Json, Json], list[FieldError]] = _valid
    review_update: Callable[[Store, Json, Json], None] = _unchanged
    keep_on_update: Callable[[Json, Json], None] = _unchanged
    validate_status: Callable[[Json, Json], list[FieldError]] = _valid
    keep_on_status_update: Callable[[Json, Json], None] = _unchanged


_DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
_RBAC = "rbac.authorization.k8s.io"
_ROLES = Validation(rbac.validate_role, rbac.validate_role_update)
_BINDINGS = Validation(rbac.validate_binding, rbac.validate_binding_update)
_VALIDATIONS: dict[str, Validation] = {
    **DEVICE_CLAIMS,
    **DEVICE_SLICES,
    **EVENTS,
    **KINDS,
    **LIMIT_RANGES,
    **POD_GROUPS,
    **VOLUMES,
    **WORKLOADS,
    "pods": Validation(validate_pod, validate_pod_update),
    _DEFINITIONS: Validation(
        definitions.validate_definition, definitions.validate_definition_update
    ),
    f"roles.{_RBAC}": _ROLES,
    f"clusterroles.{_RBAC}": _ROLES,
    f"rolebindings.{_RBAC}": _BINDINGS,
    f"clusterrolebindings.{_RBAC}": _BINDINGS,
}
_DEFAULTS: dict[str, Callable[[Json], None]] = {
    **DEFAULTS,
    _DEFINITIONS: definitions.set_definition_defaults,
    f"rolebindings.{_RBAC}": rbac.set_binding_defaults,
    f"clusterrolebindings.{_RBAC}": rbac.set_binding_defaults,
}
_ADMISSION: dict[str, dict[str, Any]] = {
    "pods": {
        "admit": admit_pod,
        "review": review_pod,
        "keep_on_update": readmit_pod,
        "validate_status": validate_pod_status_update,
        "keep_on_status_update": keep_pod_status,
    },
    "nodes": {"admit": admission.admit_node, "validate_status": validate_node_status},
    "namespaces": {"admit": admission.admit_namespace, "keep_on_update": admission.keep_namespace},
    "services": {"admit": admission.admit_service, "keep_on_update": admission.keep_service},
    "persistentvolumeclaims": {
        "admit": volumes.admit_claim,
        "review": review_claim_limits,
        "review_update": volumes.review_claim_change,
    },
    "persistentvolumes": {"admit": volumes.admit_volume},
    "jobs.batch": {"admit": admission.admit_job},
    "resourceclaims.resource.k8s.io": {
        "admit": devices.admit_device_claim,
        "validate_status": validate_claim_status,
        "keep_on_status_update": devices.keep_claim_status,
    },
    "resourceclaimtemplates.resource.k8s.io": {"admit": devices.admit_device_claim_template},
    "podgroups.scheduling.k8s.io": {
        "admit": pod_groups.admit_pod_group,
        "keep_on_status_update": pod_groups.keep_metadata,
    },
    "priorityclasses.scheduling.k8s.io": {
        "admit": admission.admit_priority_class,
        "review_update": lambda store, new, _old: admission.admit_priority_class(store, new),
    },
}


def _rules(collection: str) -> KindRules:
    validation = _VALIDATIONS.get(collection, Validation(_valid, _valid))
    return KindRules(
        set_defaults=_DEFAULTS.get(collection, _unchanged),
        validate=validation.new,
        validate_update=validation.update,
        **_ADMISSION.get(collection, {}),
    )


RULES = {collection: _rules(collection) for collection in {**_DEFAULTS, **_VALIDATIONS}}
_NO_RULES = KindRules()


def rules_of(resource: Resource) -> KindRules:
    """The rules of a resource's kind."""
    if resource.custom is not None:
        return KindRules(**rule_functions(resource, resource.custom))
    return RULES.get(resource.stored_in, _NO_RULES)
