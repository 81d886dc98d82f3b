"""Device classes, slices and claims for tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from stowage.api.decoding.decode import convert_object
from stowage.api.objects.device import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceClass,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceSlice,
)
from stowage.api.objects.pod import Pod, PodResourceClaim
from tests.support.builders import make_pod

DRIVER = "gpu.example.com"
Json = dict[str, Any]


def make_class(name: str = "gpu", expression: str = "", resource: str | None = None) -> DeviceClass:
    """A device class; by default of all devices."""
    spec: Json = {"selectors": [{"cel": {"expression": expression}}] if expression else []}
    if resource is not None:
        spec["extendedResourceName"] = resource
    metadata = {"name": name, "uid": f"uid-{name}"}
    return convert_object(DeviceClass, {"metadata": metadata, "spec": spec})


def device(name: str, **fields: Any) -> Json:
    """A device of a slice; `model` is short for that attribute."""
    model = fields.pop("model", None)
    attributes = {"model": {"string": model}} if model else {}
    return {"name": name, "attributes": attributes, **fields}


def make_slice(
    node_name: str, devices: Iterable[Json | str] = (), version: str = "", **spec: Any
) -> ResourceSlice:
    """The slice of a node, which is the whole pool unless `spec` says otherwise."""
    listed = [device(each) if isinstance(each, str) else each for each in devices]
    name = spec.pop("name", f"{node_name}-slice")
    fields = {
        "driver": DRIVER,
        "pool": {"name": node_name, "generation": 1, "resourceSliceCount": 1},
        "devices": listed,
        **spec,
    }
    if not {"nodeSelector", "allNodes", "perDeviceNodeSelection"} & fields.keys():
        fields["nodeName"] = node_name
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": version}
    return convert_object(ResourceSlice, {"metadata": metadata, "spec": fields})


def request(name: str = "r", **fields: Any) -> Json:
    """A request for one device of the class ``gpu``."""
    wanted = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1, **fields}
    return {"name": name, "exactly": wanted}


def make_claim(
    name: str = "claim", *requests: Json, version: str = "1", **fields: Any
) -> ResourceClaim:
    """A claim, by default for one device of the class ``gpu``; `fields` are of its devices."""
    devices = {"requests": list(requests) or [request()], **fields}
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "resourceVersion": version,
    }
    return convert_object(ResourceClaim, {"metadata": metadata, "spec": {"devices": devices}})


def allocated(
    claim: ResourceClaim, pool: str, *devices: str, version: str = "", **fields: Any
) -> ResourceClaim:
    """The claim with these devices allocated; `fields` are of each result."""
    results = tuple(
        DeviceRequestAllocationResult("r", DRIVER, pool, each, **fields) for each in devices
    )
    allocation = AllocationResult(DeviceAllocationResult(results))
    status = replace(claim.status, allocation=allocation)
    return replace(with_version(claim, version), status=status)


def with_version(claim: ResourceClaim, version: str) -> ResourceClaim:
    """The claim in another version; unchanged without one."""
    if not version:
        return claim
    return replace(claim, metadata=replace(claim.metadata, resource_version=version))


def pod_with_claims(name: str, *claims: str, **fields: Any) -> Pod:
    """A pod that uses claims by name."""
    named = tuple(PodResourceClaim(each, each) for each in claims)
    return make_pod(name, resource_claims=named, **fields)


def quantities(amounts: Mapping[str, str]) -> Json:
    """Capacities or counters with these values."""
    return {name: {"value": value} for name, value in amounts.items()}
