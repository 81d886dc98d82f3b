"""The difference of two specs, as kube-apiserver adds it to its refusal of a change.

It prints the unified difference of its internal objects as JSON, whose fields are named and ordered
as in Go, set or not. A claim is shown in full here; of a pod's spec only the fields that are set.
"""

import difflib
import json
from typing import Any

from simcluster.values import Json

_CONTEXT_LINES = 10
_UNNAMED = frozenset(("Requests", "Limits", "NodeSelector", "Overhead", "LabelSelector"))
"""Maps, and types that are the same inside and out: their keys are no names of Go fields."""
_CLAIM: Json = {
    "accessModes": None,
    "selector": None,
    "resources": {"limits": None, "requests": None},
    "volumeName": "",
    "storageClassName": None,
    "volumeMode": None,
    "dataSource": None,
    "dataSourceRef": None,
    "volumeAttributesClassName": None,
}
_POD_FIELDS = """
volumes initContainers containers ephemeralContainers restartPolicy terminationGracePeriodSeconds
activeDeadlineSeconds dnsPolicy nodeSelector serviceAccountName automountServiceAccountToken
nodeName securityContext imagePullSecrets hostname subdomain setHostnameAsFQDN affinity
schedulerName tolerations hostAliases priorityClassName priority preemptionPolicy dnsConfig
readinessGates runtimeClassName overhead enableServiceLinks topologySpreadConstraints os
schedulingGates resourceClaims resources
"""
"""The fields of ``core.PodSpec`` in their order."""


def claim_difference(old: Json, new: Json) -> str:
    """The difference of two specs of PersistentVolumeClaims; the new one is the expected one."""
    return _difference(_whole_claim(new), _whole_claim(old))


def _whole_claim(spec: Json) -> Json:
    resources = {**_CLAIM["resources"], **(spec.get("resources") or {})}
    whole = {key: spec.get(key, default) for key, default in _CLAIM.items()}
    shown: Json = _in_go({**whole, "resources": resources, "selector": None})
    return {**shown, "Selector": spec.get("selector")}


def pod_difference(old: Json, new: Json) -> str:
    """The difference of two pod specs."""
    return _difference(_in_go(_ordered(old)), _in_go(_ordered(new)))


def _ordered(spec: Json) -> Json:
    known = [key for key in _POD_FIELDS.split() if key in spec]
    return {key: spec[key] for key in [*known, *sorted(spec.keys() - set(known))]}


def _in_go(value: Any) -> Any:
    if isinstance(value, dict):
        fields = {_go_name(key): inner for key, inner in value.items()}
        return {
            name: inner if name in _UNNAMED else _in_go(inner) for name, inner in fields.items()
        }
    return [_in_go(item) for item in value] if isinstance(value, list) else value


def _go_name(key: str) -> str:
    return "DNS" + key[3:] if key.startswith("dns") else key[:1].upper() + key[1:]


def _difference(old: Json, new: Json) -> str:
    before, after = (
        [f"{line}\n" for line in json.dumps(each, indent=2, ensure_ascii=False).split("\n")]
        for each in (old, new)
    )
    return "".join(difflib.unified_diff(before, after, "expected", "got", n=_CONTEXT_LINES))
