"""Metrics of the endpoints' authentication and authorization."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from stowage.operator.metrics import definitions
from stowage.operator.metrics.families import CounterVec, HistogramVec

SUCCESS, FAILURE, ERROR = "success", "failure", "error"
ALLOWED, DENIED = "allowed", "denied"
_KNOWN_USERS = (
    "admin",
    "client",
    "kube_proxy",
    "kubelet",
    "system:serviceaccount:kube-system:default",
)


class AccessMetrics(Collector):
    """Counts and times the requests to endpoints that are not open to all clients."""

    def __init__(self) -> None:
        self._users = CounterVec(definitions.AUTHENTICATED_USER_REQUESTS)
        self._authentications = CounterVec(definitions.AUTHENTICATION_ATTEMPTS)
        self._authentication_seconds = HistogramVec(definitions.AUTHENTICATION_DURATION)
        self._token_lookups = CounterVec(definitions.AUTHENTICATION_TOKEN_CACHE_REQUESTS)
        self._authorizations = CounterVec(definitions.AUTHORIZATION_ATTEMPTS)
        self._authorization_seconds = HistogramVec(definitions.AUTHORIZATION_DURATION)

    def observe_authentication(self, result: str, duration_s: float) -> None:
        """Count an attempt: SUCCESS, FAILURE, or ERROR if the token could not be reviewed."""
        self._authentications.add((result,))
        self._authentication_seconds.observe((result,), duration_s)

    def observe_user(self, username: str) -> None:
        """Count a request of an authenticated user."""
        self._users.add((_category(username),))

    def observe_token_lookup(self, *, is_known: bool) -> None:
        """Count a token whose review was or was not in the cache."""
        self._token_lookups.add(("hit" if is_known else "miss",))

    def observe_authorization(self, result: str, duration_s: float) -> None:
        """Count an attempt: ALLOWED, DENIED, or ERROR if access could not be reviewed."""
        self._authorizations.add((result,))
        self._authorization_seconds.observe((result,), duration_s)

    def collect(self) -> Iterator[Metric]:
        """Make the metric families; the registry calls it."""
        yield self._users.family()
        yield self._authentications.family()
        yield self._authentication_seconds.family()
        yield self._token_lookups.family()
        yield self._authorizations.family()
        yield self._authorization_seconds.family()


def _category(username: str) -> str:
    """``compressUsername`` of apiserver: no name of a user is in the metrics."""
    if username in _KNOWN_USERS:
        return username
    return "email_id" if "@" in username else "other"
