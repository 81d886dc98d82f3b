"""What a pod is the first to ask about devices is found out in steps before its attempt."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from stowage.api.events import DeviceObjectSeen, NodeSeen, PendingPodSeen
from stowage.api.instructions import BindPod, ReportProblem
from stowage.api.interruptible import finish
from stowage.engine import Engine
from stowage.framework import StartLimit
from stowage.plugins.dynamic_resources.plugin import DynamicResources
from stowage.state.devices import published_columns
from stowage.state.devices.selection import EVALUATIONS_PER_STEP
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import Snapshot
from tests.stories.claim_driver import writes_in
from tests.support.builders import make_node, make_pod
from tests.support.device_builders import (
    DRIVER,
    device,
    make_claim,
    make_class,
    make_slice,
    pod_with_claims,
    request,
)
from tests.support.engines import default_engine, of_type
from tests.support.steps import counted

NUM_STEPS = 3
DEVICES_A_SLICE = 100
LAST = f"serial-{NUM_STEPS * EVALUATIONS_PER_STEP - 1}"
SERIAL = f'device.attributes["{DRIVER}"].serial'


def _engine(*expressions: str, count: int = 1, **constraints: Any) -> Engine:
    """Devices with a serial number each, and pods whose claims select by it."""
    engine = default_engine()
    engine.handle([NodeSeen(make_node("a"))], 0.0)
    slices = range(0, NUM_STEPS * EVALUATIONS_PER_STEP, DEVICES_A_SLICE)
    pool = {"name": "a", "generation": 1, "resourceSliceCount": len(slices)}
    for first in slices:
        devices = [
            device(f"d-{number}", attributes={"serial": {"string": f"serial-{number}"}})
            for number in range(first, first + DEVICES_A_SLICE)
        ]
        engine.handle(
            [DeviceObjectSeen(make_slice("a", devices, name=f"s-{first}", pool=pool))], 0.0
        )
    engine.handle([DeviceObjectSeen(make_class())], 0.0)
    selectors = [{"cel": {"expression": each}} for each in expressions]
    for name in ("first", "second"):
        wanted = request(selectors=selectors, count=count)
        claim = make_claim(f"claim-{name}", wanted, **constraints)
        engine.handle([DeviceObjectSeen(claim)], 0.0)
        engine.handle([PendingPodSeen(pod_with_claims(name, f"claim-{name}"))], 0.0)
    return engine


def test_a_selector_is_evaluated_in_steps_for_the_first_pod_that_has_it() -> None:
    engine = _engine(f'{SERIAL} == "{LAST}" || {SERIAL}.endsWith("-none")')
    assert sum(1 for _ in engine.scheduling_steps(0.0, 1)) >= NUM_STEPS
    assert sum(1 for _ in engine.scheduling_steps(0.0, 1)) == 0
    engine.validate()


def test_steps_decide_as_one_call() -> None:
    expressions = (f'{SERIAL}.startsWith("serial-")', f'{SERIAL}.endsWith("{LAST[-4:]}")')
    at_once, in_steps = _engine(*expressions), _engine(*expressions)
    wanted = at_once.schedule(0.0, 1)
    assert finish(in_steps.scheduling_steps(0.0, 1)) == wanted
    (write,) = writes_in(wanted).claims
    assert write.allocation is not None
    (result,) = write.allocation.devices.results
    assert result.device == f"d-{LAST.removeprefix('serial-')}"
    assert in_steps.dump() == at_once.dump()


def test_the_columns_of_attributes_that_have_to_match_are_made_in_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(published_columns, "SIGNATURES_PER_STEP", EVALUATIONS_PER_STEP)
    constraints = [{"requests": ["r"], "matchAttribute": f"{DRIVER}/serial"}]
    at_once, in_steps = (_engine(count=2, constraints=constraints) for _ in range(2))
    wanted = at_once.schedule(0.0, 1)
    num_steps, instructions = counted(in_steps.scheduling_steps(0.0, 1))
    num_columns = 2  # the attribute may be published with its domain, or without
    assert num_steps >= num_columns * NUM_STEPS
    assert instructions == wanted
    assert counted(in_steps.scheduling_steps(0.0, 1))[0] == 0
    at_once.schedule(0.0, 1)
    assert in_steps.dump() == at_once.dump()
    in_steps.validate()


def _failing(
    plugin: DynamicResources, pod: PodInfo, snapshot: Snapshot, start_limit: StartLimit
) -> Iterator[None]:
    yield
    raise ValueError(pod.name)


def test_a_preparation_that_fails_is_reported_and_leaves_the_attempt_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(DynamicResources, "prepare_in_steps", _failing)
    engine = default_engine()
    engine.handle([NodeSeen(make_node("a"))], 0.0)
    engine.handle([DeviceObjectSeen(make_class()), DeviceObjectSeen(make_slice("a", ["d"]))], 0.0)
    engine.handle([DeviceObjectSeen(make_claim("c"))], 0.0)
    engine.handle([PendingPodSeen(pod_with_claims("p", "c")), PendingPodSeen(make_pod("q"))], 0.0)
    steps = engine.scheduling_steps(0.0, 2)
    instructions = finish(steps)
    assert [each.pod.name for each in of_type(BindPod, instructions)] == ["q"]
    assert writes_in(instructions).pod.name == "p"
    (problem,) = of_type(ReportProblem, instructions)
    assert problem.text == "its cycle is not prepared: ValueError('p')"
    engine.validate()
