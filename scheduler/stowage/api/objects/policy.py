"""PodDisruptionBudgets and PriorityClasses."""

import msgspec

from stowage.api.objects.meta import ApiStruct, Int64, LabelSelector, ObjectMeta


class PodDisruptionBudgetSpec(ApiStruct, frozen=True):
    """The pods that a budget covers; no selector covers none, an empty one the namespace."""

    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(ApiStruct, frozen=True):
    """The number of allowed disruptions, and the pods that are being evicted."""

    disruptions_allowed: Int64 = 0
    disrupted_pods: dict[str, str | None] = msgspec.field(default_factory=dict)


class PodDisruptionBudget(ApiStruct, frozen=True):
    """A pod disruption budget."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class PriorityClass(ApiStruct, frozen=True):
    """A PriorityClass."""

    metadata: ObjectMeta = ObjectMeta()
    value: Int64 = 0
    global_default: bool = False
    preemption_policy: str | None = None
