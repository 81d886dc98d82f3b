"""A bound pod that no watch event confirms is read from the API server."""

from __future__ import annotations

from typing import Any

import pytest

from stowage.api.events import AssignedPodGone, ObjectInvalid
from stowage.api.instructions import PodReference
from stowage.operator.client.api_error import ApiError
from stowage.operator.writers.pod_reader import PodReader
from tests.support.fake_api import FakeApiClient, FakeTime

POD = PodReference("default", "p", "u1")


def _pod(uid: str = "u1", node: str = "n", phase: str = "Running", **spec: Any) -> dict[str, Any]:
    metadata = {"namespace": "default", "name": "p", "uid": uid}
    return {"metadata": metadata, "spec": {"nodeName": node, **spec}, "status": {"phase": phase}}


async def _read(*answers: Any) -> object:
    return await PodReader(FakeApiClient(get=list(answers)), FakeTime().clock).read(POD)


async def test_a_pod_on_its_node_causes_no_event() -> None:
    assert await _read(TimeoutError(), _pod()) is None


@pytest.mark.parametrize(
    "found",
    [
        ApiError(404, "NotFound"),
        _pod(uid="u2"),
        _pod(node=""),
        _pod(phase="Succeeded"),
        _pod(phase="Failed"),
    ],
    ids=["missing", "another pod", "without a node", "succeeded", "failed"],
)
async def test_a_pod_that_is_missing_replaced_unbound_or_finished_is_gone(found: Any) -> None:
    assert await _read(found) == AssignedPodGone("default", "p", "u1")


async def test_an_invalid_pod_is_reported() -> None:
    assert isinstance(await _read(_pod(priority="high")), ObjectInvalid)


@pytest.mark.parametrize(
    "other",
    [{}, b"<html>", {"metadata": {"namespace": "default", "name": "q", "uid": "u7"}}],
    ids=["nothing", "a page", "another name"],
)
async def test_an_answer_without_the_pod_is_read_again(other: Any) -> None:
    assert await _read(other, _pod()) is None


async def test_a_404_for_the_path_does_not_mean_that_the_pod_is_gone() -> None:
    with pytest.raises(ApiError):
        await _read(ApiError(404, "", "404 page not found"))
