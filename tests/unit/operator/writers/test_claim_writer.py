"""Claim writes report an outcome even if the API server's answer is lost."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from stowage.api.events import ClaimDeletionFinished, ClaimsWritten
from stowage.api.instructions import (
    BindClaims,
    ClaimReference,
    ClaimToBind,
    DeallocateClaim,
    DeleteClaim,
    PodReference,
    ReleaseClaims,
)
from stowage.api.values.claim_writes import FINALIZER, with_finalizer, with_reservation
from stowage.operator.client.api_error import ApiError
from stowage.operator.writers.claim_releaser import MAX_ATTEMPTS, ClaimReleaser, Release
from stowage.operator.writers.claim_writer import (
    MAX_ANSWERED_ERRORS,
    MAX_CONFLICTS,
    ClaimWriter,
)
from tests.support.device_builders import allocated, make_claim, with_version
from tests.support.fake_api import SILENCE, FakeApiClient, FakeTime
from tests.unit.operator.writers.claim_answers import (
    ALLOCATION,
    CLAIM,
    PATH,
    POD,
    PROTECTED,
    RESERVED,
    RESERVED_CLAIM,
    WANTED,
    json_of,
)

CONFLICT = ApiError(409, "Conflict", "the object has been modified")
GONE = ApiError(404, "NotFound", "not found")


async def write(
    client: FakeApiClient, *claims: ClaimToBind, may_write: bool = True, **fields: Any
) -> ClaimsWritten:
    writer = ClaimWriter(client, lambda: may_write, FakeTime().clock, lambda _status: None)
    return await writer.write(BindClaims(POD, "n", claims or (WANTED,), number=7, **fields))


def versions(written: ClaimsWritten) -> list[str]:
    return [claim.metadata.resource_version for claim in written.claims]


async def test_the_finalizer_is_written_before_allocation_and_reservation() -> None:
    client = FakeApiClient(patch=[PROTECTED, RESERVED])
    written = await write(client)
    assert (written.uid, written.number, written.error) == ("uid-p", 7, "")
    assert versions(written) == ["5"]
    finalizer, status = client.requests
    assert finalizer.path == PATH
    assert finalizer.body == {
        "metadata": {"uid": "uid-c", "resourceVersion": "3", "finalizers": [FINALIZER]}
    }
    assert status.path == f"{PATH}/status"
    assert status.body["metadata"] == {"uid": "uid-c", "resourceVersion": "4"}
    assert status.body["status"]["reservedFor"] == [
        {"resource": "pods", "name": "p", "uid": "uid-p"}
    ]
    allocation = status.body["status"]["allocation"]
    assert allocation["devices"]["results"][0]["device"] == "gpu-0"
    assert allocation["allocationTimestamp"]


async def test_a_claim_that_is_allocated_is_only_reserved() -> None:
    allocation = replace(ALLOCATION, allocation_timestamp="2026-01-01T00:00:00Z")
    shared = replace(CLAIM, status=replace(CLAIM.status, allocation=allocation))
    client = FakeApiClient(patch=[RESERVED])
    await write(client, ClaimToBind(shared))
    (status,) = client.requests
    assert set(status.body["status"]) == {"reservedFor"}


async def test_the_first_pod_on_a_claim_without_a_time_of_allocation_writes_the_time() -> None:
    client = FakeApiClient(patch=[RESERVED])
    await write(client, ClaimToBind(allocated(CLAIM, "n", "gpu-0")))
    (status,) = client.requests
    assert status.body["status"]["allocation"] == {"allocationTimestamp": "t1000"}


async def test_a_claim_that_is_reserved_already_is_not_written() -> None:
    client = FakeApiClient()
    written = await write(client, ClaimToBind(RESERVED_CLAIM))
    assert len(written.claims) == 1
    assert client.requests == []


async def test_after_a_conflict_the_claim_is_read_and_written_again() -> None:
    client = FakeApiClient(patch=[CONFLICT, PROTECTED, RESERVED], get=[json_of(CLAIM, "9")])
    written = await write(client)
    assert versions(written) == ["5"]
    assert [request.method for request in client.requests] == ["PATCH", "GET", "PATCH", "PATCH"]
    assert client.requests[2].body["metadata"]["resourceVersion"] == "9"


async def test_a_write_that_is_repeated_is_logged_with_the_reason() -> None:
    client = FakeApiClient(patch=[CONFLICT, PROTECTED, RESERVED], get=[json_of(CLAIM, "9")])
    with capture_logs() as logs:
        await write(client)
    (line,) = logs
    assert (line["event"], line["claim"]) == ("writing again", "default/c")
    assert line["error"] == "409 Conflict: the object has been modified"


async def test_a_claim_that_others_keep_changing_is_given_up() -> None:
    client = FakeApiClient(patch=[CONFLICT], get=[json_of(CLAIM, "9")])
    written = await write(client)
    assert written.error == "add finalizer to claim default/c: the object has been modified"
    assert len(client.sent("PATCH")) == MAX_CONFLICTS


@pytest.mark.parametrize("lost", [TimeoutError(), ApiError(504)], ids=repr)
async def test_a_lost_answer_is_a_success_if_the_pod_has_the_claim(lost: Exception) -> None:
    client = FakeApiClient(patch=[PROTECTED, lost], get=[TimeoutError(), RESERVED])
    assert versions(await write(client)) == ["5"]
    assert len(client.sent("PATCH")) == 2


@pytest.mark.parametrize("page", [["log in"], {"kind": "Page"}, {"metadata": {"name": "d"}}])
async def test_an_answer_that_is_not_the_claim_counts_as_no_answer(page: Any) -> None:
    client = FakeApiClient(patch=[PROTECTED, page], get=[page, RESERVED])
    written = await write(client)
    assert (written.error, versions(written)) == ("", ["5"])
    assert len(client.sent("GET")) == 2


@pytest.mark.parametrize("lost", [TimeoutError(), ApiError(503), ApiError(429)], ids=repr)
async def test_a_write_without_effect_is_repeated(lost: Exception) -> None:
    client = FakeApiClient(patch=[PROTECTED, lost, RESERVED], get=[PROTECTED])
    assert versions(await write(client)) == ["5"]


@pytest.mark.parametrize(
    ("now", "text"),
    [
        (json_of(allocated(CLAIM, "n", "gpu-1"), "9"), "got allocated elsewhere in the meantime"),
        (
            json_of(
                replace(
                    CLAIM,
                    metadata=replace(CLAIM.metadata, deletion_timestamp="2026-01-01T00:00:00Z"),
                ),
                "9",
            ),
            "got deleted in the meantime",
        ),
        (GONE, "got deleted in the meantime"),
    ],
    ids=["allocated", "being deleted", "gone"],
)
async def test_a_claim_that_changed_meanwhile_is_not_written(now: Any, text: str) -> None:
    client = FakeApiClient(patch=[CONFLICT], get=[now])
    written = await write(client)
    assert written.error == f"claim default/c {text}"
    assert len(client.sent("PATCH")) == 1


async def test_a_claim_that_a_companion_has_allocated_is_only_reserved() -> None:
    allocated_by_other = json_of(with_finalizer(allocated(CLAIM, "n", "gpu-0")), "9")
    client = FakeApiClient(patch=[CONFLICT, RESERVED], get=[allocated_by_other])
    assert (await write(client, sets_time=False)).error == ""
    body = client.sent("PATCH")[-1].body
    assert body["status"].keys() == {"reservedFor"}


async def test_pods_that_share_a_claim_write_it_one_after_the_other() -> None:
    """None of them meets a conflict with another, however many there are."""
    pods = [PodReference("default", f"p{index}", f"uid-p{index}") for index in range(8)]
    claim, answers = with_finalizer(CLAIM), [PROTECTED]
    for index, pod in enumerate(pods):
        claim = with_reservation(claim, WANTED, pod, None)
        answers.append(json_of(claim, str(index + 5)))
    client = FakeApiClient(patch=answers)
    writer = ClaimWriter(client, lambda: True, FakeTime().clock, lambda _status: None)
    instructions = [BindClaims(pod, "n", (WANTED,), number=1, sets_time=False) for pod in pods]
    written = await asyncio.gather(*map(writer.write, instructions))
    assert [versions(each) for each in written] == [[str(index + 5)] for index in range(8)]
    sent = [each.body["metadata"] for each in client.sent("PATCH")]
    assert [each["resourceVersion"] for each in sent] == [str(index + 3) for index in range(9)]


async def test_a_claim_is_written_as_the_engine_knows_it_once_the_writes_before_have_ended() -> (
    None
):
    other, again = PodReference("default", "q", "uid-q"), json_of(with_finalizer(CLAIM), "9")
    client = FakeApiClient(patch=[PROTECTED, RESERVED, again])
    writer = ClaimWriter(client, lambda: True, FakeTime().clock, lambda _status: None)
    await writer.write(BindClaims(POD, "n", (WANTED,), number=1))
    deallocated = ClaimToBind(with_version(with_finalizer(CLAIM), "8"), ALLOCATION)
    await writer.write(BindClaims(other, "n", (deallocated,), number=1))
    sent = client.sent("PATCH")[-1].body
    assert sent["metadata"]["resourceVersion"] == "8"
    assert sent["status"].keys() == {"reservedFor", "allocation"}


async def test_a_shared_claim_that_was_deallocated_is_not_reserved() -> None:
    client = FakeApiClient(patch=[CONFLICT], get=[json_of(CLAIM, "9")])
    written = await write(client, ClaimToBind(allocated(CLAIM, "n", "gpu-0")))
    assert written.error == "claim default/c got deallocated elsewhere in the meantime"


async def test_a_shared_claim_that_was_allocated_again_elsewhere_is_not_reserved() -> None:
    """The node was chosen for the devices that the claim had: others may be out of its reach."""
    client = FakeApiClient(patch=[CONFLICT], get=[json_of(allocated(CLAIM, "m", "gpu-0"), "9")])
    claim = allocated(CLAIM, "n", "gpu-0")
    written = await write(client, ClaimToBind(claim, known=claim.status.allocation))
    assert written.error == "claim default/c got allocated elsewhere in the meantime"
    assert len(client.sent("PATCH")) == 1


@pytest.mark.parametrize("status", [403, 422])
async def test_a_refusal_is_not_retried_and_what_was_written_is_reported(status: int) -> None:
    client = FakeApiClient(patch=[PROTECTED, RESERVED, ApiError(status, "No", "why not")])
    other = ClaimToBind(make_claim("d"), ALLOCATION)
    written = await write(client, WANTED, other)
    assert versions(written) == ["5"]
    assert written.error == "add finalizer to claim default/d: why not"


async def test_a_reservation_that_is_refused_is_named_as_such() -> None:
    client = FakeApiClient(patch=[ApiError(403, "No", "why not")])
    written = await write(client, ClaimToBind(allocated(CLAIM, "n", "gpu-0")))
    assert written.error == "add reservation to claim default/c: why not"


async def test_answered_errors_are_retried_a_few_times() -> None:
    client = FakeApiClient(patch=[ApiError(500, "", "broken")], get=[json_of(CLAIM, "3")])
    written = await write(client)
    assert written.error == "add finalizer to claim default/c: broken"
    assert len(client.sent("PATCH")) == MAX_ANSWERED_ERRORS


async def test_a_claim_that_the_last_answered_error_has_written_is_reported() -> None:
    errors = [ApiError(504)] * MAX_ANSWERED_ERRORS
    unchanged = [PROTECTED] * (MAX_ANSWERED_ERRORS - 1)
    client = FakeApiClient(patch=[PROTECTED, *errors], get=[*unchanged, RESERVED])
    written = await write(client)
    assert (versions(written), written.error) == (["5"], "")


async def test_a_claim_whose_write_lost_its_answer_is_read_back_although_the_pod_is_gone() -> None:
    """Otherwise the engine would give its devices to another pod."""
    client = FakeApiClient(patch=[PROTECTED, TimeoutError()], get=[RESERVED])
    writer = ClaimWriter(client, lambda: True, FakeTime().clock, lambda _status: None)
    running = asyncio.create_task(writer.write(BindClaims(POD, "n", (WANTED,), number=7)))
    await client.has_sent(2)
    writer.stop(POD)
    assert versions(await running) == ["5"]


async def test_nothing_is_written_without_the_lease() -> None:
    client = FakeApiClient()
    assert "lease" in (await write(client, may_write=False)).error
    assert client.requests == []


async def test_stopped_writes_are_reported() -> None:
    client = FakeApiClient(patch=[SILENCE])
    writer = ClaimWriter(client, lambda: True, FakeTime().clock, lambda _status: None)
    running = asyncio.create_task(writer.write(BindClaims(POD, "n", (WANTED,), number=7)))
    await client.has_sent(1)
    writer.stop(POD)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    client = FakeApiClient(patch=[PROTECTED, RESERVED])
    stopped = ClaimWriter(client, lambda: True, FakeTime().clock, lambda _status: None)
    running = asyncio.create_task(stopped.write(BindClaims(POD, "n", (WANTED,), number=7)))
    await client.has_sent(1)
    stopped.stop(POD)
    assert (await running).error == "the pod is gone"
    assert len(client.sent("PATCH")) == 1


REFERENCE = ClaimReference("default", "c", "uid-c", "8")


async def release(client: FakeApiClient, instruction: Release) -> ClaimDeletionFinished | None:
    return await ClaimReleaser(client, FakeTime().clock).release(instruction)


async def test_a_consumer_is_removed_by_its_uid() -> None:
    client = FakeApiClient(patch=[{}])
    assert await release(client, ReleaseClaims(POD, (REFERENCE,))) is None
    (patch,) = client.requests
    assert (patch.path, patch.body) == (
        f"{PATH}/status",
        {
            "metadata": {"uid": "uid-c"},
            "status": {"reservedFor": [{"$patch": "delete", "uid": "uid-p"}]},
        },
    )


async def test_a_claim_is_deallocated_unless_it_was_changed() -> None:
    client = FakeApiClient(patch=[ApiError(503), CONFLICT])
    await release(client, DeallocateClaim(POD, REFERENCE))
    patch = client.requests[0]
    assert (patch.path, patch.body) == (
        f"{PATH}/status",
        {
            "metadata": {"uid": "uid-c", "resourceVersion": "8"},
            "status": {"allocation": None, "reservedFor": None, "devices": None},
        },
    )
    assert len(client.requests) == 2


async def test_a_claim_is_deleted_without_its_finalizer() -> None:
    client = FakeApiClient(patch=[{}], delete=[{}])
    await release(client, DeleteClaim(POD, REFERENCE))
    patch, deletion = client.requests
    removed = {"$deleteFromPrimitiveList/finalizers": [FINALIZER]}
    assert (patch.path, patch.body) == (PATH, {"metadata": {"uid": "uid-c", **removed}})
    assert (deletion.method, deletion.path) == ("DELETE", PATH)
    assert deletion.body == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": "uid-c"},
    }


DELETED = ClaimDeletionFinished(REFERENCE)


@pytest.mark.parametrize(
    "answers",
    [
        {"patch": [{}], "delete": [{"kind": "Status", "status": "Success"}]},
        {"patch": [{}], "delete": [{"metadata": {"name": "c", "uid": "uid-c"}}]},
        {"patch": [{}], "delete": [ApiError(503), GONE]},
        {"patch": [GONE], "delete": [GONE]},
        # Another claim has the name.
        {"patch": [CONFLICT], "delete": [CONFLICT]},
    ],
    ids=["status", "the deleted claim", "no answer and gone", "gone before", "another claim"],
)
async def test_a_claim_that_does_not_exist_any_more_is_reported_as_deleted(
    answers: dict[str, list[Any]],
) -> None:
    assert await release(FakeApiClient(**answers), DeleteClaim(POD, REFERENCE)) == DELETED


async def test_a_claim_that_may_still_exist_is_not_reported_as_deleted() -> None:
    marked = {"metadata": {"name": "c", "uid": "uid-c", "finalizers": ["a/b", "c/d"]}}
    kept = await release(FakeApiClient(patch=[{}], delete=[marked]), DeleteClaim(POD, REFERENCE))
    assert kept == ClaimDeletionFinished(REFERENCE, "the claim has the finalizers a/b, c/d")
    lost = FakeApiClient(patch=[{}], delete=[TimeoutError("no answer")] * MAX_ATTEMPTS)
    unknown = await release(lost, DeleteClaim(POD, REFERENCE))
    assert unknown is not None
    assert unknown.error
    odd = FakeApiClient(patch=[{}], delete=[{"metadata": 1}])
    unreadable = await release(odd, DeleteClaim(POD, REFERENCE))
    assert unreadable is not None
    assert "metadata" in unreadable.error


async def test_a_claim_that_cannot_be_released_is_logged() -> None:
    client = FakeApiClient(patch=[ApiError(403, "Forbidden", "no right")])
    releaser = ClaimReleaser(client, FakeTime().clock)
    reference = ClaimReference("default", "c", "uid-c", "3")
    with capture_logs() as logs:
        await releaser.release(ReleaseClaims(POD, (reference,)))
    (line,) = logs
    assert (line["event"], line["pod"]) == ("claim not released", "default/p")
    assert line["error"] == "403 Forbidden: no right"


async def test_a_pod_waits_until_its_releases_are_carried_out() -> None:
    client = FakeApiClient(patch=[{}, {}])
    releaser = ClaimReleaser(client, FakeTime().clock)
    releases = [ReleaseClaims(POD, (REFERENCE,)) for _ in range(2)]
    for each in releases:
        releaser.announce(each)
    waiting = asyncio.create_task(releaser.wait_for_releases(POD))
    await asyncio.sleep(0)
    await releaser.release(releases[0])
    await asyncio.sleep(0)
    assert not waiting.done()
    await releaser.release(releases[1])
    await waiting
    await releaser.wait_for_releases(POD)
    assert len(client.requests) == 2
