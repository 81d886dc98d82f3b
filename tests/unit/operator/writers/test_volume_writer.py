"""Volume writes report an outcome even if the API server's answer is lost."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from stowage.api.events import VolumesWritten
from stowage.api.instructions import BindVolumes, BindVolumeToClaim, PodReference, SetSelectedNode
from stowage.api.objects.meta import ObjectReference
from stowage.operator.client.api_error import ApiError
from stowage.operator.writers.volume_writer import MAX_ANSWERED_ERRORS, VolumeWriter
from tests.support.fake_api import FakeApiClient, FakeTime

POD = PodReference("default", "p", "u1")
CLAIM_REF = ObjectReference("PersistentVolumeClaim", "default", "data", "c1", "v1", "7")
GIVE = BindVolumeToClaim("disk", "v1", "4", CLAIM_REF, sets_bound_by_controller=True)
SELECT = SetSelectedNode("default", "data", "c1", "7")
SELECTED = {"volume.kubernetes.io/selected-node": "n1"}
CONFLICT = ApiError(409, "Conflict", "the object has been modified")


def _object(version: str, uid: str = "c1", **rest: Any) -> dict[str, Any]:
    metadata = {"name": "data", "uid": uid, "resourceVersion": version}
    return {"metadata": {**metadata, **rest.pop("metadata", {})}, **rest}


def _instruction(
    node_name: str,
    volumes: tuple[BindVolumeToClaim, ...] = (),
    claims: tuple[SetSelectedNode, ...] = (),
) -> BindVolumes:
    return BindVolumes(POD, node_name, volumes, claims, number=7)


def _writer(client: FakeApiClient, may_write: bool = True) -> VolumeWriter:
    return VolumeWriter(client, lambda: may_write, FakeTime().clock)


async def _select(client: FakeApiClient, may_write: bool = True) -> VolumesWritten | None:
    return await _writer(client, may_write).write(_instruction("n1", claims=(SELECT,)))


def _failed(error: str) -> VolumesWritten:
    return VolumesWritten("u1", 7, error=error)


async def test_volumes_are_written_before_claims_with_their_versions_as_preconditions() -> None:
    client = FakeApiClient(patch=[_object("5", "v1"), _object("8")])
    written = await _writer(client).write(_instruction("n1", (GIVE,), (SELECT,)))
    assert written == VolumesWritten("u1", 7, {"disk": "5"}, {"default/data": "8"})
    give, select = client.requests
    assert give.path == "/api/v1/persistentvolumes/disk"
    assert give.body["metadata"] == {
        "uid": "v1",
        "resourceVersion": "4",
        "annotations": {"pv.kubernetes.io/bound-by-controller": "yes"},
    }
    assert give.body["spec"]["claimRef"] == {
        "kind": "PersistentVolumeClaim",
        "namespace": "default",
        "name": "data",
        "uid": "c1",
        "apiVersion": "v1",
        "resourceVersion": "7",
    }
    assert select.path == "/api/v1/namespaces/default/persistentvolumeclaims/data"
    assert select.body == {
        "metadata": {"uid": "c1", "resourceVersion": "7", "annotations": SELECTED}
    }


async def test_an_instruction_without_writes_succeeds_at_once() -> None:
    client = FakeApiClient()
    assert await _writer(client).write(_instruction("n1")) == VolumesWritten("u1", 7)
    assert client.requests == []


@pytest.mark.parametrize("status", [403, 404, 409, 422])
async def test_a_refusal_is_not_retried(status: int) -> None:
    client = FakeApiClient(patch=[ApiError(status, "Reason", "why not")])
    assert await _select(client) == _failed("why not")
    assert len(client.requests) == 1


async def test_a_429_is_retried() -> None:
    client = FakeApiClient(patch=[ApiError(429), _object("8")])
    assert await _select(client) == VolumesWritten("u1", 7, claims={"default/data": "8"})


@pytest.mark.parametrize("lost", [TimeoutError(), ApiError(504)], ids=repr)
async def test_a_lost_answer_is_a_success_if_the_object_has_the_change(lost: Exception) -> None:
    found = _object("9", metadata={"annotations": SELECTED})
    client = FakeApiClient(patch=[lost], get=[TimeoutError(), ApiError(503), found])
    assert await _select(client) == VolumesWritten("u1", 7, claims={"default/data": "9"})
    assert [request.method for request in client.requests] == ["PATCH", "GET", "GET", "GET"]


async def test_a_lost_answer_is_written_again_if_the_object_is_unchanged() -> None:
    client = FakeApiClient(patch=[TimeoutError(), _object("8")], get=[_object("7")])
    assert await _select(client) == VolumesWritten("u1", 7, claims={"default/data": "8"})


async def test_an_object_that_another_client_changed_is_not_overwritten() -> None:
    client = FakeApiClient(patch=[TimeoutError()], get=[_object("8")])
    written = await _select(client)
    assert written is not None
    assert "claim default/data was changed by another client" in written.error


async def test_a_conflict_with_an_own_earlier_write_is_a_success() -> None:
    first = _object("7")
    then = _object("8", metadata={"annotations": SELECTED})
    client = FakeApiClient(patch=[TimeoutError(), CONFLICT], get=[first, then])
    assert await _select(client) == VolumesWritten("u1", 7, claims={"default/data": "8"})


async def test_a_deleted_object_fails_the_write() -> None:
    client = FakeApiClient(patch=[TimeoutError()], get=[ApiError(404, "NotFound", "not found")])
    assert await _select(client) == _failed("not found")


async def test_a_write_fails_after_the_maximum_of_server_errors() -> None:
    client = FakeApiClient(patch=[ApiError(500, "InternalError", "oops")], get=[_object("7")])
    assert await _select(client) == _failed("500 InternalError: oops")
    assert len(client.sent("PATCH")) == MAX_ANSWERED_ERRORS


async def test_no_volume_is_written_without_the_lease() -> None:
    client = FakeApiClient()
    written = await _select(client, may_write=False)
    assert written == _failed("this replica does not hold the lease any more")
    assert client.requests == []


async def test_writes_of_a_stopped_pod_end_without_an_outcome() -> None:
    client = FakeApiClient(patch=[ApiError(429), _object("8")])
    time = FakeTime()
    writer = VolumeWriter(client, lambda: True, time.clock)
    time.on_sleep = lambda: writer.stop(POD)
    assert await writer.write(_instruction("n1", claims=(SELECT,))) is None
    assert len(client.requests) == 1


async def test_stopped_writes_are_not_resumed_when_the_pod_is_tried_again() -> None:
    client = FakeApiClient(patch=[ApiError(429), _object("8")])
    time, tried_again = FakeTime(), asyncio.Event()
    writer = VolumeWriter(client, lambda: True, time.clock)

    def stop() -> None:
        writer.stop(POD)
        tried_again.set()

    time.on_sleep = stop
    first = asyncio.create_task(writer.write(_instruction("n1", claims=(SELECT,))))
    await tried_again.wait()
    second = await writer.write(_instruction("n2", claims=(SELECT,)))
    assert await first is None
    assert second == VolumesWritten("u1", 7, claims={"default/data": "8"})
    nodes = [each.body["metadata"]["annotations"] for each in client.sent("PATCH")]
    assert nodes == [SELECTED, {"volume.kubernetes.io/selected-node": "n2"}]


async def test_a_stopped_write_is_not_read_back_until_the_api_server_answers() -> None:
    client = FakeApiClient(patch=[TimeoutError()], get=[TimeoutError()])
    time = FakeTime()
    writer = VolumeWriter(client, lambda: True, time.clock)
    time.on_sleep = lambda: writer.stop(POD)
    assert await writer.write(_instruction("n1", claims=(SELECT,))) is None
    assert len(client.sent("GET")) == 1


def _volume(version: str, uid: str = "v1", claim_uid: str = "") -> dict[str, Any]:
    reference = {"name": "data", "uid": claim_uid}
    spec = {"claimRef": reference} if claim_uid else {}
    return _object(version, uid, spec=spec)


async def _give(client: FakeApiClient) -> VolumesWritten | None:
    return await _writer(client).write(_instruction("n1", (GIVE,)))


async def test_a_lost_answer_is_a_success_if_the_volume_has_the_claim() -> None:
    client = FakeApiClient(patch=[TimeoutError()], get=[_volume("9", claim_uid="c1")])
    assert await _give(client) == VolumesWritten("u1", 7, {"disk": "9"})
    assert len(client.sent("PATCH")) == 1


@pytest.mark.parametrize(
    "found",
    [_volume("9", claim_uid="c2"), _volume("9", "v2", "c1"), _volume("9")],
    ids=["another claim", "another volume of that name", "no claim"],
)
async def test_a_volume_that_another_client_changed_is_not_overwritten(found: Any) -> None:
    client = FakeApiClient(patch=[TimeoutError()], get=[found])
    written = await _give(client)
    assert written is not None
    assert "volume disk was changed by another client" in written.error
    assert len(client.sent("PATCH")) == 1
