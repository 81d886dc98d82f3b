"""Requests and limits of pods, as in kube-scheduler's /metrics/resources."""

from __future__ import annotations

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from stowage.api.decoding.decode import decode_pod
from stowage.operator.metrics.resource_metrics import LABELS, ResourceMetrics, unit_of
from stowage.state.pods.pod_class import PodClasses
from stowage.state.pods.pod_info import make_pod_info

CLASSES = PodClasses()
TEMPLATE = """{"metadata": {"name": "%s", "namespace": "default", "uid": "%s"},
 "spec": {"nodeName": "n1", "schedulerName": "stowage", "priority": 7, "containers": [{"name": "c",
   "resources": {"requests": {"cpu": "250m", "memory": "1Gi", "example.com/gpu": "2"},
                 "limits": {"memory": "2Gi"}}}]},
 "status": {"phase": "%s"}}"""


def _samples(*phases: str) -> dict[tuple[str, str], float]:
    pods = [
        make_pod_info(decode_pod((TEMPLATE % (f"p{n}", f"u{n}", phase)).encode()), CLASSES)
        for n, phase in enumerate(phases)
    ]
    text = generate_latest(ResourceMetrics(lambda: pods)).decode()
    samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            assert set(sample.labels) == set(LABELS)
            assert (sample.labels["node"], sample.labels["priority"]) == ("n1", "7")
            key = sample.labels["pod"], f"{sample.name}/{sample.labels['resource']}"
            samples[key] = sample.value
    return samples


def test_requests_and_limits_are_in_base_units() -> None:
    assert _samples("Running") == {
        ("p0", "kube_pod_resource_request/cpu"): 0.25,
        ("p0", "kube_pod_resource_request/memory"): 2**30,
        ("p0", "kube_pod_resource_request/example.com/gpu"): 2,
        ("p0", "kube_pod_resource_limit/memory"): 2**31,
    }


def test_amounts_are_those_of_the_spec_also_while_a_pod_is_resized() -> None:
    in_effect = '"phase": "Running", "containerStatuses": [{"name": "c", "resources": %s}]'
    resources = '{"requests": {"cpu": "3"}, "limits": {"memory": "9Gi"}}'
    text = (TEMPLATE % ("p", "u", "Running")).replace('"phase": "Running"', in_effect % resources)
    pod = make_pod_info(decode_pod(text.encode()), CLASSES)
    assert pod.requests["cpu"] == 3000
    requests, limits = ResourceMetrics(lambda: [pod]).collect()
    shown = {each.labels["resource"]: each.value for each in requests.samples}
    assert shown["cpu"] == 0.25
    assert [each.value for each in limits.samples] == [2**31]


def test_the_help_texts_say_what_the_amounts_are() -> None:
    requested, limited = ResourceMetrics(list).collect()
    begin = "[STABLE] Resources {} by workloads on the cluster, broken down by pod. This shows "
    assert requested.documentation.startswith(begin.format("requested"))
    assert limited.documentation.startswith(begin.format("limit"))


def test_pods_in_a_terminal_phase_are_left_out() -> None:
    assert {pod for pod, _ in _samples("Running", "Succeeded", "Failed", "Pending")} == {"p0", "p3"}


@pytest.mark.parametrize(
    ("resource", "unit"),
    [
        ("cpu", "cores"),
        ("memory", "bytes"),
        ("ephemeral-storage", "bytes"),
        ("hugepages-2Mi", "bytes"),
        ("attachable-volumes-csi-example", "integer"),
        ("example.com/gpu", ""),
    ],
)
def test_each_resource_has_its_unit(resource: str, unit: str) -> None:
    assert unit_of(resource) == unit


def test_no_name_adds_a_sample() -> None:
    """The API server checks no schedulerName: it is any text that a user writes."""
    name = r"a\"} 1\nkube_pod_resource_request{pod=\"x\\"
    text = (TEMPLATE % ("p", "u", "Running")).replace('"stowage"', f'"{name}"')
    pod = make_pod_info(decode_pod(text.encode()), CLASSES)
    (requests, limits) = text_string_to_metric_families(
        generate_latest(ResourceMetrics(lambda: [pod])).decode()
    )
    assert {each.labels["pod"] for each in requests.samples + limits.samples} == {"p"}
    assert {each.labels["scheduler"] for each in requests.samples} == {pod.scheduler_name}


def test_a_pod_with_invalid_limits_has_no_samples() -> None:
    text = (TEMPLATE % ("p", "u", "Running")).replace("2Gi", "a lot")
    pod = make_pod_info(decode_pod(text.encode()), CLASSES)
    found = generate_latest(ResourceMetrics(lambda: [pod])).decode()
    assert "kube_pod_resource_request{" not in found
