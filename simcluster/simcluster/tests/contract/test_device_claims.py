"""Claims, their templates and device classes: defaults, validation and tables."""

import copy
from typing import Any

import pytest

from simcluster.tests.contract.causes import (
    DUPLICATE,
    FORBIDDEN,
    INVALID,
    REQUIRED,
    TOO_MANY,
    causes,
)
from simcluster.tests.contract.device_objects import (
    ADMIN,
    CLAIMS,
    CLASSES,
    NOT_A_REQUEST,
    NOT_QUALIFIED,
    ONE_ATTRIBUTE,
    ONE_KIND,
    REQUESTS,
    TABLE,
    TEMPLATES,
    allocation,
    claim,
    consumer,
    device_class,
    request,
)
from simcluster.tests.support.api_client import ApiClient

Json = dict[str, Any]


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


NO_FIELD = (
    "compilation failed: ERROR: <input>:1:7: undefined field 'model'\n | device.model\n | ......^"
)
NO_BOOL = "must evaluate to bool or the unknown type, not string"
TOO_COMPLEX = 'device.capacity["gpu.example.com"].memory != quantity("1Gi")'


@pytest.mark.parametrize(
    ("expression", "reason", "message"),
    [
        ("device.model", INVALID, f'Invalid value: "device.model": {NO_FIELD}'),
        ("device.driver", INVALID, f'Invalid value: "device.driver": {NO_BOOL}'),
        (TOO_COMPLEX, FORBIDDEN, "Forbidden: too complex, exceeds cost limit"),
    ],
)
async def test_a_selector_must_compile_and_stay_within_the_cost_limit(
    api: ApiClient, expression: str, reason: str, message: str
) -> None:
    selectors = [{"cel": {"expression": expression}}]
    field = "selectors[0].cel.expression"
    refused = await api.post(CLAIMS, claim(requests=[request(selectors=selectors)]))
    assert causes(refused) == [(reason, f"{REQUESTS}[0].exactly.{field}", message)]
    refused = await api.post(CLASSES, device_class(selectors=selectors))
    assert causes(refused) == [(reason, f"spec.{field}", message)]


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
