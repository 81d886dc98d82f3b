"""The nodes and pods of the benchmarks."""

import pytest

from simcluster.kubelet.nodes import ZONE, bench_node
from stowage.api.decoding.decode import convert_object
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod
from stowage.api.values.resources import node_allocatable, pod_requests
from stowage_benchmarks.workloads import WORKLOADS, pending_pod, running_pod


@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_pod_of_a_workload_requests_a_tenth_of_a_cpu(workload: str) -> None:
    for index in range(8):
        pod = convert_object(Pod, pending_pod(workload, index, "stowage"))
        assert pod_requests(pod) == {"cpu": 100, "memory": 500 * 2**20}
        assert pod.spec.scheduler_name == "stowage"
        assert pod.spec.node_name == ""


def test_pods_have_the_constraints_of_their_workload() -> None:
    specs = {name: pending_pod(name, 0, "s")["spec"] for name in WORKLOADS}
    assert "affinity" not in specs["basic"]
    assert set(specs["node-affinity"]["affinity"]) == {"nodeAffinity"}
    for name, which in (("affinity", "podAffinity"), ("anti-affinity", "podAntiAffinity")):
        required = "requiredDuringSchedulingIgnoredDuringExecution"
        preferred = "preferredDuringSchedulingIgnoredDuringExecution"
        assert list(specs[name]["affinity"][which]) == [required]
        assert list(specs[f"preferred-{name}"]["affinity"][which]) == [preferred]
    (hard,) = specs["spread"]["topologySpreadConstraints"]
    (soft,) = specs["preferred-spread"]["topologySpreadConstraints"]
    assert hard["whenUnsatisfiable"] == "DoNotSchedule"
    assert soft["whenUnsatisfiable"] == "ScheduleAnyway"


def test_the_mixed_workload_alternates_seven_kinds_of_pods() -> None:
    shapes = [str(pending_pod("mixed", index, "s")["spec"]) for index in range(14)]
    assert len(set(shapes)) == 7
    assert shapes[:7] == shapes[7:]


def test_running_pods_reach_all_nodes_and_never_exclude_each_other() -> None:
    pods = [running_pod("anti-affinity", index, 100, "s") for index in range(100)]
    assert len({pod["spec"]["nodeName"] for pod in pods}) == 100
    assert all("affinity" not in pod["spec"] for pod in pods)


def test_nodes_are_in_ten_zones() -> None:
    nodes = [convert_object(Node, bench_node(index)) for index in range(20)]
    assert len({node.metadata.labels[ZONE] for node in nodes}) == 10
    assert node_allocatable(nodes[0]) == {"cpu": 4000, "memory": 32 * 2**30, "pods": 110}
