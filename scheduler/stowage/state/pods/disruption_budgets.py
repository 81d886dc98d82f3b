"""Pod disruption budgets: which budgets cover a pod, and how many disruptions they allow."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from cachetools import LRUCache

from stowage.api.decoding.errors import SelectorError
from stowage.api.objects.policy import PodDisruptionBudget
from stowage.api.values.selectors import NOTHING, Operator, Selector, compile_label_selector
from stowage.state.pods.pod_class import NamespacedLabels, PodClass
from stowage.state.pods.pod_info import PodInfo

_MAX_KINDS = 4096
_NO_LABEL = (None, None)


class Budget(msgspec.Struct, eq=False):
    """A pod disruption budget with its compiled selector.

    Attributes:
        selector: The pods of its namespace that it covers; an empty selector covers none.
        allowed: ``status.disruptionsAllowed``.
        disrupted: Names of the pods in ``status.disruptedPods``, which are counted already.
        evicting: Names of the pods whose eviction was decided since the last update; the status may
            not count them yet.
        version: ``metadata.resourceVersion``.
    """

    selector: Selector
    allowed: int = 0
    disrupted: frozenset[str] = frozenset()
    evicting: frozenset[str] = frozenset()
    version: str = ""

    @property
    def left(self) -> int:
        """The allowed disruptions that no eviction has used up."""
        return max(self.allowed - len(self.evicting - self.disrupted), 0)


class DisruptionBudgets:
    """All budgets; written by the cache only.

    Attributes:
        by_namespace: Namespace -> name -> budget.
    """

    def __init__(self) -> None:
        self.by_namespace: dict[str, dict[str, Budget]] = {}
        self._covering: LRUCache[NamespacedLabels, tuple[Budget, ...]] = LRUCache(_MAX_KINDS)
        # By (namespace, label, value) that the budget requires; label and value None: by none.
        self._requiring: dict[tuple[str, str | None, str | None], dict[Budget, None]] = {}

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
            if known is not None:
                self._unlist(metadata.namespace, known)
            known = of_namespace[metadata.name] = Budget(selector)
            self._requiring.setdefault(_required(metadata.namespace, known), {})[known] = None
            self._covering.clear()
        known.allowed = status.disruptions_allowed
        known.disrupted = frozenset(status.disrupted_pods)
        if known.version != metadata.resource_version:
            known.version, known.evicting = metadata.resource_version, frozenset()

    def remove(self, namespace: str, name: str) -> bool:
        """Remove a budget; returns whether it was known."""
        of_namespace = self.by_namespace.get(namespace, {})
        known = of_namespace.pop(name, None)
        if known is None:
            return False
        if not of_namespace:
            del self.by_namespace[namespace]
        self._unlist(namespace, known)
        self._covering.clear()
        return True

    def note_eviction(self, pod: PodInfo) -> None:
        """The pod is about to be evicted: it uses up a disruption until the budget is updated."""
        for budget in self.covering(pod.pod_class):
            budget.evicting |= {pod.name}

    def forget_eviction(self, pod: PodInfo) -> None:
        """The pod is not evicted after all."""
        for budget in self.covering(pod.pod_class):
            budget.evicting -= {pod.name}

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
                for budget in self._candidates(pod_class)
                if not budget.selector.matches_everything
                and budget.selector.matches(pod_class.labels)
            )
        return known

    def _candidates(self, pod_class: PodClass) -> Iterator[Budget]:
        """The budgets whose required label the pods of a class have, or that require none."""
        namespace = pod_class.namespace
        for label in (_NO_LABEL, *pod_class.labels.items()):
            yield from self._requiring.get((namespace, *label), ())

    def _unlist(self, namespace: str, budget: Budget) -> None:
        key = _required(namespace, budget)
        del self._requiring[key][budget]
        if not self._requiring[key]:
            del self._requiring[key]


def _required(namespace: str, budget: Budget) -> tuple[str, str | None, str | None]:
    """The namespace, and a label with the only value that the budget's pods have."""
    for each in budget.selector.requirements:
        if each.operator is Operator.IN and len(each.values) == 1:
            return namespace, each.key, each.values[0]
    return (namespace, *_NO_LABEL)
