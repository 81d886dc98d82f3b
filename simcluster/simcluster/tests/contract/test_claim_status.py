"""The status of claims: allocations, consumers, and who may write them."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from simcluster.tests.contract.causes import DUPLICATE, FORBIDDEN, INVALID, TOO_MANY, causes
from simcluster.tests.contract.device_objects import (
    ADMIN,
    CLAIMS,
    MERGE,
    NOT_A_REQUEST,
    NOT_ALLOCATED,
    allocation,
    claim,
    consumer,
)
from simcluster.tests.support.api_client import ApiClient

Json = dict[str, Any]


async def allocated(api: ApiClient) -> Json:
    created = await api.create(CLAIMS, claim())
    status = {"allocation": allocation(), "reservedFor": [consumer()]}
    reply = await api.put(f"{CLAIMS}/c/status", {**created, "status": status})
    assert reply.status == 200, reply.text
    return reply.body


async def test_an_allocation_does_not_change_until_it_is_removed(api: ApiClient) -> None:
    stored = await allocated(api)
    changed = copy.deepcopy(stored)
    changed["status"]["allocation"]["devices"]["results"][0]["device"] = "gpu-1"
    reply = await api.put(f"{CLAIMS}/c/status", changed)
    assert [cause[:2] for cause in causes(reply)] == [(INVALID, "status.allocation")]
    timed = copy.deepcopy(stored)
    timed["status"]["allocation"]["allocationTimestamp"] = "2026-01-01T00:00:00Z"
    assert (await api.put(f"{CLAIMS}/c/status", timed)).status == 422
    reply = await api.put(f"{CLAIMS}/c/status", {**stored, "status": {}})
    assert reply.body["status"] == {}
    reply = await api.put(f"{CLAIMS}/c/status", {**reply.body, "status": changed["status"]})
    assert reply.body["status"]["allocation"]["devices"]["results"][0]["device"] == "gpu-1"


async def test_a_status_update_leaves_the_spec_and_the_finalizers_alone(api: ApiClient) -> None:
    created = await api.create(CLAIMS, claim())
    changed = copy.deepcopy(created)
    changed["spec"]["devices"]["requests"] = []
    changed["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
    changed["status"] = {"allocation": allocation()}
    reply = await api.put(f"{CLAIMS}/c/status", changed)
    assert reply.body["spec"] == created["spec"]
    assert "finalizers" not in reply.body["metadata"]


def _many_consumers(status: Json) -> None:
    status["reservedFor"] = [consumer(f"p{number}") for number in range(257)]


def _unknown_request(status: Json) -> None:
    status["allocation"]["devices"]["results"][0]["request"] = "nosuch"


STATUS_ERRORS: list[Any] = [
    pytest.param(
        _many_consumers,
        (TOO_MANY, "status.reservedFor", "Too many: 257: must have at most 256 items"),
    ),
    pytest.param(
        lambda status: status.update(reservedFor=[consumer(), consumer()]),
        (DUPLICATE, "status.reservedFor[1]", 'Duplicate value: "uid-p"'),
    ),
    pytest.param(
        lambda status: status.pop("allocation"),
        (
            FORBIDDEN,
            "status.reservedFor",
            "Forbidden: may not be specified when `allocated` is not set",
        ),
    ),
    pytest.param(
        _unknown_request,
        (
            INVALID,
            "status.allocation.devices.results[0].request",
            f'Invalid value: "nosuch": {NOT_A_REQUEST}',
        ),
    ),
    pytest.param(
        lambda status: status.update(
            devices=[{"driver": "gpu.example.com", "pool": "node-1", "device": "gpu-9"}]
        ),
        (
            INVALID,
            "status.devices[0]",
            f'Invalid value: "gpu.example.com/node-1/gpu-9": {NOT_ALLOCATED}',
        ),
    ),
    pytest.param(
        lambda status: status["allocation"]["devices"]["results"][0].update(adminAccess=True),
        (
            FORBIDDEN,
            "status.allocation.devices.results[0].adminAccess",
            f"Forbidden: {ADMIN}",
        ),
    ),
]


@pytest.mark.parametrize(("spoil", "expected"), STATUS_ERRORS)
async def test_a_bad_status_is_refused(
    api: ApiClient, spoil: Callable[[Json], Any], expected: tuple[str, str, str]
) -> None:
    created = await api.create(CLAIMS, claim())
    status = {"allocation": allocation(), "reservedFor": [consumer()]}
    spoil(status)
    reply = await api.put(f"{CLAIMS}/c/status", {**created, "status": status})
    assert causes(reply) == [expected]


async def test_a_claim_that_is_being_deleted_takes_no_more_consumers(api: ApiClient) -> None:
    finalizers = ["resource.kubernetes.io/delete-protection"]
    created = await api.create(
        CLAIMS, {**claim(), "metadata": {"name": "c", "finalizers": finalizers}}
    )
    status = {"allocation": allocation(), "reservedFor": [consumer(), consumer("q")]}
    await api.put(f"{CLAIMS}/c/status", {**created, "status": status})
    going = (await api.delete(f"{CLAIMS}/c")).body
    assert going["metadata"]["deletionTimestamp"]
    more = {"status": {"reservedFor": [*status["reservedFor"], consumer("new")]}}
    reply = await api.patch(f"{CLAIMS}/c/status", more, MERGE)
    assert [cause[:2] for cause in causes(reply)] == [(FORBIDDEN, "status.reservedFor")]
    fewer = {"status": {"reservedFor": [consumer("q")]}}
    assert (await api.patch(f"{CLAIMS}/c/status", fewer, MERGE)).status == 200
    await api.patch(f"{CLAIMS}/c", {"metadata": {"finalizers": None}}, MERGE)
    assert (await api.get(f"{CLAIMS}/c")).status == 404


async def test_a_strategic_merge_patch_removes_one_consumer_by_its_uid(api: ApiClient) -> None:
    stored = await allocated(api)
    removed = {"$patch": "delete", "uid": "uid-p"}
    patch = {"metadata": {"uid": stored["metadata"]["uid"]}, "status": {"reservedFor": [removed]}}
    reply = await api.patch(f"{CLAIMS}/c/status", patch)
    assert reply.status == 200, reply.text
    assert reply.body["status"] == {"allocation": stored["status"]["allocation"]}


async def test_the_status_of_a_device_goes_with_its_allocation(api: ApiClient) -> None:
    stored = await allocated(api)
    device = {"driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"}
    reply = await api.patch(f"{CLAIMS}/c/status", {"status": {"devices": [device]}}, MERGE)
    assert reply.body["status"]["devices"] == [device]
    gone = {"allocation": None, "reservedFor": None}
    reply = await api.patch(f"{CLAIMS}/c/status", {"status": gone}, MERGE)
    assert reply.body["status"] == {}
    assert reply.body["metadata"]["uid"] == stored["metadata"]["uid"]


GRANTED = {
    "status only": (["resourceclaims/status"], 422),
    "status and binding": (["resourceclaims/status", "resourceclaims/binding"], 200),
}


@pytest.mark.parametrize(("resources", "status"), GRANTED.values(), ids=GRANTED)
async def test_an_allocation_takes_the_permission_for_bindings(
    http: ApiClient, resources: list[str], status: int
) -> None:
    headers = {"Impersonate-User": "allocator"}
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    rule = {"apiGroups": ["resource.k8s.io"], "resources": resources, "verbs": ["update"]}
    await http.create(f"{rbac}/clusterroles", {"metadata": {"name": "allocator"}, "rules": [rule]})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "allocator"}
    bound = {
        "metadata": {"name": "allocator"},
        "roleRef": {**reference, "name": "allocator"},
        "subjects": [subject],
    }
    await http.create(f"{rbac}/clusterrolebindings", bound)
    created = await http.create(CLAIMS, claim())
    body = {**created, "status": {"allocation": allocation()}}
    try:
        reply = await http.request("PUT", f"{CLAIMS}/c/status", body, headers=headers)
        assert reply.status == status, reply.text
        if status == 422:
            [(reason, field, message)] = causes(reply)
            assert (reason, field) == (FORBIDDEN, "status")
            assert 'requires resource="resourceclaims/binding", verb="update"' in message
        unchanged = {**created, "status": reply.body["status"]} if status == 200 else created
        unchanged["metadata"].pop("resourceVersion", None)
        reply = await http.request("PUT", f"{CLAIMS}/c/status", unchanged, headers=headers)
        assert reply.status == 200, reply.text
    finally:
        await http.delete(f"{rbac}/clusterrolebindings/allocator")
        await http.delete(f"{rbac}/clusterroles/allocator")
        await http.delete(f"{CLAIMS}/c")
