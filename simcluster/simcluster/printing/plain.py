"""The columns of kinds that are kept but not acted on."""

from collections.abc import Mapping, Sequence
from typing import Any

from simcluster.printing.cells import (
    NONE,
    UNKNOWN,
    UNSET,
    Cell,
    Column,
    age_column,
    at,
    column,
    containers_of_template,
    joined,
    labels_text,
    name_column,
    selector_cell,
    since,
    wide,
)

Json = dict[str, Any]

_MAX_ENDPOINTS = 3


def _endpoints(obj: Json) -> str:
    found = [
        f"{address['ip']}:{port['port']}"
        for subset in obj.get("subsets") or ()
        for port in subset.get("ports") or ()
        for address in subset.get("addresses") or ()
    ]
    return _few(found)


def _few(found: Sequence[str]) -> str:
    if len(found) > _MAX_ENDPOINTS:
        return f"{','.join(found[:_MAX_ENDPOINTS])} + {len(found) - _MAX_ENDPOINTS} more..."
    return ",".join(found) or NONE


def _slice_ports(obj: Json) -> str:
    ports = [str(port["port"]) if "port" in port else "*" for port in obj.get("ports") or ()]
    return _few(ports) if ports else UNSET


def _slice_endpoints(obj: Json) -> str:
    found = [address for each in obj.get("endpoints") or () for address in each["addresses"]]
    return _few(found) if found else UNSET


def _controller(obj: Json) -> str:
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            group = owner["apiVersion"].rpartition("/")[0]
            kind = owner["kind"].lower()
            return f"{kind}.{group}/{owner['name']}" if group else f"{kind}/{owner['name']}"
    return NONE


def _quota(prefix: str, plain: bool) -> Any:
    def cell(obj: Json) -> str:
        status = obj.get("status") or {}
        hard, used = status.get("hard") or {}, status.get("used") or {}
        return ", ".join(
            f"{name}: {used.get(name, 0)}/{hard[name]}"
            for name in sorted(hard)
            if name.startswith(prefix) or (plain and not name.startswith("limits"))
        )

    return cell


def _hosts(ingress: Json) -> str:
    hosts = [rule["host"] for rule in ingress["spec"].get("rules") or () if rule.get("host")]
    return _few(hosts) if hosts else "*"


def _addresses(ingress: Json) -> str:
    balancer = (ingress.get("status") or {}).get("loadBalancer") or {}
    found = [each.get("ip") or each.get("hostname") for each in balancer.get("ingress") or ()]
    return ",".join(filter(None, found))


def _parameters(ingress_class: Json) -> str:
    found = ingress_class["spec"].get("parameters")
    if not found:
        return NONE
    group = found.get("apiGroup")
    kind = f"{found['kind']}.{group}" if group else found["kind"]
    return f"{kind}/{found['name']}"


def _last_schedule(cron_job: Json, now: float) -> str:
    last = (cron_job.get("status") or {}).get("lastScheduleTime")
    return since(last, now) if last else NONE


def _cron_containers(cron_job: Json) -> list[Json]:
    return containers_of_template(cron_job["spec"]["jobTemplate"])


def _claim_state(claim: Json) -> str:
    status = claim.get("status") or {}
    states = ["allocated" if status.get("allocation") else "pending"]
    if status.get("reservedFor"):
        states.append("reserved")
    if claim["metadata"].get("deletionTimestamp"):
        states.insert(0, "deleted")
    return ",".join(states)


def _reference(hpa: Json) -> str:
    target = hpa["spec"]["scaleTargetRef"]
    return f"{target['kind']}/{target['name']}"


def _targets(hpa: Json) -> str:
    """What each metric is held to; nobody measures here."""
    found = []
    for metric in hpa["spec"].get("metrics") or ():
        resource = metric.get("resource") or {}
        target = resource.get("target") or {}
        share = target.get("averageUtilization")
        wanted = f"{share}%" if share else target.get("averageValue") or UNKNOWN
        found.append(f"{resource.get('name', metric['type'])}: {UNKNOWN}/{wanted}")
    return ", ".join(found) or NONE


def _flag(*path: str) -> Any:
    found = at(*path, default=False)

    def cell(obj: Json) -> Cell:
        return bool(found(obj))

    return cell


PLAIN_COLUMNS: Mapping[str, Sequence[Column]] = {
    "componentstatuses": (
        name_column(),
        column("Status", at("status")),
        column("Message", at("message")),
        column("Error", at("error")),
    ),
    "endpoints": (name_column(), column("Endpoints", _endpoints), age_column()),
    "endpointslices.discovery.k8s.io": (
        name_column(),
        column("AddressType", at("addressType")),
        column("Ports", _slice_ports),
        column("Endpoints", _slice_endpoints),
        age_column(),
    ),
    "podtemplates": (
        name_column(),
        column("Containers", lambda obj: ",".join(c["name"] for c in _bare_containers(obj))),
        column("Images", lambda obj: ",".join(c["image"] for c in _bare_containers(obj))),
        column("Pod Labels", lambda obj: labels_text(_bare_metadata(obj).get("labels"))),
    ),
    "resourcequotas": (
        name_column(),
        column("Request", _quota("requests", plain=True)),
        column("Limit", _quota("limits", plain=False)),
        age_column(),
    ),
    "controllerrevisions.apps": (
        name_column(),
        column("Controller", _controller),
        column("Revision", at("revision", default=0), "integer"),
        age_column(),
    ),
    "horizontalpodautoscalers.autoscaling": (
        name_column(),
        column("Reference", _reference),
        column("Targets", _targets),
        column("MinPods", lambda obj: str(obj["spec"].get("minReplicas") or UNSET)),
        column("MaxPods", at("spec", "maxReplicas", default=0)),
        column("Replicas", at("status", "currentReplicas", default=0)),
        age_column(),
    ),
    "cronjobs.batch": (
        name_column(),
        column("Schedule", at("spec", "schedule")),
        column("Timezone", at("spec", "timeZone", default=NONE)),
        column("Suspend", lambda obj: "True" if obj["spec"].get("suspend") else "False", "boolean"),
        column("Active", lambda obj: len((obj.get("status") or {}).get("active") or ()), "integer"),
        Column("Last Schedule", _last_schedule),
        age_column(),
        wide("Containers", lambda obj: ",".join(c["name"] for c in _cron_containers(obj))),
        wide("Images", lambda obj: ",".join(c["image"] for c in _cron_containers(obj))),
        wide("Selector", lambda obj: selector_cell(obj["spec"]["jobTemplate"].get("selector"))),
    ),
    "ingresses.networking.k8s.io": (
        name_column(),
        column("Class", at("spec", "ingressClassName", default=NONE)),
        column("Hosts", _hosts),
        column("Address", _addresses),
        column("Ports", lambda obj: "80, 443" if obj["spec"].get("tls") else "80"),
        age_column(),
    ),
    "ingressclasses.networking.k8s.io": (
        name_column(),
        column("Controller", at("spec", "controller")),
        column("Parameters", _parameters),
        age_column(),
    ),
    "networkpolicies.networking.k8s.io": (
        name_column(),
        column("Pod-Selector", lambda obj: selector_cell(obj["spec"].get("podSelector"))),
        age_column(),
    ),
    "runtimeclasses.node.k8s.io": (name_column(), column("Handler", at("handler")), age_column()),
    "volumeattributesclasses.storage.k8s.io": (
        name_column(),
        column("DriverName", at("driverName")),
        age_column(),
    ),
    "volumeattachments.storage.k8s.io": (
        name_column(),
        column("Attacher", at("spec", "attacher")),
        column("PV", at("spec", "source", "persistentVolumeName")),
        column("Node", at("spec", "nodeName")),
        column("Attached", _flag("status", "attached"), "boolean"),
        age_column(),
    ),
    "csidrivers.storage.k8s.io": (
        name_column(),
        column("AttachRequired", at("spec", "attachRequired", default=True), "boolean"),
        column("PodInfoOnMount", _flag("spec", "podInfoOnMount"), "boolean"),
        column("StorageCapacity", _flag("spec", "storageCapacity"), "boolean"),
        column(
            "TokenRequests",
            lambda obj: (
                ",".join(each["audience"] for each in obj["spec"].get("tokenRequests") or ())
                or UNSET
            ),
        ),
        column("RequiresRepublish", _flag("spec", "requiresRepublish"), "boolean"),
        column("Modes", lambda obj: joined(obj["spec"].get("volumeLifecycleModes") or [])),
        age_column(),
    ),
    "csistoragecapacities.storage.k8s.io": (
        name_column(),
        column("StorageClassName", at("storageClassName")),
        column("Capacity", at("capacity", default=UNSET)),
    ),
    "deviceclasses.resource.k8s.io": (name_column(), age_column()),
    "resourceclaims.resource.k8s.io": (name_column(), column("State", _claim_state), age_column()),
    "resourceclaimtemplates.resource.k8s.io": (name_column(), age_column()),
    "resourceslices.resource.k8s.io": (
        name_column(),
        column("Node", at("spec", "nodeName")),
        column("Driver", at("spec", "driver")),
        column("Pool", at("spec", "pool", "name")),
        age_column(),
    ),
}


def _bare_containers(obj: Json) -> list[Json]:
    found: list[Json] = (obj.get("template") or {}).get("spec", {}).get("containers") or []
    return found


def _bare_metadata(obj: Json) -> Json:
    found: Json = (obj.get("template") or {}).get("metadata") or {}
    return found
