"""Disruption budgets and priorities: what preemption has to respect."""

import msgspec

from stowage.api.objects.meta import ApiStruct, Int64, LabelSelector, ObjectMeta


class PodDisruptionBudgetSpec(ApiStruct, frozen=True):
    """The pods a budget covers; no selector covers none, an empty one all of the namespace."""

    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(ApiStruct, frozen=True):
    """How many disruptions are still allowed, and the pods already being evicted."""

    disruptions_allowed: Int64 = 0
    disrupted_pods: dict[str, str | None] = msgspec.field(default_factory=dict)


class PodDisruptionBudget(ApiStruct, frozen=True):
    """A pod disruption budget."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class PriorityClass(ApiStruct, frozen=True):
    """A named priority."""

    metadata: ObjectMeta = ObjectMeta()
    value: Int64 = 0
    global_default: bool = False
    preemption_policy: str | None = None
