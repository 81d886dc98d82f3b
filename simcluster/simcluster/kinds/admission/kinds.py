"""Admission of nodes, namespaces, Services, priority classes and Jobs."""

from simcluster.apiserver import errors
from simcluster.kinds.admission.pods import NOT_READY_TAINT
from simcluster.kinds.admission.service_numbers import ClusterAddresses, NodePorts
from simcluster.kinds.resources import PRIORITY_CLASSES, SERVICES
from simcluster.store.object_meta import new_uid
from simcluster.store.store import Store
from simcluster.values import Json


def admit_node(_store: Store, node: Json) -> None:
    """Taint a new node until it is seen to be ready (TaintNodesByCondition)."""
    taints = node["spec"].get("taints") or []
    if not any(found.get("key") == NOT_READY_TAINT for found in taints):
        taint = {"key": NOT_READY_TAINT, "effect": "NoSchedule"}
        node["spec"]["taints"] = [*taints, taint]


def admit_namespace(_store: Store, namespace: Json) -> None:
    """Give a namespace the finalizer that holds it until it is empty."""
    namespace["spec"].setdefault("finalizers", ["kubernetes"])


def keep_namespace(new: Json, old: Json) -> None:
    """Keep the finalizers, which change through ``/finalize`` alone."""
    new["spec"] = old["spec"]


def admit_service(store: Store, service: Json) -> None:
    """Give a Service its address, and node ports where its type asks for them."""
    spec, services = service["spec"], store.collection(SERVICES.stored_in)
    if spec["type"] == "ExternalName":
        return
    if not spec.get("clusterIP"):
        spec["clusterIP"] = services.index(ClusterAddresses).lowest_free()
    spec.setdefault("clusterIPs", [spec["clusterIP"]])
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    if spec["type"] in {"NodePort", "LoadBalancer"}:
        free = services.index(NodePorts).free()
        for port in spec.get("ports") or ():
            if not port.get("nodePort"):
                port["nodePort"] = next(free)


def keep_service(new: Json, old: Json) -> None:
    """Keep the addresses of a Service where an update does not name them."""
    spec, before = new["spec"], old["spec"]
    if "ExternalName" in {spec.get("type"), before.get("type")}:
        return
    for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if field in before and not spec.get(field):
            spec[field] = before[field]


def admit_priority_class(store: Store, priority_class: Json) -> None:
    """Take one global default only.

    Raises:
        ApiError: 403, another class is it already.
    """
    name = priority_class["metadata"].get("name", "")
    for stored in store.collection(PRIORITY_CLASSES.stored_in):
        is_second = priority_class.get("globalDefault") and stored.obj.get("globalDefault")
        if is_second and stored.name != name:
            why = (
                f"PriorityClass {stored.name} is already marked as default. Only one default can "
                "exist"
            )
            raise errors.forbidden(PRIORITY_CLASSES, name, why)


def admit_job(_store: Store, job: Json) -> None:
    """Give the pods of a Job labels of their own and select by them."""
    if job["spec"].get("manualSelector"):
        return
    uid, name = job["metadata"].get("uid") or new_uid(), job["metadata"].get("name", "")
    labels = job["spec"]["template"]["metadata"].setdefault("labels", {})
    for prefix in ("", "batch.kubernetes.io/"):
        labels[f"{prefix}controller-uid"] = uid
        labels[f"{prefix}job-name"] = name
    job["spec"]["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    if not job["metadata"].get("labels"):
        job["metadata"]["labels"] = dict(labels)
