"""Requests and mappings for extended resources that DRA serves."""

from __future__ import annotations

from stowage.api.objects.pod import Container, PodSpec, ResourceRequirements
from stowage.plugins.dynamic_resources.extended import extended_requests

GPU = "example.com/gpu"


def container(name: str, gpus: int, restart_policy: str = "") -> Container:
    requests: dict[str, str | int | float] = {"cpu": "1", GPU: str(gpus)} if gpus else {"cpu": "1"}
    return Container(name, resources=ResourceRequirements(requests), restart_policy=restart_policy)


def described(spec: PodSpec) -> tuple[list[str], list[str]]:
    found = extended_requests(spec, {GPU: "gpu"})
    requests = [
        f"{each.name} {each.exactly.count}"
        for each in found.spec.devices.requests
        if each.exactly is not None
    ]
    assert {each.resource_name for each in found.mappings} == {GPU}
    return requests, [f"{each.container_name} {each.request_name}" for each in found.mappings]


def test_each_container_has_its_request() -> None:
    spec = PodSpec((container("a", 1), container("b", 0), container("c", 2)))
    requests, mappings = described(spec)
    assert requests == ["container-0-request-1 1", "container-2-request-1 2"]
    assert mappings == ["a container-0-request-1", "c container-2-request-1"]


def test_an_init_container_reuses_requests_of_containers_behind_it() -> None:
    spec = PodSpec((container("a", 1), container("b", 2)), (container("i", 2),))
    requests, mappings = described(spec)
    assert requests == ["container-1-request-1 1", "container-2-request-1 2"]
    assert mappings == [
        "a container-1-request-1",
        "b container-2-request-1",
        "i container-1-request-1",
        "i container-2-request-1",
    ]


def test_of_what_init_containers_need_beyond_only_the_largest_is_kept() -> None:
    init = (container("i", 2), container("j", 4))
    requests, mappings = described(PodSpec((container("a", 1),), init))
    assert requests == ["container-1-request-1 3", "container-2-request-1 1"]
    assert mappings == [
        "a container-2-request-1",
        "i container-2-request-1",
        "i container-1-request-1",
        "j container-2-request-1",
        "j container-1-request-1",
    ]


def test_a_sidecar_has_a_request_that_only_earlier_init_containers_reuse() -> None:
    init = (container("i", 1), container("side", 1, "Always"), container("j", 1))
    requests, mappings = described(PodSpec((container("a", 0),), init))
    assert requests == ["container-1-request-1 1", "container-2-request-1 1"]
    assert mappings == [
        "side container-1-request-1",
        "i container-1-request-1",
        "j container-2-request-1",
    ]
