"""The sample manifests of the demo are valid for any cluster."""

import json
from collections import Counter

import pytest

from simcluster.demo.sample import (
    SCHEDULER_NAME,
    expected_pods,
    gpu_node_file,
    is_meant_to_stay_pending,
    sample_objects,
)
from simcluster.harness.apply import collection_path
from simcluster.kubelet.node_file import read_node_file
from simcluster.values import Json
from stowage.api.decoding.decode import convert_object
from stowage.api.objects.pod import Pod, PodSpec


def pods() -> list[Json]:
    """The pods of the sample, and the templates of its workloads."""
    found = [
        obj if obj["kind"] == "Pod" else obj.get("spec", {}).get("template")
        for obj in sample_objects()
    ]
    return [pod for pod in found if pod]


def pod_specs() -> list[PodSpec]:
    return [convert_object(Pod, pod).spec for pod in pods()]


def test_the_sample_contains_deployments_jobs_and_bare_pods() -> None:
    kinds = Counter(obj["kind"] for obj in sample_objects())
    assert kinds["Deployment"] >= 3
    assert kinds["Job"] >= 2
    assert kinds["Pod"] >= 5
    assert expected_pods(sample_objects()) > 200


def test_every_object_is_of_a_served_kind() -> None:
    for obj in sample_objects():
        assert collection_path(obj).endswith("s")


def test_the_nodes_with_devices_have_enough_for_the_pods_that_are_not_meant_to_wait() -> None:
    with gpu_node_file() as path:
        nodes = read_node_file(path)
    large = [json.loads(each["metadata"]["annotations"]["stowage/devices"]) for each in nodes]
    free = sum(each["count"] for on in large for each in on if each["capacity"]["memory"] == "80Gi")
    (charts,) = [each for each in sample_objects() if each["metadata"]["name"] == "charts"]
    assert charts["kind"] == "Deployment"
    assert charts["spec"]["replicas"] <= free


def test_an_unknown_kind_is_refused() -> None:
    obj: Json = {"kind": "DaemonSet", "metadata": {"name": "d"}}
    with pytest.raises(ValueError, match="DaemonSet d: expected one of Namespace"):
        collection_path(obj)


def test_every_pod_has_stowage_as_scheduler() -> None:
    assert {spec.scheduler_name for spec in pod_specs()} == {SCHEDULER_NAME}


def test_the_sample_uses_the_scheduling_fields_of_pods() -> None:
    specs = pod_specs()
    assert any(spec.tolerations for spec in specs)
    assert any(spec.node_selector for spec in specs)
    assert any(spec.affinity for spec in specs)
    assert any(spec.topology_spread_constraints for spec in specs)
    assert any(pod["spec"].get("priorityClassName") for pod in pods())
    assert any(spec.scheduling_gates for spec in specs)


def test_some_pods_are_expected_to_stay_pending() -> None:
    meant = [
        obj["metadata"]["name"]
        for obj in sample_objects()
        if is_meant_to_stay_pending(obj["metadata"].get("annotations", {}))
    ]
    assert meant == ["telescope", "whale", "castaway", "stowaway", "anchored"]
