"""The kinds with few rules: nodes, services, configuration, budgets, classes, leases, storage."""

import ipaddress
from typing import Any

from simcluster.apiserver.errors import (
    FieldError,
    duplicate_value,
    forbidden_field,
    invalid_value,
    required,
    too_long,
    unsupported_value,
)
from simcluster.validation import names
from simcluster.validation.containers import validate_port_or_name
from simcluster.validation.resources import validate_amounts
from simcluster.validation.selectors import validate_label_selector, validate_taints
from simcluster.validation.workloads import validate_count_or_percent

Json = dict[str, Any]

_MAX_DATA = 1024 * 1024
_IMMUTABLE = "field is immutable"
_IMMUTABLE_WHEN_SET = "field is immutable when `immutable` is set"
_NO_CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_USER_PRIORITY_MAX = 1_000_000_000
_SYSTEM_CLASSES = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}


def validate_node(node: Json) -> list[FieldError]:
    """Errors of a Node."""
    found = validate_taints(node["spec"].get("taints") or [], "metadata.taints")
    for position, cidr in enumerate(node["spec"].get("podCIDRs") or ()):
        if not _is_cidr(cidr):
            found.append(invalid_value(f"spec.podCIDRs[{position}]", cidr, _NO_CIDR))
    for field in ("capacity", "allocatable"):
        amounts = (node.get("status") or {}).get(field) or {}
        found += validate_amounts(amounts, f"status.{field}")
    return found


def _is_cidr(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return "/" in text


def validate_node_update(new: Json, old: Json) -> list[FieldError]:
    """Errors of a changed Node."""
    found = validate_node(new)
    spec, before = new["spec"], old["spec"]
    for field, name in (("podCIDRs", "podCIDR"), ("providerID", "providerID")):
        if before.get(field) and spec.get(field) != before[field]:
            detail = f'node updates may not change {name} except from "" to valid'
            found.append(forbidden_field(f"spec.{field}", detail))
    return found


def validate_config_map(config_map: Json) -> list[FieldError]:
    """Errors of a ConfigMap."""
    data, binary = config_map.get("data") or {}, config_map.get("binaryData") or {}
    found = _validate_keys(data, "data")
    for key in data:
        if key in binary:
            found.append(
                invalid_value(f"data[{key}]", key, "duplicate of key present in binaryData")
            )
    found += _validate_keys(binary, "binaryData")
    if _data_size(data, binary) > _MAX_DATA:
        found.append(too_long("[]", _MAX_DATA))
    return found


def _validate_keys(data: Json, path: str) -> list[FieldError]:
    return [
        invalid_value(f"{path}[{key}]", key, message)
        for key in data
        for message in names.config_key(key)
    ]


def _data_size(text: Json, binary: Json) -> int:
    return sum(len(value.encode()) for value in text.values()) + sum(
        len(value) * 3 // 4 for value in binary.values()
    )


def validate_config_map_update(new: Json, old: Json) -> list[FieldError]:
    """Errors of a changed ConfigMap; one that is immutable stays as it is."""
    return _validate_immutable(new, old, ("data", "binaryData")) + validate_config_map(new)


def _validate_immutable(new: Json, old: Json, fields: tuple[str, ...]) -> list[FieldError]:
    if not old.get("immutable"):
        return []
    found = []
    if not new.get("immutable"):
        found.append(forbidden_field("immutable", _IMMUTABLE_WHEN_SET))
    return found + [
        forbidden_field(field, _IMMUTABLE_WHEN_SET)
        for field in fields
        if (new.get(field) or {}) != (old.get(field) or {})
    ]


def validate_secret(secret: Json) -> list[FieldError]:
    """Errors of a Secret."""
    data = secret.get("data") or {}
    found = _validate_keys(data, "data")
    if _data_size({}, data) > _MAX_DATA:
        found.append(too_long("data", _MAX_DATA))
    if secret.get("type") == "kubernetes.io/dockerconfigjson" and ".dockerconfigjson" not in data:
        found.append(required("data[.dockerconfigjson]"))
    if secret.get("type") == "kubernetes.io/tls":
        found += [required(f"data[{key}]") for key in ("tls.crt", "tls.key") if key not in data]
    return found


def validate_secret_update(new: Json, old: Json) -> list[FieldError]:
    """Errors of a changed Secret; its type is fixed."""
    found = []
    if new.get("type") != old.get("type"):
        found.append(invalid_value("type", new.get("type"), _IMMUTABLE))
    return found + _validate_immutable(new, old, ("data",)) + validate_secret(new)


_SERVICE_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOLS = ("SCTP", "TCP", "UDP")


def validate_service(service: Json) -> list[FieldError]:
    """Errors of a Service."""
    spec = service["spec"]
    kind, ports = spec.get("type", "ClusterIP"), spec.get("ports") or []
    found: list[FieldError] = []
    if not ports and kind != "ExternalName" and spec.get("clusterIP") != "None":
        found.append(required("spec.ports"))
    if kind == "ExternalName" and not spec.get("externalName"):
        found.append(required("spec.externalName"))
    found += _validate_service_ports(ports)
    affinity = spec.get("sessionAffinity", "None")
    if affinity not in {"None", "ClientIP"}:
        found.append(unsupported_value("spec.sessionAffinity", affinity, ("ClientIP", "None")))
    if kind not in _SERVICE_TYPES:
        found.append(unsupported_value("spec.type", kind, _SERVICE_TYPES))
    return found


def _validate_service_ports(ports: list[Json]) -> list[FieldError]:
    found: list[FieldError] = []
    named: set[str] = set()
    numbers: set[tuple[int, str]] = set()
    for position, port in enumerate(ports):
        path, name = f"spec.ports[{position}]", port.get("name", "")
        if not name and len(ports) > 1:
            found.append(required(f"{path}.name"))
        elif name:
            found += [invalid_value(f"{path}.name", name, each) for each in names.dns_label(name)]
            if name in named:
                found.append(duplicate_value(f"{path}.name", name))
        named.add(name)
        number, protocol = port.get("port", 0), port.get("protocol", "TCP")
        found += [invalid_value(f"{path}.port", number, each) for each in names.port_number(number)]
        if protocol not in _PROTOCOLS:
            found.append(unsupported_value(f"{path}.protocol", protocol, _PROTOCOLS))
        found += validate_port_or_name(port.get("targetPort") or number, f"{path}.targetPort")
        if (number, protocol) in numbers:
            shown = {"protocol": protocol, "port": number, "targetPort": 0}
            found.append(duplicate_value(path, shown))
        numbers.add((number, protocol))
    return found


def validate_service_update(new: Json, old: Json) -> list[FieldError]:
    """Errors of a changed Service; its address is fixed."""
    found: list[FieldError] = []
    before, address = old["spec"].get("clusterIP"), new["spec"].get("clusterIP")
    keeps = "ExternalName" not in {new["spec"].get("type"), old["spec"].get("type")}
    if keeps and before and address != before:
        found.append(
            invalid_value(
                "spec.clusterIPs[0]", [address] if address else None, "may not change once set"
            )
        )
    return found + validate_service(new)


def validate_budget(budget: Json) -> list[FieldError]:
    """Errors of a PodDisruptionBudget."""
    spec = budget.get("spec") or {}
    found: list[FieldError] = []
    if "minAvailable" in spec and "maxUnavailable" in spec:
        shown = {"minAvailable": spec["minAvailable"], "maxUnavailable": spec["maxUnavailable"]}
        detail = "minAvailable and maxUnavailable cannot be both set"
        found.append(invalid_value("spec", shown, detail))
    for field in ("minAvailable", "maxUnavailable"):
        if field in spec:
            found += validate_count_or_percent(spec[field], f"spec.{field}")
    policy, known = spec.get("unhealthyPodEvictionPolicy"), ("AlwaysAllow", "IfHealthyBudget")
    if policy is not None and policy not in known:
        found.append(unsupported_value("spec.unhealthyPodEvictionPolicy", policy, known))
    return found + validate_label_selector(spec.get("selector"), "spec.selector")


def validate_priority_class(priority_class: Json) -> list[FieldError]:
    """Errors of a PriorityClass."""
    name, value = priority_class["metadata"].get("name", ""), priority_class.get("value", 0)
    found: list[FieldError] = []
    if name.startswith("system-"):
        if _SYSTEM_CLASSES.get(name) != value:
            detail = (
                "priority class names with 'system-' prefix are reserved for system use only. "
                f"error: {_why_not_system(name)}"
            )
            found.append(forbidden_field("metadata.name", detail))
    elif value > _USER_PRIORITY_MAX:
        detail = f"maximum allowed value of a user defined priority is {_USER_PRIORITY_MAX}"
        found.append(forbidden_field("value", detail))
    policy, known = priority_class.get("preemptionPolicy"), ("PreemptLowerPriority", "Never")
    if policy is not None and policy not in known:
        found.append(unsupported_value("preemptionPolicy", policy, known))
    return found


def _why_not_system(name: str) -> str:
    expected = _SYSTEM_CLASSES.get(name)
    if expected is None:
        return f"{name} is not a known system priority class"
    return f"value of {name} PriorityClass must be {expected}"


def validate_priority_class_update(new: Json, old: Json) -> list[FieldError]:
    """Errors of a changed PriorityClass; its priority is fixed."""
    found = []
    if new.get("value") != old.get("value"):
        found.append(forbidden_field("value", "may not be changed in an update."))
    if new.get("preemptionPolicy") != old.get("preemptionPolicy"):
        value = new.get("preemptionPolicy")
        found.append(invalid_value("preemptionPolicy", value, _IMMUTABLE))
    return found


def validate_lease(lease: Json) -> list[FieldError]:
    """Errors of a Lease."""
    spec = lease.get("spec") or {}
    found = []
    if spec.get("leaseDurationSeconds", 1) <= 0:
        detail = "must be greater than 0"
        value = spec["leaseDurationSeconds"]
        found.append(invalid_value("spec.leaseDurationSeconds", value, detail))
    if spec.get("leaseTransitions", 0) < 0:
        detail = "must be greater than or equal to 0"
        found.append(invalid_value("spec.leaseTransitions", spec["leaseTransitions"], detail))
    return found


_BINDING_MODES = ("Immediate", "WaitForFirstConsumer")


def validate_storage_class(storage_class: Json) -> list[FieldError]:
    """Errors of a StorageClass."""
    found: list[FieldError] = []
    if not storage_class.get("provisioner"):
        found.append(required("provisioner"))
    policy, known = storage_class.get("reclaimPolicy", "Delete"), ("Delete", "Retain")
    if policy not in known:
        found.append(unsupported_value("reclaimPolicy", policy, known))
    mode = storage_class.get("volumeBindingMode", "Immediate")
    if mode not in _BINDING_MODES:
        found.append(unsupported_value("volumeBindingMode", mode, _BINDING_MODES))
    return found


def validate_storage_class_update(new: Json, old: Json) -> list[FieldError]:
    """Errors of a changed StorageClass; how it makes volumes is fixed."""
    found = validate_storage_class(new)
    if (new.get("parameters") or {}) != (old.get("parameters") or {}):
        found.append(forbidden_field("parameters", "updates to parameters are forbidden."))
    if new.get("provisioner") != old.get("provisioner"):
        found.append(forbidden_field("provisioner", "updates to provisioner are forbidden."))
    if new.get("reclaimPolicy") != old.get("reclaimPolicy"):
        found.append(forbidden_field("reclaimPolicy", "updates to reclaimPolicy are forbidden."))
    if new.get("volumeBindingMode") != old.get("volumeBindingMode"):
        value = new.get("volumeBindingMode")
        found.append(invalid_value("volumeBindingMode", value, _IMMUTABLE))
    return found


def validate_attachment(attachment: Json) -> list[FieldError]:
    """Errors of a VolumeAttachment."""
    spec = attachment.get("spec") or {}
    found = [required(f"spec.{field}") for field in ("attacher", "nodeName") if not spec.get(field)]
    source = spec.get("source") or {}
    if not source.get("persistentVolumeName") and "inlineVolumeSpec" not in source:
        found.append(
            required(
                "spec.source",
                "must specify exactly one of inlineVolumeSpec and persistentVolumeName",
            )
        )
    return found


def validate_attachment_update(new: Json, old: Json) -> list[FieldError]:
    """Errors of a changed VolumeAttachment; its spec is fixed."""
    if (new.get("spec") or {}) == (old.get("spec") or {}):
        return []
    return [invalid_value("spec", new.get("spec"), _IMMUTABLE)]


def validate_capacity(capacity: Json) -> list[FieldError]:
    """Errors of a CSIStorageCapacity."""
    if not capacity.get("storageClassName"):
        return [required("storageClassName")]
    return []


def validate_csi_node(node: Json) -> list[FieldError]:
    """Errors of a CSINode."""
    found: list[FieldError] = []
    seen: set[str] = set()
    for position, driver in enumerate((node.get("spec") or {}).get("drivers") or ()):
        path, name = f"spec.drivers[{position}]", driver.get("name", "")
        if not name:
            found.append(required(f"{path}.name"))
        elif name in seen:
            found.append(duplicate_value(f"{path}.name", name))
        seen.add(name)
        if not driver.get("nodeID"):
            found.append(required(f"{path}.nodeID"))
    return found
