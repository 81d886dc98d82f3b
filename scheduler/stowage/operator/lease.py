"""The coordination.k8s.io/v1 Lease of the leader election: options, requests and its spec."""

from __future__ import annotations

import math
from typing import Any

import aiohttp
import msgspec

from stowage.operator.client.api_client import ApiClient
from stowage.operator.client.api_error import ApiError
from stowage.operator.client.resource_version import parse_resource_version

LEASE_API = "coordination.k8s.io/v1"

RELEASED_DURATION_S = 1
"""Duration of a released lease, as client-go writes it."""


class LeaderElectionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the leader election.

    Attributes:
        identity: Identity of this replica, unique among the replicas.
        lease_name: Name of the Lease.
        lease_namespace: Namespace of the Lease.
        lease_duration_s: How long candidates wait for a leader that does not renew the lease.
        renew_deadline_s: How long a leader tries to renew the lease before it steps down.
        retry_period_s: Time between two attempts.
    """

    identity: str
    lease_name: str = "stowage"
    lease_namespace: str = "kube-system"
    lease_duration_s: float = 15.0
    renew_deadline_s: float = 10.0
    retry_period_s: float = 2.0

    def __post_init__(self) -> None:
        if not self.lease_duration_s > self.renew_deadline_s > self.retry_period_s > 0:
            raise ValueError(
                "leaderElection: expected leaseDuration > renewDeadline > retryPeriod > 0, got "
                f"{self.lease_duration_s} s, {self.renew_deadline_s} s, {self.retry_period_s} s"
            )


class _Name(msgspec.Struct, frozen=True):
    name: str


class _LeaseSpec(msgspec.Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    lease_transitions: int | None = None


class _LeaseSchema(msgspec.Struct, frozen=True):
    """The types of the fields that the election uses."""

    metadata: _Name
    spec: _LeaseSpec | None = None


class LeaseClient:
    """Reads and writes the Lease.

    Every method raises `ApiError`, one of `LOST_ANSWER_ERRORS`, or `msgspec.DecodeError` if the
    answer is not the Lease.

    Args:
        client: Client of the API server.
        options: Name, namespace and times of the Lease.
    """

    def __init__(self, client: ApiClient, options: LeaderElectionOptions) -> None:
        self._client = client
        self._options = options
        self._collection = (
            f"/apis/coordination.k8s.io/v1/namespaces/{options.lease_namespace}/leases"
        )
        self._path = f"{self._collection}/{options.lease_name}"

    async def get(self) -> dict[str, Any] | None:
        """The Lease with a spec, which may be empty; None if the Lease does not exist."""
        try:
            return self._decode(await self._client.get(self._path, None, self._timeout()))
        except ApiError as error:
            if error.status != 404:
                raise
            return None

    async def create(self, spec: dict[str, Any]) -> dict[str, Any]:
        """Create the Lease."""
        body = {
            "apiVersion": LEASE_API,
            "kind": "Lease",
            "metadata": {
                "name": self._options.lease_name,
                "namespace": self._options.lease_namespace,
            },
            "spec": spec,
        }
        encoded = msgspec.json.encode(body)
        return self._decode(await self._client.post(self._collection, encoded, self._timeout()))

    async def update(self, lease: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
        """Replace the spec; the server answers 409 if the Lease has changed since it was read."""
        body = msgspec.json.encode({**lease, "spec": spec})
        return self._decode(await self._client.put(self._path, body, self._timeout()))

    async def release(self, lease: dict[str, Any], now: str) -> None:
        """Replace the spec by one without holder."""
        spec = {
            **lease.get("spec", {}),
            "holderIdentity": "",
            "leaseDurationSeconds": RELEASED_DURATION_S,
            "renewTime": now,
        }
        body = msgspec.json.encode({**lease, "spec": spec})
        # A short timeout: without the release, candidates wait until the lease expires.
        await self._client.put(self._path, body, _exact_timeout(self._options.retry_period_s))

    def _timeout(self) -> aiohttp.ClientTimeout:
        return _exact_timeout(self._options.renew_deadline_s / 2)

    def _decode(self, body: bytes) -> dict[str, Any]:
        found = msgspec.json.decode(body, type=_LeaseSchema)
        if found.metadata.name != self._options.lease_name:
            raise msgspec.ValidationError(f"not the lease, but {found.metadata.name!r}")
        lease: dict[str, Any] = msgspec.json.decode(body)
        return {**lease, "spec": lease.get("spec") or {}}


def held_spec(previous: dict[str, Any], options: LeaderElectionOptions, now: str) -> dict[str, Any]:
    """The spec of a Lease that this replica acquires or renews; keeps fields it does not know.

    Args:
        previous: The spec before; empty for a new Lease.
        options: Identity and duration.
        now: The present time with microseconds.
    """
    transitions = previous.get("leaseTransitions") or 0
    is_renewal = previous.get("holderIdentity") == options.identity
    return {
        **previous,
        "holderIdentity": options.identity,
        # Rounded up: candidates must not wait for less time than the leader counts on.
        "leaseDurationSeconds": math.ceil(options.lease_duration_s),
        "acquireTime": previous.get("acquireTime", now) if is_renewal else now,
        "renewTime": now,
        "leaseTransitions": transitions if is_renewal or not previous else transitions + 1,
    }


def version_of(lease: dict[str, Any]) -> int:
    """The resource version of a Lease; 0 if it has none."""
    return parse_resource_version(lease.get("metadata", {}).get("resourceVersion", ""))


def _exact_timeout(seconds: float) -> aiohttp.ClientTimeout:
    """A timeout that aiohttp does not round up to whole seconds, as it does by default."""
    return aiohttp.ClientTimeout(total=seconds, ceil_threshold=math.inf)
