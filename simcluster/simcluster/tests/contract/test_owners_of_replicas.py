"""The scale subresource: who owns the replicas, and conflicts about them."""

from typing import Any

import pytest

from simcluster.tests.contract import requests as sent
from simcluster.tests.contract.requests import apply, deployment
from simcluster.tests.support.api_client import MERGE, ApiClient

Json = dict[str, Any]


def scale(**spec: Any) -> Json:
    return {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "w"}, **spec}


async def test_a_client_of_the_scale_subresource_owns_the_replicas(api: ApiClient) -> None:
    path = f"{sent.DEPLOYMENTS}/w"
    await apply(api, path, deployment(replicas=1))
    await api.patch(f"{path}/scale?fieldManager=scaler", {"spec": {"replicas": 4}}, MERGE)
    reply = await apply(api, path, deployment(replicas=2))
    assert reply.body["message"] == (
        'Apply failed with 1 conflict: conflict with "scaler" with subresource "scale" using '
        "apps/v1: .spec.replicas"
    )


async def test_an_applied_scale_meets_the_conflicts_of_the_replicas(api: ApiClient) -> None:
    path = f"{sent.DEPLOYMENTS}/w"
    await apply(api, path, deployment(replicas=1))
    three = scale(spec={"replicas": 3})
    refused = await apply(api, f"{path}/scale", three, "scaler")
    assert (refused.status, refused.body["message"]) == (
        409,
        'Apply failed with 1 conflict: conflict with "m": .spec.replicas',
    )
    assert (await api.get(f"{path}/scale")).body["spec"] == {"replicas": 1}
    forced = await apply(api, f"{path}/scale", three, "scaler", force=True)
    assert (forced.status, forced.body["spec"]) == (200, {"replicas": 3})
    found = (await api.get(path)).body
    assert found["spec"]["replicas"] == 3
    entries = {entry["manager"]: entry for entry in found["metadata"]["managedFields"]}
    assert "f:replicas" not in entries["m"]["fieldsV1"]["f:spec"]
    assert entries["scaler"] == {
        "manager": "scaler",
        "operation": "Apply",
        "apiVersion": "apps/v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:replicas": {}}},
        "subresource": "scale",
    }


@pytest.mark.parametrize(
    ("query", "body", "expected"),
    [
        ("", scale(), (422, 'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required ')),
        ("?fieldManager=m", {"spec": {"replicas": 1}}, (400, "invalid object type: /, Kind=")),
        ("?fieldManager=m", scale(kind="X"), (400, "invalid object type: autoscaling/v1, Kind=X")),
        (
            "?fieldManager=m",
            scale(spec={"bogus": 1}),
            (500, "failed to create typed patch object (/w; autoscaling/v1, Kind=Scale): "),
        ),
    ],
)
async def test_a_malformed_applied_scale_is_refused(
    api: ApiClient, query: str, body: Json, expected: tuple[int, str]
) -> None:
    await apply(api, f"{sent.DEPLOYMENTS}/w", deployment(replicas=1))
    path, type_ = f"{sent.DEPLOYMENTS}/w/scale{query}", "application/apply-patch+yaml"
    reply = await api.patch(path, body, type_)
    assert (reply.status, reply.body["message"][: len(expected[1])]) == expected


async def test_a_scale_of_another_object_is_a_conflict(api: ApiClient) -> None:
    await apply(api, f"{sent.DEPLOYMENTS}/w", deployment(replicas=1))
    body = {**scale(spec={"replicas": 2}), "metadata": {"name": "w", "uid": "other"}}
    reply = await api.put(f"{sent.DEPLOYMENTS}/w/scale", body)
    assert reply.status == 409
    assert "Precondition failed: UID in precondition: other" in reply.body["message"]


async def test_a_scale_of_replicas_that_nobody_owns_has_no_owner(api: ApiClient) -> None:
    path = f"{sent.DEPLOYMENTS}/w"
    await apply(api, path, deployment())
    await api.patch(f"{path}/scale?fieldManager=scaler", {"spec": {"replicas": 4}}, MERGE)
    found = (await api.get(path)).body
    assert found["spec"]["replicas"] == 4
    assert [entry["manager"] for entry in found["metadata"]["managedFields"]] == ["m"]
    assert (await apply(api, path, deployment(replicas=2))).status == 200
