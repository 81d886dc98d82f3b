"""Answers ``/healthz``, ``/livez`` and ``/readyz``, with or without single checks."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

_HOOKS = (
    "start-apiserver-admission-initializer",
    "generic-apiserver-start-informers",
    "priority-and-fairness-config-consumer",
    "priority-and-fairness-filter",
    "storage-object-count-tracker-hook",
    "start-apiextensions-informers",
    "start-apiextensions-controllers",
    "crd-informer-synced",
    "start-system-namespaces-controller",
    "start-cluster-authentication-info-controller",
    "start-kube-apiserver-identity-lease-controller",
    "start-kube-apiserver-identity-lease-garbage-collector",
    "start-legacy-token-tracking-controller",
    "start-service-ip-repair-controllers",
    "rbac/bootstrap-roles",
    "scheduling/bootstrap-system-priority-classes",
    "priority-and-fairness-config-producer",
    "bootstrap-controller",
    "start-kubernetes-service-cidr-controller",
    "aggregator-reload-proxy-client-cert",
    "start-kube-aggregator-informers",
    "apiservice-status-local-available-controller",
    "apiservice-status-remote-available-controller",
    "apiservice-registration-controller",
    "apiservice-discovery-controller",
    "kube-apiserver-autoregistration",
    "autoregister-completion",
    "apiservice-openapi-controller",
    "apiservice-openapiv3-controller",
)
_CHECKS = (
    "ping",
    "log",
    "etcd",
    # This one is a check of its own among the hooks.
    *(name if name == "autoregister-completion" else f"poststarthook/{name}" for name in _HOOKS),
)
_READY_ONLY = ("etcd-readiness", "informer-sync", "shutdown")
_ENDPOINTS: Mapping[str, tuple[str, ...]] = {
    "healthz": _CHECKS,
    "livez": _CHECKS,
    "readyz": (*_CHECKS[:3], *_READY_ONLY[:2], *_CHECKS[3:], _READY_ONLY[2]),
}


class HealthReport(NamedTuple):
    """Status and text of an answer."""

    status: int
    text: str


def is_health_path(path: str) -> bool:
    """Whether a path asks for health."""
    return path[1:].partition("/")[0] in _ENDPOINTS


def health_report(path: str, query: Mapping[str, str], excluded: Sequence[str]) -> HealthReport:
    """Answer a health request; a server that answers is healthy.

    Args:
        path: ``/readyz``, or ``/readyz/<check>`` for one check alone.
        query: ``verbose`` lists every check.
        excluded: the values of ``exclude``.
    """
    endpoint, _, check = path[1:].partition("/")
    checks = _ENDPOINTS[endpoint]
    if check:
        known = check in checks
        return HealthReport(200, "ok") if known else HealthReport(404, "404 page not found\n")
    if "verbose" not in query:
        return HealthReport(200, "ok")
    lines = [f"[+]{name} excluded: ok" if name in excluded else f"[+]{name} ok" for name in checks]
    unknown = [name for name in excluded if name not in checks]
    if unknown:
        quoted = ", ".join(f'"{name}"' for name in unknown)
        lines.append(f"warn: some health checks cannot be excluded: no matches for {quoted}")
    return HealthReport(200, "\n".join((*lines, f"{endpoint} check passed", "")))
