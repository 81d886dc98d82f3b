"""Admission of objects by the ResourceQuotas of their namespace.

As in kube-apiserver, only what a quota's status says counts, which a controller fills: a quota
without a status limits nothing.
"""

from typing import NamedTuple

from simcluster.apiserver.errors import forbidden
from simcluster.kinds.admission.quota_usage import (
    amount_of_quota,
    is_counted,
    is_in_scope,
    missing_amounts,
    tracked_names,
    usage_of,
)
from simcluster.kinds.defaults.pod_resources import Amounts
from simcluster.kinds.resources import (
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    RESOURCE_QUOTAS,
    SERVICES,
    Resource,
)
from simcluster.store.store import Store, Stored
from simcluster.values import Json
from stowage.api.values.quantity import quantity_milli_value

_CHARGED_ON_UPDATE = frozenset(
    (PERSISTENT_VOLUME_CLAIMS.stored_in, PODS.stored_in, SERVICES.stored_in)
)


class Charge(NamedTuple):
    """A quota, and what it says is used once the object is stored."""

    quota: Stored
    used: Json


def charges_of_new(store: Store, resource: Resource, obj: Json) -> list[Charge]:
    """What a new object adds to the quotas of its namespace.

    Raises:
        ApiError: 403, it exceeds one.
    """
    if not is_counted(resource) or not len(store.collection(RESOURCE_QUOTAS.stored_in)):
        return []
    return _charges(store, resource, obj, usage_of(resource, obj))


def charges_of_change(store: Store, resource: Resource, obj: Json, old: Json) -> list[Charge]:
    """What a change of an object's spec adds to the quotas of its namespace.

    Raises:
        ApiError: 403, it exceeds one.
    """
    is_charged = resource.stored_in in _CHARGED_ON_UPDATE and obj.get("spec") is not old.get("spec")
    if not is_charged or not len(store.collection(RESOURCE_QUOTAS.stored_in)):
        return []
    before = usage_of(resource, old)
    usage = usage_of(resource, obj)
    return _charges(
        store, resource, obj, {name: each - before.get(name, 0) for name, each in usage.items()}
    )


def apply_charges(store: Store, charges: list[Charge]) -> None:
    """Write what the quotas' status says is used."""
    for quota, used in charges:
        status = {**quota.status, "used": used}
        store.put(RESOURCE_QUOTAS.stored_in, {**quota.obj, "status": status})


def _charges(store: Store, resource: Resource, obj: Json, added: Amounts) -> list[Charge]:
    namespace = obj["metadata"]["namespace"]
    quotas = store.collection(RESOURCE_QUOTAS.stored_in).items(namespace)
    matching = [quota for quota in quotas if _limits(quota, resource, obj)]
    added = {name: amount for name, amount in added.items() if amount > 0}
    found = [_charge(quota, resource, obj, added) for quota in matching]
    return [charge for charge in found if charge.used != charge.quota.status.get("used")]


def _refusal(resource: Resource, obj: Json, why: str) -> Exception:
    return forbidden(resource, obj["metadata"].get("name", ""), why)


def _limits(quota: Stored, resource: Resource, obj: Json) -> bool:
    """Whether a quota limits an object.

    Raises:
        ApiError: 403, the object lacks amounts, or the quota its usage.
    """
    tracked = tracked_names(resource, quota.status.get("hard") or ())
    if not tracked or not is_in_scope(resource, obj, quota.obj):
        return False
    missing = missing_amounts(obj, tracked) if resource.stored_in == PODS.stored_in else ""
    if missing:
        raise _refusal(resource, obj, f"failed quota: {quota.name}: must specify {missing}")
    if set(tracked) - (quota.status.get("used") or {}).keys():
        names = ",".join(tracked)
        why = f"status unknown for quota: {quota.name}, resources: {names}"
        raise _refusal(resource, obj, why)
    return True


def _charge(quota: Stored, resource: Resource, obj: Json, added: Amounts) -> Charge:
    hard, used = quota.status["hard"], quota.status["used"]
    requested = {name: added[name] for name in sorted(added.keys() & hard.keys())}
    total = {
        name: quantity_milli_value(used.get(name, "0")) + amount
        for name, amount in requested.items()
    }
    exceeded = [name for name in total if total[name] > quantity_milli_value(hard[name])]
    if exceeded:
        asked = ",".join(f"{name}={amount_of_quota(name, requested[name])}" for name in exceeded)
        so_far = ",".join(f"{name}={used.get(name, '0')}" for name in exceeded)
        limit = ",".join(f"{name}={hard[name]}" for name in exceeded)
        why = f"exceeded quota: {quota.name}, requested: {asked}, used: {so_far}, limited: {limit}"
        raise _refusal(resource, obj, why)
    texts = {name: amount_of_quota(name, amount) for name, amount in total.items()}
    return Charge(quota, {**used, **texts})
