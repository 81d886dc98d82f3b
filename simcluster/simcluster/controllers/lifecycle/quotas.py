"""Counts what the objects of a namespace use of its ResourceQuotas."""

from functools import partial

from simcluster.controllers.reconciler import Key, Reconciler, key_of
from simcluster.kinds.admission.quota_usage import (
    amount_of_quota,
    is_counted,
    is_in_scope,
    tracked_names,
    usage_of,
)
from simcluster.kinds.defaults.pod_resources import Amounts
from simcluster.kinds.resources import RESOURCE_QUOTAS, Resource
from simcluster.store.store import Change, Stored
from simcluster.values import Json


class QuotaController(Reconciler):
    """Writes the status of quotas.

    New objects are added by admission. The controller counts anew when a quota changes, and when an
    object goes or changes what it uses.
    """

    def follow(self) -> None:
        """Follow quotas, and all objects that they count."""
        for resource in self.registry.catalog.collections():
            self._follow(resource)
        self.registry.catalog.follow_collections(self._follow)
        self.subscribe(RESOURCE_QUOTAS, self._on_quota)
        self.enqueue_all(RESOURCE_QUOTAS)

    def _follow(self, resource: Resource) -> None:
        if is_counted(resource):
            self.subscribe(resource, partial(self._on_object, resource))

    def _on_quota(self, change: Change) -> None:
        if change.type != "DELETED":
            self.enqueue(key_of(change))

    def _on_object(self, resource: Resource, change: Change) -> None:
        quotas = self.store.collection(RESOURCE_QUOTAS.stored_in)
        if not len(quotas) or change.previous is None:
            return
        current, previous = change.current, change.previous
        is_gone = change.type == "DELETED"
        if is_gone or usage_of(resource, current.obj) != usage_of(resource, previous.obj):
            for quota in quotas.items(current.namespace):
                self.enqueue(Key(quota.namespace, quota.name))

    def reconcile(self, key: Key) -> None:
        """Set the limits and the usage in the status of a quota."""
        quota = self.find(RESOURCE_QUOTAS, *key)
        if quota is None:
            return
        hard = quota.spec.get("hard") or {}
        used = {name: amount_of_quota(name, milli) for name, milli in self._used(quota).items()}
        status: Json = {"hard": hard, "used": used}
        self.registry.change_status(RESOURCE_QUOTAS, *key, lambda _obj: status)

    def _used(self, quota: Stored) -> Amounts:
        total: Amounts = {}
        for resource in self.registry.catalog.collections():
            names = tracked_names(resource, quota.spec.get("hard") or ())
            if not names or not is_counted(resource):
                continue
            total |= dict.fromkeys(names, 0)
            for stored in self.store.collection(resource.stored_in).items(quota.namespace):
                if is_in_scope(resource, stored.obj, quota.obj):
                    usage = usage_of(resource, stored.obj)
                    for name in names:
                        total[name] += usage.get(name, 0)
        return {name: total[name] for name in sorted(total)}
