"""The fields the API server fills into a pod, or into a workload's pod template."""

from collections.abc import Callable
from typing import Any

from stowage.api.values.quantity import quantity_milli_value

from simcluster.apiserver.errors import bad_request
from simcluster.kinds.pod_resources import default_pod_resources
from simcluster.schema.scalars import QUANTITY_FORM, canonical_quantity

Json = dict[str, Any]

_TERMINATION_LOG = "/dev/termination-log"
_SUPPORTED_QOS = ("cpu", "memory")


def canonical_quantities(holder: Json | None, *keys: str) -> None:
    """Rewrite the quantities of ``holder``'s maps as the server stores them (``1000m`` to ``1``).

    Raises:
        ApiError: 400, a quantity cannot be parsed.
    """
    for key in keys:
        amounts = (holder or {}).get(key)
        if not amounts:
            continue
        for name, amount in amounts.items():
            canonical = canonical_quantity(amount)
            if canonical is None:
                raise bad_request(f"{key}.{name}: quantity {amount!r}: {QUANTITY_FORM}")
            amounts[name] = canonical


def set_pod_spec_defaults(spec: Json) -> None:
    """Fill a pod spec, of a pod or of a template."""
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    if account := spec.get("serviceAccountName") or spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for container in _containers(spec):
        _set_container_defaults(container)
    for volume in spec.get("volumes") or ():
        _set_volume_defaults(volume)
    canonical_quantities(spec, "overhead")
    canonical_quantities(spec.get("resources"), "requests", "limits")


def set_pod_defaults(pod: Json) -> None:
    """Fill a pod; its spec, if it has one, must be an object."""
    spec = pod.setdefault("spec", {})
    set_pod_spec_defaults(spec)
    spec.setdefault("enableServiceLinks", True)
    for container in _containers(spec):
        _default_requests_from_limits(container["resources"])
        if spec.get("hostNetwork"):
            _default_host_ports(container)
    if spec.get("resources"):
        default_pod_resources(spec)


def _containers(spec: Json) -> list[Json]:
    return [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]


def _default_host_ports(container: Json) -> None:
    for port in container.get("ports") or ():
        if not port.get("hostPort") and "containerPort" in port:
            port["hostPort"] = port["containerPort"]


def _set_container_defaults(container: Json) -> None:
    container.setdefault("resources", {})
    container.setdefault("terminationMessagePath", _TERMINATION_LOG)
    container.setdefault("terminationMessagePolicy", "File")
    container.setdefault("imagePullPolicy", _pull_policy(container.get("image") or ""))
    canonical_quantities(container["resources"], "requests", "limits")
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(probe):
            _set_probe_defaults(container[probe])
    for handler in (container.get("lifecycle") or {}).values():
        if isinstance(handler, dict):
            _set_handler_defaults(handler)
    for variable in container.get("env") or ():
        field_ref = (variable.get("valueFrom") or {}).get("fieldRef")
        if field_ref:
            field_ref.setdefault("apiVersion", "v1")


def _pull_policy(image: str) -> str:
    name = image.rsplit("/", 1)[-1]
    is_latest = "@" not in name and (":" not in name or name.endswith(":latest"))
    return "Always" if is_latest else "IfNotPresent"


def _set_probe_defaults(probe: Json) -> None:
    probe.setdefault("timeoutSeconds", 1)
    probe.setdefault("periodSeconds", 10)
    probe.setdefault("successThreshold", 1)
    probe.setdefault("failureThreshold", 3)
    _set_handler_defaults(probe)


def _set_handler_defaults(handler: Json) -> None:
    if handler.get("httpGet"):
        handler["httpGet"].setdefault("path", "/")
        handler["httpGet"].setdefault("scheme", "HTTP")
    if handler.get("grpc"):
        handler["grpc"].setdefault("service", "")


def _default_requests_from_limits(resources: Json) -> None:
    limits = resources.get("limits")
    if limits:
        requests = resources.setdefault("requests", {})
        for name, amount in limits.items():
            requests.setdefault(name, amount)


def _filled(**defaults: Any) -> Callable[[Json], None]:
    """Sets fields that are not set."""

    def fill(source: Json) -> None:
        for key, value in defaults.items():
            if not source.get(key):
                source[key] = value

    return fill


def _mode(volume: Json) -> None:
    volume.setdefault("defaultMode", 420)


def _host_path(volume: Json) -> None:
    volume.setdefault("type", "")


def _image(volume: Json) -> None:
    volume.setdefault("pullPolicy", _pull_policy(volume.get("reference") or ""))


def _azure_disk(volume: Json) -> None:
    for key, value in (
        ("cachingMode", "ReadWrite"),
        ("kind", "Shared"),
        ("fsType", "ext4"),
        ("readOnly", False),
    ):
        volume.setdefault(key, value)


def _projected(volume: Json) -> None:
    _mode(volume)
    for source in volume.get("sources") or ():
        token = source.get("serviceAccountToken")
        if token is not None:
            token.setdefault("expirationSeconds", 3600)
        _field_references(source.get("downwardAPI") or {})


def _field_references(source: Json) -> None:
    for item in source.get("items") or ():
        if item.get("fieldRef"):
            item["fieldRef"].setdefault("apiVersion", "v1")


def _downward(volume: Json) -> None:
    _mode(volume)
    _field_references(volume)


def _ephemeral(volume: Json) -> None:
    template = volume.setdefault("volumeClaimTemplate", {})
    template.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


_VOLUME_DEFAULTS: dict[str, Callable[[Json], None]] = {
    "configMap": _mode,
    "secret": _mode,
    "downwardAPI": _downward,
    "ephemeral": _ephemeral,
    "projected": _projected,
    "hostPath": _host_path,
    "image": _image,
    "azureDisk": _azure_disk,
    "iscsi": _filled(iscsiInterface="default"),
    "rbd": _filled(pool="rbd", user="admin", keyring="/etc/ceph/keyring"),
    "scaleIO": _filled(storageMode="ThinProvisioned", fsType="xfs"),
}


def _set_volume_defaults(volume: Json) -> None:
    if len(volume) == 1:
        volume["emptyDir"] = {}
    for source, set_defaults in _VOLUME_DEFAULTS.items():
        if isinstance(volume.get(source), dict):
            set_defaults(volume[source])


def qos_class(spec: Json) -> str:
    """Guaranteed, Burstable or BestEffort, from cpu and memory of the pod or its containers."""
    any_set, all_guaranteed = False, True
    whole = spec.get("resources")
    for holder in [spec] if whole and any(whole.values()) else _containers(spec):
        resources = holder.get("resources") or {}
        requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
        for name in _SUPPORTED_QOS:
            request = _amount(requests.get(name))
            limit = _amount(limits.get(name))
            any_set = any_set or request > 0 or limit > 0
            all_guaranteed = all_guaranteed and 0 < limit == request
    if not any_set:
        return "BestEffort"
    return "Guaranteed" if all_guaranteed else "Burstable"


def _amount(text: str | None) -> int:
    return quantity_milli_value(text) if text else 0
