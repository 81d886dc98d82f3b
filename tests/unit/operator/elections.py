"""Electors and Leases of the tests of the leader election."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from stowage.operator.client.api_error import ApiError
from stowage.operator.leader_election import LeaderElector
from stowage.operator.lease import LeaderElectionOptions
from tests.support.fake_api import FakeApiClient, FakeTime

NOT_FOUND = ApiError(404, "NotFound")


def elector_of(client: FakeApiClient, time: FakeTime) -> LeaderElector:
    """The elector of the replica `me`; it waits without jitter."""
    clock = replace(time.clock, jitter=lambda: 0.0)
    return LeaderElector(client, LeaderElectionOptions(identity="me"), clock)


def lease_of(holder: str, renewed: str = "then", version: str = "1") -> dict[str, Any]:
    """A Lease as the API server answers it; no holder means that it was released."""
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed}
    return {"metadata": {"name": "stowage", "resourceVersion": version}, "spec": spec}
