"""PodDisruptionBudgets: how many pods may be disrupted now."""

from collections.abc import Callable
from typing import NamedTuple

from simcluster.clock import parse_timestamp
from simcluster.controllers.indexes import SelectorIndex
from simcluster.controllers.lifecycle.budget_pods import BudgetPods, Owner
from simcluster.controllers.ownership import (
    controller_reference,
    is_active,
    is_selected,
    set_condition,
)
from simcluster.controllers.reconciler import Key, Reconciler, key_of
from simcluster.controllers.workloads.rollout import scaled_value
from simcluster.kinds.resources import (
    DEPLOYMENTS,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
)
from simcluster.store.store import Change, Stored
from simcluster.values import Json

DISRUPTED_POD_TIMEOUT_S = 120.0
_SCALED = (REPLICA_SETS, DEPLOYMENTS, REPLICATION_CONTROLLERS, STATEFUL_SETS)


class _Counts(NamedTuple):
    expected: int
    desired: int


class DisruptionController(Reconciler):
    """Counts the healthy pods of each budget; a change of one pod does not visit the others."""

    def follow(self) -> None:
        """Follow budgets, the pods they select, and the replicas of the pods' controllers."""
        self._selectors = SelectorIndex(empty_selects=True)
        self._budgets: dict[Key, BudgetPods] = {}
        for budget in self.store.collection(POD_DISRUPTION_BUDGETS.stored_in):
            self._count_pods(budget)
        self.subscribe(POD_DISRUPTION_BUDGETS, self._on_budget)
        self.subscribe(PODS, self._on_pod)
        for resource in _SCALED:
            self.subscribe(resource, self._on_scaled)
        self.enqueue_all(POD_DISRUPTION_BUDGETS)

    def _count_pods(self, budget: Stored) -> None:
        key = Key(budget.namespace, budget.name)
        selector = budget.obj["spec"].get("selector")
        self._selectors.put(*key, selector)
        book = self._budgets[key] = BudgetPods()
        for pod in self.store.collection(PODS.stored_in).items(budget.namespace):
            if is_active(pod) and is_selected(selector, pod):
                book.put(pod)

    def _on_budget(self, change: Change) -> None:
        key, before = key_of(change), change.previous
        if change.type == "DELETED":
            self._selectors.discard(*key)
            self._budgets.pop(key, None)
            self.forget_timer(key)
            return
        selector = change.current.obj["spec"].get("selector")
        if before is None or before.obj["spec"].get("selector") != selector:
            self._count_pods(change.current)
        self.enqueue(key)

    def _on_pod(self, change: Change) -> None:
        pod, namespace = change.current, change.current.namespace
        before, is_counted = change.previous, change.type != "DELETED" and is_active(pod)
        names = set() if before is None else set(self._selectors.selecting(before))
        selecting = self._selectors.selecting(pod) if is_counted else []
        for name in names.difference(selecting):
            self._changed(Key(namespace, name), lambda book: book.discard(pod.name))
        for name in selecting:
            self._changed(Key(namespace, name), lambda book: book.put(pod))

    def _changed(self, key: Key, act: Callable[[BudgetPods], None]) -> None:
        book = self._budgets.get(key)
        if book is not None:
            act(book)
            self.enqueue(key)

    def _on_scaled(self, change: Change) -> None:
        """Reconcile the budgets of a controller that wants another number of pods."""
        before, now = change.previous, change.current
        if before is None or before.obj["spec"].get("replicas") == now.obj["spec"].get("replicas"):
            return
        labels = (now.obj["spec"].get("template") or {}).get("metadata", {}).get("labels") or {}
        for name in self._selectors.selecting_labels(now.namespace, labels):
            self.enqueue(Key(now.namespace, name))

    def reconcile(self, key: Key) -> None:
        """Report one budget's counts."""
        budget = self.find(POD_DISRUPTION_BUDGETS, *key)
        book = self._budgets.get(key)
        if budget is None or book is None:
            return
        disrupted = self._disrupted(budget, book)
        healthy = len(book.healthy) - sum(name in book.healthy for name in disrupted)
        counts = self._expected(budget.obj["spec"], book)
        allowed = max(0, healthy - counts.desired) if counts.expected else 0
        status: Json = {
            "currentHealthy": healthy,
            "desiredHealthy": counts.desired,
            "disruptionsAllowed": allowed,
            "expectedPods": counts.expected,
            "observedGeneration": budget.obj["metadata"].get("generation", 1),
        }
        if disrupted:
            status["disruptedPods"] = disrupted
        condition = {
            "type": "DisruptionAllowed",
            "status": "True" if allowed else "False",
            "reason": "SufficientPods" if allowed else "InsufficientPods",
            "message": "",
            "observedGeneration": status["observedGeneration"],
            "lastTransitionTime": self.registry.clock.now(),
        }
        before = budget.obj["status"].get("conditions") or []
        status["conditions"] = set_condition(before, condition)
        self.registry.change_status(POD_DISRUPTION_BUDGETS, *key, lambda _obj: status)

    def _disrupted(self, budget: Stored, book: BudgetPods) -> dict[str, str]:
        """Evicted pods that still exist; one that exists for too long counts as healthy again."""
        now = self.registry.clock.time_s()
        kept, left = {}, []
        for name, when in (budget.obj["status"].get("disruptedPods") or {}).items():
            left_s = parse_timestamp(when) + DISRUPTED_POD_TIMEOUT_S - now
            if name in book and left_s > 0:
                kept[name] = when
                left.append(left_s)
        if left:
            self.enqueue_after(Key(budget.namespace, budget.name), min(left))
        return kept

    def _expected(self, spec: Json, book: BudgetPods) -> _Counts:
        """How many pods there should be, and how many of them must stay healthy."""
        if spec.get("maxUnavailable") is not None:
            expected = self._scale(book)
            spare = scaled_value(spec["maxUnavailable"], expected, round_up=True)
            return _Counts(expected, max(0, expected - spare))
        minimum = spec.get("minAvailable", 1)
        if isinstance(minimum, int):
            return _Counts(len(book), minimum)
        expected = self._scale(book)
        return _Counts(expected, scaled_value(minimum, expected, round_up=True))

    def _scale(self, book: BudgetPods) -> int:
        """The sum of the replicas of the pods' controllers; pods without one do not count.

        A ReplicaSet counts as the Deployment that controls it, so that two sets count once.
        """
        scales: dict[str, int] = {}
        for owner, count in book.owners.items():
            if owner.kind:
                uid, replicas = self._replicas(owner, count)
                scales[uid] = replicas
        return sum(scales.values())

    def _replicas(self, owner: Owner, num_pods: int) -> tuple[str, int]:
        resource = self.registry.catalog.of_kind(owner.api_version, owner.kind)
        stored = self.find(resource, owner.namespace, owner.name) if resource else None
        if stored is None or stored.obj["metadata"]["uid"] != owner.uid:
            return owner.uid, num_pods
        reference = controller_reference(stored.obj)
        if reference is not None and reference["kind"] == DEPLOYMENTS.kind:
            found = self.find(DEPLOYMENTS, owner.namespace, reference["name"])
            stored = found or stored
        spec: Json = stored.obj.get("spec") or {}
        replicas = spec.get("replicas", spec.get("parallelism", num_pods))
        return stored.obj["metadata"]["uid"], int(replicas or 0)
