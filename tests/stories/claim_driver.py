"""An engine driver for resource claims: pods with claims, and the answers to their writes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from stowage.api.events import ClaimsWritten, DeviceObjectSeen, PendingPodSeen
from stowage.api.instructions import BindClaims, BindPod, EmitEvent, Instruction
from stowage.api.objects.device import DeviceObject, ResourceClaim
from stowage.api.values.claim_writes import with_finalizer, with_reservation
from tests.support.device_builders import (
    device,
    make_class,
    make_slice,
    pod_with_claims,
    with_version,
)
from tests.support.engines import DEFAULT_PROFILE, default_engine, of_type
from tests.support.models.engine_driver import EngineDriver

PROFILE = {
    **DEFAULT_PROFILE,
    "pluginConfig": [{"name": "DynamicResources", "args": {"bindingTimeout": "30s"}}],
}
WRITTEN_AT = "1970-01-01T00:00:00Z"


class ClaimDriver(EngineDriver):
    """An engine with two nodes, each with the devices ``gpu-0`` and ``gpu-1``."""

    def __init__(self, *objects: DeviceObject, **fields: Any) -> None:
        self.wall_time_s = 0.0
        make = partial(default_engine, profile=PROFILE)
        super().__init__(make, wall_clock=lambda: self.wall_time_s)
        self.add_nodes("n0", "n1")
        listed = [device(name, **fields) for name in ("gpu-0", "gpu-1")]
        self.show(make_class(resource="example.com/gpu"))
        self.show(make_slice("n0", listed), make_slice("n1", listed), *objects)

    def show(self, *objects: DeviceObject) -> list[Instruction]:
        """Show objects to the engine."""
        return self.handle(*(DeviceObjectSeen(each) for each in objects))

    def schedule_pod(self, name: str, *claims: str, **fields: Any) -> list[Instruction]:
        """Create a pod with these claims and schedule it."""
        self.handle(PendingPodSeen(pod_with_claims(name, *claims, **fields)))
        return self.schedule()

    def answer(self, writes: BindClaims, error: str = "", version: str = "5") -> list[Instruction]:
        """Answer the writes of a pod: all made, or none with an error."""
        claims = () if error else tuple(written(writes, version))
        return self.handle(ClaimsWritten(writes.pod.uid, writes.number, claims, None, error))

    @property
    def in_flight(self) -> set[str]:
        """The claims that have devices in flight."""
        return set(self.engine.state.cache.snapshot().devices.in_flight)


def written(writes: BindClaims, version: str = "5") -> list[ResourceClaim]:
    """The claims as the API server returns them."""
    return [
        with_version(
            with_reservation(with_finalizer(each.claim), each, writes.pod, WRITTEN_AT), version
        )
        for each in writes.claims
    ]


def writes_in(instructions: Sequence[Instruction]) -> BindClaims:
    """The only writes of claims among the instructions."""
    (writes,) = of_type(BindClaims, instructions)
    return writes


def bound_to(instructions: Sequence[Instruction]) -> list[str]:
    """The nodes that pods are bound to."""
    return [each.node_name for each in of_type(BindPod, instructions)]


def failures(instructions: Sequence[Instruction]) -> list[str]:
    """The notes of the failed attempts."""
    events = of_type(EmitEvent, instructions)
    return [event.note for event in events if event.reason == "FailedScheduling"]
