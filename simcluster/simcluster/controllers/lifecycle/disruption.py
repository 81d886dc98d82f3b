"""PodDisruptionBudgets: how many pods may go right now."""

from collections.abc import Callable
from typing import Any, NamedTuple

from simcluster.clock import parse_timestamp
from simcluster.controllers.lifecycle.budget_book import BudgetBook, Owner
from simcluster.controllers.ownership import controller_reference, is_active, set_condition
from simcluster.controllers.reconciler import Key, Reconciler, key_of
from simcluster.controllers.selector_index import SelectorIndex
from simcluster.controllers.workloads.rollout import scaled_value
from simcluster.kinds.resources import (
    DEPLOYMENTS,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
)
from simcluster.store.selectors import match_label_selector
from simcluster.store.store import Change, Stored

Json = dict[str, Any]

DISRUPTED_POD_TIMEOUT_S = 120.0
_SCALED = (REPLICA_SETS, DEPLOYMENTS, REPLICATION_CONTROLLERS, STATEFUL_SETS)


class _Counts(NamedTuple):
    expected: int
    desired: int


class DisruptionController(Reconciler):
    """Counts healthy pods under each budget, as pods change and without visiting the others."""

    def follow(self) -> None:
        """Follow budgets, the pods they select, and the scales of what owns those."""
        self._selectors = SelectorIndex(empty_selects=True)
        self._books: dict[Key, BudgetBook] = {}
        for budget in self.store.collection(POD_DISRUPTION_BUDGETS.stored_in):
            self._open_book(budget)
        self.subscribe(POD_DISRUPTION_BUDGETS, self._on_budget)
        self.subscribe(PODS, self._on_pod)
        for resource in _SCALED:
            self.subscribe(resource, self._on_scaled)
        self.enqueue_all(POD_DISRUPTION_BUDGETS)

    def _open_book(self, budget: Stored) -> None:
        key = Key(budget.namespace, budget.name)
        selector = budget.obj["spec"].get("selector")
        self._selectors.put(*key, selector)
        book = self._books[key] = BudgetBook()
        for pod in self.store.collection(PODS.stored_in).items(budget.namespace):
            labels = pod.obj["metadata"].get("labels") or {}
            if is_active(pod) and match_label_selector(selector, labels):
                book.put(pod)

    def _on_budget(self, change: Change) -> None:
        key, before = key_of(change), change.previous
        if change.type == "DELETED":
            self._selectors.discard(*key)
            self._books.pop(key, None)
            self.forget_timer(key)
            return
        selector = change.current.obj["spec"].get("selector")
        if before is None or before.obj["spec"].get("selector") != selector:
            self._open_book(change.current)
        self.enqueue(key)

    def _on_pod(self, change: Change) -> None:
        pod, namespace = change.current, change.current.namespace
        names = set(self._selecting(change.previous)) if change.previous is not None else set()
        selecting = self._selecting(pod) if change.type != "DELETED" and is_active(pod) else []
        for name in names.difference(selecting):
            self._changed(Key(namespace, name), lambda book: book.discard(pod.name))
        for name in selecting:
            self._changed(Key(namespace, name), lambda book: book.put(pod))

    def _selecting(self, pod: Stored) -> list[str]:
        labels = pod.obj["metadata"].get("labels") or {}
        return self._selectors.selecting(pod.namespace, labels)

    def _changed(self, key: Key, act: Callable[[BudgetBook], None]) -> None:
        book = self._books.get(key)
        if book is not None:
            act(book)
            self.enqueue(key)

    def _on_scaled(self, change: Change) -> None:
        """A controller wants another number of pods: the budgets over those expect another."""
        before, now = change.previous, change.current
        if before is None or before.obj["spec"].get("replicas") == now.obj["spec"].get("replicas"):
            return
        labels = (now.obj["spec"].get("template") or {}).get("metadata", {}).get("labels") or {}
        for name in self._selectors.selecting(now.namespace, labels):
            self.enqueue(Key(now.namespace, name))

    def reconcile(self, key: Key) -> None:
        """Report one budget's counts."""
        budget = self.store.get(POD_DISRUPTION_BUDGETS.stored_in, *key)
        book = self._books.get(key)
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

    def _disrupted(self, budget: Stored, book: BudgetBook) -> dict[str, str]:
        """Evicted pods that are still there; one that stays too long counts as healthy again."""
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

    def _expected(self, spec: Json, book: BudgetBook) -> _Counts:
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

    def _scale(self, book: BudgetBook) -> int:
        """The replicas that the pods' controllers want in all; pods without one are not expected.

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
        stored = (
            self.store.get(resource.stored_in, owner.namespace, owner.name) if resource else None
        )
        if stored is None or stored.obj["metadata"]["uid"] != owner.uid:
            return owner.uid, num_pods
        reference = controller_reference(stored.obj)
        if reference is not None and reference["kind"] == DEPLOYMENTS.kind:
            found = self.store.get(DEPLOYMENTS.stored_in, owner.namespace, reference["name"])
            stored = found or stored
        spec: Json = stored.obj.get("spec") or {}
        replicas = spec.get("replicas", spec.get("parallelism", num_pods))
        return stored.obj["metadata"]["uid"], int(replicas or 0)
