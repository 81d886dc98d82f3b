"""Objects for pods with devices: a class, slices with eight devices each, a claim per pod."""

from __future__ import annotations

from typing import Any, TypeAlias

from simcluster.kubelet.nodes import NUM_BENCH_ZONES, ZONE

Json: TypeAlias = dict[str, Any]

DRIVER = "gpu.example.com"
_OTHER_DRIVER = "other.example.com"
CLASS = "gpu"
DEVICES_PER_NODE = 8
CLAIMS_PER_NODE = DEVICES_PER_NODE // 2
"""Pods ask for a model that half of the devices have."""
_API_VERSION = "resource.k8s.io/v1"
TEMPLATE = "one-gpu"
_CLAIM = "gpu"
_MODELS = ("a100", "h100")


def device_class() -> Json:
    """The class of all devices of the driver."""
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    return {
        "apiVersion": _API_VERSION,
        "kind": "DeviceClass",
        "metadata": {"name": CLASS},
        "spec": {"selectors": [selector]},
    }


def resource_slice(node_name: str) -> Json:
    """The devices of a node."""
    devices = [
        {
            "name": f"gpu-{index}",
            "attributes": {
                "model": {"string": _MODELS[index // CLAIMS_PER_NODE]},
                "index": {"int": index},
                "driverVersion": {"version": "1.2.0"},
            },
            "capacity": {"memory": {"value": "80Gi"}},
        }
        for index in range(DEVICES_PER_NODE)
    ]
    return {
        "apiVersion": _API_VERSION,
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node_name}-{DRIVER}", "uid": f"uid-slice-{node_name}"},
        "spec": {
            "driver": DRIVER,
            "pool": {"name": node_name, "generation": 1, "resourceSliceCount": 1},
            "nodeName": node_name,
            "devices": devices,
        },
    }


def other_slice(node_name: str) -> Json:
    """Devices of a node that the claims do not ask for."""
    made = resource_slice(node_name)
    made["metadata"] = {"name": f"{node_name}-{_OTHER_DRIVER}", "uid": f"uid-other-{node_name}"}
    made["spec"]["driver"] = _OTHER_DRIVER
    return made


def network_slice(number: int) -> Json:
    """Devices that all nodes of a zone can use."""
    pool, zone = f"rack-{number:05d}", f"zone{number % NUM_BENCH_ZONES}"
    made = resource_slice(pool)
    requirement = {"key": ZONE, "operator": "In", "values": [zone]}
    del made["spec"]["nodeName"]
    made["spec"]["nodeSelector"] = {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}
    return made


def claim_template(namespace: str) -> Json:
    """The template of the claims: one device by class and by a selector on an attribute."""
    return {
        "apiVersion": _API_VERSION,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": TEMPLATE, "namespace": namespace},
        "spec": {"spec": _claim_spec()},
    }


def asking_for_device(pod: Json) -> Json:
    """A pod with a claim of the template."""
    claim = {"name": _CLAIM, "resourceClaimTemplateName": TEMPLATE}
    return {**pod, "spec": {**pod["spec"], "resourceClaims": [claim]}}


def with_device(pod: Json) -> Json:
    """A pod that uses the claim that was made for it from a template."""
    status = {"name": _CLAIM, "resourceClaimName": claim_name(pod["metadata"]["name"])}
    asking = asking_for_device(pod)
    return {**asking, "status": {**pod.get("status", {}), "resourceClaimStatuses": [status]}}


def claim_name(pod_name: str) -> str:
    """The name of the claim of a pod."""
    return f"{pod_name}-{_CLAIM}"


def resource_claim(namespace: str, pod_name: str, pod_uid: str) -> Json:
    """The claim of a pod, as the claim controller makes it from the template."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod_name, "uid": pod_uid}
    return {
        "apiVersion": _API_VERSION,
        "kind": "ResourceClaim",
        "metadata": {
            "name": claim_name(pod_name),
            "namespace": namespace,
            "uid": f"uid-{claim_name(pod_name)}",
            "resourceVersion": "1",
            "ownerReferences": [{**owner, "controller": True}],
        },
        "spec": _claim_spec(),
    }


def _claim_spec() -> Json:
    expression = f'device.attributes["{DRIVER}"].model == "{_MODELS[0]}"'
    exactly = {
        "deviceClassName": CLASS,
        "allocationMode": "ExactCount",
        "count": 1,
        "selectors": [{"cel": {"expression": expression}}],
    }
    return {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
