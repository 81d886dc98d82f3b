"""Kinds with few rules: nodes, services, configuration, budgets, classes, leases, storage."""

import ipaddress

from simcluster.apiserver import errors
from simcluster.validation import names, rules
from simcluster.validation.containers import port
from simcluster.validation.resources import amounts
from simcluster.validation.rules import Errors, Rule, UpdateRule
from simcluster.validation.selectors import LABEL_SELECTOR, validate_taints
from simcluster.validation.workloads import count_or_percent
from simcluster.values import Json

_MAX_DATA = 1024 * 1024
_USER_PRIORITY_MAX = 1_000_000_000
_SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def _node_spec(node: Json, _path: str) -> Errors:
    yield from validate_taints(node["spec"].get("taints") or [], "metadata.taints")
    for position, cidr in enumerate(node["spec"].get("podCIDRs") or ()):
        try:
            ipaddress.ip_network(cidr if "/" in cidr else "", strict=False)
        except ValueError:
            detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
            yield errors.invalid_value(f"spec.podCIDRs[{position}]", cidr, detail)


def _node_kept(new: Json, old: Json) -> Errors:
    for field, name in (("podCIDRs", "podCIDR"), ("providerID", "providerID")):
        before = old["spec"].get(field)
        if before and new["spec"].get(field) != before:
            detail = f'node updates may not change {name} except from "" to valid'
            yield errors.forbidden_field(f"spec.{field}", detail)


def _distinct_addresses(new: Json, _old: Json) -> Errors:
    seen = []
    for position, address in enumerate((new.get("status") or {}).get("addresses") or ()):
        shown = {"Type": address.get("type", ""), "Address": address.get("address", "")}
        if shown in seen:
            yield errors.duplicate_value(f"status.addresses[{position}]", shown)
        seen.append(shown)


_NODE_RESOURCES = rules.inside("status", amounts("capacity"), amounts("allocatable"))
_NODE_STATUS = rules.validation(_NODE_RESOURCES, after=(_distinct_addresses,))


def validate_node_status(new: Json, old: Json) -> list[errors.FieldError]:
    """Errors of a change to the status of a node."""
    return _NODE_STATUS.update(new, old)


def _keys(field: str) -> Rule:
    def rule(obj: Json, _path: str) -> Errors:
        for key in obj.get(field) or ():
            yield from rules.named(key, names.config_key, f"{field}[{key}]")

    return rule


def _not_in_both(config_map: Json, _path: str) -> Errors:
    for key in config_map.get("data") or ():
        if key in (config_map.get("binaryData") or ()):
            yield errors.invalid_value(
                f"data[{key}]", key, "duplicate of key present in binaryData"
            )


def _size(text: str, binary: str, path: str) -> Rule:
    """A limit for the data of two fields, of which the second is base64."""

    def rule(obj: Json, _path: str) -> Errors:
        size = sum(len(value.encode()) for value in (obj.get(text) or {}).values())
        size += sum(len(value) * 3 // 4 for value in (obj.get(binary) or {}).values())
        if size > _MAX_DATA:
            yield errors.too_long(path, _MAX_DATA)

    return rule


def _secret_type(secret: Json, _path: str) -> Errors:
    keys = {
        "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
        "kubernetes.io/tls": ("tls.crt", "tls.key"),
    }
    for key in keys.get(secret.get("type", ""), ()):
        if key not in (secret.get("data") or {}):
            yield errors.required(f"data[{key}]")


def _immutable_when_set(*fields: str) -> UpdateRule:
    detail = "field is immutable when `immutable` is set"
    kept = [rules.fixed(field, detail, forbidden=True, is_map=True) for field in fields]

    def rule(new: Json, old: Json) -> Errors:
        if not old.get("immutable"):
            return
        if not new.get("immutable"):
            yield errors.forbidden_field("immutable", detail)
        for each_field in kept:
            yield from each_field(new, old)

    return rule


def _has_ports(spec: Json, path: str) -> Errors:
    kind = spec.get("type", "ClusterIP")
    if not spec.get("ports") and kind != "ExternalName" and spec.get("clusterIP") != "None":
        yield errors.required(f"{path}.ports")
    if kind == "ExternalName":
        yield from rules.need("externalName")(spec, path)


def _port_number(port: Json, path: str) -> Errors:
    return rules.named(port.get("port", 0), names.port_number, f"{path}.port")


_SERVICE_PORT = (
    _port_number,
    rules.one_of("protocol", "SCTP", "TCP", "UDP"),
    port("targetPort", fallback="port"),
)


def _service_ports(spec: Json, path: str) -> Errors:
    ports = spec.get("ports") or ()
    distinct = rules.Distinct("name").rule()
    numbers: set[tuple[int, str]] = set()
    for position, entry in enumerate(ports):
        place, name = f"{path}.ports[{position}]", entry.get("name", "")
        if name or len(ports) > 1:
            yield from rules.need_form("name", names.dns_label)(entry, place)
        if name:
            yield from distinct(entry, place)
        yield from rules.check(entry, place, _SERVICE_PORT)
        number, protocol = entry.get("port", 0), entry.get("protocol", "TCP")
        if (number, protocol) in numbers:
            yield errors.duplicate_value(
                place, {"protocol": protocol, "port": number, "targetPort": 0}
            )
        numbers.add((number, protocol))


def _cluster_ip_kept(new: Json, old: Json) -> Errors:
    before, address = old["spec"].get("clusterIP"), new["spec"].get("clusterIP")
    keeps = "ExternalName" not in {new["spec"].get("type"), old["spec"].get("type")}
    if keeps and before and address != before:
        shown = [address] if address else None
        yield errors.invalid_value("spec.clusterIPs[0]", shown, "may not change once set")


def _one_bound(spec: Json, path: str) -> Errors:
    if "minAvailable" in spec and "maxUnavailable" in spec:
        shown = {"minAvailable": spec["minAvailable"], "maxUnavailable": spec["maxUnavailable"]}
        yield errors.invalid_value(
            path, shown, "minAvailable and maxUnavailable cannot be both set"
        )


def _priority(priority_class: Json, _path: str) -> Errors:
    name, value = priority_class["metadata"].get("name", ""), priority_class.get("value", 0)
    if not name.startswith("system-"):
        if value > _USER_PRIORITY_MAX:
            detail = f"maximum allowed value of a user defined priority is {_USER_PRIORITY_MAX}"
            yield errors.forbidden_field("value", detail)
        return
    expected = _SYSTEM_CLASSES.get(name)
    if expected == value:
        return
    why = f"value of {name} PriorityClass must be {expected}"
    if expected is None:
        why = f"{name} is not a known system priority class"
    detail = "priority class names with 'system-' prefix are reserved for system use only. error: "
    yield errors.forbidden_field("metadata.name", detail + why)


def _attachment_source(spec: Json, path: str) -> Errors:
    source = spec.get("source") or {}
    if not source.get("persistentVolumeName") and "inlineVolumeSpec" not in source:
        detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
        yield errors.required(f"{path}.source", detail)


def _parameters_kept(field: str) -> UpdateRule:
    detail = f"updates to {field} are forbidden."
    return rules.fixed(field, detail, forbidden=True, is_map=field == "parameters")


KINDS = {
    "nodes": rules.validation(
        _node_spec,
        _NODE_RESOURCES,
        after=(_distinct_addresses, _node_kept),
    ),
    "configmaps": rules.validation(
        _keys("data"),
        _not_in_both,
        _keys("binaryData"),
        _size("data", "binaryData", "[]"),
        before=(_immutable_when_set("data", "binaryData"),),
    ),
    "secrets": rules.validation(
        _keys("data"),
        _size("", "data", "data"),
        _secret_type,
        before=(rules.fixed("type"), _immutable_when_set("data")),
    ),
    "services": rules.validation(
        rules.inside(
            "spec",
            _has_ports,
            _service_ports,
            rules.one_of("sessionAffinity", "ClientIP", "None"),
            rules.one_of("type", "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"),
        ),
        before=(_cluster_ip_kept,),
    ),
    "poddisruptionbudgets.policy": rules.validation(
        rules.inside(
            "spec",
            _one_bound,
            count_or_percent("minAvailable"),
            count_or_percent("maxUnavailable"),
            rules.one_of("unhealthyPodEvictionPolicy", "AlwaysAllow", "IfHealthyBudget"),
            rules.inside("selector", *LABEL_SELECTOR),
        )
    ),
    "priorityclasses.scheduling.k8s.io": rules.validation(
        _priority,
        rules.one_of("preemptionPolicy", "PreemptLowerPriority", "Never"),
        after=(
            rules.fixed("value", "may not be changed in an update.", forbidden=True),
            rules.fixed("preemptionPolicy"),
        ),
        revalidates=False,
    ),
    "leases.coordination.k8s.io": rules.validation(
        rules.inside(
            "spec",
            rules.holds(
                "leaseDurationSeconds", lambda number: number > 0, "must be greater than 0"
            ),
            *rules.not_negative("leaseTransitions"),
        )
    ),
    "storageclasses.storage.k8s.io": rules.validation(
        rules.need("provisioner"),
        rules.one_of("reclaimPolicy", "Delete", "Retain"),
        rules.one_of("volumeBindingMode", "Immediate", "WaitForFirstConsumer"),
        after=(
            *map(_parameters_kept, ("parameters", "provisioner", "reclaimPolicy")),
            rules.fixed("volumeBindingMode"),
        ),
    ),
    "volumeattachments.storage.k8s.io": rules.validation(
        rules.inside(
            "spec", rules.need("attacher"), rules.need("nodeName"), _attachment_source, always=True
        ),
        after=(rules.fixed("spec", is_map=True),),
        revalidates=False,
    ),
    "csistoragecapacities.storage.k8s.io": rules.validation(rules.need("storageClassName")),
    "csinodes.storage.k8s.io": rules.validation(
        rules.inside(
            "spec",
            rules.each(
                "drivers",
                rules.need("name"),
                rules.Distinct("name", counts_empty=False),
                rules.need("nodeID"),
                rules.inside("allocatable", *rules.not_negative("count")),
            ),
        )
    ),
}
