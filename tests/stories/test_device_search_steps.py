"""Devices are searched for node by node in steps, before the attempt of the first such pod."""

from __future__ import annotations

from typing import Any

from stowage.api.events import DeviceObjectSeen, NodeSeen, PendingPodSeen
from stowage.engine import Engine
from stowage.plugins.dynamic_resources.answers import SEARCHES_PER_STEP
from tests.stories.claim_driver import writes_in
from tests.support.builders import make_node
from tests.support.device_builders import make_claim, make_class, make_slice, pod_with_claims
from tests.support.engines import default_engine
from tests.support.steps import counted

NUM_STEPS = 3
NUM_NODES = NUM_STEPS * SEARCHES_PER_STEP
LIST = [
    {"name": "none", "deviceClassName": "none", "allocationMode": "ExactCount", "count": 1},
    {"name": "one", "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1},
]
FIRST_AVAILABLE = {"name": "r", "firstAvailable": LIST}


def _engine(wanted: dict[str, Any], num_slices: int = 1) -> Engine:
    """Nodes with a device each, and two pods with a claim each."""
    engine = default_engine()
    for name in (f"n{number}" for number in range(NUM_NODES)):
        pool = {"name": name, "generation": 1, "resourceSliceCount": num_slices}
        made = make_slice(name, ["d"], pool=pool)
        engine.handle([NodeSeen(make_node(name)), DeviceObjectSeen(made)], 0.0)
    engine.handle([DeviceObjectSeen(make_class())], 0.0)
    engine.handle([DeviceObjectSeen(make_class("none", "false"))], 0.0)
    for name in ("first", "second"):
        engine.handle([DeviceObjectSeen(make_claim(f"claim-{name}", wanted))], 0.0)
        engine.handle([PendingPodSeen(pod_with_claims(name, f"claim-{name}"))], 0.0)
    return engine


def test_nodes_are_searched_in_steps_for_the_first_pod_and_decided_as_in_one_call() -> None:
    at_once, in_steps = _engine(FIRST_AVAILABLE), _engine(FIRST_AVAILABLE)
    wanted = at_once.schedule(0.0, 1)
    num_steps, instructions = counted(in_steps.scheduling_steps(0.0, 1))
    assert num_steps >= NUM_STEPS
    assert instructions == wanted
    (write,) = writes_in(instructions).claims
    assert write.allocation is not None
    assert [each.request for each in write.allocation.devices.results] == ["r/one"]
    assert counted(in_steps.scheduling_steps(0.0, 1))[0] == 0
    at_once.schedule(0.0, 1)
    assert in_steps.dump() == at_once.dump()
    in_steps.validate()


def test_a_node_whose_search_fails_is_searched_once_in_an_attempt(
    searched: list[str],
) -> None:
    """The pools are incomplete, and a request for all devices of them is an error."""
    every_device = {"deviceClassName": "gpu", "allocationMode": "All"}
    engine = _engine({"name": "r", "exactly": every_device}, num_slices=2)
    engine.schedule(0.0, 1)
    assert len(searched) == len(set(searched)) == NUM_NODES
    engine.schedule(0.0, 1)
    assert len(searched) == 2 * NUM_NODES
