"""The default ServiceAccount and the root certificate ConfigMap of every namespace."""

from simcluster.controllers.reconciler import Key, Reconciler, key_of
from simcluster.controllers.shared import Shared
from simcluster.kinds.resources import CONFIG_MAPS, NAMESPACES, SERVICE_ACCOUNTS, Resource
from simcluster.store.store import Change
from simcluster.values import Json

_AUTHORITY = "kube-root-ca.crt"


class ServiceAccountController(Reconciler):
    """Keeps ServiceAccount ``default`` and ConfigMap ``kube-root-ca.crt`` in every namespace."""

    def __init__(self, shared: Shared, authority_pem: str = "") -> None:
        super().__init__(shared)
        self._authority_pem = authority_pem

    def follow(self) -> None:
        """Follow namespaces, and deletions of the two objects."""
        self.subscribe(NAMESPACES, lambda change: self.enqueue(key_of(change)))
        for resource in (SERVICE_ACCOUNTS, CONFIG_MAPS):
            self.subscribe(resource, self._on_content)
        self.enqueue_all(NAMESPACES)

    def _on_content(self, change: Change) -> None:
        if change.type == "DELETED" and change.current.name in {"default", _AUTHORITY}:
            self.enqueue(Key("", change.current.namespace))

    def reconcile(self, key: Key) -> None:
        """Create the objects that are missing in a namespace."""
        namespace = self.find(NAMESPACES, "", key.name)
        if namespace is None or namespace.obj["metadata"].get("deletionTimestamp"):
            return
        self._make(SERVICE_ACCOUNTS, key.name, {"metadata": {"name": "default"}})
        data = {"ca.crt": self._authority_pem}
        self._make(CONFIG_MAPS, key.name, {"metadata": {"name": _AUTHORITY}, "data": data})

    def _make(self, resource: Resource, namespace: str, obj: Json) -> None:
        if self.find(resource, namespace, obj["metadata"]["name"]) is None:
            self.registry.create(resource, namespace, obj)
