"""PodDisruptionBudgets: how many pods may go right now."""

from typing import Any, NamedTuple

from scheduler.cluster.clock import parse_timestamp
from scheduler.cluster.controllers.ownership import (
    controller_reference,
    is_active,
    is_ready,
    set_condition,
)
from scheduler.cluster.controllers.reconciler import Key, Reconciler, key_of
from scheduler.cluster.controllers.rollout import scaled_value
from scheduler.cluster.resources import BY_KIND, POD_DISRUPTION_BUDGETS, PODS
from scheduler.cluster.selectors import match_label_selector
from scheduler.cluster.store import Change, Stored

Json = dict[str, Any]

DISRUPTED_POD_TIMEOUT_S = 120.0


class _Counts(NamedTuple):
    expected: int
    desired: int


class DisruptionController(Reconciler):
    """Counts healthy pods under each budget."""

    def follow(self) -> None:
        """Follow budgets, and the pods they select."""
        self.subscribe(POD_DISRUPTION_BUDGETS, lambda change: self.enqueue(key_of(change)))
        self.subscribe(PODS, self._on_pod)
        self.enqueue_all(POD_DISRUPTION_BUDGETS)

    def _on_pod(self, change: Change) -> None:
        namespace = change.current.namespace
        budgets = self.store.collection(POD_DISRUPTION_BUDGETS.stored_in)
        for budget in budgets.items(namespace):
            if _selects(budget, change.current):
                self.enqueue(Key(namespace, budget.name))

    def reconcile(self, key: Key) -> None:
        """Recount one budget."""
        budget = self.store.get(POD_DISRUPTION_BUDGETS.stored_in, *key)
        if budget is None:
            return
        everything = self.store.collection(PODS.stored_in).items(key.namespace)
        pods = [pod for pod in everything if _selects(budget, pod) and is_active(pod)]
        disrupted = self._disrupted(budget, pods)
        healthy = sum(is_ready(pod) and pod.name not in disrupted for pod in pods)
        counts = self._expected(budget.obj["spec"], pods)
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

    def _disrupted(self, budget: Stored, pods: list[Stored]) -> dict[str, str]:
        """Evicted pods that are still there; one that stays too long counts as healthy again."""
        names = {pod.name for pod in pods}
        now = self.registry.clock.time_s()
        kept = {
            name: when
            for name, when in (budget.obj["status"].get("disruptedPods") or {}).items()
            if name in names and now - parse_timestamp(when) < DISRUPTED_POD_TIMEOUT_S
        }
        if kept:
            self.enqueue_after(Key(budget.namespace, budget.name), DISRUPTED_POD_TIMEOUT_S)
        return kept

    def _expected(self, spec: Json, pods: list[Stored]) -> _Counts:
        """How many pods there should be, and how many of them must stay healthy."""
        if spec.get("maxUnavailable") is not None:
            expected = self._scale(pods)
            spare = scaled_value(spec["maxUnavailable"], expected, round_up=True)
            return _Counts(expected, max(0, expected - spare))
        minimum = spec.get("minAvailable", 1)
        if isinstance(minimum, int):
            return _Counts(len(pods), minimum)
        expected = self._scale(pods)
        return _Counts(expected, scaled_value(minimum, expected, round_up=True))

    def _scale(self, pods: list[Stored]) -> int:
        """The replicas that the pods' controllers want in all; a pod without one counts as one."""
        scales: dict[str, int] = {}
        for pod in pods:
            reference = controller_reference(pod.obj)
            uid = reference["uid"] if reference else pod.obj["metadata"]["uid"]
            if uid not in scales:
                scales[uid] = self._replicas(pod.namespace, reference)
        return sum(scales.values())

    def _replicas(self, namespace: str, reference: Json | None) -> int:
        resource = BY_KIND.get((reference["apiVersion"], reference["kind"])) if reference else None
        if reference is None or resource is None:
            return 1
        owner = self.store.get(resource.stored_in, namespace, reference["name"])
        return int(owner.obj["spec"].get("replicas", 1)) if owner is not None else 1


def _selects(budget: Stored, pod: Stored) -> bool:
    return match_label_selector(budget.obj["spec"].get("selector"), pod.labels)
