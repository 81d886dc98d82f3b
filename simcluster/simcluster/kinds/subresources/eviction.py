"""The eviction subresource, which deletes a pod unless a disruption budget forbids it."""

from dataclasses import replace

from simcluster.apiserver import errors
from simcluster.kinds.resources import POD_DISRUPTION_BUDGETS, PODS
from simcluster.kinds.subresources.binding import CREATED
from simcluster.store.deletion import DeleteOptions, parse_delete_options, plan_deletion
from simcluster.store.registry import Registry
from simcluster.store.selectors import match_label_selector
from simcluster.store.store import Stored
from simcluster.values import Json

_REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."
_RETRY_AFTER_S = 10


def evict(registry: Registry, namespace: str, name: str, eviction: Json) -> Json:
    """Evict a pod.

    Raises:
        ApiError: 404; 429, the budget allows no disruption or has not been observed yet; 500, more
            than one budget covers the pod.
    """
    if (eviction.get("metadata") or {}).get("name", name) != name:
        raise errors.bad_request("name in URL does not match name in Eviction object")
    options = parse_delete_options(eviction.get("deleteOptions") or {})
    stored = registry.get(PODS, namespace, name)
    if not _ignores_budget(stored.obj):
        budgets = _budgets_over(registry, stored)
        if len(budgets) > 1:
            raise errors.internal(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource "
                "does not support."
            )
        if budgets and not _is_unready_and_spare(stored.obj, budgets[0].obj):
            _spend(registry, budgets[0], name, options.dry_run)
    _delete(registry, stored, options)
    return CREATED


def _ignores_budget(pod: Json) -> bool:
    phase = pod["status"].get("phase")
    return phase in {"Pending", "Succeeded", "Failed"} or bool(
        pod["metadata"].get("deletionTimestamp")
    )


def _budgets_over(registry: Registry, pod: Stored) -> list[Stored]:
    labels = pod.obj["metadata"].get("labels") or {}
    budgets = registry.store.collection(POD_DISRUPTION_BUDGETS.stored_in).items(pod.namespace)
    return [
        budget
        for budget in budgets
        if budget.obj["spec"].get("selector")
        and match_label_selector(budget.obj["spec"]["selector"], labels)
    ]


def _is_unready_and_spare(pod: Json, budget: Json) -> bool:
    """Whether a pod is not ready, so that its eviction does not use up the budget."""
    is_ready = any(
        condition.get("type") == "Ready" and condition.get("status") == "True"
        for condition in pod["status"].get("conditions") or ()
    )
    if is_ready:
        return False
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget["status"]
    return 0 < int(status["desiredHealthy"]) <= int(status["currentHealthy"])


def _spend(registry: Registry, budget: Stored, pod_name: str, dry_run: bool) -> None:
    status = budget.obj["status"]
    if status.get("observedGeneration", 0) < budget.obj["metadata"].get("generation", 0):
        raise _refusal(
            f"The disruption budget {budget.name} is still being processed by the server.",
            _RETRY_AFTER_S,
        )
    allowed = status.get("disruptionsAllowed", 0)
    if allowed < 0:
        raise errors.forbidden(
            POD_DISRUPTION_BUDGETS, budget.name, "pdb disruptions allowed is negative"
        )
    if allowed == 0:
        raise _refusal(
            f"The disruption budget {budget.name} needs {status['desiredHealthy']} healthy pods "
            f"and has {status['currentHealthy']} currently",
            0,
        )
    if dry_run:
        return
    spent = {
        **status,
        "disruptionsAllowed": allowed - 1,
        "disruptedPods": {**(status.get("disruptedPods") or {}), pod_name: registry.clock.now()},
    }
    registry.change_status(
        POD_DISRUPTION_BUDGETS, budget.namespace, budget.name, lambda _obj: spent
    )


def _refusal(message: str, retry_after_s: int) -> errors.ApiError:
    cause = {"reason": "DisruptionBudget", "message": message}
    return errors.too_many_requests(_REFUSED, retry_after_s, [cause])


def _delete(registry: Registry, pod: Stored, options: DeleteOptions) -> None:
    plan_deletion(PODS, pod, options, registry.clock)  # raises before anything is written
    if not options.dry_run:
        _mark_disrupted(registry, pod)
        options = replace(options, resource_version="")
    registry.delete(PODS, pod.namespace, pod.name, options)


def _mark_disrupted(registry: Registry, pod: Stored) -> None:
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
        "lastProbeTime": None,
        "lastTransitionTime": registry.clock.now(),
    }
    if pod.obj["metadata"].get("generation"):
        condition["observedGeneration"] = pod.obj["metadata"]["generation"]

    def with_condition(obj: Json) -> Json:
        conditions = [
            found
            for found in obj["status"].get("conditions") or ()
            if found.get("type") != "DisruptionTarget"
        ]
        return {**obj["status"], "conditions": [*conditions, condition]}

    registry.change_status(PODS, pod.namespace, pod.name, with_condition)
