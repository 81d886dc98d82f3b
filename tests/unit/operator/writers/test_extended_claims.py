"""The claim for extended resources is named in the status of its pod; failures are reported."""

from __future__ import annotations

from typing import Any

import pytest

from stowage.api.events import ClaimsWritten
from stowage.api.instructions import BindClaims, ExtendedClaimToBind, PodReference
from stowage.api.objects.pod import ContainerExtendedResourceRequest
from stowage.operator.client.api_error import ApiError
from stowage.operator.writers.claim_writer import MAX_ANSWERED_ERRORS, ClaimWriter
from tests.support.fake_api import FakeApiClient, FakeTime
from tests.unit.operator.writers.test_claim_writer import (
    ALLOCATION,
    CLAIM,
    PROTECTED,
    RESERVED,
    json_of,
)

POD = PodReference("default", "p", "uid-p")
MAPPING = ContainerExtendedResourceRequest("main", "example.com/gpu", "container-0-request-0")
STATUS_PATH = "/api/v1/namespaces/default/pods/p/status"
PROBLEM = "update pod default/p ExtendedResourceClaimStatus: "


async def _written(client: FakeApiClient, *mappings: Any) -> tuple[ClaimsWritten, list[str]]:
    statuses: list[str] = []
    writer = ClaimWriter(client, lambda: True, FakeTime().clock, statuses.append)
    extended = ExtendedClaimToBind(CLAIM.spec, ALLOCATION, mappings)
    return await writer.write(BindClaims(POD, "n", (), extended)), statuses


def _client(*answers: Any) -> FakeApiClient:
    return FakeApiClient(post=[json_of(CLAIM, "4")], patch=[PROTECTED, RESERVED, *answers])


def _num_status_writes(client: FakeApiClient) -> int:
    return [request.path for request in client.sent("PATCH")].count(STATUS_PATH)


async def test_a_refused_status_of_the_pod_is_reported_at_once() -> None:
    client = _client(ApiError(403, "Forbidden", "no right"))
    written, _ = await _written(client, MAPPING)
    assert written.error == f"{PROBLEM}no right"
    assert written.extended is not None
    assert _num_status_writes(client) == 1


@pytest.mark.parametrize(
    ("fault", "text"), [(ApiError(500, "", "broken"), "broken"), (TimeoutError(), "TimeoutError()")]
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
