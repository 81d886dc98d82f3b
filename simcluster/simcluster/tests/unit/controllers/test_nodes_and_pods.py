"""Stopped nodes, their taints, eviction by taints, and garbage collection of pods."""

from typing import Any

import pytest

from simcluster.controllers import ControllerOptions
from simcluster.kinds.resources import CSI_NODES, NODES, PODS
from simcluster.kubelet.nodes import make_node
from simcluster.store.registry import DIRECT, editable
from simcluster.tests.support.manual_cluster import ManualCluster, template

Json = dict[str, Any]


def set_node_state(state: str) -> Any:
    def act(node: Json) -> None:
        node["metadata"].setdefault("annotations", {})["stowage/node-state"] = state

    return act


def ready(node: Json) -> str:
    conditions = node["status"]["conditions"]
    return str(next(found["status"] for found in conditions if found["type"] == "Ready"))


def taints(node: Json) -> set[tuple[str, str]]:
    prefix = "node.kubernetes.io/"
    return {
        (taint["key"].removeprefix(prefix), taint["effect"])
        for taint in node["spec"].get("taints") or ()
    }


def running(cluster: ManualCluster, name: str, node: str, **spec: Any) -> None:
    cluster.create(PODS, {**template(**spec), "metadata": {"name": name}})
    cluster.bind(name, node)


def is_ready(pod: Json) -> bool:
    return any(
        found["type"] == "Ready" and found["status"] == "True"
        for found in pod["status"]["conditions"]
    )


def test_a_stopped_node_is_unknown_after_the_grace_period() -> None:
    cluster = ManualCluster(binds=False)
    running(cluster, "p", "node-0")
    cluster.change(NODES, "node-0", set_node_state("stopped"))
    cluster.pass_time(49)
    assert ready(cluster.get(NODES, "node-0")) == "True"
    cluster.pass_time(2)
    node = cluster.get(NODES, "node-0")
    assert ready(node) == "Unknown"
    assert taints(node) == {("unreachable", "NoSchedule"), ("unreachable", "NoExecute")}
    assert not is_ready(cluster.get(PODS, "p"))


def test_pods_of_a_stopped_node_are_evicted_and_deleted_when_it_returns() -> None:
    cluster = ManualCluster(binds=False, options=ControllerOptions(node_grace_s=10))
    running(cluster, "p", "node-0", terminationGracePeriodSeconds=30)
    cluster.change(NODES, "node-0", set_node_state("stopped"))
    cluster.pass_time(300)
    assert "deletionTimestamp" not in cluster.get(PODS, "p")["metadata"]
    cluster.pass_time(20)
    pod = cluster.get(PODS, "p")
    assert pod["metadata"]["deletionTimestamp"]
    reasons = {found["type"]: found.get("reason") for found in pod["status"]["conditions"]}
    assert reasons["DisruptionTarget"] == "DeletionByTaintManager"
    cluster.change(NODES, "node-0", set_node_state("running"))
    cluster.pass_time(1)
    assert cluster.find(PODS, "p") is None
    assert ready(cluster.get(NODES, "node-0")) == "True"
    assert taints(cluster.get(NODES, "node-0")) == set()


def test_a_node_that_returns_before_the_toleration_ends_keeps_its_pods() -> None:
    cluster = ManualCluster(binds=False, options=ControllerOptions(node_grace_s=10))
    running(cluster, "p", "node-0")
    cluster.change(NODES, "node-0", set_node_state("stopped"))
    cluster.pass_time(60)
    cluster.change(NODES, "node-0", set_node_state(""))
    cluster.pass_time(1000)
    assert is_ready(cluster.get(PODS, "p"))


def test_a_pod_bound_to_a_stopped_node_starts_when_the_node_starts() -> None:
    cluster = ManualCluster(binds=False)
    cluster.change(NODES, "node-0", set_node_state("stopped"))
    running(cluster, "p", "node-0")
    assert cluster.get(PODS, "p")["status"]["phase"] == "Pending"
    cluster.change(NODES, "node-0", set_node_state(""))
    assert cluster.get(PODS, "p")["status"]["phase"] == "Running"


@pytest.mark.parametrize(
    ("word", "taint"),
    [
        ("memory-pressure", ("memory-pressure", "NoSchedule")),
        ("disk-pressure", ("disk-pressure", "NoSchedule")),
        ("pid-pressure", ("pid-pressure", "NoSchedule")),
        ("network-unavailable", ("network-unavailable", "NoSchedule")),
    ],
)
def test_a_pressure_condition_adds_and_removes_a_taint(word: str, taint: tuple[str, str]) -> None:
    cluster = ManualCluster()
    cluster.change(NODES, "node-0", set_node_state(word))
    assert taints(cluster.get(NODES, "node-0")) == {taint}
    cluster.change(NODES, "node-0", set_node_state(""))
    assert taints(cluster.get(NODES, "node-0")) == set()


def test_an_unready_node_gets_two_taints_and_a_cordoned_node_one() -> None:
    cluster = ManualCluster()
    cluster.change(NODES, "node-0", set_node_state("not-ready"))
    expected = {("not-ready", "NoSchedule"), ("not-ready", "NoExecute")}
    assert taints(cluster.get(NODES, "node-0")) == expected
    cluster.change(NODES, "node-1", lambda node: node["spec"].update(unschedulable=True))
    assert taints(cluster.get(NODES, "node-1")) == {("unschedulable", "NoSchedule")}


def test_a_no_execute_taint_evicts_pods_by_their_tolerations() -> None:
    cluster = ManualCluster(binds=False)
    tolerate = {"key": "x", "operator": "Exists", "effect": "NoExecute"}
    running(cluster, "stays", "node-0", tolerations=[tolerate])
    running(cluster, "waits", "node-0", tolerations=[{**tolerate, "tolerationSeconds": 5}])
    running(cluster, "goes", "node-0")
    taint = {"key": "x", "effect": "NoExecute"}
    cluster.change(NODES, "node-0", lambda node: node["spec"].update(taints=[taint]))
    cluster.pass_time(1)
    assert sorted(cluster.names(PODS)) == ["stays", "waits"]
    cluster.pass_time(5)
    assert cluster.names(PODS) == ["stays"]


def test_a_removed_no_execute_taint_cancels_evictions() -> None:
    cluster = ManualCluster(binds=False)
    toleration = {"key": "x", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    running(cluster, "waits", "node-0", tolerations=[toleration])
    taint = {"key": "x", "effect": "NoExecute"}
    cluster.change(NODES, "node-0", lambda node: node["spec"].update(taints=[taint]))
    cluster.pass_time(3)
    cluster.change(NODES, "node-0", lambda node: node["spec"].pop("taints"))
    cluster.pass_time(10)
    assert cluster.names(PODS) == ["waits"]


def test_pods_of_a_deleted_node_are_deleted() -> None:
    cluster = ManualCluster(binds=False)
    running(cluster, "p", "node-0")
    cluster.delete(NODES, "node-0")
    assert cluster.names(PODS) == []


def test_a_pod_bound_to_a_missing_node_is_deleted_after_a_while() -> None:
    cluster = ManualCluster(binds=False)
    running(cluster, "p", "nowhere")
    cluster.pass_time(39)
    assert cluster.names(PODS) == ["p"]
    cluster.pass_time(2)
    assert cluster.names(PODS) == []


def test_terminating_pods_of_a_node_out_of_service_are_removed_while_it_is_not_ready() -> None:
    cluster = ManualCluster(binds=False)
    for name in ("p", "q"):
        running(cluster, name, "node-0", terminationGracePeriodSeconds=30)
    cluster.change(NODES, "node-0", set_node_state("stopped"))
    cluster.pass_time(51)
    cluster.delete(PODS, "p")
    assert cluster.names(PODS) == ["p", "q"]
    taint = {"key": "node.kubernetes.io/out-of-service", "effect": "NoSchedule"}
    cluster.change(NODES, "node-0", lambda node: node["spec"]["taints"].append(taint))
    assert cluster.names(PODS) == ["q"]
    cluster.delete(PODS, "q")
    assert cluster.names(PODS) == []


def test_a_taint_alone_does_not_put_a_ready_node_out_of_service() -> None:
    cluster = ManualCluster(binds=False)
    taint = {"key": "node.kubernetes.io/out-of-service", "effect": "NoSchedule"}
    cluster.change(NODES, "node-0", lambda node: node["spec"].update(taints=[taint]))
    running(cluster, "p", "node-0", terminationGracePeriodSeconds=30)
    cluster.delete(PODS, "p")
    assert cluster.names(PODS) == ["p"]


def test_annotations_make_a_node_stop_and_its_pods_fail() -> None:
    cluster = ManualCluster(num_nodes=0, binds=False)
    annotations = {"stowage/stop-after-seconds": "60", "stowage/pod-start-seconds": "5"}
    cluster.add_node("short", annotations=annotations)
    cluster.add_node("bad", annotations={"stowage/pod-failure-rate": "1"})
    cluster.settle()
    running(cluster, "slow", "short")
    running(cluster, "crashes", "bad")
    running(cluster, "fails", "bad", restartPolicy="Never")
    assert cluster.get(PODS, "slow")["status"]["phase"] == "Pending"
    cluster.pass_time(5)
    assert cluster.get(PODS, "slow")["status"]["phase"] == "Running"
    crashed = cluster.get(PODS, "crashes")["status"]["containerStatuses"][0]
    assert crashed["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert cluster.get(PODS, "fails")["status"]["phase"] == "Failed"
    cluster.pass_time(120)
    assert ready(cluster.get(NODES, "short")) == "Unknown"


def test_a_node_registers_the_csi_drivers_of_its_annotation() -> None:
    cluster = ManualCluster(num_nodes=0)
    drivers = "disk.example.com=25, nfs.example.com"
    cluster.add_node("n", annotations={"stowage/csi-drivers": drivers})
    cluster.settle()
    (first, second) = cluster.get(CSI_NODES, "n")["spec"]["drivers"]
    assert first == {
        "name": "disk.example.com",
        "nodeID": "n",
        "topologyKeys": ["topology.kubernetes.io/zone"],
        "allocatable": {"count": 25},
    }
    assert second["name"] == "nfs.example.com"


def requesting(cpu: str) -> list[Json]:
    return [{"name": "c", "image": "web:1", "resources": {"requests": {"cpu": cpu}}}]


def resize(cluster: ManualCluster, name: str, cpu: str) -> None:
    stored = cluster.find(PODS, name)
    assert stored is not None
    obj = editable(stored)
    obj["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    cluster.registry.replacement("resize")(PODS, stored, obj, DIRECT)
    cluster.settle()


@pytest.mark.parametrize(
    ("before", "after", "phase"), [("4", "1", "Running"), ("2", "5", "Failed")]
)
def test_a_kubelet_counts_what_a_resized_pod_requests(before: str, after: str, phase: str) -> None:
    """A node has 8 CPUs."""
    cluster = ManualCluster(binds=False)
    running(cluster, "p", "node-0", containers=requesting(before))
    resize(cluster, "p", after)
    running(cluster, "q", "node-0", containers=requesting("5"))
    assert cluster.get(PODS, "q")["status"]["phase"] == phase
    assert cluster.get(PODS, "p")["status"]["phase"] == "Running"


def test_a_resized_pod_frees_what_it_requested_last() -> None:
    cluster = ManualCluster(binds=False)
    running(cluster, "p", "node-0", containers=requesting("3"))
    resize(cluster, "p", "7")
    cluster.delete(PODS, "p")
    running(cluster, "q", "node-0", containers=requesting("8"))
    assert cluster.get(PODS, "q")["status"]["phase"] == "Running"


def write_status(cluster: ManualCluster, **amounts: Json) -> Json:
    """Change fields of a node's status as a client does; returns what the kubelet makes of it."""
    cluster.registry.change_status(
        NODES,
        "",
        "node-0",
        lambda node: {
            **node["status"],
            **{name: {**node["status"][name], **found} for name, found in amounts.items()},
        },
    )
    cluster.settle()
    return dict(cluster.get(NODES, "node-0")["status"])


def test_a_kubelet_gives_out_the_extended_resources_that_a_client_adds_to_the_capacity() -> None:
    cluster = ManualCluster(binds=False)
    status = write_status(cluster, capacity={"example.com/dongle": "4"})
    assert status["allocatable"]["example.com/dongle"] == "4"
    status = write_status(cluster, capacity={"example.com/dongle": "2"})
    assert status["allocatable"]["example.com/dongle"] == "2"
    assert status["allocatable"]["cpu"] == "8"


def test_an_extended_resource_without_capacity_is_not_allocatable_any_more() -> None:
    cluster = ManualCluster(binds=False)
    status = write_status(cluster, capacity={"example.com/dongle": "4"})
    assert "example.com/dongle" in status["allocatable"]
    cluster.registry.change_status(
        NODES,
        "",
        "node-0",
        lambda node: {**node["status"], "capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"}},
    )
    cluster.settle()
    assert "example.com/dongle" not in cluster.get(NODES, "node-0")["status"]["allocatable"]


def test_a_node_that_gives_out_less_than_its_capacity_keeps_it_so() -> None:
    cluster = ManualCluster(num_nodes=0, binds=False)
    node = make_node("n", {"cpu": "8", "pods": "110", "example.com/gpu": "4"})
    node["status"]["allocatable"] |= {"example.com/gpu": "3"}
    cluster.registry.create(NODES, "", node)
    cluster.settle()
    cluster.change(NODES, "n", set_node_state("not-ready"))
    assert cluster.get(NODES, "n")["status"]["allocatable"]["example.com/gpu"] == "3"


def test_a_deleted_pod_with_a_finalizer_has_failed_and_leaves_its_room() -> None:
    """A node has 8 CPUs."""
    cluster = ManualCluster(binds=False)
    cluster.create(
        PODS,
        {
            **template(containers=requesting("8")),
            "metadata": {"name": "p", "finalizers": ["example.com/hold"]},
        },
    )
    cluster.bind("p", "node-0")
    cluster.delete(PODS, "p")
    held = cluster.get(PODS, "p")["status"]
    assert held["phase"] == "Failed"
    assert held["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 143
    running(cluster, "q", "node-0", containers=requesting("8"))
    assert cluster.get(PODS, "q")["status"]["phase"] == "Running"
