"""Drops fields of feature gates that are off, as the strategies of kube-apiserver do.

An object that has such a field in the store keeps it on update.
"""

from collections.abc import Mapping, Sequence

from simcluster.features import GENERIC_WORKLOAD, PREEMPTION, RESOURCE_CLAIMS, TOPOLOGY
from simcluster.kinds.resources import POD_GROUPS, PODS, WORKLOADS, Resource
from simcluster.values import Json
from stowage.api.config.feature_gates import FeatureGates

_OF_GROUPS: Mapping[str, str] = {
    "schedulingConstraints": TOPOLOGY,
    "disruptionMode": PREEMPTION,
    "priorityClassName": PREEMPTION,
    "priority": PREEMPTION,
    "resourceClaims": RESOURCE_CLAIMS,
}
_GATED: Mapping[str, Mapping[str, str]] = {
    PODS.stored_in: {"schedulingGroup": GENERIC_WORKLOAD},
    POD_GROUPS.stored_in: _OF_GROUPS,
    WORKLOADS.stored_in: _OF_GROUPS,
}
"""Fields of a spec, or of the templates of a Workload, and their gates."""


def drop_gated_fields(
    gates: FeatureGates, resource: Resource, obj: Json, before: Json | None = None
) -> None:
    """Drop, in place, the fields of gates that are off; those that ``before`` has stay."""
    for field, gate in _GATED.get(resource.stored_in, {}).items():
        if gates.enabled(gate) or any(field in spec for spec in _specs(resource, before)):
            continue
        for spec in _specs(resource, obj):
            spec.pop(field, None)


def _specs(resource: Resource, obj: Json | None) -> Sequence[Json]:
    spec: Json = (obj or {}).get("spec") or {}
    return spec.get("podGroupTemplates") or () if resource is WORKLOADS else (spec,)
