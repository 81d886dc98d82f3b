"""LimitRanges give containers defaults and refuse what exceeds them."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from simcluster.tests.contract.causes import FORBIDDEN, INVALID, causes
from simcluster.tests.contract.requests import CLAIMS, PODS, STORAGE_CLASSES
from simcluster.tests.support.api_client import MERGE, STRATEGIC, ApiClient, Reply, pod

Json = dict[str, Any]

LIMIT_RANGES = "/api/v1/namespaces/default/limitranges"


@pytest.fixture(autouse=True)
async def _no_limits_are_left(api: ApiClient) -> AsyncIterator[None]:
    yield
    await api.delete(LIMIT_RANGES)


async def limit(api: ApiClient, type_: str, **fields: Json) -> None:
    spec = {"limits": [{"type": type_, **fields}]}
    await api.create(LIMIT_RANGES, {"metadata": {"name": "limits"}, "spec": spec})


def container(name: str = "c", **resources: Json) -> Json:
    return {"name": name, "image": "x:1", "resources": resources}


def refusal(reply: Reply) -> str:
    assert (reply.status, reply.body["reason"]) == (403, "Forbidden"), reply.text
    message: str = reply.body["message"]
    return message.partition(" is forbidden: ")[2]


async def test_containers_get_the_defaults_of_their_namespace(api: ApiClient) -> None:
    await limit(
        api,
        "Container",
        default={"cpu": "500m", "memory": "1Gi"},
        defaultRequest={"cpu": "100m", "memory": "256Mi"},
    )
    containers = [container("c", requests={"cpu": "200m"}), container("d")]
    created = await api.create(
        PODS, pod(containers=containers, initContainers=[container("i", limits={"cpu": "1"})])
    )
    spec = created["spec"]
    assert [found["resources"] for found in (*spec["initContainers"], *spec["containers"])] == [
        {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "256Mi"}},
        {
            "limits": {"cpu": "500m", "memory": "1Gi"},
            "requests": {"cpu": "200m", "memory": "256Mi"},
        },
        {
            "limits": {"cpu": "500m", "memory": "1Gi"},
            "requests": {"cpu": "100m", "memory": "256Mi"},
        },
    ]
    assert created["status"]["qosClass"] == "Burstable"
    assert created["metadata"]["annotations"] == {
        "kubernetes.io/limit-ranger": (
            "LimitRanger plugin set: memory request for container c; "
            "cpu, memory limit for container c; cpu, memory request for container d; "
            "cpu, memory limit for container d; memory request for init container i; "
            "memory limit for init container i"
        )
    }


async def test_a_maximum_is_the_default_of_what_says_nothing(api: ApiClient) -> None:
    await limit(api, "Container", max={"cpu": "2"})
    created = await api.create(PODS, pod())
    assert created["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "2"},
        "requests": {"cpu": "2"},
    }


CPU = {"cpu": "1"}
NO_STORAGE = (
    "Required value: either minimum or maximum storage value is required, but neither was provided"
)
RATIO = "cpu max limit to request ratio per Container is 2, but"


@pytest.mark.parametrize(
    ("type_", "bounds", "resources", "why"),
    [
        ("Container", {"max": CPU}, {"requests": {"cpu": "2"}, "limits": {"cpu": "3"}},
         "maximum cpu usage per Container is 1, but limit is 3"),
        ("Container", {"min": CPU}, {"requests": {"cpu": "500m"}},
         "minimum cpu usage per Container is 1, but request is 500m"),
        ("Pod", {"min": CPU}, {}, "minimum cpu usage per Pod is 1.  No request is specified"),
        ("Pod", {"max": CPU}, {}, "maximum cpu usage per Pod is 1.  No limit is specified"),
        ("Pod", {"max": CPU}, {"limits": {"cpu": "1500m"}},
         "maximum cpu usage per Pod is 1, but limit is 1500m"),
        ("Container", {"maxLimitRequestRatio": {"cpu": "2"}},
         {"requests": {"cpu": "1"}, "limits": {"cpu": "3"}},
         f"{RATIO} provided ratio is 3.000000"),
        ("Container", {"maxLimitRequestRatio": {"cpu": "2"}}, {"requests": {"cpu": "1"}},
         f"{RATIO} no limit is specified or limit is 0"),
        ("Container", {"maxLimitRequestRatio": {"cpu": "2"}}, {},
         f"{RATIO} no request is specified or request is 0"),
    ],
)  # fmt: skip
async def test_a_pod_beyond_the_limits_is_refused(
    api: ApiClient, type_: str, bounds: Json, resources: Json, why: str
) -> None:
    await limit(api, type_, **bounds)
    reply = await api.post(PODS, pod(containers=[container(**resources)]))
    assert refusal(reply) == why
    assert (await api.get(f"{PODS}/a")).status == 404


async def test_the_limits_of_a_pod_are_those_of_all_its_containers(api: ApiClient) -> None:
    await limit(api, "Pod", max={"memory": "1Gi"})
    containers = [container(name, limits={"memory": "600Mi"}) for name in "cd"]
    reply = await api.post(PODS, pod(containers=containers))
    assert refusal(reply) == "maximum memory usage per Pod is 1Gi, but limit is 1200Mi"
    containers[0]["resources"]["limits"]["memory"] = "424Mi"
    assert (await api.post(PODS, pod(containers=containers))).status == 201


async def test_what_an_init_container_requests_counts_without_a_limit(api: ApiClient) -> None:
    await limit(api, "Pod", max=CPU)
    spec: Json = {
        "containers": [container("c", limits={"cpu": "1"})],
        "initContainers": [container("i", requests={"cpu": "3"})],
    }
    reply = await api.post(PODS, pod(**spec))
    assert refusal(reply) == "maximum cpu usage per Pod is 1, but request is 3"


async def test_an_invalid_pod_is_named_as_such_before_its_limits(api: ApiClient) -> None:
    await limit(api, "Pod", min=CPU)
    assert (await api.post(PODS, pod(restartPolicy="Perhaps"))).status == 422


async def test_a_container_without_a_name_is_invalid_before_its_limits(api: ApiClient) -> None:
    await limit(api, "Container", default=CPU)
    reply = await api.post(PODS, pod(containers=[{"image": "x:1"}]))
    assert ("FieldValueRequired", "spec.containers[0].name", "Required value") in causes(reply)


async def test_other_namespaces_have_other_limits(api: ApiClient) -> None:
    await limit(api, "Pod", min=CPU)
    reply = await api.post(PODS.replace("default", "kube-public"), pod())
    assert reply.status == 201
    await api.delete(f"{PODS.replace('default', 'kube-public')}/a?gracePeriodSeconds=0")


async def test_a_pod_is_not_resized_beyond_the_limits(api: ApiClient) -> None:
    await limit(api, "Container", max={"cpu": "2"})
    await api.create(PODS, pod(containers=[container(requests={"cpu": "1"})]))
    larger = {"name": "c", "resources": {"requests": {"cpu": "3"}, "limits": {"cpu": "4"}}}
    patch = {"spec": {"containers": [larger]}}
    reply = await api.patch(f"{PODS}/a/resize", patch, STRATEGIC)
    assert refusal(reply) == "maximum cpu usage per Container is 2, but limit is 4"


async def test_a_resize_to_a_limit_alone_requests_the_limit(api: ApiClient) -> None:
    await limit(api, "Container", default={"cpu": "2"}, defaultRequest=CPU)
    created = await api.create(PODS, pod())
    created["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "3"}}
    reply = await api.put(f"{PODS}/a/resize", created)
    assert reply.status == 200, reply.text
    assert reply.body["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "3"},
        "requests": {"cpu": "3"},
    }


@pytest.mark.parametrize(
    ("storage", "why"),
    [
        ("2Gi", "maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi"),
        ("1Mi", "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi"),
    ],
)
async def test_a_claim_beyond_the_limits_is_refused(api: ApiClient, storage: str, why: str) -> None:
    bound = {"storage": "1Gi"}
    await limit(api, "PersistentVolumeClaim", min=bound, max=bound)
    claim = {
        "metadata": {"name": "a"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": storage}},
        },
    }
    assert refusal(await api.post(CLAIMS, claim)) == why


async def test_a_bound_claim_does_not_grow_beyond_the_limits(api: ApiClient) -> None:
    await limit(api, "PersistentVolumeClaim", max={"storage": "2Gi"})
    growing = {"provisioner": "example.com/p", "allowVolumeExpansion": True}
    await api.create(STORAGE_CLASSES, {"metadata": {"name": "growing"}, **growing})
    spec = {"accessModes": ["ReadWriteOnce"], "volumeName": "v", "storageClassName": "growing"}
    size = {"resources": {"requests": {"storage": "1Gi"}}}
    await api.create(CLAIMS, {"metadata": {"name": "a"}, "spec": {**spec, **size}})
    await api.patch(f"{CLAIMS}/a/status", {"status": {"phase": "Bound"}}, MERGE)
    for storage, status in (("2Gi", 200), ("3Gi", 403)):
        patch = {"spec": {"resources": {"requests": {"storage": storage}}}}
        reply = await api.patch(f"{CLAIMS}/a", patch, MERGE)
        assert reply.status == status, reply.text
    why = "maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi"
    assert refusal(reply) == why


@pytest.mark.parametrize(
    ("item", "reason", "field", "message"),
    [
        ({"type": "Container", "min": {"cpu": "2"}, "max": CPU, "default": CPU},
         INVALID, "min[cpu]", 'Invalid value: "2": min value 2 is greater than max value 1'),
        ({"type": "Container", "min": CPU, "default": {"cpu": "2"}, "defaultRequest": {"cpu": "0"}},
         INVALID, "defaultRequest[cpu]",
         'Invalid value: "0": min value 1 is greater than default request value 0'),
        ({"type": "Container", "max": CPU, "default": {"cpu": "2"}, "defaultRequest": CPU},
         INVALID, "default[cpu]",
         'Invalid value: "1": default value 2 is greater than max value 1'),
        ({"type": "Container", "default": CPU, "defaultRequest": {"cpu": "2"}},
         INVALID, "defaultRequest[cpu]",
         'Invalid value: "2": default request value 2 is greater than default limit value 1'),
        ({"type": "Pod", "default": CPU}, FORBIDDEN, "default",
         "Forbidden: may not be specified when `type` is 'Pod'"),
        ({"type": "PersistentVolumeClaim"}, "FieldValueRequired", "limits", NO_STORAGE),
    ],
)  # fmt: skip
async def test_an_inconsistent_limit_range_is_refused(
    api: ApiClient, item: Json, reason: str, field: str, message: str
) -> None:
    body = {"metadata": {"name": "limits"}, "spec": {"limits": [item]}}
    found = causes(await api.post(LIMIT_RANGES, body))
    assert (reason, f"spec.limits[0].{field}", message) in found


async def test_a_limit_range_has_one_item_of_each_type(api: ApiClient) -> None:
    item = {"type": "Container", "max": CPU}
    body = {"metadata": {"name": "limits"}, "spec": {"limits": [item, item]}}
    assert causes(await api.post(LIMIT_RANGES, body)) == [
        ("FieldValueDuplicate", "spec.limits[1].type", 'Duplicate value: "Container"')
    ]
