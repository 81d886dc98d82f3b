"""The cells of built-in kinds other than pods that show more than one value of an object.

``columns.json`` names these functions. A function gets the value at its column's path, or the whole
object if the column has no path.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from simcluster.clock import parse_timestamp
from simcluster.printing.cells import (
    NONE,
    UNKNOWN,
    UNSET,
    Cell,
    cell,
    cell_of_all,
    elapsed,
    human_duration,
    listed,
    timed_cell,
)

Json = dict[str, Any]
Values = Sequence[Json] | None

_ROLE_PREFIX = "node-role.kubernetes.io/"
_DEFAULT_CLASS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_ACCESS_MODES: Mapping[str, str] = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_JOB_CONDITIONS = ("Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet")


def _status(obj: Json) -> Json:
    found: Json = obj.get("status") or {}
    return found


def _joined(separator: str, *parts: str | None) -> str:
    return separator.join(filter(None, parts))


# Nodes


@cell
def node_status(node: Json) -> str:
    """Whether the node is ready and takes pods."""
    conditions = _status(node).get("conditions") or ()
    ready = next((found for found in conditions if found.get("type") == "Ready"), None)
    word = "Unknown" if ready is None else "NotReady"
    if ready is not None and ready.get("status") == "True":
        word = "Ready"
    unschedulable = (node.get("spec") or {}).get("unschedulable")
    return f"{word},SchedulingDisabled" if unschedulable else word


@cell
def node_roles(labels: Json | None) -> str:
    """The roles that the labels name."""
    labels = labels or {}
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    roles.add(labels.get("kubernetes.io/role", ""))
    return ",".join(sorted(filter(None, roles))) or NONE


# Events


@cell
def event_source(event: Json) -> str:
    """The component and host that reported the event."""
    source = event.get("source") or {}
    component = source.get("component") or event.get("reportingComponent") or ""
    host = source.get("host") or event.get("reportingInstance") or ""
    return f"{component}, {host}" if host and host != component else component


@cell
def event_object(involved: Json | None) -> str:
    """The object that the event is about."""
    involved = involved or {}
    return _joined("/", involved.get("kind", "").lower(), involved.get("name", ""))


@timed_cell
def event_last_seen(event: Json, now: float) -> str:
    """The time since the last occurrence, and the number of occurrences."""
    last, count = event.get("lastTimestamp") or event.get("eventTime"), event.get("count", 0)
    if series := event.get("series"):
        last, count = series.get("lastObservedTime"), series.get("count", 0)
    if count > 1:
        return f"{elapsed(last, now)} (x{count} over {event_first_seen(event, now)})"
    return elapsed(last, now)


@timed_cell
def event_first_seen(event: Json, now: float) -> str:
    """The time since the first occurrence."""
    return elapsed(event.get("firstTimestamp") or event.get("eventTime"), now)


@cell
def event_count(event: Json) -> int:
    """The number of occurrences."""
    series = event.get("series") or {}
    return int(series.get("count") or event.get("count") or 1)


# Workloads


@cell
def ready_of_desired(workload: Json) -> str:
    """Ready replicas of desired replicas."""
    return f"{_status(workload).get('readyReplicas', 0)}/{workload['spec'].get('replicas', 0)}"


@cell
def job_status(job: Json) -> str:
    """The condition that holds."""
    conditions = _status(job).get("conditions") or ()
    true = {found["type"] for found in conditions if found.get("status") == "True"}
    if job["metadata"].get("deletionTimestamp") and not true & {"Complete", "Failed"}:
        return "Terminating"
    return next((kind for kind in _JOB_CONDITIONS if kind in true), "Running")


@cell
def job_completions(job: Json) -> str:
    """Succeeded pods of wanted completions."""
    spec, succeeded = job["spec"], _status(job).get("succeeded", 0)
    if spec.get("completions") is not None:
        return f"{succeeded}/{spec['completions']}"
    parallelism = spec.get("parallelism", 0)
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


@timed_cell
def job_duration(job: Json, now: float) -> str:
    """The time from the start to the completion, or to now."""
    status = _status(job)
    if not status.get("startTime"):
        return ""
    ended = status.get("completionTime")
    until = parse_timestamp(ended) if ended else now
    return human_duration(until - parse_timestamp(status["startTime"]))


@cell
def controller(owners: Values) -> str:
    """The controlling owner."""
    owner = next((found for found in owners or () if found.get("controller")), None)
    if owner is None:
        return NONE
    group = owner["apiVersion"].rpartition("/")[0]
    return f"{_joined('.', owner['kind'].lower(), group)}/{owner['name']}"


@cell
def metric_targets(metrics: Values) -> str:
    """The target of each metric; nothing here measures the current value."""
    found = []
    for metric in metrics or ():
        resource = metric.get("resource") or {}
        target = resource.get("target") or {}
        share = target.get("averageUtilization")
        wanted = f"{share}%" if share else target.get("averageValue") or UNKNOWN
        found.append(f"{resource.get('name', metric['type'])}: {UNKNOWN}/{wanted}")
    return ", ".join(found) or NONE


# Services and networking


@cell
def service_ports(ports: Values) -> str:
    """Ports with their node ports and protocols."""
    found = []
    for port in ports or ():
        node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
        found.append(f"{port['port']}{node_port}/{port.get('protocol')}")
    return ",".join(found) or NONE


@cell
def external_addresses(service: Json) -> str:
    """Addresses outside of the cluster."""
    spec = service["spec"]
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName") or NONE)
    given = ",".join(spec.get("externalIPs") or ())
    if spec.get("type") != "LoadBalancer":
        return given or NONE
    balancer = _status(service).get("loadBalancer") or {}
    return _joined(",", _addresses(balancer.get("ingress")), given) or "<pending>"


@cell
def balancer_addresses(ingress: Values) -> str:
    """IPs or hostnames of a load balancer."""
    return _addresses(ingress)


def _addresses(ingress: Values) -> str:
    return _joined(",", *(each.get("ip") or each.get("hostname") for each in ingress or ()))


@cell
def endpoints(subsets: Values) -> str:
    """Addresses and ports of all subsets."""
    return listed(
        [
            f"{address['ip']}:{port['port']}"
            for subset in subsets or ()
            for port in subset.get("ports") or ()
            for address in subset.get("addresses") or ()
        ]
    )


@cell
def slice_ports(ports: Values) -> str:
    """Port numbers."""
    return listed([str(port.get("port", "*")) for port in ports or ()], UNSET)


@cell
def slice_endpoints(found: Values) -> str:
    """Addresses of all endpoints."""
    return listed([address for each in found or () for address in each["addresses"]], UNSET)


@cell_of_all
def hosts(values: list[str]) -> str:
    """Hosts of the rules."""
    return listed(list(filter(None, values)), "*")


@cell
def ingress_ports(tls: Values) -> str:
    """Open ports."""
    return "80, 443" if tls else "80"


@cell
def parameters(found: Json | None) -> str:
    """The object that holds the parameters."""
    if not found:
        return NONE
    return f"{_joined('.', found['kind'], found.get('apiGroup'))}/{found['name']}"


@cell
def parent(reference: Json | None) -> str:
    """The object that an address belongs to."""
    if not reference:
        return UNKNOWN
    kind = _joined(".", reference.get("resource"), reference.get("group"))
    return _joined("/", kind, reference.get("namespace"), reference.get("name"))


# Storage


@cell
def phase(obj: Json) -> str:
    """The phase, or that the object is being deleted."""
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return str(_status(obj).get("phase") or "")


@cell
def access_modes(modes: Sequence[str] | None) -> str:
    """Access modes in their short form."""
    return ",".join(short for mode, short in _ACCESS_MODES.items() if mode in (modes or ()))


@cell
def claim_access_modes(claim: Json) -> Cell:
    """Access modes of a bound claim's volume."""
    return (
        access_modes(_status(claim).get("accessModes")) if claim["spec"].get("volumeName") else ""
    )


@cell
def claim_capacity(claim: Json) -> str:
    """Capacity of a bound claim's volume."""
    if not claim["spec"].get("volumeName"):
        return ""
    return str((_status(claim).get("capacity") or {}).get("storage", ""))


@cell
def storage_class_name(storage_class: Json) -> str:
    """The name, and whether the class is the default."""
    metadata = storage_class["metadata"]
    annotations = metadata.get("annotations") or {}
    is_default = any(annotations.get(key) == "true" for key in _DEFAULT_CLASS)
    return f"{metadata['name']} (default)" if is_default else str(metadata["name"])


@cell
def claim_state(claim: Json) -> str:
    """Whether a resource claim is allocated, reserved or deleted."""
    status, is_going = _status(claim), "deletionTimestamp" in claim["metadata"]
    states = ["deleted"] if is_going else []
    if status.get("allocation"):
        states += ["allocated", *(["reserved"] if status.get("reservedFor") else ())]
    elif not is_going:
        states.append("pending")
    return ",".join(states)


# Configuration and access


@cell
def config_map_size(config_map: Json) -> int:
    """The number of entries."""
    return len(config_map.get("data") or {}) + len(config_map.get("binaryData") or {})


@cell
def quota_requests(status: Json | None) -> str:
    """Used and hard amounts of everything but limits."""
    return _quota(status, are_limits=False)


@cell
def quota_limits(status: Json | None) -> str:
    """Used and hard amounts of limits."""
    return _quota(status, are_limits=True)


def _quota(status: Json | None, *, are_limits: bool) -> str:
    hard, used = (status or {}).get("hard") or {}, (status or {}).get("used") or {}
    names = [name for name in sorted(hard) if name.startswith("limits") is are_limits]
    return ", ".join(f"{name}: {used.get(name, 0)}/{hard[name]}" for name in names)


@cell_of_all
def subjects(values: list[Json]) -> str:
    """Names of the subjects of one kind."""
    return ", ".join(_joined("/", found.get("namespace"), found["name"]) for found in values)


@cell
def param_ref(reference: Json | None) -> str:
    """The object that holds the parameters."""
    if not reference:
        return UNSET
    return _joined("/", reference.get("namespace"), reference.get("name") or "*")


@cell
def availability(condition: Json | None) -> str:
    """The status of a condition, and its reason unless it is true."""
    if condition is None:
        return "Unknown"
    status = str(condition["status"])
    return status if status == "True" else f"{status} ({condition.get('reason', '')})"


@cell
def request_state(status: Json | None) -> str:
    """The state of a certificate signing request."""
    status = status or {}
    conditions = {each["type"] for each in status.get("conditions") or ()}
    words = [word for word in ("Denied", "Approved") if word in conditions][:1] or ["Pending"]
    if "Failed" in conditions:
        words.append("Failed")
    if status.get("certificate"):
        words.append("Issued")
    return ",".join(words)
