"""A pod group is attempted in steps, between which the engine is not called."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from stowage.api.config.extenders import Extenders
from stowage.api.config.feature_gates import parse_feature_gates
from stowage.api.config.types import Extender
from stowage.api.events import ExtendersAnswered, NodeSeen, PendingPodSeen
from stowage.api.instructions import AttemptResult, BindPod, ConsultExtenders
from stowage.api.interruptible import Interruptible, finish
from stowage.api.status import SUCCESS, Status, unschedulable
from stowage.engine.pod_groups import placements
from stowage.engine.pod_groups.outcome import GroupOutcome
from stowage.engine.pod_groups.placing import free_members
from stowage.framework import CycleState
from stowage.state.pods.pod_info import PodInfo
from tests.stories.gang_driver import GangDriver, make_group
from tests.support.builders import make_node, make_pod
from tests.support.engines import of_type
from tests.support.steps import counted

NUM_MEMBERS = 40


def _gang(
    num_members: int = NUM_MEMBERS, cpu: int = NUM_MEMBERS, *, topology: str = ""
) -> GangDriver:
    """A gang whose members are ready, beside two nodes that have `cpu` CPUs together.

    The nodes are equally good but not alike, so a gang is tried on both.
    """
    driver = GangDriver(choose=lambda num_ties: num_ties - 1, holds_bindings=True)
    for name, zone, gpus in (("a", "east", "1"), ("b", "west", "2")):
        gpu = {"example.com/gpu": gpus}
        driver.add_nodes(name, cpu=str(cpu // 2), labels={"zone": zone}, allocatable=gpu)
    driver.show_group(make_group(min_count=num_members, topology=topology))
    driver.create_members(*(f"p-{number}" for number in range(num_members)))
    return driver


@pytest.mark.parametrize(
    "make",
    [
        _gang,
        lambda: _gang(cpu=NUM_MEMBERS - 2),
        lambda: _gang(topology="zone"),
        lambda: _gang(cpu=NUM_MEMBERS * 2, topology="zone"),
    ],
    ids=["a gang that fits", "a gang that does not fit", "no domain fits", "a domain fits"],
)
def test_steps_decide_what_one_call_decides(make: Callable[[], GangDriver]) -> None:
    at_once, in_steps = make(), make()
    count, answer = counted(in_steps.engine.scheduling_steps(0.0, 1))
    assert answer == at_once.engine.schedule(0.0, 1)
    assert count >= 2 * NUM_MEMBERS
    assert in_steps.engine.dump() == at_once.engine.dump()
    in_steps.engine.validate()
    in_steps.check_replay()


def test_what_is_known_of_domains_that_lose_is_dropped_member_by_member(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To free thousands of members at once would be a long step."""
    dropped: list[int] = []

    def recorded(outcome: GroupOutcome) -> Interruptible[None]:
        for _ in free_members(outcome):
            dropped.append(len(outcome.members))
            yield

    monkeypatch.setattr(placements, "free_members", recorded)
    driver = _gang(cpu=NUM_MEMBERS * 2, topology="zone")
    instructions = finish(driver.engine.scheduling_steps(0.0, 1))
    assert len(of_type(BindPod, instructions)) == NUM_MEMBERS
    assert dropped == [*reversed(range(NUM_MEMBERS))]


def test_permit_is_asked_about_one_member_in_each_step() -> None:
    """It rejects the last one when the gang is bound, and is asked about the others again."""
    asked: list[str] = []

    class Stops:
        name = "Stops"

        def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
            asked.append(pod.name)
            return unschedulable("no") if asked.count("p-9") == 2 else SUCCESS, 0.0

    driver = GangDriver(plugins=[Stops()], holds_bindings=True)
    driver.add_nodes("a", cpu="20")
    driver.show_group(make_group(min_count=10))
    driver.create_members(*(f"p-{number}" for number in range(10)))
    counts = [0, *(len(asked) for _ in driver.engine.scheduling_steps(0.0, 1))]
    assert counts[-1] == 10 + 10 + 9
    assert max(after - before for before, after in pairwise(counts)) == 1


def test_a_group_that_evicts_as_a_whole_tries_in_steps() -> None:
    gates = parse_feature_gates(
        ["GenericWorkload=true,GangScheduling=true,WorkloadAwarePreemption=true"]
    )
    driver = GangDriver(gates=gates)
    driver.add_nodes("a", "b", cpu="1")
    for name, node in (("low-a", "a"), ("low-b", "b")):
        driver.show(make_pod(name, node=node, cpu="1", priority=1))
    driver.show_group(make_group(min_count=2, priority=9))
    driver.create_members("p-0", "p-1", priority=9)
    steps = driver.engine.scheduling_steps(0.0, 1)
    placed = [sum(1 for pod in driver.engine.pods() if pod.node_name) for _ in steps]
    assert min(placed) == 0, "all that it may evict are taken out for the first try"
    assert sorted(pod.name for pod in driver.engine.pods() if pod.node_name) == ["low-a", "low-b"]
    driver.engine.validate()


def test_a_pod_without_a_group_is_one_step() -> None:
    driver = GangDriver()
    driver.add_nodes("a", cpu="4")
    driver.handle(PendingPodSeen(make_pod("alone")))
    count, answer = counted(driver.engine.scheduling_steps(0.0, 4))
    assert count == 0
    assert [each.result for each in answer if isinstance(each, AttemptResult)] == ["scheduled"]


def test_the_engine_refuses_other_calls_before_the_last_step() -> None:
    driver = _gang()
    steps = driver.engine.scheduling_steps(0.0, 1)
    next(steps)
    with pytest.raises(RuntimeError, match="before the last of its steps"):
        driver.engine.handle([NodeSeen(make_node("c"))], 0.0)
    with pytest.raises(RuntimeError, match="before the last of its steps"):
        driver.engine.schedule(0.0, 1)
    finish(steps)
    driver.engine.handle([NodeSeen(make_node("c"))], 0.0)
    driver.engine.validate()


def test_nothing_is_recorded_of_a_call_that_is_dropped() -> None:
    driver = _gang()
    recorded = driver.journal.entries
    steps = driver.engine.scheduling_steps(0.0, 1)
    for _ in range(NUM_MEMBERS):
        next(steps)
    steps.close()
    assert driver.journal.entries == recorded


def test_waiting_members_are_allowed_in_steps() -> None:
    """Members that need extenders wait at Permit; the last one lets all of them go."""
    extender = Extender(url_prefix="http://picky", filter_verb="filter")
    driver = GangDriver(extenders=Extenders((extender,), 100), holds_bindings=True)
    driver.add_nodes("a", cpu=str(NUM_MEMBERS))
    driver.show_group(make_group(min_count=NUM_MEMBERS))
    driver.create_members(*(f"p-{number}" for number in range(NUM_MEMBERS)))
    driver.schedule(NUM_MEMBERS)
    for asked in driver.take(ConsultExtenders):
        driver.handle(ExtendersAnswered(asked.pod.uid, asked.number, asked.node_names))
    driver.schedule(NUM_MEMBERS - 1)
    assert len(driver.engine.waiting_pods()) == NUM_MEMBERS - 1
    count, answer = counted(driver.engine.scheduling_steps(0.0, 1))
    assert count == NUM_MEMBERS - 1
    assert len(of_type(BindPod, answer)) == NUM_MEMBERS
    driver.engine.validate()
    driver.check_replay()
