"""Defaults of pods and of pod templates."""

from simcluster.kinds.defaults.filling import QUANTITIES, UNSET, defaulting
from simcluster.kinds.defaults.pod_resources import default_pod_resources
from simcluster.values import Json
from stowage.api.values.quantity import quantity_milli_value


def _pull_policy(image: str) -> str:
    name = image.rsplit("/", 1)[-1]
    is_latest = "@" not in name and (":" not in name or name.endswith(":latest"))
    return "Always" if is_latest else "IfNotPresent"


def _empty_dir(volume: Json) -> object:
    """The source of a volume that has only a name."""
    return {} if len(volume) == 1 else UNSET


def _name_account(spec: Json) -> None:
    """``serviceAccount`` is the old name of ``serviceAccountName``."""
    if account := spec.get("serviceAccountName") or spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"] = account


_HANDLER = {"httpGet?": {"path": "/", "scheme": "HTTP"}, "grpc?": {"service": ""}}
_PROBE = {
    "timeoutSeconds": 1,
    "periodSeconds": 10,
    "successThreshold": 1,
    "failureThreshold": 3,
    **_HANDLER,
}
_FIELD_REF = {"fieldRef?": {"apiVersion": "v1"}}
_AMOUNTS = {"requests": QUANTITIES, "limits": QUANTITIES}
_CONTAINER = {
    "resources": _AMOUNTS,
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "imagePullPolicy": lambda container: _pull_policy(container.get("image") or ""),
    "ports[]": {"protocol": "TCP"},
    "livenessProbe?": _PROBE,
    "readinessProbe?": _PROBE,
    "startupProbe?": _PROBE,
    "lifecycle?": {"postStart?": _HANDLER, "preStop?": _HANDLER},
    "env[]": {"valueFrom?": _FIELD_REF},
}
_MODE = {"defaultMode": 420}
_VOLUME = {
    "emptyDir": _empty_dir,
    "configMap?": _MODE,
    "secret?": _MODE,
    "downwardAPI?": {**_MODE, "items[]": _FIELD_REF},
    "ephemeral?": {"volumeClaimTemplate": {"spec": {"volumeMode": "Filesystem"}}},
    "projected?": {
        **_MODE,
        "sources[]": {
            "serviceAccountToken?": {"expirationSeconds": 3600},
            "downwardAPI?": {"items[]": _FIELD_REF},
        },
    },
    "hostPath?": {"type": ""},
    "image?": {"pullPolicy": lambda image: _pull_policy(image.get("reference") or "")},
    "azureDisk?": {
        "cachingMode": "ReadWrite",
        "kind": "Shared",
        "fsType": "ext4",
        "readOnly": False,
    },
    "iscsi?": {"iscsiInterface": "default"},
    "rbd?": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "scaleIO?": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}
_SPEC = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "securityContext": {},
    "schedulerName": "default-scheduler",
    "": _name_account,
    "initContainers[]": _CONTAINER,
    "containers[]": _CONTAINER,
    "volumes[]": _VOLUME,
    "overhead": QUANTITIES,
    "resources?": _AMOUNTS,
}
TEMPLATE = {"template": {"metadata": {}, "spec": _SPEC}}
"""Fields of the spec of everything that makes pods."""


def _containers(spec: Json) -> list[Json]:
    return [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]


def _complete(pod: Json) -> None:
    """Fill the requests by the limits, and the ports of a pod in its node's network."""
    spec = pod["spec"]
    for container in _containers(spec):
        resources = container["resources"]
        if limits := resources.get("limits"):
            requests = resources.setdefault("requests", {})
            requests |= {name: limits[name] for name in limits if name not in requests}
        for port in container.get("ports") or () if spec.get("hostNetwork") else ():
            if not port.get("hostPort") and "containerPort" in port:
                port["hostPort"] = port["containerPort"]
    if spec.get("resources"):
        default_pod_resources(spec)


set_pod_defaults = defaulting({"spec": {**_SPEC, "enableServiceLinks": True}}, _complete)


def qos_class(spec: Json) -> str:
    """Guaranteed, Burstable or BestEffort, from cpu and memory of the pod or its containers."""
    any_set, all_guaranteed = False, True
    whole = spec.get("resources")
    for holder in [spec] if whole and any(whole.values()) else _containers(spec):
        resources = holder.get("resources") or {}
        requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
        for name in ("cpu", "memory"):
            request = quantity_milli_value(requests.get(name) or "0")
            limit = quantity_milli_value(limits.get(name) or "0")
            any_set = any_set or request > 0 or limit > 0
            all_guaranteed = all_guaranteed and 0 < limit == request
    if not any_set:
        return "BestEffort"
    return "Guaranteed" if all_guaranteed else "Burstable"
