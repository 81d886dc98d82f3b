"""Device classes, slices and claims for tests over HTTP."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
DRIVER = "gpu.example.com"
CLASS = "gpu"
RESOURCE = "example.com/gpu"
"""The extended resource that the class serves."""
DEVICES_PER_NODE = 2


def device_class() -> Json:
    """The class of all devices of the driver."""
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    spec = {"selectors": [selector], "extendedResourceName": RESOURCE}
    return {"metadata": {"name": CLASS}, "spec": spec}


def device_slice(node: str) -> Json:
    """The devices of a node; those with an even number are of the model that claims ask for."""
    models = ["a100", "t4"] * DEVICES_PER_NODE
    return {
        "metadata": {"name": f"{node}-gpus"},
        "spec": {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [
                {"name": f"gpu-{number}", "attributes": {"model": {"string": model}}}
                for number, model in enumerate(models)
            ],
        },
    }


def device_claim(name: str) -> Json:
    """A claim for one device, by class and by a selector on an attribute."""
    expression = f'device.attributes["{DRIVER}"].model == "a100"'
    exactly = {"deviceClassName": CLASS, "selectors": [{"cel": {"expression": expression}}]}
    return {
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
    }


def stale_extended_claim(pod: Json) -> Json:
    """The claim for a pod's extended resources that an earlier attempt has created."""
    metadata = pod["metadata"]
    owner = {"apiVersion": "v1", "kind": "Pod", "controller": True}
    owner |= {name: metadata[name] for name in ("name", "uid")}
    found = device_claim(f"{metadata['name']}-extended")
    found["metadata"] |= {
        "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
        "ownerReferences": [owner],
    }
    return found
