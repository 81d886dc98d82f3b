"""Delegated authentication and authorization: the API server decides who may read the endpoints.

    always allowed path --------------------------------------------> served
    client certificate ----------> user --SubjectAccessReview--> served, or 403
    bearer token --TokenReview--> user --SubjectAccessReview--> served, or 403
    neither ------> system:anonymous --SubjectAccessReview--> served, or 403

Answers are cached, for ten seconds by default. The cache contains hashes of tokens only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import aiohttp
import msgspec
import structlog
from aiohttp import web
from cachetools import TTLCache

from stowage.operator.client.api_client import LOST_ANSWER_ERRORS, ApiClient
from stowage.operator.client.api_error import ApiError
from stowage.operator.client.outage_log import plain_message
from stowage.operator.metrics.access_metrics import (
    ALLOWED,
    DENIED,
    ERROR,
    FAILURE,
    SUCCESS,
    AccessMetrics,
)

TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105 - a path
SUBJECT_ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
MAX_REMEMBERED = 1_000
REVIEW_TIMEOUT = aiohttp.ClientTimeout(total=10, sock_connect=5)

log = structlog.get_logger("stowage.operator.serving.delegated_access")


class User(msgspec.Struct, frozen=True):
    """A user, as in a TokenReview."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


ANONYMOUS = User("system:anonymous", groups=("system:unauthenticated",))


class _TokenStatus(msgspec.Struct, frozen=True):
    authenticated: bool = False
    user: User = User()
    error: str = ""


class _TokenReview(msgspec.Struct, frozen=True):
    status: _TokenStatus = _TokenStatus()


class _AccessStatus(msgspec.Struct, frozen=True):
    allowed: bool = False
    reason: str = ""


class _AccessReview(msgspec.Struct, frozen=True):
    status: _AccessStatus = _AccessStatus()


class AccessOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of delegated authentication and authorization.

    Attributes:
        always_allow_paths: Paths without authorization; a path ending in ``*`` is a prefix.
        token_ttl_s: ``--authentication-token-webhook-cache-ttl``.
        authorized_ttl_s: ``--authorization-webhook-cache-authorized-ttl``.
        unauthorized_ttl_s: ``--authorization-webhook-cache-unauthorized-ttl``.
        authentication_kubeconfig: Kubeconfig for TokenReviews; None for the scheduler's own.
        authorization_kubeconfig: Kubeconfig for SubjectAccessReviews; None for the scheduler's own.
    """

    always_allow_paths: tuple[str, ...] = ("/healthz", "/readyz", "/livez")
    token_ttl_s: float = 10.0
    authorized_ttl_s: float = 10.0
    unauthorized_ttl_s: float = 10.0
    authentication_kubeconfig: str | None = None
    authorization_kubeconfig: str | None = None

    def __post_init__(self) -> None:
        for path in self.always_allow_paths:
            if not path.startswith("/") or "*" in path[:-1]:
                raise ValueError(
                    f"paths that begin with / and have * at their end only, not {path}"
                )


class DelegatedAccess:
    """Authenticates and authorizes requests by reviews at the API server.

    Args:
        client: Client of the API server for TokenReviews.
        options: Always allowed paths, and how long answers are cached.
        monotonic: Returns monotonic seconds.
        authorization_client: Client for SubjectAccessReviews; None for `client`.

    Attributes:
        metrics: Counts the attempts.
    """

    def __init__(
        self,
        client: ApiClient,
        options: AccessOptions,
        monotonic: Callable[[], float],
        authorization_client: ApiClient | None = None,
    ) -> None:
        self.metrics = AccessMetrics()
        self._client = client
        self._monotonic = monotonic
        self._authorization_client = authorization_client or client
        self._options = options
        self._users: TTLCache[bytes, User | None] = TTLCache(
            MAX_REMEMBERED, options.token_ttl_s, monotonic
        )
        self._allowed: TTLCache[Any, _AccessStatus] = TTLCache(
            MAX_REMEMBERED, options.authorized_ttl_s, monotonic
        )
        self._refused: TTLCache[Any, _AccessStatus] = TTLCache(
            MAX_REMEMBERED, options.unauthorized_ttl_s, monotonic
        )

    async def refusal(self, request: web.Request) -> web.Response | None:
        """The answer to a request that is refused; None if the request may be served."""
        path, verb = request.path, request.method.lower()
        if self._is_always_allowed(path):
            return None
        user = await self._user(request)
        if user is None:
            return status_response(HTTPStatus.UNAUTHORIZED, "Unauthorized")
        started = self._monotonic()
        try:
            access = await self._authorize(user, path, verb)
        except (ApiError, *LOST_ANSWER_ERRORS, msgspec.DecodeError) as error:
            self.metrics.observe_authorization(ERROR, self._monotonic() - started)
            log.warning(
                "access not reviewed", user=user.username, path=path, error=plain_message(error)
            )
            text = f'Internal Server Error: "{request.path_qs}": {error}\n'
            return web.Response(status=500, text=text)
        result = ALLOWED if access.allowed else DENIED
        self.metrics.observe_authorization(result, self._monotonic() - started)
        if access.allowed:
            return None
        message = f'forbidden: User "{user.username}" cannot {verb} path "{path}"'
        message = f"{message}: {access.reason}" if access.reason else message
        return status_response(HTTPStatus.FORBIDDEN, message, details={})

    def _is_always_allowed(self, path: str) -> bool:
        return any(
            path.startswith(allowed[:-1]) if allowed.endswith("*") else path == allowed
            for allowed in self._options.always_allow_paths
        )

    async def _user(self, request: web.Request) -> User | None:
        """The user of a request; None if its token is invalid or cannot be reviewed."""
        started = self._monotonic()
        result, user = SUCCESS, _certificate_user(request)
        try:
            if user is None:
                user = await self._authenticate(request.headers.get("Authorization", ""))
        except (ApiError, *LOST_ANSWER_ERRORS, msgspec.DecodeError) as error:
            log.warning("token not reviewed", error=plain_message(error))
            result = ERROR
        if user is not None:
            self.metrics.observe_user(user.username)
        elif result is SUCCESS:
            result = FAILURE
        self.metrics.observe_authentication(result, self._monotonic() - started)
        return user

    async def _authenticate(self, authorization: str) -> User | None:
        """The user of a bearer token; None if the token is invalid.

        Raises:
            ApiError: the token cannot be reviewed; or one of `LOST_ANSWER_ERRORS`, or DecodeError.
        """
        scheme, _, token = authorization.strip().partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return ANONYMOUS
        key = hashlib.sha256(token.encode(errors="surrogateescape")).digest()
        is_known = key in self._users
        self.metrics.observe_token_lookup(is_known=is_known)
        if is_known:
            return self._users[key]
        review = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token},
        }
        try:
            body = msgspec.json.encode(review)
        except UnicodeEncodeError:
            return None
        answer = await self._client.post(TOKEN_REVIEWS, body, REVIEW_TIMEOUT)
        status = msgspec.json.decode(answer, type=_TokenReview).status
        user = status.user if status.authenticated else None
        self._users[key] = user
        return user

    async def _authorize(self, user: User, path: str, verb: str) -> _AccessStatus:
        key = (user.username, user.uid, user.groups, repr(user.extra), path, verb)
        known = self._allowed.get(key) or self._refused.get(key)
        if known is not None:
            return known
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": user.username,
                "uid": user.uid,
                "groups": user.groups,
                "extra": user.extra,
                "nonResourceAttributes": {"path": path, "verb": verb},
            },
        }
        body = msgspec.json.encode(review)
        answer = await self._authorization_client.post(SUBJECT_ACCESS_REVIEWS, body, REVIEW_TIMEOUT)
        status = msgspec.json.decode(answer, type=_AccessReview).status
        (self._allowed if status.allowed else self._refused)[key] = status
        return status


def _certificate_user(request: web.Request) -> User | None:
    """The user of a verified client certificate; None if the client sent none.

    As in ``CommonNameUserConversion``, the common name is the user, each organization a group.
    """
    transport = request.transport
    certificate = transport.get_extra_info("peercert") if transport is not None else None
    if not certificate:
        return None
    parts = [part for group in certificate.get("subject", ()) for part in group]
    names = [value for key, value in parts if key == "commonName"]
    groups = [value for key, value in parts if key == "organizationName"]
    if not names or not names[-1]:
        return None
    return User(names[-1], groups=(*groups, "system:authenticated"))


def status_response(code: HTTPStatus, message: str, **fields: Any) -> web.Response:
    """A ``metav1.Status`` failure, as the API server's own filters answer."""
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": code.phrase,
        **fields,
        "code": int(code),
    }
    body = msgspec.json.encode(status) + b"\n"
    return web.Response(status=code, body=body, content_type="application/json")
