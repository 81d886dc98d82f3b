"""Resource requests and limits of pods: kube-scheduler's ``/metrics/resources``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from stowage.api.decoding.errors import InvalidObject
from stowage.api.objects.pod import Pod
from stowage.api.values.resource_names import ATTACHABLE_VOLUMES_PREFIX, CPU, HUGEPAGES_PREFIX
from stowage.api.values.resources import pod_limits, pod_requests
from stowage.state.pods.pod_info import PodInfo

LABELS = ("namespace", "pod", "node", "scheduler", "priority", "resource", "unit")
_TEXT = (
    "[STABLE] Resources {what} by workloads on the cluster, broken down by pod. This shows the "
    "resource usage the scheduler and kubelet expect per pod for resources along with the unit for "
    "the resource if any."
)
_BYTES = ("memory", "storage", "ephemeral-storage")
_FINISHED = ("Succeeded", "Failed")

Amounts = Mapping[str, int]


class ResourceMetrics(Collector):
    """Makes the two gauges from the engine's pods at each scrape.

    Args:
        pods: Returns all pods, including pending ones.
    """

    def __init__(self, pods: Callable[[], Iterable[PodInfo]]) -> None:
        self._pods = pods

    def collect(self) -> Iterator[Metric]:
        """Make the metric families."""
        requested = GaugeMetricFamily(
            "kube_pod_resource_request", _TEXT.format(what="requested"), labels=LABELS
        )
        limited = GaugeMetricFamily(
            "kube_pod_resource_limit", _TEXT.format(what="limit"), labels=LABELS
        )
        by_class: dict[int, tuple[Amounts, Amounts]] = {}
        for pod in self._pods():
            if pod.phase in _FINISHED:
                continue
            class_id = pod.pod_class.id
            if class_id not in by_class:
                by_class[class_id] = _amounts(pod)
            for family, amounts in zip((requested, limited), by_class[class_id], strict=True):
                _add(family, pod, amounts)
        yield requested
        yield limited


def _amounts(pod: PodInfo) -> tuple[Amounts, Amounts]:
    """Requests and limits of a pod's spec: kube-scheduler leaves out a resize in effect, too.

    Empty if they are invalid, which the engine has reported.
    """
    as_pod = Pod(spec=pod.spec)
    try:
        return pod_requests(as_pod), pod_limits(as_pod)
    except InvalidObject:
        return {}, {}


def _add(family: GaugeMetricFamily, pod: PodInfo, amounts: Amounts) -> None:
    priority = "" if pod.spec.priority is None else str(pod.spec.priority)
    labels = (pod.namespace, pod.name, pod.node_name, pod.scheduler_name, priority)
    for resource, amount in sorted(amounts.items()):
        if amount:
            value = amount / 1000 if resource == CPU else amount
            family.add_metric((*labels, resource, unit_of(resource)), value)


def unit_of(resource: str) -> str:
    """The unit of a resource: ``cores``, ``bytes`` or ``integer``; extended resources have none."""
    if resource == CPU:
        return "cores"
    if resource in _BYTES or resource.startswith(HUGEPAGES_PREFIX):
        return "bytes"
    return "integer" if resource.startswith(ATTACHABLE_VOLUMES_PREFIX) else ""
