"""The admission of pods by a simulated kubelet."""

from typing import Any

import pytest

from simcluster.kubelet.node_load import NodeLoad
from stowage.api import Node, Pod
from stowage.api.decoding.decode import convert_object


def load_of(**allocatable: str) -> NodeLoad:
    node = {
        "metadata": {"name": "n", "labels": {"disk": "ssd"}},
        "status": {"allocatable": {"pods": "10", **allocatable}},
    }
    return NodeLoad(convert_object(Node, node))


def pod(uid: str, requests: dict[str, str] | None = None, **spec: Any) -> Pod:
    container: dict[str, Any] = {"name": "c", "resources": {"requests": requests or {}}}
    container["ports"] = spec.pop("ports", [])
    status = spec.pop("status", {})
    spec["containers"] = [container]
    body = {"metadata": {"uid": uid, "name": uid}, "spec": spec, "status": status}
    return convert_object(Pod, body)


def test_requests_add_up_until_the_node_is_full() -> None:
    load = load_of(cpu="2")
    assert load.admit(pod("a", {"cpu": "1500m"})) is None
    refusal = load.admit(pod("b", {"cpu": "501m"}))
    assert refusal is not None
    assert refusal.reason == "OutOfcpu"
    assert refusal.message.endswith("requested: 501, used: 1500, capacity: 2000")
    assert load.admit(pod("c", {"cpu": "500m"})) is None


def test_a_released_pod_frees_its_resources_once() -> None:
    load = load_of(cpu="1")
    assert load.admit(pod("a", {"cpu": "1"})) is None
    load.release("a")
    load.release("a")
    assert not load.holds("a")
    assert load.admit(pod("b", {"cpu": "1"})) is None
    assert load.admit(pod("c", {"cpu": "1m"})) is not None


def test_a_refused_pod_uses_no_resources() -> None:
    load = load_of(cpu="1")
    load.admit(pod("a", {"cpu": "2"}))
    assert load.pod_uids == []
    assert load.admit(pod("b", {"cpu": "1"})) is None


def test_pods_without_requests_count_against_the_pod_limit() -> None:
    load = load_of(pods="1")
    assert load.admit(pod("a")) is None
    refusal = load.admit(pod("b"))
    assert refusal is not None
    assert refusal.reason == "OutOfpods"


def test_an_extended_resource_that_the_node_does_not_have_is_ignored() -> None:
    assert load_of(cpu="1").admit(pod("a", {"example.com/fpga": "1"})) is None
    known = load_of(**{"example.com/fpga": "1"})
    assert known.admit(pod("a", {"example.com/fpga": "2"})) is not None


@pytest.mark.parametrize(
    ("resource", "allocatable"),
    [("example.com/fpga", "0"), ("deviceclass.resource.kubernetes.io/fpga", None)],
)
def test_an_extended_resource_that_a_claim_holds_is_not_counted(
    resource: str, allocatable: str | None
) -> None:
    """The node's devices are counted by their ResourceSlices, also if a device plugin is gone."""
    load = load_of(**{} if allocatable is None else {resource: allocatable})
    mapping = {"containerName": "c", "resourceName": resource, "requestName": "r"}
    claimed = {"resourceClaimName": "a-1", "requestMappings": [mapping]}
    status = {"extendedResourceClaimStatus": claimed}
    assert load.admit(pod("a", {resource: "1"}, status=status)) is None
    assert load.admit(pod("b", {resource: "1"})) is not None


def test_node_selectors_taints_and_ports_are_checked() -> None:
    load = load_of()
    wrong = load.admit(pod("a", nodeSelector={"disk": "hdd"}))
    assert wrong is not None
    assert wrong.message == (
        "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
    )
    assert load.admit(pod("b", ports=[{"hostPort": 80, "hostIP": "10.0.0.1"}])) is None
    assert load.admit(pod("c", ports=[{"hostPort": 80, "hostIP": "10.0.0.2"}])) is None
    taken = load.admit(pod("d", ports=[{"hostPort": 80}]))
    assert taken is not None
    assert taken.reason == "NodePorts"


def test_a_no_execute_taint_keeps_new_pods_out() -> None:
    taint = {"key": "x", "value": "y", "effect": "NoExecute"}
    node = {
        "metadata": {"name": "n"},
        "spec": {"taints": [taint]},
        "status": {"allocatable": {"pods": "10"}},
    }
    load = NodeLoad(convert_object(Node, node))
    refusal = load.admit(pod("a"))
    assert refusal is not None
    assert refusal.reason == "TaintToleration"
    assert load.admit(pod("b", tolerations=[{"key": "x", "operator": "Exists"}])) is None


def test_a_node_with_reduced_capacity_keeps_its_pods() -> None:
    load = load_of(cpu="2")
    load.admit(pod("a", {"cpu": "2"}))
    smaller = {"metadata": {"name": "n"}, "status": {"allocatable": {"pods": "10", "cpu": "1"}}}
    load.update_node(convert_object(Node, smaller))
    assert load.holds("a")
    assert load.admit(pod("b", {"cpu": "1m"})) is not None
