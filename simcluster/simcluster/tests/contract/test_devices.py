"""The kinds of ``resource.k8s.io``: defaults, validation, statuses, tables and selectors."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from simcluster.tests.contract.requests import causes
from simcluster.tests.support.api_client import ApiClient

Json = dict[str, Any]

GROUP = "/apis/resource.k8s.io/v1"
CLAIMS = f"{GROUP}/namespaces/default/resourceclaims"
TEMPLATES = f"{GROUP}/namespaces/default/resourceclaimtemplates"
CLASSES = f"{GROUP}/deviceclasses"
SLICES = f"{GROUP}/resourceslices"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
MERGE = "application/merge-patch+json"
REQUIRED, INVALID = "FieldValueRequired", "FieldValueInvalid"
FORBIDDEN, DUPLICATE = "FieldValueForbidden", "FieldValueDuplicate"
TOO_MANY = "FieldValueTooMany"
REQUESTS = "spec.devices.requests"
NOT_A_REQUEST = (
    "must be the name of a request in the claim or the name of a request and a subrequest "
    "separated by '/'"
)
ONE_KIND = "exactly one of `exactly` or `firstAvailable` is required"
NOT_QUALIFIED = "a fully qualified name must be a domain and a name separated by a slash"
ONE_ATTRIBUTE = (
    'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are '
    "set"
)
NOT_ALLOCATED = "must be an allocated device in the claim"
ADMIN = (
    "admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on "
    "the containing namespace"
)


def request(name: str = "gpu", **exactly: Any) -> Json:
    return {"name": name, "exactly": {"deviceClassName": "gpu.example.com", **exactly}}


def claim(name: str = "c", **devices: Any) -> Json:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [request()], **devices}},
    }


def device_class(**spec: Any) -> Json:
    return {"metadata": {"name": "gpu.example.com"}, "spec": spec}


def device_slice(*devices: Json, **spec: Any) -> Json:
    nodes = {} if spec.keys() & {"allNodes", "perDeviceNodeSelection"} else {"nodeName": "node-1"}
    pool = {"name": "node-1", "generation": 1, "resourceSliceCount": 1}
    listed = {"devices": list(devices)} if devices else {}
    base = {"driver": "gpu.example.com", "pool": pool, **nodes, **listed}
    return {"metadata": {"name": "slice"}, "spec": {**base, **spec}}


def allocation(**result: Any) -> Json:
    base = {"request": "gpu", "driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"}
    field = {"key": "metadata.name", "operator": "In", "values": ["node-1"]}
    return {
        "devices": {"results": [{**base, **result}]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
    }


def consumer(name: str = "p") -> Json:
    return {"resource": "pods", "name": name, "uid": f"uid-{name}"}


async def test_a_claim_is_filled_with_defaults_and_starts_with_an_empty_status(
    api: ApiClient,
) -> None:
    body = claim(requests=[request(tolerations=[{"key": "a", "value": "b"}])])
    body["status"] = {"allocation": allocation()}
    created = await api.create(CLAIMS, body)
    exactly = created["spec"]["devices"]["requests"][0]["exactly"]
    assert (exactly["allocationMode"], exactly["count"]) == ("ExactCount", 1)
    assert exactly["tolerations"] == [{"key": "a", "operator": "Equal", "value": "b"}]
    assert created["status"] == {}
    assert "generation" not in created["metadata"]


async def test_alternatives_and_templates_get_the_same_defaults(api: ApiClient) -> None:
    alternatives = [
        {"name": "all", "deviceClassName": "a", "allocationMode": "All"},
        {"name": "one", "deviceClassName": "b"},
    ]
    requests = [{"name": "gpu", "firstAvailable": alternatives}]
    template = {"metadata": {"name": "t"}, "spec": {"spec": {"devices": {"requests": requests}}}}
    created = await api.create(TEMPLATES, template)
    filled = created["spec"]["spec"]["devices"]["requests"][0]["firstAvailable"]
    assert [each.get("count") for each in filled] == [None, 1]
    assert created["spec"]["metadata"] == {}


async def test_a_slice_is_filled_with_the_time_of_taints_and_canonical_amounts(
    api: ApiClient,
) -> None:
    device = {
        "name": "gpu-0",
        "capacity": {"memory": {"value": "1.5Gi"}},
        "attributes": {"index": {"int": 2**40}, "list": {"strings": ["dropped"], "int": 1}},
        "taints": [{"key": "broken", "effect": "NoSchedule"}],
    }
    created = await api.create(SLICES, device_slice(device))
    stored = created["spec"]["devices"][0]
    assert stored["capacity"] == {"memory": {"value": "1536Mi"}}
    assert stored["attributes"] == {"index": {"int": 2**40}, "list": {"int": 1}}
    assert stored["taints"][0]["timeAdded"].endswith("Z")
    assert created["metadata"]["generation"] == 1


CLAIM_ERRORS: list[Any] = [
    pytest.param([{"name": "gpu"}], [(REQUIRED, f"{REQUESTS}[0]", f"Required value: {ONE_KIND}")]),
    pytest.param(
        [{**request(), "firstAvailable": [{"name": "a", "deviceClassName": "b"}]}],
        [
            (
                INVALID,
                f"{REQUESTS}[0]",
                f"Invalid value: null: {ONE_KIND}, but multiple fields are set",
            )
        ],
    ),
    pytest.param(
        [{"name": "gpu", "exactly": {}}],
        [(REQUIRED, f"{REQUESTS}[0].exactly.deviceClassName", "Required value")],
    ),
    pytest.param([request(), request()], [(DUPLICATE, f"{REQUESTS}[1]", 'Duplicate value: "gpu"')]),
    pytest.param(
        [request(allocationMode="All", count=2)],
        [
            (
                INVALID,
                f"{REQUESTS}[0].exactly.count",
                "Invalid value: 2: must not be specified when allocationMode is 'All'",
            )
        ],
    ),
    pytest.param(
        [request(count=-1)],
        [(INVALID, f"{REQUESTS}[0].exactly.count", "Invalid value: -1: must be greater than zero")],
    ),
    pytest.param(
        [request(selectors=[{}])],
        [(REQUIRED, f"{REQUESTS}[0].exactly.selectors[0].cel", "Required value")],
    ),
    pytest.param(
        [request(f"r{number}") for number in range(33)],
        [(TOO_MANY, REQUESTS, "Too many: 33: must have at most 32 items")],
    ),
    pytest.param(
        [request(tolerations=[{"key": "a", "operator": "Exists", "value": "b"}])],
        [
            (
                INVALID,
                f"{REQUESTS}[0].exactly.tolerations[0].value",
                'Invalid value: "b": must be empty for operator `Exists`',
            )
        ],
    ),
    pytest.param(
        [request(adminAccess=True)],
        [(FORBIDDEN, f"{REQUESTS}[0].adminAccess", f"Forbidden: {ADMIN}")],
    ),
]


@pytest.mark.parametrize(("requests", "expected"), CLAIM_ERRORS)
async def test_a_claim_with_bad_requests_is_refused(
    api: ApiClient, requests: list[Json], expected: list[tuple[str, str, str]]
) -> None:
    assert causes(await api.post(CLAIMS, claim(requests=requests))) == expected


async def test_constraints_and_configuration_must_name_requests_of_the_claim(
    api: ApiClient,
) -> None:
    body = claim(
        constraints=[{"requests": ["gpu", "other"], "matchAttribute": "model"}, {}],
        config=[{"requests": ["a/b/c"], "opaque": {"driver": "d", "parameters": [1]}}, {}],
    )
    devices = "spec.devices"
    assert causes(await api.post(CLAIMS, body)) == [
        (
            INVALID,
            f"{devices}.constraints[0].requests[1]",
            f'Invalid value: "other": {NOT_A_REQUEST}',
        ),
        (
            INVALID,
            f"{devices}.constraints[0].matchAttribute",
            f'Invalid value: "model": {NOT_QUALIFIED}',
        ),
        (
            REQUIRED,
            f"{devices}.constraints[1]",
            f"Required value: {ONE_ATTRIBUTE}",
        ),
        (
            INVALID,
            f"{devices}.config[0].requests[0]",
            f'Invalid value: "a/b/c": {NOT_A_REQUEST}',
        ),
        (
            INVALID,
            f"{devices}.config[0].opaque.parameters",
            'Invalid value: "<value omitted>": must be a valid JSON object',
        ),
        (REQUIRED, f"{devices}.config[1].opaque", "Required value"),
    ]


async def test_admin_access_is_for_namespaces_with_its_label(api: ApiClient) -> None:
    labels = {"resource.kubernetes.io/admin-access": "true"}
    namespace = {"metadata": {"name": "admins", "labels": labels}}
    await api.create("/api/v1/namespaces", namespace)
    path = CLAIMS.replace("default", "admins")
    created = await api.create(path, claim(requests=[request(adminAccess=True)]))
    status = {"allocation": allocation(adminAccess=True), "reservedFor": [consumer()]}
    reply = await api.put(f"{path}/c/status", {**created, "status": status})
    assert reply.status == 200, reply.text
    await api.delete("/api/v1/namespaces/admins")


async def test_the_spec_of_claims_and_templates_is_immutable(api: ApiClient) -> None:
    parameters = {"b": 1, "a": 2}
    config = [{"opaque": {"driver": "gpu.example.com", "parameters": parameters}}]
    created = await api.create(CLAIMS, claim(config=config))
    assert (await api.put(f"{CLAIMS}/c", created)).status == 200
    changed = copy.deepcopy(created)
    changed["spec"]["devices"]["requests"].append(request("more"))
    reply = await api.put(f"{CLAIMS}/c", changed)
    assert [cause[:2] for cause in causes(reply)] == [(INVALID, "spec")]
    assert reply.body["message"].endswith("field is immutable")
    reordered = copy.deepcopy(created)
    reordered["spec"]["devices"]["config"][0]["opaque"]["parameters"] = {"a": 2, "b": 1}
    assert (await api.put(f"{CLAIMS}/c", reordered)).status == 422
    spec = {"spec": claim()["spec"]}
    template = await api.create(TEMPLATES, {"metadata": {"name": "t"}, "spec": spec})
    template["spec"]["metadata"] = {"labels": {"a": "b"}}
    assert (await api.put(f"{TEMPLATES}/t", template)).status == 422


async def test_a_class_checks_its_selectors_and_its_extended_resource(api: ApiClient) -> None:
    reply = await api.post(CLASSES, device_class(selectors=[{}], extendedResourceName="cpu"))
    assert causes(reply) == [
        (REQUIRED, "spec.selectors[0].cel", "Required value"),
        (
            INVALID,
            "spec.extendedResourceName",
            'Invalid value: "cpu": must be a valid extended resource name',
        ),
    ]
    cel = {"cel": {"expression": 'device.driver == "gpu.example.com"'}}
    spec = {"selectors": [cel], "extendedResourceName": "example.com/gpu"}
    created = await api.create(CLASSES, device_class(**spec))
    created["spec"]["selectors"] = []
    reply = await api.put(f"{CLASSES}/gpu.example.com", created)
    assert reply.body["metadata"]["generation"] == 2


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


COUNTERS: Json = {"memory": {"value": "80Gi"}}
CONSUMES: Json = {"counterSet": "gpu-0", "counters": COUNTERS}
POLICY: Json = {"default": "1Gi", "validRange": {"min": "1Gi", "step": "1Gi"}}
DEVICE = "spec.devices[0]"
SLICE_ERRORS: list[Any] = [
    pytest.param(
        device_slice({"name": "Gpu"}),
        [(INVALID, f"{DEVICE}.name")],
        id="name of a device",
    ),
    pytest.param(
        device_slice({"name": "a"}, {"name": "a"}),
        [(DUPLICATE, "spec.devices[1]")],
        id="two devices of a name",
    ),
    pytest.param(
        device_slice({"name": "a"}, allNodes=True, nodeName="node-1"),
        [(INVALID, "spec")],
        id="two ways to say the nodes",
    ),
    pytest.param(
        device_slice({"name": "a"}, nodeName=""),
        [(INVALID, "spec.nodeName"), (REQUIRED, "spec")],
        id="empty node name",
    ),
    pytest.param(
        device_slice({"name": "a"}, perDeviceNodeSelection=True),
        [(REQUIRED, DEVICE)],
        id="device without its nodes",
    ),
    pytest.param(
        device_slice({"name": "a", "allNodes": True}),
        [(INVALID, DEVICE)],
        id="nodes of a device in a slice of a node",
    ),
    pytest.param(
        device_slice({"name": "a"}, pool={"name": "", "resourceSliceCount": 0}),
        [(REQUIRED, "spec.pool.name"), (INVALID, "spec.pool.resourceSliceCount")],
        id="pool",
    ),
    pytest.param(
        device_slice({"name": "a", "attributes": {"model": {"string": "x", "int": 1}}}),
        [(INVALID, f"{DEVICE}.attributes[model]")],
        id="attribute of two values",
    ),
    pytest.param(
        device_slice({"name": "a", "attributes": {"v": {"version": "1.2"}}}),
        [(INVALID, f"{DEVICE}.attributes[v].version")],
        id="version",
    ),
    pytest.param(
        device_slice({"name": "a", "attributes": {"no-identifier": {"int": 1}}}),
        [(INVALID, f"{DEVICE}.attributes")],
        id="name of an attribute",
    ),
    pytest.param(
        device_slice({"name": "a", "taints": [{"key": "k"}]}),
        [(REQUIRED, f"{DEVICE}.taints[0].effect")],
        id="taint",
    ),
    pytest.param(
        device_slice({"name": "a"}, sharedCounters=[{"name": "s", "counters": COUNTERS}]),
        [(INVALID, "spec")],
        id="counters and devices",
    ),
    pytest.param(
        device_slice({"name": "a", "consumesCounters": [CONSUMES, CONSUMES]}),
        [(DUPLICATE, f"{DEVICE}.consumesCounters[1]")],
        id="counter set twice",
    ),
    pytest.param(
        device_slice({"name": "a", "capacity": {"m": {"value": "8Gi", "requestPolicy": POLICY}}}),
        [(FORBIDDEN, f"{DEVICE}.capacity[m].requestPolicy")],
        id="policy of a device that is not shared",
    ),
    pytest.param(
        device_slice(
            {
                "name": "a",
                "allowMultipleAllocations": True,
                "capacity": {
                    "m": {"value": "8Gi", "requestPolicy": {**POLICY, "default": "1500Mi"}}
                },
            }
        ),
        [(INVALID, f"{DEVICE}.capacity[m].requestPolicy.validRange.step")],
        id="default between two steps",
    ),
    pytest.param(
        device_slice({"name": "a", "bindingConditions": ["ready"]}),
        [(INVALID, f"{DEVICE}.bindingFailureConditions")],
        id="binding conditions without failures",
    ),
    pytest.param(
        device_slice(
            *({"name": f"d{number}", "consumesCounters": [CONSUMES]} for number in range(65))
        ),
        [(TOO_MANY, "spec.devices")],
        id="65 devices with counters",
    ),
]


@pytest.mark.parametrize(("body", "expected"), SLICE_ERRORS)
async def test_a_bad_slice_is_refused(
    api: ApiClient, body: Json, expected: list[tuple[str, str]]
) -> None:
    assert [cause[:2] for cause in causes(await api.post(SLICES, body))] == expected


async def test_a_slice_keeps_its_driver_its_pool_and_its_node(api: ApiClient) -> None:
    stored = await api.create(SLICES, device_slice({"name": "a"}))
    stored["spec"] |= {"driver": "other.example.com", "nodeName": "node-2"}
    stored["spec"]["pool"]["name"] = "other"
    found = causes(await api.put(f"{SLICES}/slice", stored))
    fields = ["spec.pool.name", "spec.driver", "spec.nodeName"]
    assert [cause[1] for cause in found] == fields


async def test_slices_are_selected_by_node_and_driver(api: ApiClient) -> None:
    await api.create(SLICES, device_slice({"name": "a"}))
    other = device_slice({"name": "a"}, allNodes=True)
    await api.create(SLICES, {**other, "metadata": {"name": "shared"}})
    for selector, names in (
        ("spec.nodeName%3Dnode-1", ["slice"]),
        ("spec.nodeName%3D", ["shared"]),
        ("spec.driver%3Dgpu.example.com", ["shared", "slice"]),
    ):
        items = (await api.get(f"{SLICES}?fieldSelector={selector}")).body["items"]
        assert [item["metadata"]["name"] for item in items] == names


async def test_a_table_shows_the_state_of_claims(api: ApiClient) -> None:
    finalizers = ["resource.kubernetes.io/delete-protection"]
    for name in ("free", "used", "going"):
        body = {**claim(), "metadata": {"name": name, "finalizers": finalizers}}
        created = await api.create(CLAIMS, body)
        if name == "used":
            status = {"allocation": allocation(), "reservedFor": [consumer()]}
            await api.put(f"{CLAIMS}/used/status", {**created, "status": status})
    await api.delete(f"{CLAIMS}/going")
    rows = (await api.get(CLAIMS, TABLE)).body["rows"]
    states = {row["cells"][0]: row["cells"][1] for row in rows}
    assert states == {"free": "pending", "used": "allocated,reserved", "going": "deleted"}


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
