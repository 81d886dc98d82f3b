"""The types of a Policy, the configuration of algorithms up to kube-scheduler 1.22 (version v1)."""

from __future__ import annotations

from typing import Any

from stowage.api.config.types import ConfigStruct, UtilizationShapePoint

POLICY_API_VERSION = "v1"
POLICY_KIND = "Policy"


class ServiceAffinity(ConfigStruct, frozen=True):
    """Nodes of the pods of a service must have the same values of these labels."""

    labels: tuple[str, ...] = ()


class LabelsPresence(ConfigStruct, frozen=True):
    """Nodes must have all of these labels, or none of them."""

    labels: tuple[str, ...] = ()
    presence: bool = False


class PredicateArgument(ConfigStruct, frozen=True):
    """The argument of a predicate; exactly one of the fields."""

    service_affinity: ServiceAffinity | None = None
    labels_presence: LabelsPresence | None = None


class PredicatePolicy(ConfigStruct, frozen=True):
    """A predicate; with an argument, it may have any name."""

    name: str = ""
    argument: PredicateArgument | None = None


class ServiceAntiAffinity(ConfigStruct, frozen=True):
    """Pods of a service are spread over the values of this label."""

    label: str = ""


class LabelPreference(ConfigStruct, frozen=True):
    """Nodes with this label are preferred, or nodes without it."""

    label: str = ""
    presence: bool = False


class RequestedToCapacityRatioArguments(ConfigStruct, frozen=True):
    """A score as a function of utilization."""

    shape: tuple[UtilizationShapePoint, ...] = ()


class PriorityArgument(ConfigStruct, frozen=True):
    """The argument of a priority; exactly one of the fields."""

    service_anti_affinity: ServiceAntiAffinity | None = None
    label_preference: LabelPreference | None = None
    requested_to_capacity_ratio_arguments: RequestedToCapacityRatioArguments | None = None


class PriorityPolicy(ConfigStruct, frozen=True):
    """A priority with its weight; with an argument, it may have any name."""

    name: str = ""
    weight: int = 0
    argument: PriorityArgument | None = None


class Policy(ConfigStruct, frozen=True):
    """A Policy.

    Attributes:
        api_version: ``v1``.
        kind: ``Policy``.
        predicates: None for the default ones, unlike an empty list.
        priorities: None for the default ones, unlike an empty list.
        extenders: As written; the fields' names may be in any case.
        hard_pod_affinity_symmetric_weight: 0 stands for 1.
        always_check_all_predicates: Whether all predicates are asked after one has failed.
    """

    api_version: str = ""
    kind: str = ""
    predicates: tuple[PredicatePolicy, ...] | None = None
    priorities: tuple[PriorityPolicy, ...] | None = None
    extenders: tuple[dict[str, Any], ...] = ()
    hard_pod_affinity_symmetric_weight: int = 0
    always_check_all_predicates: bool = False
