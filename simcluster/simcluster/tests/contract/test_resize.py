"""The subresource ``resize`` of pods."""

from typing import Any

import pytest

from simcluster.tests.contract.causes import causes
from simcluster.tests.contract.requests import PODS
from simcluster.tests.support.api_client import ApiClient, Reply, pod

Json = dict[str, Any]
Cause = tuple[str, str, str]


def container(name: str, requests: Json, limits: Json | None = None, **fields: Any) -> Json:
    resources = {"requests": requests, **({"limits": limits} if limits else {})}
    return {"name": name, "image": "x:1", "resources": resources, **fields}


async def resize(api: ApiClient, spec: Json) -> Reply:
    """Replace the resources of a pod of two containers and an init container."""
    await api.create(
        PODS,
        pod(
            containers=[
                container("c", {"cpu": "1"}, {"cpu": "2", "memory": "1Gi"}),
                container("d", {"example.com/gpu": "1"}, {"example.com/gpu": "1"}),
            ],
            initContainers=[container("i", {"cpu": "1"})],
        ),
    )
    whole = (await api.get(f"{PODS}/a")).body
    whole["spec"] |= spec
    return await api.put(f"{PODS}/a/resize", whole)


def containers(c: Json, d: Json, order: str = "cd") -> Json:
    return {"containers": [{"c": c, "d": d}[name] for name in order]}


C = container("c", {"cpu": "1"}, {"cpu": "2", "memory": "1Gi"})
D = container("d", {"example.com/gpu": "1"}, {"example.com/gpu": "1"})


async def test_cpu_and_memory_change(api: ApiClient) -> None:
    larger = container("c", {"cpu": "1500m", "memory": "512Mi"}, {"cpu": "3", "memory": "2Gi"})
    reply = await resize(api, containers(larger, D))
    assert reply.status == 200, reply.text
    assert reply.body["spec"]["containers"][0]["resources"] == larger["resources"]


async def test_what_a_resize_cannot_change_is_left_as_it_is(api: ApiClient) -> None:
    other = {**container("c", {"cpu": "1500m"}, {"cpu": "2", "memory": "1Gi"}), "image": "y:2"}
    reply = await resize(api, {**containers(other, D), "priority": 7})
    assert reply.status == 200, reply.text
    assert reply.body["spec"]["containers"][0]["image"] == "x:1"
    assert reply.body["spec"]["priority"] == 0


FORBIDDEN = "FieldValueForbidden"
REORDERED = "Forbidden: containers may not be renamed or reordered on resize"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            containers(container("c", {"cpu": "1"}, {"cpu": "2"}), D),
            [
                (
                    FORBIDDEN,
                    "spec.containers[0].resources.requests",
                    "Forbidden: resource requests cannot be removed",
                ),
                (
                    FORBIDDEN,
                    "spec.containers[0].resources.limits",
                    "Forbidden: resource limits cannot be removed",
                ),
            ],
        ),
        (
            containers(C, D, "dc"),
            [
                (FORBIDDEN, "spec.containers[0].name", REORDERED),
                (FORBIDDEN, "spec.containers[1].name", REORDERED),
            ],
        ),
        (
            containers(C, D, "c"),
            [
                (
                    FORBIDDEN,
                    "spec.containers",
                    "Forbidden: containers may not be added or removed on resize",
                )
            ],
        ),
        (
            {"initContainers": [container("i", {"cpu": "2"})]},
            [
                (
                    FORBIDDEN,
                    "spec.initContainers[0].resources",
                    "Forbidden: resources for non-sidecar init containers are immutable",
                )
            ],
        ),
    ],
    ids=["removed", "reordered", "fewer", "init container"],
)
async def test_a_resize_of_something_else_is_refused(
    api: ApiClient, spec: Json, expected: list[Cause]
) -> None:
    assert causes(await resize(api, spec)) == expected


async def test_the_error_shows_the_other_resources_that_changed(api: ApiClient) -> None:
    more = container("d", {"example.com/gpu": "2"}, {"example.com/gpu": "2"})
    ((reason, field, message),) = causes(await resize(api, containers(C, more)))
    assert (reason, field) == (FORBIDDEN, "spec")
    assert message.startswith("Forbidden: only cpu and memory resources are mutable\n")
    assert '-          "example.com/gpu": "1"' in message
    assert '+          "example.com/gpu": "2"' in message


async def test_the_quality_of_service_does_not_change(api: ApiClient) -> None:
    await api.create(PODS, pod())
    patch = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}
    assert causes(await api.patch(f"{PODS}/a/resize", patch)) == [
        (
            "FieldValueInvalid",
            "spec",
            'Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing',
        )
    ]
