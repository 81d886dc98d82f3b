"""Nodes with devices of their own that can use devices on the network as well."""

from __future__ import annotations

from typing import Any

from stowage.api.events import DeviceObjectSeen, NodeSeen, PendingPodSeen
from stowage.api.instructions import BindClaims
from stowage.engine import Engine
from tests.support.builders import make_node
from tests.support.device_builders import (
    make_claim,
    make_class,
    make_slice,
    pod_with_claims,
    request,
)
from tests.support.engines import default_engine, of_type

NUM_NODES = 40
NUM_POOLS = 3
GPU, NIC = request(), request(deviceClassName="nic")
BOTH = [request("gpu"), request("nic", deviceClassName="nic")]
DRIVERS = {"gpu": "gpu.example.com", "nic": "nic.example.com"}


def _engine() -> Engine:
    """Nodes with two GPUs each, and pools of NICs that all of them can use."""
    engine = default_engine()
    for name, driver in DRIVERS.items():
        made = make_class(name, f'device.driver == "{driver}"')
        engine.handle([DeviceObjectSeen(made)], 0.0)
    for name in (f"n{number}" for number in range(NUM_NODES)):
        gpus = make_slice(name, ["gpu-0", "gpu-1"])
        engine.handle([NodeSeen(make_node(name)), DeviceObjectSeen(gpus)], 0.0)
    for name in (f"net-{number}" for number in range(NUM_POOLS)):
        nics = make_slice(name, ["nic-0", "nic-1"], driver=DRIVERS["nic"], allNodes=True)
        engine.handle([DeviceObjectSeen(nics)], 0.0)
    return engine


def _devices_of(engine: Engine, name: str, *requests: dict[str, Any]) -> list[str]:
    """The drivers of the devices that a pod with a claim gets; none if there are too few."""
    claim = make_claim(f"claim-{name}", *requests)
    engine.handle([DeviceObjectSeen(claim)], 0.0)
    engine.handle([PendingPodSeen(pod_with_claims(name, claim.metadata.name))], 0.0)
    written = of_type(BindClaims, engine.schedule(0.0, 1))
    allocations = [each.allocation for writes in written for each in writes.claims]
    return [it.driver for each in allocations if each for it in each.devices.results]


def test_few_nodes_are_searched_when_devices_of_both_kinds_are_allocated_in_turn(
    searched: list[str],
) -> None:
    engine, num_nodes_that_change = _engine(), 2
    for index, (wanted, kinds) in enumerate(
        [([GPU], ["gpu"]), ([NIC], ["nic"]), (BOTH, ["gpu", "nic"])] * 2
    ):
        searched.clear()
        found = _devices_of(engine, f"pod-{index}", *wanted)
        assert found == [DRIVERS[kind] for kind in kinds]
        assert len(searched) <= num_nodes_that_change + 1
    engine.validate()


def test_devices_on_the_network_run_out_on_all_nodes() -> None:
    engine = _engine()
    for index in range(NUM_POOLS * 2):
        assert _devices_of(engine, f"pod-{index}", NIC) == [DRIVERS["nic"]]
    assert _devices_of(engine, "one-more", NIC) == []
    assert _devices_of(engine, "local", GPU) == [DRIVERS["gpu"]]
