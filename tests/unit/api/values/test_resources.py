"""Requests and limits of pods equal those of kube-scheduler."""

from typing import Any

import pytest

from stowage.api.decoding.decode import convert_object
from stowage.api.decoding.errors import InvalidObject
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod
from stowage.api.values.resource_names import is_extended_resource_name, is_scalar_resource_name
from stowage.api.values.resources import node_allocatable, pod_limits, pod_requests, pod_usage


def container(name: str = "c", restart: str = "", **requests: str) -> dict[str, Any]:
    return {"name": name, "restartPolicy": restart, "resources": {"requests": requests}}


def pod(*containers: dict[str, Any], status: dict[str, Any] | None = None, **spec: Any) -> Pod:
    metadata = {"name": "p", "namespace": "default", "uid": "u"}
    body = {"metadata": metadata, "spec": {"containers": containers, **spec}}
    return convert_object(Pod, {**body, "status": status or {}})


def test_requests_of_containers_are_added_before_rounding() -> None:
    assert pod_requests(pod(container(cpu="0.5m"), container(cpu="0.5m"))) == {"cpu": 1}


def test_an_init_container_counts_with_the_sidecars_started_before_it() -> None:
    # while "second" runs: sidecar 200m + itself 900m = 1100m; afterwards 200m + 500m = 700m
    inits = [
        container("first", cpu="950m"),
        container("sidecar", "Always", cpu="200m"),
        container("second", cpu="900m"),
    ]
    assert pod_requests(pod(container(cpu="500m"), initContainers=inits)) == {"cpu": 1100}


def test_pod_level_requests_replace_sums_and_overhead_is_added() -> None:
    resized = pod(
        container(cpu="1", memory="1Gi", **{"example.com/gpu": "1"}),
        resources={"requests": {"cpu": "3"}},
        overhead={"cpu": "100m", "memory": "1"},
    )
    want = {"cpu": 3100, "memory": 2**30 + 1, "example.com/gpu": 1}
    assert pod_requests(resized) == want


def test_overhead_is_added_only_to_limits_that_are_set() -> None:
    limited = {"name": "c", "resources": {"limits": {"cpu": "1"}}}
    assert pod_limits(pod(limited, overhead={"cpu": "1", "memory": "1Gi"})) == {"cpu": 2000}
    by_pod = pod(limited, resources={"limits": {"cpu": "5"}})
    assert pod_limits(by_pod) == {"cpu": 5000}


def test_a_container_without_requests_counts_with_the_non_zero_defaults() -> None:
    usage = pod_usage(pod(container(), container(cpu="0")))
    assert usage.requests == {"cpu": 0}
    assert (usage.nonzero_cpu_milli, usage.nonzero_memory_bytes) == (100, 2 * 200 * 2**20)


def test_with_pod_level_requests_defaults_apply_only_to_resources_without_requests() -> None:
    usage = pod_usage(pod(container(), resources={"requests": {"cpu": "50m"}}))
    assert (usage.nonzero_cpu_milli, usage.nonzero_memory_bytes) == (50, 200 * 2**20)


def test_resources_that_nodes_do_not_account_for_are_ignored() -> None:
    usage = pod_usage(pod(container(cpu="1", storage="5Gi", pods="3")))
    assert usage.requests == {"cpu": 1000}


def resize(reason: str, **status: Any) -> dict[str, Any]:
    return {"conditions": [{"type": "PodResizePending", "reason": reason}], **status}


def in_status(allocated: str, used: str, name: str = "c") -> list[dict[str, Any]]:
    resources = {"requests": {"cpu": used}, "limits": {"cpu": used}}
    return [{"name": name, "allocatedResources": {"cpu": allocated}, "resources": resources}]


@pytest.mark.parametrize(
    ("asked", "allocated", "used", "want"),
    [("3", "1", "1", 3000), ("1", "2", "1", 2000), ("1", "1", "2", 2000)],
)
def test_while_a_container_is_resized_the_largest_amount_counts(
    asked: str, allocated: str, used: str, want: int
) -> None:
    statuses = {"containerStatuses": in_status(allocated, used)}
    assert pod_requests(pod(container(cpu=asked), status=statuses)) == {"cpu": want}


def test_an_infeasible_resize_does_not_count_the_requested_resources() -> None:
    status = resize("Infeasible", containerStatuses=in_status("1", "2"))
    assert pod_requests(pod(container(cpu="9"), status=status)) == {"cpu": 2000}
    deferred = resize("Deferred", containerStatuses=in_status("1", "2"))
    assert pod_requests(pod(container(cpu="9"), status=deferred)) == {"cpu": 9000}


def test_the_largest_amount_is_taken_for_each_container_before_they_are_added() -> None:
    # up from 1 to 2 in one container, down from 2 to 1 in the other: 2 + 2
    statuses = [*in_status("2", "2", "down"), *in_status("1", "1", "up")]
    crossed = pod(
        container("down", cpu="1"),
        container("up", cpu="2"),
        status={"containerStatuses": statuses},
    )
    assert pod_requests(crossed) == {"cpu": 4000}


@pytest.mark.parametrize("reason", ["Infeasible", "Deferred"])
def test_a_container_without_resources_in_effect_counts_as_its_spec_says(reason: str) -> None:
    allocated = {"name": "c", "allocatedResources": {"cpu": "2"}}
    status = resize(reason, containerStatuses=[allocated])
    assert pod_requests(pod(container(cpu="1"), status=status)) == {"cpu": 1000}


@pytest.mark.parametrize(("restart", "want"), [("", 1000), ("Always", 4000)])
def test_of_init_containers_only_sidecars_are_resized(restart: str, want: int) -> None:
    resized = pod(
        container(cpu="1"),
        initContainers=[container("i", restart, cpu="1")],
        status={"initContainerStatuses": in_status("3", "3", "i")},
    )
    assert pod_requests(resized) == {"cpu": want}


def test_resources_of_the_pod_in_the_status_change_no_sum_of_containers() -> None:
    in_effect = {"allocatedResources": {"cpu": "5"}, "resources": {"requests": {"cpu": "5"}}}
    assert pod_requests(pod(container(cpu="1"), status=in_effect)) == {"cpu": 1000}


def test_a_resized_container_without_a_request_counts_with_the_non_zero_default() -> None:
    status = {"containerStatuses": in_status("2", "2")}
    usage = pod_usage(pod(container(), status=status))
    assert (usage.nonzero_cpu_milli, usage.nonzero_memory_bytes) == (2000, 200 * 2**20)


@pytest.mark.parametrize(
    ("status", "want"),
    [
        ({}, 2100),
        # without resources in effect the allocated ones do not count
        ({"allocatedResources": {"cpu": "3"}}, 2100),
        ({"allocatedResources": {"cpu": "3"}, "resources": {}}, 3100),
        ({"resources": {"requests": {"cpu": "4"}}}, 4100),
        (resize("Deferred", resources={"requests": {"cpu": "1"}}), 2100),
        (resize("Infeasible", resources={"requests": {"cpu": "1"}}), 1100),
        (resize("Infeasible", resources={}), 100),
        # memory is not requested for the pod as a whole
        ({"resources": {"requests": {"memory": "1Gi"}}}, 2100),
    ],
)
def test_while_a_pod_is_resized_as_a_whole_overhead_is_added_to_the_largest_amount(
    status: dict[str, Any], want: int
) -> None:
    whole = {"resources": {"requests": {"cpu": "2"}}, "overhead": {"cpu": "100m"}}
    assert pod_requests(pod(container(cpu="1"), status=status, **whole)) == {"cpu": want}


def test_limits_are_those_of_the_spec_also_during_a_resize() -> None:
    limited = {"name": "c", "resources": {"limits": {"cpu": "1"}}}
    status = {"containerStatuses": in_status("1", "4")}
    assert pod_limits(pod(limited, status=status)) == {"cpu": 1000}


@pytest.mark.parametrize(
    ("broken", "field"),
    [
        (pod(container(cpu="1x")), "spec.containers[0].resources.requests[cpu]"),
        (pod(initContainers=[container(cpu="1x")]), "spec.initContainers[0].resources.requests"),
        (pod(overhead={"cpu": "1x"}), "spec.overhead[cpu]"),
        (pod(container(), resources={"requests": {"cpu": "1x"}}), "spec.resources.requests[cpu]"),
        (
            pod(container(), status={"containerStatuses": in_status("1x", "1")}),
            "status.containerStatuses[0].allocatedResources[cpu]",
        ),
        (
            pod(container(), status={"containerStatuses": in_status("1", "1x")}),
            "status.containerStatuses[0].resources.requests[cpu]",
        ),
    ],
)
def test_the_error_for_an_invalid_quantity_names_the_field(broken: Pod, field: str) -> None:
    with pytest.raises(InvalidObject) as refusal:
        pod_usage(broken)
    assert refusal.value.field.startswith(field)
    assert (refusal.value.name, refusal.value.uid, refusal.value.value) == ("default/p", "u", "1x")


def test_a_sum_beyond_int64_is_an_error() -> None:
    with pytest.raises(InvalidObject, match="expected at most 9223372036854775807"):
        pod_requests(pod(container(memory="8E"), container(memory="8E")))


def node(**allocatable: str) -> Node:
    body = {"metadata": {"name": "n"}, "status": {"allocatable": allocatable}}
    return convert_object(Node, body)


def test_allocatable_cpu_is_in_milli_units_and_the_rest_in_whole_units() -> None:
    offered = node(cpu="4", memory="1.5Ki", pods="110", storage="1", **{"example.com/gpu": "2"})
    want = {"cpu": 4000, "memory": 1536, "pods": 110, "example.com/gpu": 2}
    assert node_allocatable(offered) == want


@pytest.mark.parametrize("text", ["lots", "1e30"])
def test_a_node_with_an_invalid_quantity_is_an_error(text: str) -> None:
    with pytest.raises(InvalidObject, match=r"Node n: status\.allocatable\[memory\]"):
        node_allocatable(node(memory=text))


@pytest.mark.parametrize(
    ("name", "extended", "scalar"),
    [
        ("nvidia.com/gpu", True, True),
        ("hugepages-2Mi", False, True),
        ("attachable-volumes-csi-x", False, True),
        ("scheduling.kubernetes.io/x", False, True),
        ("requests.nvidia.com/gpu", False, False),
        ("storage", False, False),
        ("-bad-/x", False, False),
    ],
)
def test_resource_names_are_classified(name: str, extended: bool, scalar: bool) -> None:
    assert is_extended_resource_name(name) is extended
    assert is_scalar_resource_name(name) is scalar
