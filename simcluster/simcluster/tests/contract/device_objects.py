"""The objects of ``resource.k8s.io`` in the contract tests, their paths, and what refusals say."""

from typing import Any

Json = dict[str, Any]

GROUP = "/apis/resource.k8s.io/v1"
CLAIMS = f"{GROUP}/namespaces/default/resourceclaims"
TEMPLATES = f"{GROUP}/namespaces/default/resourceclaimtemplates"
CLASSES = f"{GROUP}/deviceclasses"
SLICES = f"{GROUP}/resourceslices"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
MERGE = "application/merge-patch+json"
REQUESTS = "spec.devices.requests"
NOT_A_REQUEST = (
    "must be the name of a request in the claim or the name of a request and a subrequest "
    "separated by '/'"
)
ONE_KIND = "exactly one of `exactly` or `firstAvailable` is required"
NOT_QUALIFIED = "a fully qualified name must be a domain and a name separated by a slash"
ONE_ATTRIBUTE = (
    'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are '
    "set"
)
NOT_ALLOCATED = "must be an allocated device in the claim"
ADMIN = (
    "admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on "
    "the containing namespace"
)


def request(name: str = "gpu", **exactly: Any) -> Json:
    return {"name": name, "exactly": {"deviceClassName": "gpu.example.com", **exactly}}


def claim(name: str = "c", **devices: Any) -> Json:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [request()], **devices}},
    }


def device_class(**spec: Any) -> Json:
    return {"metadata": {"name": "gpu.example.com"}, "spec": spec}


def device_slice(*devices: Json, **spec: Any) -> Json:
    nodes = {} if spec.keys() & {"allNodes", "perDeviceNodeSelection"} else {"nodeName": "node-1"}
    pool = {"name": "node-1", "generation": 1, "resourceSliceCount": 1}
    listed = {"devices": list(devices)} if devices else {}
    base = {"driver": "gpu.example.com", "pool": pool, **nodes, **listed}
    return {"metadata": {"name": "slice"}, "spec": {**base, **spec}}


def allocation(**result: Any) -> Json:
    base = {"request": "gpu", "driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"}
    field = {"key": "metadata.name", "operator": "In", "values": ["node-1"]}
    return {
        "devices": {"results": [{**base, **result}]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
    }


def consumer(name: str = "p") -> Json:
    return {"resource": "pods", "name": name, "uid": f"uid-{name}"}
