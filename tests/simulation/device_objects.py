"""Devices of the simulated cluster: classes, slices, and claims for them.

Each node has a pool with devices of three kinds: whole ones, partitions that share a counter, and
one that several claims may use at once. The devices of a further pool can be used on every node.
"""

from __future__ import annotations

from typing import Any

from tests.simulation.server import DEVICE_CLAIMS, Json, Key, ModelServer

GPU, FABRIC = "gpu.example.com", "fabric.example.com"
"""Drivers, and the names of their classes."""
ACCELERATOR = "example.com/accelerator"
"""An extended resource that a class of whole devices serves."""
WHOLE, PAIR, PARTITION, SHARED, ANY, REMOTE = (
    "whole",
    "pair",
    "partition",
    "shared",
    "any",
    "remote",
)
"""What a claim may ask for."""
KINDS = (WHOLE, WHOLE, PAIR, PARTITION, PARTITION, SHARED, ANY, REMOTE)
NUM_WHOLE = (1, 3)
FINALIZER = "resource.kubernetes.io/delete-protection"
FABRIC_POOL = "fabric"
_NUM_PARTITIONS, _NUM_REMOTE = 3, 2
_POOL_OF_NODE = 2
"""Number of slices."""


def make_device_classes() -> list[Json]:
    """A class of each driver, and one that serves an extended resource."""
    selectors = {
        GPU: f'device.driver == "{GPU}"',
        FABRIC: f'device.driver == "{FABRIC}"',
        "accelerator": _is_of_kind(WHOLE),
    }
    classes: list[Json] = [
        {"metadata": {"name": name}, "spec": {"selectors": [{"cel": {"expression": text}}]}}
        for name, text in selectors.items()
    ]
    classes[-1]["spec"]["extendedResourceName"] = ACCELERATOR
    return classes


def make_slices(
    node_name: str, generation: int, num_whole: int, tainted: str = ""
) -> tuple[Json, Json]:
    """The slices of a node's pool: its devices, and the counter that its partitions share."""
    devices = [_device(f"{WHOLE}-{index}", WHOLE) for index in range(num_whole)]
    uses = [{"counterSet": "memory", "counters": {"size": {"value": "2"}}}]
    devices += [
        _device(f"{PARTITION}-{index}", PARTITION, consumesCounters=uses)
        for index in range(_NUM_PARTITIONS)
    ]
    capacity = {"bandwidth": {"value": "10"}}
    devices.append(_device(SHARED, SHARED, capacity=capacity, allowMultipleAllocations=True))
    for device in devices:
        if device["name"] == tainted:
            device["taints"] = [{"key": "broken", "effect": "NoSchedule"}]
    counters = [{"name": "memory", "counters": {"size": {"value": "4"}}}]
    pool = {
        "driver": GPU,
        "pool": {
            "name": node_name,
            "generation": generation,
            "resourceSliceCount": _POOL_OF_NODE,
        },
        "nodeName": node_name,
    }
    return (
        {"metadata": {"name": f"{node_name}-devices"}, "spec": {**pool, "devices": devices}},
        {
            "metadata": {"name": f"{node_name}-counters"},
            "spec": {**pool, "sharedCounters": counters},
        },
    )


def make_fabric_slice() -> Json:
    """The slice with devices that can be used on every node."""
    devices = [_device(f"{REMOTE}-{index}", REMOTE) for index in range(_NUM_REMOTE)]
    spec = {
        "driver": FABRIC,
        "pool": {"name": FABRIC_POOL, "generation": 1, "resourceSliceCount": 1},
        "allNodes": True,
        "devices": devices,
    }
    return {"metadata": {"name": FABRIC_POOL}, "spec": spec}


def _device(name: str, kind: str, **fields: object) -> Json:
    return {"name": name, "attributes": {"kind": {"string": kind}}, **fields}


def claim_spec(kind: str) -> Json:
    """The spec of a claim for devices of a kind."""
    request: Json = {"name": "devices"}
    if kind == ANY:
        first = {"name": WHOLE, **_exactly(WHOLE)}
        request["firstAvailable"] = [first, {"name": PARTITION, **_exactly(PARTITION)}]
    elif kind == PAIR:
        request["exactly"] = {**_exactly(WHOLE), "count": 2}
    elif kind == REMOTE:
        request["exactly"] = {**_exactly(REMOTE), "deviceClassName": FABRIC, "selectors": []}
    else:
        request["exactly"] = _exactly(kind)
    return {"devices": {"requests": [request]}}


def _exactly(kind: str) -> Json:
    exactly: Json = {
        "deviceClassName": GPU,
        "allocationMode": "ExactCount",
        "count": 1,
        "selectors": [{"cel": {"expression": _is_of_kind(kind)}}],
    }
    if kind == SHARED:
        exactly["capacity"] = {"requests": {"bandwidth": "4"}}
    return exactly


def _is_of_kind(kind: str) -> str:
    return f'device.driver == "{GPU}" && device.attributes["{GPU}"].kind == "{kind}"'


def make_device_claim(name: str, kind: str, owner: Json | None = None) -> Json:
    """A claim; one that is made for a pod is owned by it."""
    metadata: Json = {"namespace": "default", "name": name}
    if owner is not None:
        reference = {name: owner["metadata"][name] for name in ("name", "uid")}
        metadata["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "Pod", "controller": True, **reference}
        ]
    return {"metadata": metadata, "spec": claim_spec(kind), "status": {}}


def owner_uid(claim: Json) -> str:
    """The UID of the pod that a claim was made for; empty if it was made by a user."""
    owners = claim["metadata"].get("ownerReferences", ())
    return str(owners[0]["uid"]) if owners else ""


def device_claim_keys(pod: Json) -> list[Key]:
    """The claims of a pod, as far as they are made."""
    namespace, status = pod["metadata"]["namespace"], pod["status"]
    made = {each["name"]: each["resourceClaimName"] for each in status_entries(pod)}
    names = [
        each.get("resourceClaimName") or made.get(each["name"], "")
        for each in pod["spec"].get("resourceClaims", ())
    ]
    extended = status.get("extendedResourceClaimStatus") or {}
    names.append(extended.get("resourceClaimName", ""))
    return [(namespace, name) for name in names if name]


def status_entries(pod: Json) -> list[Json]:
    """The claims that were made for a pod."""
    return list(pod["status"].get("resourceClaimStatuses") or ())


def uses_devices(pod: Json) -> bool:
    """Whether a pod has claims, or asks for the extended resource."""
    requests = pod["spec"]["containers"][0]["resources"]["requests"]
    return bool(pod["spec"].get("resourceClaims")) or ACCELERATOR in requests


def results_of(claim: Json | None) -> list[Json]:
    """The devices that are allocated for a claim."""
    allocation: dict[str, Any] = (claim or {}).get("status", {}).get("allocation") or {}
    return list(allocation.get("devices", {}).get("results", ()))


def is_reserved_for(claim: Json, uid: str) -> bool:
    """Whether a pod may use the devices of a claim."""
    return any(each["uid"] == uid for each in claim["status"].get("reservedFor", ()))


def store_claim(server: ModelServer, claim: Json) -> Json:
    """Write a claim; one that is being deleted goes with its last finalizer."""
    metadata = claim["metadata"]
    if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
        server.delete(DEVICE_CLAIMS, (metadata["namespace"], metadata["name"]))
        return claim
    return server.replace(DEVICE_CLAIMS, claim)


def delete_claim(server: ModelServer, key: Key) -> None:
    """Delete a claim, or begin its deletion if it has a finalizer."""
    claim = server.collection(DEVICE_CLAIMS).get(key)
    if claim is None or claim["metadata"].get("deletionTimestamp"):
        return
    if not claim["metadata"].get("finalizers"):
        server.delete(DEVICE_CLAIMS, key)
        return
    metadata = {**claim["metadata"], "deletionTimestamp": server.timestamp()}
    server.replace(DEVICE_CLAIMS, {**claim, "metadata": metadata})
