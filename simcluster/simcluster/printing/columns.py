"""The columns of each kind, as ``kubectl get`` and ``kubectl get -o wide`` show them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from simcluster.clock import parse_timestamp
from simcluster.printing.cells import (
    NONE,
    UNKNOWN,
    Cell,
    Column,
    age_column,
    at,
    column,
    human_duration,
    joined,
    labels_text,
    name_column,
    name_of,
    since,
    template_columns,
    wide,
)
from simcluster.printing.control_plane import CONTROL_PLANE_COLUMNS
from simcluster.printing.plain import PLAIN_COLUMNS
from simcluster.printing.pods import POD_COLUMNS

Json = dict[str, Any]

_ROLE_PREFIX = "node-role.kubernetes.io/"


def _count(*path: str) -> Callable[[Json], Cell]:
    return at(*path, default=0)


def _node_status(node: Json) -> str:
    conditions = (node.get("status") or {}).get("conditions") or ()
    ready = next((found for found in conditions if found.get("type") == "Ready"), None)
    words = ["Unknown" if ready is None else "NotReady"]
    if ready is not None and ready.get("status") == "True":
        words = ["Ready"]
    if (node.get("spec") or {}).get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _node_roles(node: Json) -> str:
    labels = node["metadata"].get("labels") or {}
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    roles.add(labels.get("kubernetes.io/role", ""))
    return joined(sorted(role for role in roles if role))


def _node_address(kind: str) -> Callable[[Json], Cell]:
    def cell(node: Json) -> Cell:
        addresses = (node.get("status") or {}).get("addresses") or ()
        return next((a["address"] for a in addresses if a.get("type") == kind), NONE)

    return cell


def _event_source(event: Json) -> str:
    source = event.get("source") or {}
    component = source.get("component") or event.get("reportingComponent") or ""
    host = source.get("host") or event.get("reportingInstance") or ""
    return f"{component}, {host}" if host and host != component else component


def _event_object(event: Json) -> str:
    involved = event.get("involvedObject") or {}
    name = involved.get("name", "")
    kind = involved.get("kind", "").lower()
    return f"{kind}/{name}" if kind else name


def _last_seen(event: Json, now: float) -> str:
    last = event.get("lastTimestamp") or event.get("eventTime")
    series = event.get("series")
    count = event.get("count", 0)
    if series:
        last, count = series.get("lastObservedTime"), series.get("count", 0)
    if count > 1:
        first = since(event.get("firstTimestamp") or event.get("eventTime"), now)
        return f"{since(last, now)} (x{count} over {first})"
    return since(last, now)


def _first_seen(event: Json, now: float) -> str:
    return since(event.get("firstTimestamp") or event.get("eventTime"), now)


def _event_count(event: Json) -> int:
    series = event.get("series") or {}
    return int(series.get("count") or event.get("count") or 1)


def _job_status(job: Json) -> str:
    conditions = {
        found["type"]
        for found in (job.get("status") or {}).get("conditions") or ()
        if found.get("status") == "True"
    }
    if job["metadata"].get("deletionTimestamp") and not conditions & {"Complete", "Failed"}:
        return "Terminating"
    known = ("Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet")
    return next((kind for kind in known if kind in conditions), "Running")


def _job_completions(job: Json) -> str:
    spec, succeeded = job["spec"], (job.get("status") or {}).get("succeeded", 0)
    if spec.get("completions") is not None:
        return f"{succeeded}/{spec['completions']}"
    parallelism = spec.get("parallelism", 0)
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(job: Json, now: float) -> str:
    status = job.get("status") or {}
    if not status.get("startTime"):
        return ""
    ended = status.get("completionTime")
    until = parse_timestamp(ended) if ended else now
    return human_duration(until - parse_timestamp(status["startTime"]))


def _ready_of_desired(obj: Json) -> str:
    return f"{(obj.get('status') or {}).get('readyReplicas', 0)}/{obj['spec'].get('replicas', 0)}"


def _service_port(port: Json) -> str:
    node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port['port']}{node_port}/{port.get('protocol')}"


def _service_ports(service: Json) -> str:
    return joined([_service_port(port) for port in service["spec"].get("ports") or ()])


def _external_addresses(service: Json) -> str:
    spec = service["spec"]
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName") or NONE)
    given: list[str] = list(spec.get("externalIPs") or [])
    if spec.get("type") != "LoadBalancer":
        return joined(given)
    balancer = (service.get("status") or {}).get("loadBalancer") or {}
    found = [each.get("ip") or each.get("hostname") or "" for each in balancer.get("ingress") or ()]
    return ",".join([*found, *given]) or "<pending>"


def _claim_reference(volume: Json) -> str:
    claim = volume["spec"].get("claimRef") or {}
    return f"{claim.get('namespace')}/{claim.get('name')}" if claim else ""


_IS_DEFAULT = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_ACCESS_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _access_modes(modes: Sequence[str]) -> str:
    known = [short for mode, short in _ACCESS_MODES.items() if mode in modes]
    return ",".join(known)


def _claim_access_modes(claim: Json) -> str:
    is_bound = claim["spec"].get("volumeName")
    return _access_modes((claim.get("status") or {}).get("accessModes") or ()) if is_bound else ""


def _claim_capacity(claim: Json) -> Cell:
    if not claim["spec"].get("volumeName"):
        return ""
    return str(((claim.get("status") or {}).get("capacity") or {}).get("storage", ""))


def _phase(obj: Json) -> Cell:
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return str((obj.get("status") or {}).get("phase") or "")


def _class_name(storage_class: Json, _now: float) -> str:
    annotations = storage_class["metadata"].get("annotations") or {}
    is_default = any(annotations.get(key) == "true" for key in _IS_DEFAULT)
    return f"{name_of(storage_class)} (default)" if is_default else name_of(storage_class)


def _budget_bound(key: str) -> Callable[[Json], Cell]:
    def cell(budget: Json) -> Cell:
        value = budget["spec"].get(key)
        return "N/A" if value is None else str(value)

    return cell


def _bound_role(binding: Json) -> str:
    reference = binding["roleRef"]
    return f"{reference['kind']}/{reference['name']}"


def _subjects(kind: str) -> Callable[[Json], Cell]:
    def cell(binding: Json) -> Cell:
        subjects = [found for found in binding.get("subjects") or () if found["kind"] == kind]
        parts = ((found.get("namespace"), found["name"]) for found in subjects)
        return ", ".join("/".join(filter(None, part)) for part in parts)

    return cell


_BINDING_COLUMNS = (
    name_column(),
    column("Role", _bound_role),
    age_column(),
    wide("Users", _subjects("User")),
    wide("Groups", _subjects("Group")),
    wide("ServiceAccounts", _subjects("ServiceAccount")),
)
_ATTRIBUTES_CLASS = column(
    "VolumeAttributesClass", at("spec", "volumeAttributesClassName", default="<unset>")
)
_REPLICATED = (
    column("Desired", _count("spec", "replicas"), "integer"),
    column("Current", _count("status", "replicas"), "integer"),
    column("Ready", _count("status", "readyReplicas"), "integer"),
    age_column(),
    *template_columns(),
)

COLUMNS: Mapping[str, Sequence[Column]] = {
    "pods": POD_COLUMNS,
    "nodes": (
        name_column(),
        column("Status", _node_status),
        column("Roles", _node_roles),
        age_column(),
        column("Version", at("status", "nodeInfo", "kubeletVersion")),
        wide("Internal-IP", _node_address("InternalIP")),
        wide("External-IP", _node_address("ExternalIP")),
        wide("OS-Image", at("status", "nodeInfo", "osImage", default=UNKNOWN)),
        wide("Kernel-Version", at("status", "nodeInfo", "kernelVersion", default=UNKNOWN)),
        wide(
            "Container-Runtime",
            at("status", "nodeInfo", "containerRuntimeVersion", default=UNKNOWN),
        ),
    ),
    "namespaces": (name_column(), column("Status", at("status", "phase")), age_column()),
    "configmaps": (
        name_column(),
        column(
            "Data",
            lambda obj: len(obj.get("data") or {}) + len(obj.get("binaryData") or {}),
        ),
        age_column(),
    ),
    "secrets": (
        name_column(),
        column("Type", at("type")),
        column("Data", lambda obj: len(obj.get("data") or {})),
        age_column(),
    ),
    "serviceaccounts": (
        name_column(),
        column("Secrets", lambda obj: len(obj.get("secrets") or ())),
        age_column(),
    ),
    "services": (
        name_column(),
        column("Type", at("spec", "type")),
        column("Cluster-IP", at("spec", "clusterIP", default=NONE)),
        column("External-IP", _external_addresses),
        column("Port(s)", _service_ports),
        age_column(),
        wide("Selector", lambda obj: labels_text(obj["spec"].get("selector"))),
    ),
    "events": (
        Column("Last Seen", _last_seen),
        column("Type", at("type")),
        column("Reason", at("reason")),
        column("Object", _event_object),
        wide("Subobject", at("involvedObject", "fieldPath")),
        wide("Source", _event_source),
        column("Message", lambda obj: (obj.get("message") or "").strip()),
        Column("First Seen", _first_seen, priority=1),
        wide("Count", _event_count),
        Column("Name", lambda obj, _now: obj["metadata"]["name"], format="name", priority=1),
    ),
    "replicationcontrollers": (name_column(), *_REPLICATED),
    "replicasets.apps": (name_column(), *_REPLICATED),
    "deployments.apps": (
        name_column(),
        column("Ready", _ready_of_desired),
        column("Up-to-date", _count("status", "updatedReplicas")),
        column("Available", _count("status", "availableReplicas")),
        age_column(),
        *template_columns(),
    ),
    "statefulsets.apps": (
        name_column(),
        column("Ready", _ready_of_desired),
        age_column(),
        *template_columns()[:2],
    ),
    "daemonsets.apps": (
        name_column(),
        column("Desired", _count("status", "desiredNumberScheduled"), "integer"),
        column("Current", _count("status", "currentNumberScheduled"), "integer"),
        column("Ready", _count("status", "numberReady"), "integer"),
        column("Up-to-date", _count("status", "updatedNumberScheduled"), "integer"),
        column("Available", _count("status", "numberAvailable"), "integer"),
        column(
            "Node Selector",
            lambda obj: labels_text(obj["spec"]["template"]["spec"].get("nodeSelector")),
        ),
        age_column(),
        *template_columns(),
    ),
    "jobs.batch": (
        name_column(),
        column("Status", _job_status),
        column("Completions", _job_completions),
        Column("Duration", _job_duration),
        age_column(),
        *template_columns(),
    ),
    "leases.coordination.k8s.io": (
        name_column(),
        column("Holder", at("spec", "holderIdentity")),
        age_column(),
    ),
    "priorityclasses.scheduling.k8s.io": (
        name_column(),
        column("Value", _count("value"), "integer"),
        column("Global-Default", lambda obj: bool(obj.get("globalDefault")), "boolean"),
        age_column(),
        column("PreemptionPolicy", at("preemptionPolicy")),
    ),
    "poddisruptionbudgets.policy": (
        name_column(),
        column("Min Available", _budget_bound("minAvailable")),
        column("Max Unavailable", _budget_bound("maxUnavailable")),
        column("Allowed Disruptions", _count("status", "disruptionsAllowed"), "integer"),
        age_column(),
    ),
    "persistentvolumes": (
        name_column(),
        column("Capacity", at("spec", "capacity", "storage")),
        column("Access Modes", lambda obj: _access_modes(obj["spec"].get("accessModes") or ())),
        column("Reclaim Policy", at("spec", "persistentVolumeReclaimPolicy")),
        column("Status", _phase),
        column("Claim", _claim_reference),
        column("StorageClass", at("spec", "storageClassName")),
        _ATTRIBUTES_CLASS,
        column("Reason", at("status", "reason")),
        age_column(),
        wide("VolumeMode", at("spec", "volumeMode", default="<unset>")),
    ),
    "persistentvolumeclaims": (
        name_column(),
        column("Status", _phase),
        column("Volume", at("spec", "volumeName")),
        column("Capacity", _claim_capacity),
        column("Access Modes", _claim_access_modes),
        column("StorageClass", at("spec", "storageClassName")),
        _ATTRIBUTES_CLASS,
        age_column(),
        wide("VolumeMode", at("spec", "volumeMode", default="<unset>")),
    ),
    "storageclasses.storage.k8s.io": (
        Column("Name", _class_name, format="name"),
        column("Provisioner", at("provisioner")),
        column("ReclaimPolicy", at("reclaimPolicy", default="Delete")),
        column("VolumeBindingMode", at("volumeBindingMode", default="Immediate")),
        column("AllowVolumeExpansion", at("allowVolumeExpansion", default=False)),
        age_column(),
    ),
    "csinodes.storage.k8s.io": (
        name_column(),
        column("Drivers", lambda obj: len((obj.get("spec") or {}).get("drivers") or ()), "integer"),
        age_column(),
    ),
    **PLAIN_COLUMNS,
    **CONTROL_PLANE_COLUMNS,
    "rolebindings.rbac.authorization.k8s.io": _BINDING_COLUMNS,
    "clusterrolebindings.rbac.authorization.k8s.io": _BINDING_COLUMNS,
}
