"""Random lives of pod groups that evict each other: in the end nothing is left to be done."""

from __future__ import annotations

from functools import partial
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from stowage.api.config.feature_gates import parse_feature_gates
from stowage.api.instructions import EvictPod
from tests.stories.gang_driver import GangDriver, make_group, make_member
from tests.support.builders import make_pod

GROUPS = "GenericWorkload=true,GangScheduling=true"
WHOLE = f"{GROUPS},WorkloadAwarePreemption=true"
#: Longer than any backoff.
SETTLE_S = 15.0
NUM_GROUPS, NUM_NODES = 3, 3
PRIORITIES = (1, 50, 100)

groups = st.lists(
    st.tuples(
        st.one_of(st.none(), st.integers(1, 3)),
        st.sampled_from(PRIORITIES),
        st.sampled_from(("Pod", "PodGroup")),
    ),
    min_size=NUM_GROUPS,
    max_size=NUM_GROUPS,
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("member"), st.integers(0, NUM_GROUPS - 1), st.integers(1, 3)),
        st.tuples(st.just("ordinary"), st.sampled_from(PRIORITIES), st.integers(1, 2)),
        st.tuples(st.just("node"), st.integers(0, NUM_NODES - 1), st.integers(1, 4)),
        st.tuples(st.just("victim ends"), st.integers(0, 9), st.just(0)),
        st.tuples(st.just("wait"), st.integers(0, 3), st.just(0)),
    ),
    min_size=5,
    max_size=25,
)


class _Life:
    """A cluster in which victims end late, and are made anew as ordinary controllers do it."""

    def __init__(self, gates: str, defined: list[tuple[int | None, int, str]]) -> None:
        self.driver = GangDriver(gates=parse_feature_gates([gates]))
        self.driver.evict = self._evict
        self.gates = gates
        self.defined = defined
        self.leaving: list[str] = []
        self.nodes: dict[str, str] = {}
        self.number = 0
        for number, (minimum, priority, mode) in enumerate(defined):
            group = make_group(f"g{number}", minimum, priority=priority, disruption_mode=mode)
            self.driver.show_group(group)

    def take(self, action: str, which: int, amount: int) -> None:
        if action == "member":
            self._member(which, str(amount))
        elif action == "ordinary":
            self._new(make_pod, f"o{which}", cpu=str(amount), priority=which)
        elif action == "node":
            self.nodes.setdefault(f"n{which}", str(amount))
            self.driver.add_nodes(f"n{which}", cpu=self.nodes[f"n{which}"])
        elif action == "victim ends" and self.leaving:
            self.driver.delete(self.leaving.pop(which % len(self.leaving)))
        elif action == "wait":
            self.driver.run(float(which))
        self.driver.run()

    def settle(self) -> None:
        """Let all victims end, and those that are evicted for the pods that come in then."""
        for _ in range(8 * len(self.driver.pods) + 8):
            self.driver.run(SETTLE_S)
            if not self.leaving:
                return
            self.driver.delete(self.leaving.pop())
        raise AssertionError(f"evictions without an end: {self.driver.evicted}")

    def again(self) -> GangDriver:
        """A scheduler that sees the cluster as it is now for the first time."""
        fresh = GangDriver(gates=parse_feature_gates([self.gates]))
        for name, cpu in self.nodes.items():
            fresh.add_nodes(name, cpu=cpu)
        for group in self.driver.groups.values():
            fresh.show_group(group)
        for pod in self.driver.pods.values():
            fresh.show(pod)
        return fresh

    def _evict(self, evict: EvictPod) -> None:
        self.driver.start_to_leave(evict)
        name = evict.victim.name
        self.leaving.append(name)
        pod = self.driver.pods[name]
        cpu = pod.spec.containers[0].resources.requests["cpu"]
        if pod.spec.scheduling_group is None:
            priority = pod.spec.priority or 0
            self._new(make_pod, f"o{priority}", cpu=str(cpu), priority=priority)
        else:
            self._member(int(name[1]), str(cpu))

    def _member(self, which: int, cpu: str) -> None:
        make = partial(make_member, group=f"g{which}")
        self._new(make, f"g{which}", cpu=cpu, priority=self.defined[which][1])

    def _new(self, make: Any, prefix: str, **fields: Any) -> None:
        self.number += 1
        self.driver.show(make(f"{prefix}-{self.number}", **fields))


def _check(
    gates: str, defined: list[tuple[int | None, int, str]], taken: list[tuple[str, int, int]]
) -> None:
    life = _Life(gates, defined)
    for step in taken:
        life.take(*step)
    life.settle()
    fresh = life.again()
    fresh.run(SETTLE_S)
    assert fresh.evicted == []
    assert fresh.bound() == life.driver.bound()
    life.driver.check_replay()


@settings(max_examples=30, deadline=None)
@given(defined=groups, taken=steps)
def test_groups_that_evict_as_a_whole_settle(
    defined: list[tuple[int | None, int, str]], taken: list[tuple[str, int, int]]
) -> None:
    _check(WHOLE, defined, taken)


@settings(max_examples=30, deadline=None)
@given(defined=groups, taken=steps)
def test_groups_whose_members_evict_settle(
    defined: list[tuple[int | None, int, str]], taken: list[tuple[str, int, int]]
) -> None:
    _check(GROUPS, defined, taken)
