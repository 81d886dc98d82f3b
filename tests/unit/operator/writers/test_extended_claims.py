"""The claim for extended resources is named in the status of its pod; failures are reported."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from stowage.api.events import ClaimsWritten
from stowage.api.instructions import BindClaims, ExtendedClaimToBind
from stowage.api.objects.pod import ContainerExtendedResourceRequest
from stowage.operator.client.api_error import ApiError
from stowage.operator.writers.claim_writer import MAX_ANSWERED_ERRORS, ClaimWriter
from tests.support.fake_api import FakeApiClient, FakeTime
from tests.unit.operator.writers.claim_answers import (
    ALLOCATION,
    CLAIM,
    POD,
    PROTECTED,
    RESERVED,
    json_of,
)

MAPPING = ContainerExtendedResourceRequest("main", "example.com/gpu", "container-0-request-0")
STATUS_PATH = "/api/v1/namespaces/default/pods/p/status"
PROBLEM = "update pod default/p ExtendedResourceClaimStatus: "


async def _written(
    client: FakeApiClient, *mappings: Any, time: FakeTime | None = None
) -> tuple[ClaimsWritten, list[str]]:
    statuses: list[str] = []
    clock = (time or FakeTime()).clock
    writer = ClaimWriter(client, lambda: True, clock, statuses.append)
    extended = ExtendedClaimToBind(CLAIM.spec, ALLOCATION, mappings)
    return await writer.write(BindClaims(POD, "n", (), extended)), statuses


def _client(*answers: Any) -> FakeApiClient:
    return FakeApiClient(post=[json_of(CLAIM, "4")], patch=[PROTECTED, RESERVED, *answers])


def _num_status_writes(client: FakeApiClient) -> int:
    return [request.path for request in client.sent("PATCH")].count(STATUS_PATH)


async def test_the_claim_for_extended_resources_is_created_and_named_in_the_pod() -> None:
    client = _client({})
    written, statuses = await _written(client, MAPPING)
    assert written.error == ""
    assert written.extended is not None
    assert statuses == ["success"]
    create, _finalizer, _status, pod = client.requests
    assert create.path == "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
    assert create.body["metadata"] == {
        "generateName": "p-extended-resources-",
        "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}
        ],
    }
    assert create.body["spec"] == msgspec.json.decode(msgspec.json.encode(CLAIM.spec))
    assert pod.path == STATUS_PATH
    assert pod.body["status"]["extendedResourceClaimStatus"] == {
        "resourceClaimName": "c",
        "requestMappings": [
            {
                "containerName": "main",
                "resourceName": "example.com/gpu",
                "requestName": "container-0-request-0",
            }
        ],
    }


async def test_the_name_of_the_claim_is_written_again_when_the_api_server_asks_to_wait() -> None:
    busy = ApiError(429, "TooManyRequests", "later", retry_after=7.0)
    client, time = _client(busy, {}), FakeTime()
    written, _ = await _written(client, MAPPING, time=time)
    assert written.error == ""
    assert _num_status_writes(client) == 2
    assert time.slept == [7.0]


async def test_a_created_claim_is_reported_if_it_cannot_be_allocated() -> None:
    client = FakeApiClient(post=[json_of(CLAIM, "4")], patch=[ApiError(403, "No", "why not")])
    written, _ = await _written(client, MAPPING)
    assert written.extended is not None
    assert written.error == "add finalizer to claim default/c: why not"


async def test_a_refused_status_of_the_pod_is_reported_at_once() -> None:
    client = _client(ApiError(403, "Forbidden", "no right"))
    written, _ = await _written(client, MAPPING)
    assert written.error == f"{PROBLEM}no right"
    assert written.extended is not None
    assert _num_status_writes(client) == 1


@pytest.mark.parametrize(
    ("fault", "text"),
    [(ApiError(500, "", "broken"), "broken"), (TimeoutError(), "no answer in time")],
)
async def test_a_status_of_the_pod_that_cannot_be_written_is_reported_after_a_few_attempts(
    fault: Exception, text: str
) -> None:
    client = _client(fault)
    written, _ = await _written(client, MAPPING)
    assert written.error == f"{PROBLEM}{text}"
    assert _num_status_writes(client) == MAX_ANSWERED_ERRORS


async def test_without_mappings_the_status_of_the_pod_is_not_written() -> None:
    client = _client()
    written, _ = await _written(client)
    problem = "nil or empty request mappings, no update of pod default/p"
    assert written.error == f"{problem} ExtendedResourceClaimStatus"
    assert _num_status_writes(client) == 0


async def test_a_claim_that_cannot_be_created_is_counted_and_reported() -> None:
    written, statuses = await _written(FakeApiClient(post=[ApiError(422, "Invalid", "no class")]))
    text = "create claim for extended resources of pod default/p: no class"
    assert (written.error, written.extended, statuses) == (text, None, ["failure"])


@pytest.mark.parametrize("page", [["log in"], {"kind": "Page"}])
async def test_a_creation_whose_answer_is_no_claim_is_reported_as_failed(page: Any) -> None:
    written, statuses = await _written(FakeApiClient(post=[page]))
    assert "create claim for extended resources of pod default/p: " in written.error
    assert (written.extended, statuses) == (None, ["failure"])


async def test_a_created_claim_is_reported_after_an_unexpected_exception() -> None:
    client = FakeApiClient(
        post=[json_of(CLAIM, "4")], patch=[PROTECTED, RuntimeError("unforeseen")]
    )
    with capture_logs() as logs:
        written, _ = await _written(client, MAPPING)
    assert written.extended is not None
    assert written.error == "RuntimeError('unforeseen')"
    assert [(each["event"], each["log_level"]) for each in logs] == [("job failed", "error")]
