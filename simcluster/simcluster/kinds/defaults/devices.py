"""Defaults of the kinds of ``resource.k8s.io``, and the fields that v1.36 drops by default."""

from simcluster.clock import Clock
from simcluster.kinds.defaults.filling import UNSET, Table
from simcluster.values import Json

_ALPHA_ATTRIBUTES = ("bools", "ints", "strings", "versions")


def _count(request: Json) -> object:
    return 1 if request["allocationMode"] == "ExactCount" else UNSET


def _drop_alpha_fields(device: Json) -> None:
    """Drop the fields of feature gates that are off by default."""
    device.pop("nodeAllocatableResources", None)
    for attribute in (device.get("attributes") or {}).values():
        for field in _ALPHA_ATTRIBUTES:
            attribute.pop(field, None)


_TOLERATIONS = {"tolerations[]": {"operator": "Equal"}}
_REQUEST = {"allocationMode": "ExactCount", "count": _count, **_TOLERATIONS}
_CLAIM_SPEC = {"devices": {"requests[]": {"exactly?": _REQUEST, "firstAvailable[]": _REQUEST}}}
CLAIM_STATUS: Table = {"allocation?": {"devices": {"results[]": _TOLERATIONS}}}
"""Defaults of a claim's status; they are set when the status is written."""
DEVICE_TABLES: dict[str, Table] = {
    "deviceclasses.resource.k8s.io": {"spec": {}},
    "resourceclaims.resource.k8s.io": {"spec": _CLAIM_SPEC, "status": {}},
    "resourceclaimtemplates.resource.k8s.io": {"spec": {"metadata": {}, "spec": _CLAIM_SPEC}},
    "resourceslices.resource.k8s.io": {
        "spec": {
            "pool": {"generation": 0},
            "devices[]": {
                "taints[]": {"timeAdded": lambda _taint: Clock().now()},
                "": _drop_alpha_fields,
            },
        }
    },
}
