"""The API server authenticates and authorizes requests to the endpoints."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from stowage.operator.client.api_error import ApiError
from stowage.operator.serving.delegated_access import (
    SUBJECT_ACCESS_REVIEWS,
    TOKEN_REVIEWS,
    AccessOptions,
    DelegatedAccess,
    status_response,
)
from tests.support.fake_api import FakeApiClient, FakeTime, Request

ALICE = {"status": {"authenticated": True, "user": {"username": "alice", "groups": ["dev"]}}}
UNAUTHENTICATED = {"status": {"authenticated": False}}
ALLOWED = {"status": {"allowed": True}}
REFUSED = {"status": {"allowed": False, "reason": "no rule"}}


class _Access:
    def __init__(self, *answers: Any, **options: Any) -> None:
        self.client, self.time = FakeApiClient(post=list(answers)), FakeTime()
        access = AccessOptions(**options)
        self._access = DelegatedAccess(self.client, access, self.time.monotonic)

    async def refusal(self, path: str, token: str = "") -> web.Response | None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return await self._access.refusal(make_mocked_request("GET", path, headers))

    def value(self, metric: str, **labels: str) -> float | None:
        registry = CollectorRegistry()
        registry.register(self._access.metrics)
        return registry.get_sample_value(metric, labels)

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
async def test_health_endpoints_need_no_authorization(path: str) -> None:
    access_check = _Access(REFUSED)
    assert await access_check.refusal(path) is None
    assert access_check.reviews == []


async def test_an_authorized_user_is_allowed() -> None:
    access_check = _Access(ALICE, ALLOWED)
    assert await access_check.refusal("/metrics", "t1") is None
    token, access = access_check.reviews
    assert (token.path, token.body["spec"]) == (TOKEN_REVIEWS, {"token": "t1"})
    assert access.path == SUBJECT_ACCESS_REVIEWS
    assert access.body["spec"]["user"] == "alice"
    assert access.body["spec"]["groups"] == ["dev"]
    assert access.body["spec"]["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}


async def test_an_invalid_token_is_401() -> None:
    status = _status(await _Access(UNAUTHENTICATED).refusal("/metrics", "t1"))
    assert (status["code"], status["message"]) == (401, "Unauthorized")


async def test_an_unauthorized_user_is_403() -> None:
    status = _status(await _Access(ALICE, REFUSED).refusal("/metrics", "t1"))
    assert status["code"] == 403
    assert status["message"] == 'forbidden: User "alice" cannot get path "/metrics": no rule'


async def test_a_request_without_a_token_is_anonymous() -> None:
    access_check = _Access(REFUSED)
    status = _status(await access_check.refusal("/configz"))
    assert status["message"].startswith('forbidden: User "system:anonymous" cannot get path')
    assert access_check.reviews[0].body["spec"]["groups"] == ["system:unauthenticated"]


async def test_reviews_are_cached_for_ten_seconds() -> None:
    access_check = _Access(ALICE, ALLOWED, ALICE, ALLOWED)
    for _ in range(3):
        assert await access_check.refusal("/metrics", "t1") is None
    assert len(access_check.reviews) == 2
    access_check.time.now += 10.1
    assert await access_check.refusal("/metrics", "t1") is None
    assert len(access_check.reviews) == 4


async def test_each_token_is_reviewed_for_itself() -> None:
    bob = {"status": {"authenticated": True, "user": {"username": "bob"}}}
    access_check = _Access(ALICE, ALLOWED, bob, REFUSED, UNAUTHENTICATED)
    assert await access_check.refusal("/metrics", "of-alice") is None
    assert _status(await access_check.refusal("/metrics", "of-bob"))["code"] == 403
    assert _status(await access_check.refusal("/metrics", "of-nobody"))["code"] == 401


async def test_a_refusal_is_cached() -> None:
    access_check = _Access(REFUSED)
    for _ in range(2):
        assert await access_check.refusal("/metrics") is not None
    assert len(access_check.reviews) == 1


async def test_a_failed_token_review_is_401_and_not_cached() -> None:
    access_check = _Access(ApiError(503), ALICE, ALLOWED)
    with capture_logs() as logs:
        assert _status(await access_check.refusal("/metrics", "t1"))["code"] == 401
    assert [line["event"] for line in logs] == ["token not reviewed"]
    assert await access_check.refusal("/metrics", "t1") is None


async def test_a_failed_access_review_is_an_internal_error() -> None:
    with capture_logs() as logs:
        response = await _Access(ApiError(503, "Unavailable", "try later")).refusal("/metrics")
    assert response is not None
    assert response.status == 500
    assert response.text == 'Internal Server Error: "/metrics": 503 Unavailable: try later\n'
    (line,) = logs
    assert (line["event"], line["log_level"]) == ("access not reviewed", "warning")
    assert (line["user"], line["path"]) == ("system:anonymous", "/metrics")
    assert line["error"] == "503 Unavailable: try later"


async def test_attempts_are_counted_by_their_result() -> None:
    access_check = _Access(ALICE, ALLOWED, ApiError(503))
    for path in ("/metrics", "/metrics", "/configz"):
        await access_check.refusal(path, "of-alice")
    value = access_check.value
    lookups = "authentication_token_cache_request_total"
    assert value(lookups, status="miss") == 1
    assert value(lookups, status="hit") == 2
    assert value("authorization_attempts_total", result="allowed") == 2
    assert value("authorization_attempts_total", result="error") == 1
    assert value("authorization_duration_seconds_count", result="allowed") == 2
    assert value("authenticated_user_requests", username="other") == 3


async def test_a_trailing_star_allows_all_paths_with_the_prefix() -> None:
    access_check = _Access(REFUSED, always_allow_paths=("/metrics*",))
    assert await access_check.refusal("/metrics/resources") is None
    assert await access_check.refusal("/healthz") is not None


@pytest.mark.parametrize("path", ["metrics", "/a*b"])
def test_an_invalid_path_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="begin with /"):
        AccessOptions(always_allow_paths=(path,))


def test_a_refusal_is_a_status_of_the_api() -> None:
    answer = status_response(HTTPStatus.FORBIDDEN, "not you", details={"kind": "pods"})
    assert (answer.status, answer.content_type) == (403, "application/json")
    assert isinstance(answer.body, bytes)
    assert json.loads(answer.body) == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "not you",
        "reason": "Forbidden",
        "details": {"kind": "pods"},
        "code": 403,
    }
