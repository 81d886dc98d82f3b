"""ClusterRoles that are aggregated from others, which they select by label."""

from simcluster.controllers.ownership import is_selected
from simcluster.controllers.reconciler import Key, Reconciler
from simcluster.kinds.resources import CLUSTER_ROLES
from simcluster.store.registry import editable
from simcluster.store.store import Change, Stored
from simcluster.values import Json


class RoleAggregationController(Reconciler):
    """Keeps the rules of ClusterRoles with an ``aggregationRule`` equal to those they select."""

    def follow(self) -> None:
        """Follow ClusterRoles."""
        self._aggregated: dict[str, None] = {}
        for role in self.store.collection(CLUSTER_ROLES.stored_in):
            self._note(role)
        self.subscribe(CLUSTER_ROLES, self._on_role)
        self._enqueue_aggregated()

    def _note(self, role: Stored) -> None:
        if role.obj.get("aggregationRule"):
            self._aggregated[role.name] = None
        else:
            self._aggregated.pop(role.name, None)

    def _on_role(self, change: Change) -> None:
        if change.type == "DELETED":
            self._aggregated.pop(change.current.name, None)
        else:
            self._note(change.current)
        self._enqueue_aggregated()

    def _enqueue_aggregated(self) -> None:
        for name in self._aggregated:
            self.enqueue(Key("", name))

    def reconcile(self, key: Key) -> None:
        """Collect the rules of one role."""
        role = self.find(CLUSTER_ROLES, "", key.name)
        if role is None or not role.obj.get("aggregationRule"):
            return
        rules: list[Json] = []
        for selector in role.obj["aggregationRule"].get("clusterRoleSelectors") or ():
            for part in self.store.collection(CLUSTER_ROLES.stored_in).items():
                if part.name != role.name and is_selected(selector, part):
                    rules += [rule for rule in part.obj.get("rules") or () if rule not in rules]
        if rules != (role.obj.get("rules") or []):
            self.registry.replace(CLUSTER_ROLES, role, {**editable(role), "rules": rules})
