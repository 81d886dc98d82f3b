"""Pod disruption budgets: which budgets cover a pod, and how many disruptions they allow."""

from __future__ import annotations

import msgspec
from cachetools import LRUCache

from stowage.api.decoding.errors import SelectorError
from stowage.api.objects.policy import PodDisruptionBudget
from stowage.api.values.selectors import NOTHING, Selector, compile_label_selector
from stowage.state.pods.pod_class import NamespacedLabels, PodClass

_MAX_KINDS = 4096


class Budget(msgspec.Struct, eq=False):
    """A pod disruption budget with its compiled selector.

    Attributes:
        selector: The pods of its namespace that it covers; an empty selector covers none.
        allowed: ``status.disruptionsAllowed``.
        disrupted: Names of the pods in ``status.disruptedPods``, which are counted already.
    """

    selector: Selector
    allowed: int = 0
    disrupted: frozenset[str] = frozenset()


class DisruptionBudgets:
    """All budgets; written by the cache only.

    Attributes:
        by_namespace: Namespace -> name -> budget.
    """

    def __init__(self) -> None:
        self.by_namespace: dict[str, dict[str, Budget]] = {}
        self._covering: LRUCache[NamespacedLabels, tuple[Budget, ...]] = LRUCache(_MAX_KINDS)

    def __len__(self) -> int:
        return sum(map(len, self.by_namespace.values()))

    def update(self, budget: PodDisruptionBudget) -> None:
        """Add or update a budget; one with an invalid selector covers no pod."""
        metadata, status = budget.metadata, budget.status
        try:
            selector = compile_label_selector(budget.spec.selector)
        except SelectorError:
            selector = NOTHING
        of_namespace = self.by_namespace.setdefault(metadata.namespace, {})
        known = of_namespace.get(metadata.name)
        if known is None or known.selector != selector:
            known = of_namespace[metadata.name] = Budget(selector)
            self._covering.clear()
        known.allowed = status.disruptions_allowed
        known.disrupted = frozenset(status.disrupted_pods)

    def remove(self, namespace: str, name: str) -> bool:
        """Remove a budget; returns whether it was known."""
        of_namespace = self.by_namespace.get(namespace, {})
        known = of_namespace.pop(name, None)
        if known is None:
            return False
        if not of_namespace:
            del self.by_namespace[namespace]
        self._covering.clear()
        return True

    def covering(self, pod_class: PodClass) -> tuple[Budget, ...]:
        """The budgets that cover the pods of a class.

        They are the budgets of its namespace whose selector is not empty and matches; no budget
        covers a pod without labels (``filterPodsWithPDBViolation`` of v1.36).
        """
        of_namespace = self.by_namespace.get(pod_class.namespace)
        if not of_namespace or not pod_class.labels:
            return ()
        known = self._covering.get(pod_class.namespaced_labels)
        if known is None:
            known = self._covering[pod_class.namespaced_labels] = tuple(
                budget
                for budget in of_namespace.values()
                if not budget.selector.matches_everything
                and budget.selector.matches(pod_class.labels)
            )
        return known
