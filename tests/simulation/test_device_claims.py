"""The simulated claim controller takes back what no pod needs, as the real controllers do."""

from __future__ import annotations

import asyncio
import random

import pytest

from tests.simulation.device_audit import idle_allocations
from tests.simulation.device_claims import DeviceClaimController
from tests.simulation.device_objects import FINALIZER, WHOLE
from tests.simulation.fault_rates import FaultRates
from tests.simulation.loop import VirtualLoop
from tests.simulation.server import DEVICE_CLAIMS, PODS, Json, ModelServer

SCHEDULER = "stowage"


def test_a_claim_that_the_status_of_its_deleted_owner_does_not_name_is_deleted() -> None:
    """Its scheduler stopped after it wrote the claim, before it named the claim in the status."""
    loop = VirtualLoop()
    server = ModelServer(loop.time)
    DeviceClaimController(loop, server, random.Random(0), FaultRates())
    pod = _create_pod(server)
    _create_claim(server, pod)
    loop.run_until_complete(asyncio.sleep(5))
    assert set(server.collection(DEVICE_CLAIMS)) == {("default", "of-p")}

    server.delete(PODS, ("default", "p"))
    loop.run_until_complete(asyncio.sleep(5))
    loop.close()

    assert not server.collection(DEVICE_CLAIMS)


def test_a_claim_that_a_pod_has_from_a_template_is_made_anew() -> None:
    loop = VirtualLoop()
    server = ModelServer(loop.time)
    DeviceClaimController(loop, server, random.Random(0), FaultRates())
    entry = {"name": "first", "resourceClaimTemplateName": WHOLE}
    _create_pod(server, resourceClaims=[entry])
    loop.run_until_complete(asyncio.sleep(5))
    (made,) = server.collection(DEVICE_CLAIMS)

    server.delete(DEVICE_CLAIMS, made)
    loop.run_until_complete(asyncio.sleep(5))
    loop.close()

    assert set(server.collection(DEVICE_CLAIMS)) == {("default", "p-made-2")}


@pytest.mark.parametrize(("binder", "num_violations"), [("foreign", 0), ("replica-0.1", 1)])
def test_a_claim_that_its_pod_does_not_name_stays_only_if_another_scheduler_bound_the_pod(
    binder: str, num_violations: int
) -> None:
    server = ModelServer(lambda: 0.0)
    _create_claim(server, _create_pod(server))
    server.bind(binder, ("default", "p"), "n")
    assert len(list(idle_allocations(server, [SCHEDULER]))) == num_violations


@pytest.mark.parametrize(("served", "num_violations"), [("another", 0), (SCHEDULER, 1)])
def test_a_claim_that_its_waiting_pod_does_not_name_stays_only_if_the_profile_is_removed(
    served: str, num_violations: int
) -> None:
    server = ModelServer(lambda: 0.0)
    _create_claim(server, _create_pod(server))
    assert len(list(idle_allocations(server, [served]))) == num_violations


@pytest.mark.parametrize(("waited_s", "num_violations"), [(0.5, 0), (1.5, 2)])
def test_the_claim_of_a_pod_that_has_ended_is_taken_back_within_the_usual_delay(
    waited_s: float, num_violations: int
) -> None:
    times = [0.0]
    server = ModelServer(lambda: times[0])
    _create_claim(server, _create_pod(server))
    server.delete(PODS, ("default", "p"))
    times[0] += waited_s
    assert len(list(idle_allocations(server, [SCHEDULER]))) == num_violations


def _create_pod(server: ModelServer, **spec: object) -> Json:
    metadata = {"namespace": "default", "name": "p"}
    spec = {"schedulerName": SCHEDULER, **spec}
    return server.create(PODS, {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}})


def _create_claim(server: ModelServer, pod: Json) -> None:
    owner = {"kind": "Pod", "name": "p", "uid": pod["metadata"]["uid"], "controller": True}
    consumer = {"resource": "pods", "name": "p", "uid": pod["metadata"]["uid"]}
    metadata = {
        "namespace": "default",
        "name": "of-p",
        "ownerReferences": [owner],
        "finalizers": [FINALIZER],
    }
    status = {"allocation": {"devices": {"results": [{"device": "d"}]}}, "reservedFor": [consumer]}
    server.create(DEVICE_CLAIMS, {"metadata": metadata, "spec": {}, "status": status})
