"""The API server decides who may read the endpoints."""

from __future__ import annotations

import json
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from stowage.operator.client.api_error import ApiError
from stowage.operator.serving.delegated_access import (
    SUBJECT_ACCESS_REVIEWS,
    TOKEN_REVIEWS,
    AccessOptions,
    DelegatedAccess,
)
from tests.support.fake_api import FakeApiClient, FakeTime, Request

ALICE = {"status": {"authenticated": True, "user": {"username": "alice", "groups": ["dev"]}}}
NOBODY = {"status": {"authenticated": False}}
ALLOWED = {"status": {"allowed": True}}
REFUSED = {"status": {"allowed": False, "reason": "no rule"}}


class _Gate:
    def __init__(self, *answers: Any, **options: Any) -> None:
        self.client, self.time = FakeApiClient(post=list(answers)), FakeTime()
        access = AccessOptions(**options)
        self._access = DelegatedAccess(self.client, access, self.time.monotonic)

    async def refusal(self, path: str, token: str = "") -> web.Response | None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return await self._access.refusal(make_mocked_request("GET", path, headers))

    @property
    def reviews(self) -> list[Request]:
        return self.client.sent("POST")


def _status(response: web.Response | None) -> dict[str, Any]:
    assert response is not None
    body: dict[str, Any] = json.loads(response.text or "")
    assert body["kind"] == "Status"
    assert body["code"] == response.status
    return body


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
async def test_health_is_for_everybody(path: str) -> None:
    gate = _Gate(REFUSED)
    assert await gate.refusal(path) is None
    assert gate.reviews == []


async def test_a_user_who_may_is_let_in() -> None:
    gate = _Gate(ALICE, ALLOWED)
    assert await gate.refusal("/metrics", "t1") is None
    token, access = gate.reviews
    assert (token.path, token.body["spec"]) == (TOKEN_REVIEWS, {"token": "t1"})
    assert access.path == SUBJECT_ACCESS_REVIEWS
    assert access.body["spec"]["user"] == "alice"
    assert access.body["spec"]["groups"] == ["dev"]
    assert access.body["spec"]["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}


async def test_a_token_of_nobody_is_401() -> None:
    status = _status(await _Gate(NOBODY).refusal("/metrics", "t1"))
    assert (status["code"], status["message"]) == (401, "Unauthorized")


async def test_a_user_who_may_not_is_403() -> None:
    status = _status(await _Gate(ALICE, REFUSED).refusal("/metrics", "t1"))
    assert status["code"] == 403
    assert status["message"] == 'forbidden: User "alice" cannot get path "/metrics": no rule'


async def test_who_shows_no_token_is_anonymous() -> None:
    gate = _Gate(REFUSED)
    status = _status(await gate.refusal("/configz"))
    assert status["message"].startswith('forbidden: User "system:anonymous" cannot get path')
    assert gate.reviews[0].body["spec"]["groups"] == ["system:unauthenticated"]


async def test_answers_are_believed_for_ten_seconds() -> None:
    gate = _Gate(ALICE, ALLOWED, ALICE, ALLOWED)
    for _ in range(3):
        assert await gate.refusal("/metrics", "t1") is None
    assert len(gate.reviews) == 2
    gate.time.now += 10.1
    assert await gate.refusal("/metrics", "t1") is None
    assert len(gate.reviews) == 4


async def test_a_refusal_is_believed_too() -> None:
    gate = _Gate(REFUSED)
    for _ in range(2):
        assert await gate.refusal("/metrics") is not None
    assert len(gate.reviews) == 1


async def test_without_a_review_of_the_token_nobody_is_let_in_and_nothing_is_remembered() -> None:
    gate = _Gate(ApiError(503), ALICE, ALLOWED)
    assert _status(await gate.refusal("/metrics", "t1"))["code"] == 401
    assert await gate.refusal("/metrics", "t1") is None


async def test_without_a_review_of_the_access_it_is_an_internal_error() -> None:
    response = await _Gate(ApiError(503, "Unavailable", "try later")).refusal("/metrics")
    assert response is not None
    assert response.status == 500
    assert response.text == 'Internal Server Error: "/metrics": 503 Unavailable: try later\n'


async def test_a_star_allows_all_below() -> None:
    gate = _Gate(REFUSED, always_allow_paths=("/metrics*",))
    assert await gate.refusal("/metrics/resources") is None
    assert await gate.refusal("/healthz") is not None


@pytest.mark.parametrize("path", ["metrics", "/a*b"])
def test_a_path_that_is_none_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="begin with /"):
        AccessOptions(always_allow_paths=(path,))
