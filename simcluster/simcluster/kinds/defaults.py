"""What the API server fills in for the kinds with few fields, and what admission decides for them.

Pods are in ``pod_defaults`` and ``pod_rules``, workloads in ``workload_rules``.
"""

import base64
from typing import Any

from simcluster.apiserver import errors
from simcluster.kinds.pod_defaults import canonical_quantities
from simcluster.kinds.pod_rules import NOT_READY_TAINT
from simcluster.kinds.resources import PRIORITY_CLASSES, SERVICES, STORAGE_CLASSES
from simcluster.kinds.service_numbers import ClusterAddresses, NodePorts
from simcluster.store.store import Store

Json = dict[str, Any]

IS_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_NODE_INFO = [
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
]


def set_node_defaults(node: Json) -> None:
    """A Node: everything it has can be used, and it says something about itself."""
    spec = node.setdefault("spec", {})
    first, ranges = spec.get("podCIDR"), spec.get("podCIDRs")
    if first and (not ranges or ranges[0] != first):
        spec["podCIDRs"] = [first]
    elif ranges:
        spec["podCIDR"] = ranges[0]
    status = node.setdefault("status", {})
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])
    canonical_quantities(status, "capacity", "allocatable")
    status.setdefault("daemonEndpoints", {"kubeletEndpoint": {"Port": 0}})
    info = status.get("nodeInfo") or {}
    status["nodeInfo"] = {**dict.fromkeys(_NODE_INFO, ""), **info}


def admit_node(_store: Store, node: Json) -> None:
    """A new node is tainted until something has seen it ready (TaintNodesByCondition)."""
    taints = node["spec"].get("taints") or []
    taint = {"key": NOT_READY_TAINT, "effect": "NoSchedule"}
    if not any(found.get("key") == NOT_READY_TAINT for found in taints):
        node["spec"]["taints"] = [*taints, taint]


def set_namespace_defaults(namespace: Json) -> None:
    """A Namespace: labelled with its name."""
    name = namespace["metadata"].get("name", "")
    namespace["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = name
    namespace.setdefault("spec", {})
    namespace.setdefault("status", {}).setdefault("phase", "Active")


def admit_namespace(_store: Store, namespace: Json) -> None:
    """A Namespace is held by its own finalizer."""
    namespace["spec"].setdefault("finalizers", ["kubernetes"])


def keep_namespace(new: Json, old: Json) -> None:
    """Its finalizers change through ``/finalize`` alone."""
    new["spec"] = old["spec"]


def set_secret_defaults(secret: Json) -> None:
    """A Secret: Opaque; ``stringData`` is a way to write ``data``."""
    secret.setdefault("type", "Opaque")
    texts = secret.pop("stringData", None)
    if texts:
        encoded = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
        secret["data"] = {**(secret.get("data") or {}), **encoded}


def set_service_defaults(service: Json) -> None:
    """A Service: inside the cluster, over TCP."""
    spec = service.setdefault("spec", {})
    kind = spec.setdefault("type", "ClusterIP")
    if spec.setdefault("sessionAffinity", "None") == "ClientIP":
        client = spec.setdefault("sessionAffinityConfig", {}).setdefault("clientIP", {})
        client.setdefault("timeoutSeconds", 10800)
    for port in spec.get("ports") or ():
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port.get("port"))
    if kind != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if kind in {"NodePort", "LoadBalancer"}:
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    service.setdefault("status", {"loadBalancer": {}})


def admit_service(store: Store, service: Json) -> None:
    """A Service gets its address, and ports on the nodes where it is of that type."""
    spec = service["spec"]
    if spec["type"] == "ExternalName":
        return
    if not spec.get("clusterIP"):
        addresses = store.collection(SERVICES.stored_in).index(ClusterAddresses)
        spec["clusterIP"] = addresses.lowest_free()
    spec.setdefault("clusterIPs", [spec["clusterIP"]])
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    if spec["type"] in {"NodePort", "LoadBalancer"}:
        _give_node_ports(store, spec)


def _give_node_ports(store: Store, spec: Json) -> None:
    free = store.collection(SERVICES.stored_in).index(NodePorts).free()
    for port in spec.get("ports") or ():
        if not port.get("nodePort"):
            port["nodePort"] = next(free)


def keep_service(new: Json, old: Json) -> None:
    """A Service keeps the addresses it was given where an update does not name them."""
    spec, before = new["spec"], old["spec"]
    if "ExternalName" in {spec.get("type"), before.get("type")}:
        return
    for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if field in before and not spec.get(field):
            spec[field] = before[field]


def set_volume_defaults(volume: Json) -> None:
    """A PersistentVolume: kept when it is released."""
    spec = volume.setdefault("spec", {})
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")
    if "hostPath" in spec:
        spec["hostPath"].setdefault("type", "")
    canonical_quantities(spec, "capacity")
    if not volume.get("status"):
        made = volume["metadata"].get("creationTimestamp")
        volume["status"] = {"phase": "Pending", "lastPhaseTransitionTime": made}


def set_claim_defaults(claim: Json) -> None:
    """A PersistentVolumeClaim: of a file system."""
    spec = claim.setdefault("spec", {})
    spec.setdefault("volumeMode", "Filesystem")
    spec.setdefault("resources", {})
    canonical_quantities(spec.get("resources"), "requests", "limits")
    claim.setdefault("status", {}).setdefault("phase", "Pending")


def admit_claim(store: Store, claim: Json) -> None:
    """A claim that names no class gets the default one."""
    if "storageClassName" in claim["spec"]:
        return
    for stored in store.collection(STORAGE_CLASSES.stored_in):
        annotations = stored.obj["metadata"].get("annotations") or {}
        if annotations.get(IS_DEFAULT_CLASS) == "true":
            claim["spec"]["storageClassName"] = stored.name
            return


def set_storage_class_defaults(storage_class: Json) -> None:
    """A StorageClass: its volumes are bound at once and go with their claims."""
    storage_class.setdefault("reclaimPolicy", "Delete")
    storage_class.setdefault("volumeBindingMode", "Immediate")


def set_csi_driver_defaults(driver: Json) -> None:
    """A CSIDriver: volumes are attached, and that is all it says."""
    spec = driver.setdefault("spec", {})
    for key, value in (
        ("attachRequired", True),
        ("podInfoOnMount", False),
        ("storageCapacity", False),
        ("fsGroupPolicy", "ReadWriteOnceWithFSType"),
        ("requiresRepublish", False),
        ("seLinuxMount", False),
    ):
        spec.setdefault(key, value)
    spec.setdefault("volumeLifecycleModes", ["Persistent"])


def set_csi_node_defaults(node: Json) -> None:
    """A CSINode: perhaps without drivers."""
    node.setdefault("spec", {}).setdefault("drivers", None)


def set_attachment_defaults(attachment: Json) -> None:
    """A VolumeAttachment: nothing is attached yet."""
    attachment.setdefault("status", {"attached": False})


def set_capacity_defaults(capacity: Json) -> None:
    """A CSIStorageCapacity, in canonical amounts."""
    for key in ("capacity", "maximumVolumeSize"):
        if key in capacity:
            amounts = {"amounts": {key: capacity[key]}}
            canonical_quantities(amounts, "amounts")
            capacity[key] = amounts["amounts"][key]


def set_priority_class_defaults(priority_class: Json) -> None:
    """A PriorityClass: it preempts."""
    priority_class.setdefault("value", 0)
    priority_class.setdefault("preemptionPolicy", "PreemptLowerPriority")


def admit_priority_class(store: Store, priority_class: Json) -> None:
    """There is one global default.

    Raises:
        ApiError: 403, another class is it already.
    """
    if not priority_class.get("globalDefault"):
        return
    name = priority_class["metadata"].get("name", "")
    for stored in store.collection(PRIORITY_CLASSES.stored_in):
        if stored.obj.get("globalDefault") and stored.name != name:
            why = (
                f"PriorityClass {stored.name} is already marked as default. Only one default can "
                "exist"
            )
            raise errors.forbidden(PRIORITY_CLASSES, name, why)


def set_budget_defaults(budget: Json) -> None:
    """A PodDisruptionBudget: nothing counted yet."""
    budget.setdefault("spec", {})
    counts = ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods")
    status = budget.setdefault("status", {})
    for count in counts:
        status.setdefault(count, 0)
