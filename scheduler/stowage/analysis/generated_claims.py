"""The claims that the claim controller makes from templates for new pods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.api.objects.device import ResourceClaim, ResourceClaimTemplate
from stowage.api.objects.meta import ObjectMeta, OwnerReference
from stowage.api.objects.pod import Pod, PodResourceClaimStatus

Json = dict[str, Any]

_DEFAULTS: Json = {"allocationMode": "ExactCount"}


def with_generated_claims(pod: Pod, objects: ClusterObjects) -> tuple[Pod, list[ResourceClaim]]:
    """A pod that names the claims made for it, and these claims.

    Entries whose template does not exist, and those that have a claim already, stay as they are.

    Args:
        pod: The pod.
        objects: The objects with the templates.
    """
    named = {each.name for each in pod.status.resource_claim_statuses}
    statuses, claims = list(pod.status.resource_claim_statuses), []
    for entry in pod.spec.resource_claims:
        template = _template(pod, entry.resource_claim_template_name, objects)
        if template is not None and entry.name not in named:
            claims.append(_claim(pod, entry.name, template))
            statuses.append(PodResourceClaimStatus(entry.name, claims[-1].metadata.name))
    if not claims:
        return pod, []
    status = replace(pod.status, resource_claim_statuses=tuple(statuses))
    return replace(pod, status=status), claims


def missing_templates(pod: Pod, *places: ClusterObjects) -> Iterator[tuple[int, str]]:
    """(index, name) of each template that a pod names and that does not exist."""
    for index, entry in enumerate(pod.spec.resource_claims):
        name = entry.resource_claim_template_name
        if name is not None and all(_template(pod, name, each) is None for each in places):
            yield index, name


def default_requests(item: Json) -> Json:
    """A claim or template of a manifest, with the defaults of the API server for its requests."""
    spec = item.get("spec")
    if not isinstance(spec, dict):
        return item
    if item["kind"] == ResourceClaimTemplate.__name__:
        inner = spec.get("spec")
        return {**item, "spec": {**spec, "spec": _with_defaults(inner)}}
    return {**item, "spec": _with_defaults(spec)}


def _with_defaults(spec: Any) -> Any:
    devices = spec.get("devices") if isinstance(spec, dict) else None
    requests = devices.get("requests") if isinstance(devices, dict) else None
    if not isinstance(devices, dict) or not isinstance(requests, list):
        return spec
    defaulted = [_request(each) for each in requests]
    return {**spec, "devices": {**devices, "requests": defaulted}}


def _request(request: Any) -> Any:
    if not isinstance(request, dict):
        return request
    found = dict(request)
    if isinstance(found.get("exactly"), dict):
        found["exactly"] = _counted(found["exactly"])
    if isinstance(found.get("firstAvailable"), list):
        found["firstAvailable"] = [_counted(each) for each in found["firstAvailable"]]
    return found


def _counted(request: Any) -> Any:
    if not isinstance(request, dict):
        return request
    found = {**_DEFAULTS, **request}
    if found["allocationMode"] == "ExactCount":
        found.setdefault("count", 1)
    return found


def _template(pod: Pod, name: str | None, objects: ClusterObjects) -> ResourceClaimTemplate | None:
    if name is None:
        return None
    return objects.find(ResourceClaimTemplate, f"{pod.metadata.namespace}/{name}")


def _claim(pod: Pod, entry: str, template: ResourceClaimTemplate) -> ResourceClaim:
    meta = pod.metadata
    owner = OwnerReference("Pod", meta.name, meta.uid, "v1", controller=True)
    made = ObjectMeta(
        name=f"{meta.name}-{entry}",
        namespace=meta.namespace,
        uid=f"{meta.uid}/{entry}",
        owner_references=(owner,),
    )
    return ResourceClaim(made, template.spec.spec)
