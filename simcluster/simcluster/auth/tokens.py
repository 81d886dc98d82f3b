"""Tokens of service accounts: issues them for TokenRequests and checks their signatures."""

import base64
import binascii
import hashlib
import hmac
import secrets
from typing import Any, NamedTuple

import msgspec

from simcluster.apiserver import errors
from simcluster.auth.users import User, service_account_user
from simcluster.clock import Clock, timestamp
from simcluster.kinds.resources import SERVICE_ACCOUNTS
from simcluster.store.store import Store, Stored, encode

Json = dict[str, Any]

ISSUER = "https://kubernetes.default.svc.cluster.local"
DEFAULT_SECONDS = 3600
_SHORTEST_S, _LONGEST_S = 600, 1 << 32
_HEADER = {"alg": "HS256", "kid": "stowage"}


class _Claims(NamedTuple):
    namespace: str
    name: str
    uid: str
    expires: int


class TokenIssuer:
    """Issues and checks tokens.

    Tokens are JSON Web Tokens signed with a key of this process.

    Args:
        store: of the service accounts; the token of a deleted account is not valid.
        clock: decides when tokens expire.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._key = secrets.token_bytes(32)

    def answer(self, account: Stored, request: Json) -> Json:
        """Complete a ``TokenRequest`` with a token.

        Raises:
            ApiError: 422, the asked lifetime is too short or too long.
        """
        spec = request.get("spec") or {}
        seconds = spec.get("expirationSeconds", DEFAULT_SECONDS)
        _check_lifetime(seconds)
        audiences = spec.get("audiences") or [ISSUER]
        now = int(self._clock.time_s())
        token = self._signed(account, audiences, now, seconds)
        return {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {
                "name": account.name,
                "namespace": account.namespace,
                "creationTimestamp": timestamp(now),
            },
            "spec": {**spec, "audiences": audiences, "expirationSeconds": seconds},
            "status": {"token": token, "expirationTimestamp": timestamp(now + seconds)},
        }

    def _signed(self, account: Stored, audiences: list[str], now: int, seconds: int) -> str:
        uid = account.obj["metadata"]["uid"]
        payload = {
            "aud": audiences,
            "exp": now + seconds,
            "iat": now,
            "iss": ISSUER,
            "jti": secrets.token_hex(16),
            "kubernetes.io": {
                "namespace": account.namespace,
                "serviceaccount": {"name": account.name, "uid": uid},
            },
            "nbf": now,
            "sub": f"system:serviceaccount:{account.namespace}:{account.name}",
        }
        body = f"{_packed(encode(_HEADER))}.{_packed(encode(payload))}"
        return f"{body}.{_packed(self._signature(body))}"

    def _signature(self, body: str) -> bytes:
        return hmac.digest(self._key, body.encode(), hashlib.sha256)

    def user_of(self, token: str) -> User | None:
        """The service account of a valid token issued here; ``None`` for any other token."""
        claims = self._claims(token)
        if claims is None or claims.expires <= self._clock.time_s():
            return None
        account = self._store.get(SERVICE_ACCOUNTS.stored_in, claims.namespace, claims.name)
        if account is None or account.obj["metadata"]["uid"] != claims.uid:
            return None
        return service_account_user(claims.namespace, claims.name)

    def _claims(self, token: str) -> _Claims | None:
        body, _, signature = token.rpartition(".")
        if body.count(".") != 1:
            return None
        try:
            given = _unpacked(signature)
            if not hmac.compare_digest(given, self._signature(body)):
                return None
            payload = msgspec.json.decode(_unpacked(body.partition(".")[2]))
        except (binascii.Error, ValueError):
            return None
        bound = payload["kubernetes.io"]
        account = bound["serviceaccount"]
        return _Claims(bound["namespace"], account["name"], account["uid"], payload["exp"])


def _check_lifetime(seconds: Any) -> None:
    if not isinstance(seconds, int) or seconds < _SHORTEST_S:
        detail = "may not specify a duration less than 10 minutes"
    elif seconds > _LONGEST_S:
        detail = "may not specify a duration larger than 2^32 seconds"
    else:
        return
    error = errors.invalid_value("spec.expirationSeconds", seconds, detail)
    raise errors.invalid("authentication.k8s.io", "TokenRequest", "", [error])


def _packed(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _unpacked(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
