"""Defaults of kinds that are kept but not acted on."""

from collections.abc import Callable, Mapping
from typing import Any

from simcluster.kinds.pod_defaults import canonical_quantities
from simcluster.kinds.workload_rules import set_template_defaults

Json = dict[str, Any]


def _filled(defaults: Mapping[str, Any]) -> Callable[[Json], None]:
    def set_defaults(obj: Json) -> None:
        spec = obj.setdefault("spec", {})
        for key, value in defaults.items():
            spec.setdefault(key, value)

    return set_defaults


_set_cron_defaults = _filled(
    {
        "concurrencyPolicy": "Allow",
        "suspend": False,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
    }
)


def _set_quota_defaults(quota: Json) -> None:
    canonical_quantities(quota.get("spec"), "hard")
    quota.setdefault("status", {})


def _set_range_defaults(limit_range: Json) -> None:
    """What containers are limited to is what they get, and what they ask for."""
    for item in (limit_range.get("spec") or {}).get("limits") or ():
        canonical_quantities(item, "max", "min", "default", "defaultRequest")
        if item.get("type") != "Container":
            continue
        limits = {**(item.get("max") or {}), **(item.get("default") or {})}
        asked = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
        for field, amounts in (("default", limits), ("defaultRequest", asked)):
            if amounts:
                item[field] = amounts


def _set_cron_job_defaults(cron_job: Json) -> None:
    _set_cron_defaults(cron_job)
    template = cron_job["spec"].setdefault("jobTemplate", {}).setdefault("spec", {})
    set_template_defaults(template)
    cron_job.setdefault("status", {})


def _set_endpoints_defaults(endpoints: Json) -> None:
    for subset in endpoints.get("subsets") or ():
        for port in subset.get("ports") or ():
            port.setdefault("protocol", "TCP")


def _set_autoscaler_defaults(autoscaler: Json) -> None:
    spec = autoscaler.setdefault("spec", {})
    spec.setdefault("minReplicas", 1)
    target = {"type": "Utilization", "averageUtilization": 80}
    by_cpu = {"type": "Resource", "resource": {"name": "cpu", "target": target}}
    spec.setdefault("metrics", [by_cpu])
    status = {"desiredReplicas": 0, "currentMetrics": None}
    autoscaler.setdefault("status", status)


def _set_policy_defaults(policy: Json) -> None:
    spec = policy.setdefault("spec", {})
    kinds = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    spec.setdefault("policyTypes", kinds)
    for rule in [*(spec.get("ingress") or ()), *(spec.get("egress") or ())]:
        for port in rule.get("ports") or ():
            port.setdefault("protocol", "TCP")


def _set_slice_defaults(endpoint_slice: Json) -> None:
    for port in endpoint_slice.get("ports") or ():
        port.setdefault("name", "")
        port.setdefault("protocol", "TCP")


def _set_ingress_defaults(ingress: Json) -> None:
    ingress.setdefault("spec", {})
    ingress.setdefault("status", {"loadBalancer": {}})


def _set_empty_status(obj: Json) -> None:
    obj.setdefault("status", {})


_WITH_EMPTY_STATUS = (
    "apiservices.apiregistration.k8s.io",
    "certificatesigningrequests.certificates.k8s.io",
    "flowschemas.flowcontrol.apiserver.k8s.io",
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
    "resourceclaims.resource.k8s.io",
    "servicecidrs.networking.k8s.io",
    "validatingadmissionpolicies.admissionregistration.k8s.io",
)
"""Kinds whose status is no pointer in Go, so that it is written even if nobody has set it."""

PLAIN_DEFAULTS: Mapping[str, Callable[[Json], None]] = {
    "resourcequotas": _set_quota_defaults,
    "horizontalpodautoscalers.autoscaling": _set_autoscaler_defaults,
    "cronjobs.batch": _set_cron_job_defaults,
    "endpoints": _set_endpoints_defaults,
    "limitranges": _set_range_defaults,
    "networkpolicies.networking.k8s.io": _set_policy_defaults,
    "endpointslices.discovery.k8s.io": _set_slice_defaults,
    "ingresses.networking.k8s.io": _set_ingress_defaults,
    **dict.fromkeys(_WITH_EMPTY_STATUS, _set_empty_status),
}
