"""Disruption budgets in stories, and the profile that respects them."""

from __future__ import annotations

from stowage.api.events import DisruptionBudgetSeen
from stowage.api.objects.meta import LabelSelector, ObjectMeta
from stowage.api.objects.policy import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
)

DB = {"app": "db"}
RESPECTFUL = {
    "schedulerName": "default-scheduler",
    "pluginConfig": [{"name": "DefaultPreemption", "args": {"disruptionBudgets": "Respect"}}],
}


def db_budget(allowed: int, version: str = "1", disrupted: str = "") -> DisruptionBudgetSeen:
    """A budget of the pods with the label `DB`."""
    return DisruptionBudgetSeen(
        PodDisruptionBudget(
            ObjectMeta(name="db", namespace="default", resource_version=version),
            PodDisruptionBudgetSpec(LabelSelector(DB)),
            PodDisruptionBudgetStatus(allowed, {disrupted: None} if disrupted else {}),
        )
    )
